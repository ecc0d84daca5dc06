"""An app of the executor of a chaos run alone: it has the function that the clerk's tool asks for."""
