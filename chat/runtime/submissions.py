"""Submissions: messages that were handed in for an answer, durably, and are not waited for.

A submission is a turn that a program started under a key of its own (its idempotency key, made up where the caller
gave none). Its status is the turn's. Its messages enter the conversation when the turn starts.
"""

from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from chat.agent.base import InstanceKey
from chat.agent.values.turns import Submission
from chat.errors import InputInvalid, TurnConflict
from chat.instances.rows import find_instance
from chat.models import Turn, TurnTrigger
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from chat.turns.admission.stop import cancel_turn
from chat.turns.state.status import turn_status
from sessions_app.core.messages.shapes import NewMessage
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, byte_size
from thinkproject.kernel.phrases import Phrase

MAX_KEY: Final = 128
MAX_METADATA_BYTES: Final = 16 * 1024
MAX_LIST: Final = 200


@dataclass(frozen=True, slots=True)
class InstanceSubmissions:
    """The submissions of an instance, for agents and code."""

    key: InstanceKey

    async def submit(self, messages: list[NewMessage], *, key: str | None, metadata: JSONObject) -> Submission:
        """Accept a submission."""
        return await db(submit, self.key, messages, idempotency_key=key, metadata=metadata)

    async def find(self, submission_id: str) -> Submission | None:
        """Read one."""
        return await db(_find, self.key, submission_id)

    async def newest(self, limit: int) -> list[Submission]:
        """Read the newest, at most `MAX_LIST`."""
        return await db(_newest, self.key, limit)

    async def cancel(self, submission_id: str) -> bool:
        """Stop one."""
        return await db(_cancel, self.key, submission_id)


def submit(
    key: InstanceKey, messages: list[NewMessage], *, idempotency_key: str | None = None, metadata: JSONObject
) -> Submission:
    """Accept messages for an answer, or find the submission with this key. Does not wait for the turn.

    Errors: `InputInvalid` without messages, for an impossible key or metadata; `TurnConflict` when the key belongs to
    another kind of request; what admission raises. Nothing is changed then.
    """
    _check(messages, idempotency_key, metadata)
    request = TurnRequest(
        intake=Program(messages=messages, enters_at_start=True),
        idempotency_key=idempotency_key or new_id("sub"),
        options={"metadata": metadata},
    )
    admission = admit(key, request)
    if not admission.is_new and admission.turn.trigger != TurnTrigger.PROGRAM:
        raise TurnConflict(
            Phrase("The idempotency key {key!r} belongs to a request that is no submission.", key=idempotency_key)
        )
    turn = Turn.objects.select_related("fiber").get(pk=admission.turn.pk)
    return to_submission(turn, accepted=admission.is_new)


def _check(messages: list[NewMessage], idempotency_key: str | None, metadata: JSONObject) -> None:
    if not messages:
        raise InputInvalid("A submission needs at least one message.")
    if idempotency_key is not None and (
        not idempotency_key or len(idempotency_key) > MAX_KEY or "\0" in idempotency_key
    ):
        raise InputInvalid(Phrase("An idempotency key has 1 to {limit} characters.", limit=MAX_KEY))
    try:
        size = byte_size(metadata)
    except (TypeError, ValueError) as error:
        raise InputInvalid(Phrase("The metadata of a submission must be JSON: {error}", error=error)) from error
    if size > MAX_METADATA_BYTES:
        raise InputInvalid(Phrase("The metadata of a submission has at most {limit} bytes.", limit=MAX_METADATA_BYTES))


def submissions_of(instance_id: str) -> QuerySet[Turn]:
    """Turns of an instance that are submissions, their fibers loaded."""
    return Turn.objects.filter(instance_id=instance_id, **_IS_SUBMISSION).select_related("fiber")


_IS_SUBMISSION: Final = {"trigger": TurnTrigger.PROGRAM, "idempotency_key__isnull": False}


def is_submission(turn: Turn) -> bool:
    """Whether a turn was handed in, and not asked for by a client or a waiting caller."""
    return turn.trigger == TurnTrigger.PROGRAM and turn.idempotency_key is not None


def to_submission(turn: Turn, *, accepted: bool = True) -> Submission:
    """Describe a submission. Needs its fiber loaded."""
    assert turn.idempotency_key is not None
    return Submission(
        id=turn.pk,
        request_id=turn.request_id,
        idempotency_key=turn.idempotency_key,
        accepted=accepted,
        status=turn_status(turn.fiber.status, turn.fiber.reason).value,
        metadata=turn.options.get("metadata") or {},
        error=turn.error_text or None,
        accepted_at=turn.accepted_at,
        started_at=turn.started_at,
        finished_at=turn.finished_at,
    )


def _find(key: InstanceKey, submission_id: str) -> Submission | None:
    turn = _rows(key).filter(pk=submission_id).first()
    return None if turn is None else to_submission(turn)


def _newest(key: InstanceKey, limit: int) -> list[Submission]:
    return [to_submission(turn) for turn in _rows(key).order_by("-position")[: min(max(limit, 1), MAX_LIST)]]


def _cancel(key: InstanceKey, submission_id: str) -> bool:
    return _find(key, submission_id) is not None and cancel_turn(submission_id)


def _rows(key: InstanceKey) -> QuerySet[Turn]:
    instance = find_instance(key)
    return Turn.objects.none() if instance is None else submissions_of(instance.pk)
