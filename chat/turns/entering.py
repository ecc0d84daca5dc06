"""Messages that enter a conversation when their turn starts, and not before: all of them or none.

Until then they are kept with the turn. A turn that is stopped before it starts leaves none of them.
"""

from typing import Final

from django.utils import timezone

from chat.models import Turn
from sessions_app.services import queue_messages
from thinkproject.kernel.jsonvalue import JSONObject

LATER: Final = "later"
"""Name of the messages in a turn's options."""


def enter_messages(turn: Turn) -> None:
    """Move what the turn keeps into the conversation, unplaced. Inside the transaction that begins the turn."""
    if LATER in turn.options:
        turn.input_ids = queue_messages(turn.session_id, turn.options[LATER], turn_id=turn.pk)
        turn.options = _without_later(turn.options)
        turn.save(update_fields=["input_ids", "options"])


def end_unbegun(turn_id: str) -> None:
    """Note the end of a turn that nobody began, in the transaction that stops it, and drop what it keeps."""
    Turn.objects.filter(pk=turn_id).update(finished_at=timezone.now())
    turn = Turn.objects.filter(pk=turn_id).only("options").first()
    if turn is not None and LATER in turn.options:
        turn.options = _without_later(turn.options)
        turn.save(update_fields=["options"])


def _without_later(options: JSONObject) -> JSONObject:
    return {key: value for key, value in options.items() if key != LATER}
