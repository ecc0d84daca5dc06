"""An app of an executor's process alone: it has the functions that the agents of the desk ask for."""
