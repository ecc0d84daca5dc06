"""Feedback of people on answers: one word of each person about each answer, which goes with the answer."""

from collections.abc import Iterator
from typing import Any, Final

from django.db.models import Exists, OuterRef, QuerySet

from chat.errors import InputInvalid
from chat.models import AgentInstance, MessageFeedback
from sessions_app.errors import MessageNotFound
from sessions_app.messages import selectors
from sessions_app.models import Message
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase

MAX_LISTED: Final = 2_000


def feedback_in(instance: AgentInstance, user_id: Any) -> list[MessageFeedback]:
    """The words of a person about the answers of the current history, the newest first. One query."""
    rows = MessageFeedback.objects.filter(session_id=instance.session_id, user_id=user_id)
    return list(rows.order_by("-updated_at", "-pk")[:MAX_LISTED])


def give_feedback(
    instance: AgentInstance, message_id: str, user_id: Any, *, is_good: bool, reason: str
) -> MessageFeedback:
    """Keep a person's word about an answer, in the place of an earlier one.

    Errors: `MessageNotFound`; `InputInvalid` for a message that is no answer.
    """
    found = None if instance.session_id is None else selectors.get_message(instance.session_id, message_id)
    if found is None or instance.session_id is None:
        raise MessageNotFound(Phrase("Message {id!r} is not in this conversation.", id=message_id))
    if found.role != "assistant":
        raise InputInvalid("Only answers get feedback.")
    row, _made = MessageFeedback.objects.update_or_create(
        session_id=instance.session_id,
        message_id=message_id,
        user_id=user_id,
        defaults={"instance": instance, "is_good": is_good, "reason": reason},
    )
    return row


def take_feedback_back(instance: AgentInstance, message_id: str, user_id: Any) -> None:
    """Forget a person's word about an answer. Twice is once."""
    MessageFeedback.objects.filter(session_id=instance.session_id, message_id=message_id, user_id=user_id).delete()


def forget_feedback_in(session_id: str) -> None:
    """Forget what is about a history that is emptied, in that transaction."""
    MessageFeedback.objects.filter(session_id=session_id).delete()


def prune_feedback(*, limit: int = 1_000) -> int:
    """Remove what is about answers that code has deleted. Returns how many."""
    ids = list(feedback_without_answer().order_by("pk").values_list("pk", flat=True)[:limit])
    return MessageFeedback.objects.filter(pk__in=ids).delete()[0] if ids else 0


def feedback_without_answer() -> QuerySet[MessageFeedback]:
    """Feedback whose answer is gone. An answer that a fork shares with its origin is there under both."""
    there = Message.objects.filter(message_id=OuterRef("message_id"))
    return MessageFeedback.objects.filter(~Exists(there))


def feedback_of(user_id: Any) -> Iterator[JSONObject]:
    """All that a person has given, for an export."""
    rows = MessageFeedback.objects.filter(user_id=user_id).order_by("pk")
    for row in rows.iterator(chunk_size=500):
        yield {
            "conversation": row.instance_id,
            "message": row.message_id,
            "good": row.is_good,
            "reason": row.reason,
            "at": row.updated_at.isoformat(),
        }
