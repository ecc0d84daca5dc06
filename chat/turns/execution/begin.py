"""The begin of a turn: its input gets its place in the path, once. Every write carries the fence.

All functions are sync and run on the database bridge.
"""

import logging
from functools import partial
from typing import Any

from django.utils import timezone

from chat.conf import chat_settings
from chat.errors import TurnNotFound
from chat.instances.notifications import notify_message_changed
from chat.instances.rows import key_of
from chat.models import Turn, TurnTrigger
from chat.turns.admission.tool_answers import ANSWERABLE, supersede_open_calls
from chat.turns.execution.turn_facts import TurnFacts, facts_of, holds_generation
from chat.turns.state.deferred_input import add_deferred_messages, end_not_started
from chat.turns.state.status import SKIPPED_REASON
from fibers.context import FiberContext
from fibers.core.states import TERMINAL
from fibers.errors import Cancelled
from sessions_app.core.compaction.pruning import as_sent
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.repair import repair_messages
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors
from sessions_app.messages.services import place_messages, update_message
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool_calls import OPEN
from tools_app.services import Actor

logger = logging.getLogger(__name__)

TURN = Actor(user_id=None, via="turn")
BEGIN = "begin"
_NOT_OVER: dict[str, Any] = {"finished_at": None, "error_text": "", "error_code": ""}


def begin_turn(context: FiberContext, turn_id: str, recorded: JSONObject | None) -> TurnFacts:
    """Place the turn's input in the path and settle what earlier turns left open; once, recorded.

    Errors: `Cancelled` with the reason "skipped" when the conversation was cleared since, or when the answer that this
    turn continues is not the end of the shown path any more; `LeaseLost`.
    """
    turn = Turn.objects.select_related("instance").filter(pk=turn_id).first()
    if turn is None:
        raise TurnNotFound(f"Turn {turn_id!r} is gone.")
    history = None
    if recorded is None:
        with context.fenced():
            is_over = not holds_generation(turn.instance_id, turn.pk) or _is_left(turn)
            if is_over:
                mark_never_started(context.payload)
            else:
                leaf_id, history = _place(turn)
                Turn.objects.filter(pk=turn.pk).update(started_at=timezone.now(), **_NOT_OVER)
                context.record_in(BEGIN, {"leaf": leaf_id})
        if is_over:
            raise Cancelled(reason=SKIPPED_REASON)
    else:
        leaf_id = recorded["leaf"]
        if turn.finished_at is not None:  # it was abandoned, and an operator has it run again
            with context.fenced():
                Turn.objects.filter(pk=turn.pk).update(**_NOT_OVER)
    return facts_of(turn, leaf_id, history)


def mark_never_started(payload: JSONObject) -> None:
    """Note the end of a turn that never began, in the transaction that stops it."""
    end_not_started(payload["turn_id"])


def read_history(session_id: str, leaf_id: str) -> list[Message]:
    """The path to a message for the model: root first, its newest stretch, without pruned outputs."""
    return as_sent(_stored_history(session_id, leaf_id), session_id)


def _stored_history(session_id: str, leaf_id: str) -> list[StoredMessage]:
    return selectors.model_history(
        session_id,
        leaf=leaf_id,
        max_messages=chat_settings.history_messages,
        max_bytes=chat_settings.history_bytes,
    )


def _is_left(turn: Turn) -> bool:
    """Whether this continues an answer that is not the end of the active path any more."""
    return turn.parent_id is not None and selectors.leaf_id(turn.session_id) != turn.base_id


def _place(turn: Turn) -> tuple[str | None, list[Message] | None]:
    """Returns the message to answer and, where nothing in it had to be repaired, the path to it."""
    runs_approved = turn.trigger == TurnTrigger.CONTINUE
    statuses = ANSWERABLE if runs_approved else OPEN
    supersede_open_calls(turn.instance, TURN, session_id=turn.session_id, statuses=statuses)
    add_deferred_messages(turn)
    left_behind = _left_behind(turn)
    if left_behind:
        place_messages(turn.session_id, left_behind, after=Leaf.ACTIVE)
    after = turn.base_id if turn.base_is_explicit else Leaf.ACTIVE
    leaf_id = place_messages(turn.session_id, turn.input_ids, after=after)
    return leaf_id, None if leaf_id is None else _repaired(turn, leaf_id)


def _repaired(turn: Turn, leaf_id: str) -> list[Message] | None:
    """The history as sent to the model; `None` after settling calls without a result, so that it is read again.

    Clients that show the conversation are notified, and the log has a warning.
    """
    history = _stored_history(turn.session_id, leaf_id)
    broken = repair_messages([message.to_ui() for message in history])
    for repaired in broken:
        update_message(turn.session_id, repaired["id"], partial(_replace_by, repaired))
        notify_message_changed(key_of(turn.instance), turn.session_id, repaired["id"])
    if broken:
        extra = {"action": "transcript_repaired", "turn_id": turn.pk, "message_ids": [item["id"] for item in broken]}
        logger.warning("calls without a result were settled", extra=extra)
    return None if broken else as_sent(history, turn.session_id)


def _replace_by(repaired: Message, _stored: Message) -> Message:
    return repaired


def _left_behind(turn: Turn) -> list[str]:
    """User messages of turns that were cancelled before they started; they are placed first, in order."""
    earlier = Turn.objects.filter(session_id=turn.session_id, position__lt=turn.position, started_at=None)
    queued = selectors.queued(turn.session_id)
    waiting = {message.id: message.turn_id for message in queued if message.turn_id != turn.pk}
    if not waiting:
        return []
    ended = set(earlier.filter(pk__in=set(waiting.values()), fiber__status__in=TERMINAL).values_list("pk", flat=True))
    return [message_id for message_id, turn_id in waiting.items() if turn_id in ended]
