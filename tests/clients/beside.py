"""What is looked up beside the product. Runs within it, called by a `Hand`."""

from chat.models import Turn


def open_turns(room: str) -> int:
    """How many turns of a conversation have not had their last transaction."""
    return Turn.objects.filter(instance__name=room, finished_at=None).count()
