"""Recorded answers of providers, as they send them, and the reading of the folder."""
