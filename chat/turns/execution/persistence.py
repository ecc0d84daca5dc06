"""What a turn writes: its begin, its journal together with the cold log, its end. Every write carries the fence.

All functions are sync and run on the database bridge.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.conf import chat_settings
from chat.core.context.compaction_setup import ContextUsage
from chat.core.durable_names import RESPONSE_FIBER
from chat.core.loop.loop import TurnTotals
from chat.errors import TurnNotFound
from chat.files.attachments import bind
from chat.instances.notifications import notify_context_usage, notify_message_changed
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn, TurnTrigger
from chat.turns.admission.continuation import continue_when_ready
from chat.turns.admission.tool_answers import ANSWERABLE, answered_meanwhile, supersede_open_calls
from chat.turns.background.costs import write_costs
from chat.turns.background.summaries import start_summary
from chat.turns.background.titles import needs_title, start_title
from chat.turns.state.compaction_queue import start_compaction
from chat.turns.state.deferred_input import add_deferred_messages, end_not_started
from chat.turns.state.status import SKIPPED_REASON
from fibers.context import FiberContext
from fibers.core.states import TERMINAL
from fibers.errors import Cancelled
from fibers.services import start_fiber
from sessions_app.core.compaction.pruning import as_sent
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.repair import repair_messages
from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors
from sessions_app.messages.services import archive_beyond, place_messages, prune_outputs, put_assistant, update_message
from sessions_app.models import CompactionTrigger
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.calls import OPEN
from tools_app.services import Actor

logger = logging.getLogger(__name__)

TURN = Actor(user_id=None, via="turn")
BEGIN = "begin"
FINAL = "final"
_NOT_OVER: dict[str, Any] = {"finished_at": None, "error_text": "", "error_code": ""}


def mark_never_started(payload: JSONObject) -> None:
    """Note the end of a turn that nobody began, in the transaction that stops it."""
    end_not_started(payload["turn_id"])


def response_key(turn_id: str) -> str:
    """Key of the fiber that runs a turn's response hook."""
    return f"response:{turn_id}"


def note_retry(turn_id: str, status: JSONObject) -> None:
    """Keep when a turn asks its model again, for those who are not connected. Of other statuses nothing is kept."""
    if status["kind"] == "retry":
        Turn.objects.filter(pk=turn_id, finished_at=None).update(retry=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """What a runner needs to know of its turn. Read once an attempt."""

    turn_id: str
    request_id: str
    key: InstanceKey
    session_id: str
    generation: int  # at its begin; one of the instance's other sessions may be cleared since
    trigger: TurnTrigger
    assistant_id: str
    leaf_id: str | None  # the message that the answer hangs below
    body: JSONObject
    accepted_at: datetime
    history: list[JSONObject] | None = None  # the path to the leaf, where the begin has just read it
    is_untitled: bool = False  # its conversation has no title but its first words
    client_tools: tuple[JSONObject, ...] = ()  # as the last request of a client gave them

    @property
    def is_continuation(self) -> bool:
        """Whether the turn goes on without a new message."""
        return self.trigger is TurnTrigger.CONTINUE


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
        if turn.finished_at is not None:  # it had been given up, and somebody had it run again
            with context.fenced():
                Turn.objects.filter(pk=turn.pk).update(**_NOT_OVER)
    return facts_of(turn, leaf_id, history)


def facts_of(turn: Turn, leaf_id: str | None, history: list[JSONObject] | None = None) -> TurnFacts:
    """What there is to know of a turn whose answer hangs below this message. Needs its instance loaded."""
    return TurnFacts(
        turn_id=turn.pk,
        request_id=turn.request_id,
        key=key_of(turn.instance),
        session_id=turn.session_id,
        generation=turn.generation,
        trigger=TurnTrigger(turn.trigger),
        assistant_id=turn.assistant_id,
        leaf_id=leaf_id,
        body=turn.body,
        accepted_at=turn.accepted_at,
        history=history,
        is_untitled=needs_title(turn.instance),
        client_tools=tuple(turn.instance.client_tools),
    )


def read_history(session_id: str, leaf_id: str) -> list[JSONObject]:
    """The path to a message as the model gets it: root first, its newest stretch, without what was pruned."""
    return as_sent(_stored_history(session_id, leaf_id), session_id)


def _stored_history(session_id: str, leaf_id: str) -> list[StoredMessage]:
    return selectors.model_history(
        session_id,
        leaf=leaf_id,
        max_messages=chat_settings.history_messages,
        max_bytes=chat_settings.history_bytes,
    )


def _is_left(turn: Turn) -> bool:
    """Whether this continues an answer after which something else was said or chosen."""
    return turn.parent_id is not None and selectors.leaf_id(turn.session_id) != turn.base_id


def _place(turn: Turn) -> tuple[str | None, list[JSONObject] | None]:
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


def _repaired(turn: Turn, leaf_id: str) -> list[JSONObject] | None:
    """Settle calls that an earlier turn left without a result, in what is stored; nothing when something changed.

    Clients that show the conversation are told, and so are those who read the log.
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


def _replace_by(repaired: JSONObject, _stored: JSONObject) -> JSONObject:
    return repaired


def _left_behind(turn: Turn) -> list[str]:
    """Messages of earlier turns that ended before they began: they were said, so they come before this turn's."""
    earlier = Turn.objects.filter(session_id=turn.session_id, position__lt=turn.position, started_at=None)
    queued = selectors.queued(turn.session_id)
    waiting = {message.id: message.turn_id for message in queued if message.turn_id != turn.pk}
    if not waiting:
        return []
    ended = set(earlier.filter(pk__in=set(waiting.values()), fiber__status__in=TERMINAL).values_list("pk", flat=True))
    return [message_id for message_id, turn_id in waiting.items() if turn_id in ended]


def holds_generation(instance_id: str, turn_id: str) -> bool:
    """Whether no clear came since the admission. Locks the row, so none can come before this transaction commits.

    The turn's generation is read, not remembered: where another session is cleared, this one's turns get the new one.
    Whoever does that holds the turn's fiber, as we do, so the two never overlap.
    """
    turn = Turn.objects.filter(pk=turn_id, generation=OuterRef("generation"))
    rows = AgentInstance.objects.filter(Exists(turn), pk=instance_id)
    return rows.update(generation=F("generation")) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """How a turn ended. `message` is what was said so far, with no parts when nothing was."""

    outcome: str  # completed, aborted, error
    message: JSONObject
    totals: TurnTotals
    error_text: str = ""
    error_code: str = ""
    has_response_hook: bool = False
    max_messages: int | None = None  # of the shown path; older ones are archived
    original_ids: tuple[str, ...] = ()  # attachments that hold what the message lost
    output: JSONValue = None  # the structured answer
    pruned: Mapping[str, Sequence[str]] = field(default_factory=dict)  # calls by message whose outputs are let go
    context_usage: ContextUsage | None = None  # of the session, where it has a threshold
    wants_title: bool = False  # its agent has titles written
    wants_summary: bool = False  # and summaries for people


def finish_turn(context: FiberContext, facts: TurnFacts, end: TurnEnd) -> None:
    """Store the answer, its cost and its end, and start the response hook's fiber: once, recorded.

    Runs inside the fenced transaction that also commits the last of the log. The message is not stored when the
    conversation was cleared meanwhile, nor when nothing was said.
    """
    was_stored = store_answer(facts, end.message, end.original_ids)
    if was_stored and end.max_messages:
        archive_beyond(facts.session_id, end.max_messages)
    if was_stored:
        prune_outputs(facts.session_id, end.pruned)
    Turn.objects.filter(pk=facts.turn_id).update(
        finished_at=timezone.now(), error_text=end.error_text, error_code=end.error_code
    )
    write_costs(facts.turn_id, facts.session_id, end.totals)
    if was_stored and end.outcome == "completed":
        continue_when_ready(facts.turn_id)
        if end.wants_title and facts.is_untitled:
            start_title(facts.key, facts.session_id, facts.generation)
    if was_stored and end.wants_summary:
        start_summary(facts.key, facts.session_id)
    if was_stored and end.context_usage is not None:
        notify_context_usage(facts.key, facts.session_id, end.context_usage.tokens, end.context_usage.threshold)
        if end.context_usage.is_over:
            start_compaction(facts.key.instance_id, facts.session_id, CompactionTrigger.AUTO, facts.key.owner_id)
    if end.has_response_hook:
        start_response_hook(facts.turn_id, facts.key, end.outcome, end.error_text, end.output)
    context.record_in(FINAL, {"outcome": end.outcome, "error": end.error_text, "code": end.error_code})


def store_answer(facts: TurnFacts, message: JSONObject, original_ids: Sequence[str]) -> bool:
    """Store what a turn said, fitted to its row; false when it said nothing or the conversation was cleared since.

    `original_ids` names the attachments that hold what the message lost. Safe to call twice.
    """
    if not has_content(message) or not holds_generation(facts.key.instance_id, facts.turn_id):
        return False
    answered = answered_meanwhile(facts.turn_id)(message)
    place = selectors.end_of_turn(facts.session_id, facts.turn_id, below=facts.leaf_id, besides=facts.assistant_id)
    put_assistant(facts.session_id, answered, after=place, turn_id=facts.turn_id)
    if original_ids and facts.key.owner_id is not None:
        bind(facts.key.owner_id, original_ids, AgentInstance.objects.get(pk=facts.key.instance_id))
    return True


def start_response_hook(
    turn_id: str, key: InstanceKey, outcome: str, error_text: str, output: JSONValue = None
) -> None:
    """Start the fiber that runs `on_chat_response`, in the transaction that stores how the turn ended."""
    start_fiber(
        RESPONSE_FIBER,
        {"turn_id": turn_id, "status": outcome, "error": error_text or None, "output": output},
        key=response_key(turn_id),
        lane=f"response:{key.instance_id}",  # hooks run in the order of their turns, never two at once
        owner_id=key.owner_id,
        max_retries=2,
    )


def has_content(message: JSONObject) -> bool:
    """Whether there is anything to store: a part that is more than the beginning of a step."""
    return any(part.get("type") != "step-start" for part in message["parts"])
