"""Messages that enter a conversation when their turn starts, and not before: all of them or none.

Until then they are kept with the turn. A turn that is stopped before it starts leaves none of them.
"""

from collections.abc import Callable
from typing import Final, cast

from django.db import transaction
from django.utils import timezone

from chat.models import Turn, TurnOptions
from chat.turns.state.inbox_rows import FROM_INBOX, take_messages
from sessions_app.messages.services import queue_messages

DEFERRED: Final = "later"
"""Name of the messages in a turn's options."""


def add_deferred_messages(turn: Turn) -> None:
    """Move a turn's deferred messages into the conversation, unplaced. Inside the transaction that begins the turn."""
    if turn.options.get(FROM_INBOX):
        turn.input_ids = queue_messages(turn.session_id, take_messages(turn), turn_id=turn.pk, author=turn.author)
        turn.save(update_fields=["input_ids"])
    if DEFERRED not in turn.options:
        return
    row = Turn.objects.select_for_update().only("options").get(pk=turn.pk)
    later = row.options.get(DEFERRED, ())
    turn.input_ids = queue_messages(turn.session_id, later, turn_id=turn.pk, author=turn.author)
    turn.options = _without_later(row.options)
    turn.save(update_fields=["input_ids", "options"])


def end_not_started(turn_id: str) -> None:
    """Record the end of a turn that never began, and drop its messages. In the transaction that stops it."""
    change_options(turn_id, _without_later)
    Turn.objects.filter(pk=turn_id).update(finished_at=timezone.now())


@transaction.atomic
def change_options(turn_id: str, change: Callable[[TurnOptions], TurnOptions]) -> bool:
    """Change the options of a turn that has neither begun nor ended, under a lock; false when it has, or is gone."""
    rows = Turn.objects.select_for_update().filter(pk=turn_id, started_at=None, finished_at=None)
    turn = rows.only("options").first()
    if turn is None:
        return False
    options = change(turn.options)
    if options != turn.options:
        Turn.objects.filter(pk=turn_id).update(options=options)
    return True


def _without_later(options: TurnOptions) -> TurnOptions:
    return cast("TurnOptions", {key: value for key, value in options.items() if key != DEFERRED})
