"""Changes of messages that have no place yet: taken out, edited, put in another order. Each call is one write."""

from collections.abc import Sequence

from sessions_app.core.messages import shapes
from sessions_app.core.messages.messages import to_ui
from sessions_app.messages.writer import prepare, writing
from sessions_app.models import Message


def withdraw_queued(session_id: str, ids: Sequence[str]) -> list[shapes.Message]:
    """Take queued messages out of a session, in this order: the caller keeps them elsewhere in the same transaction.

    Each says when it was accepted (`sentAt`). Those that have a place, or are unknown, are left out.
    **Errors:** `SessionNotFound`.
    """
    with writing(session_id) as writer:
        found = writer.find(ids)
        rows = [found[message_id] for message_id in ids if message_id in found and found[message_id].placed_at is None]
        if rows:
            Message.objects.filter(pk__in=[row.pk for row in rows]).erase()
            writer.changed = True
        return [
            {**to_ui(row.message_id, row.role, row.content, row.author), "sentAt": row.created_at.isoformat()}
            for row in rows
        ]


def edit_queued(session_id: str, message: shapes.Message, *, version: int) -> int | None:
    """Give a queued message other content, if it is of this version still; returns its new version.

    Nothing where it has been changed or placed since, or is gone. A version is the number of the message's last change.
    **Errors:** `SessionNotFound`; `MessageInvalid`.
    """
    prepared = prepare(message)
    with writing(session_id) as writer:
        row = writer.find([prepared["id"]]).get(prepared["id"])
        if row is None or row.placed_at is not None or row.change_seq != version:
            return None
        return writer.change_seq if writer.rewrite(row, prepared) else version


def order_queue(session_id: str, turn_ids: Sequence[str]) -> None:
    """Put the queued messages of these turns in this order, among the places that they have. Others stay.

    **Errors:** `SessionNotFound`.
    """
    with writing(session_id) as writer:
        of_turn: dict[str, list[Message]] = {}
        for row in Message.objects.queue_of(session_id).filter(turn_id__in=turn_ids):
            of_turn.setdefault(row.turn_id, []).append(row)
        places = sorted({row.queued_position for rows in of_turn.values() for row in rows if row.queued_position})
        for place, turn_id in zip(places, [each for each in turn_ids if each in of_turn], strict=True):
            moved = Message.objects.filter(pk__in=[row.pk for row in of_turn[turn_id]])
            moved.update(queued_position=place)
            writer.changed = True
