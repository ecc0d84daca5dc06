"""A step of a migration that changes names and labels and no table, at the cost of one change.

Django draws all models anew after each change of a field whose models were drawn before, which for 180 labels is nearly
half of what a new installation waits for. Here they are drawn once, when the next step needs them.
"""

from django.db.migrations import SeparateDatabaseAndState
from django.db.migrations.state import ProjectState


class StateOnly(SeparateDatabaseAndState):
    """Changes of the state of models without SQL; takes `state_operations` only."""

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Apply all changes to the state."""
        state.__dict__.pop("apps", None)  # a cached property, drawn from the state when it is next read
        super().state_forwards(app_label, state)
