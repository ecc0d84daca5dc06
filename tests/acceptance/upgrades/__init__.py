"""Deploys of real processes: what waits across them goes on once, whichever of them are there."""
