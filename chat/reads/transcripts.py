"""Transcripts for clients: a page of the path, the queue, the running turn, the last failure. Reads only.

Costs what the page costs: a fixed number of queries whatever the length of the history.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from django.utils.translation import gettext

from chat.errors import InputInvalid, TurnNotFound
from chat.models import AgentInstance, Turn
from chat.reads.activity import Activity, activity_of, pending_retry, with_activity
from chat.turns.state.active import active_fibers, active_turns
from chat.turns.state.compaction_queue import Compacting, compaction_state
from chat.turns.state.status import DELETED_REASON, FINAL, TurnStatus, turn_status
from fibers.core.states import TERMINAL, FiberStatus
from fibers.models import Fiber, FiberStep
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.messages import selectors
from thinkproject.kernel.consistent_read import consistent_read
from thinkproject.kernel.filling import filled
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size
from tools_app.calls.selectors import call_durations

DELETED_CODE: Final = "conversation_deleted"
"""Code of the error of a turn that was stopped by the deletion of its conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """A turn as lists show it. Units: `duration_ms` from start to end, nothing while it runs.

    `waits`: what a turn that is parked waits for, each with `kind`, `label`, `call_id`, `since` and `until`. `retry`:
    when the model is asked again, with `code`, `attempt`, `attempts` and `retry_at`. `model_report`: `models`, each
    with `name`, `calls`, `tokens` and `cost`, and `switches`, each with `call`, `from_model`, `to_model` and `code`.
    `end_reason`: why the answer is over although its model wanted to call tools: `step_limit` or `stop_condition`.
    """

    id: str
    request_id: str
    parent_id: str | None  # the turn that it goes on from
    delivery: str
    answered_by: str | None  # the turn whose answer has taken its message in
    retry_of: str | None  # the turn that had answered the same message, or failed to
    status: str
    trigger: str
    position: int
    assistant_id: str
    model: str
    model_report: JSONObject | None
    end_reason: str | None
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost: Decimal
    step_count: int
    changed_file_count: int
    duration_ms: int | None
    error: JSONObject | None
    waits: tuple[JSONObject, ...]
    retry: JSONObject | None
    accepted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStepView:
    """A settled step of a turn. `summary`: its small facts."""

    key: str
    attempt: int
    created_at: datetime
    summary: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTotals:
    """The sums of the turns of one answer, `turn_ids` in order. Units: `duration_ms` without the time in between.

    An answer that waited for a decision or a result is several messages, each the answer of its own turn.
    """

    turn_ids: list[str]
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost: Decimal
    step_count: int
    duration_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message in its place: `sibling_ids` oldest first with itself, `position` its index among them.

    Units: `tool_ms` by call id, of calls that have ended. `answer`: at the end of an answer of several messages, the
    sums of them.
    """

    message: StoredMessage
    sibling_ids: list[str]
    position: int
    turn: TurnView | None
    answer: AnswerTotals | None = None
    tool_ms: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptView:
    """A page of a conversation. `messages`: root first; `queued`: accepted, not yet in the path, in order.

    `has_more`: the path goes on above; `has_newer`: below; such a page lists no queued messages. `leaf_id` ends the
    path that the page is of, `shown_leaf_id` the one that the conversation shows. `version`: how often it changed.
    """

    session_id: str | None = None
    version: int = 0
    messages: list[MessageView] = field(default_factory=list)
    queued: list[MessageView] = field(default_factory=list)
    has_more: bool = False
    has_newer: bool = False
    leaf_id: str | None = None
    shown_leaf_id: str | None = None
    running: TurnView | None
    activity: Activity | None  # of the running turn
    failed: TurnView | None
    compacting: Compacting  # a summary is on its way


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOf:
    """Selects a page of a path: before, after or around a message; by default the newest."""

    before: str | None = None
    around: str | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if sum(value is not None for value in (self.before, self.around, self.after)) > 1:
            raise InputInvalid("A page is before, around or after a message: one of the three.")


def transcript(find: Callable[[], AgentInstance], page_of: PageOf | None = None, *, limit: int = 50) -> TranscriptView:
    """A page of the conversation that `find` reads with its session, as all of it was at one moment.

    A message of another branch is shown in that branch, which changes nothing of what others see.
    Errors: `MessageNotFound`, and those of `find`.
    """
    # Between two queries a message may leave the queue for its place, and be in neither; an answer may end.
    with consistent_read():
        instance = find()
        edge = _edge(instance)
        if instance.session_id is None:
            return TranscriptView(
                running=edge.running, activity=edge.activity, failed=edge.failed, compacting=edge.compacting
            )
        return _filled(instance, instance.session_id, edge, page_of or PageOf(), limit)


def _filled(instance: AgentInstance, session_id: str, edge: "_Edge", wanted: PageOf, limit: int) -> TranscriptView:
    page = _page(session_id, wanted, limit)
    families = selectors.siblings(session_id, [message.id for message in page.messages])
    queued = [] if page.has_newer else selectors.queued(session_id)
    turns = _turns(instance.id, [message.turn_id for message in [*page.messages, *queued]])
    called = [message.turn_id for message in page.messages if message.turn_id and _has_calls(message)]
    durations = call_durations(called) if called else {}
    session = instance.session if wanted == PageOf() else None  # any other page may be of another branch
    shown = selectors.Shown(page.leaf_id, session.change_seq) if session else selectors.shown(session_id)
    views = [_view(message, families, turns, durations) for message in page.messages]
    return TranscriptView(
        session_id=session_id,
        version=shown.change_seq,
        messages=_with_answers(views),
        queued=[_alone(message, turns) for message in queued],
        has_more=page.has_more,
        has_newer=page.has_newer,
        leaf_id=page.leaf_id,
        shown_leaf_id=shown.leaf_id,
        running=edge.running,
        activity=edge.activity,
        failed=edge.failed,
        compacting=edge.compacting,
    )


def _page(session_id: str, page_of: PageOf, limit: int) -> selectors.PathPage:
    if page_of.around is not None:
        above = (limit - 1) // 2
        return selectors.page_around(session_id, page_of.around, above=above, below=limit - 1 - above)
    if page_of.after is not None:
        page = selectors.page_around(session_id, page_of.after, above=0, below=limit)
        return replace(page, messages=page.messages[1:], has_more=True)
    return selectors.path_page(session_id, before=page_of.before, limit=limit)


def turn_view_of(turn_id: str) -> TurnView:
    """A turn as lists show it, read afresh."""
    return turn_view(_turn(turn_id))


def turn_end(turn_id: str) -> JSONObject:
    """A turn's outcome, for the last event of its stream; a deleted turn counts as aborted."""
    turn = Turn.objects.select_related("fiber").filter(pk=turn_id).first()
    if turn is None:
        return {"turn_id": turn_id, "outcome": TurnStatus.ABORTED.value, "error": None}
    view = turn_view(turn)
    return {
        "turn_id": view.id,
        "request_id": view.request_id,
        "outcome": view.status,
        "message_id": view.assistant_id,
        "error": view.error,
    }


def turn_steps(turn: Turn) -> list[TurnStepView]:
    """Settled steps of a turn, in order: the small facts of each record, and how large the rest is."""
    rows = FiberStep.objects.filter(fiber_id=turn.fiber_id).order_by("id")[:2_000]
    return [
        TurnStepView(key=row.step_key, attempt=row.attempt, created_at=row.created_at, summary=summarise(row.value))
        for row in rows
    ]


def summarise(value: JSONValue) -> JSONObject:
    """The small facts of a step's record; of anything longer only its size."""
    if not isinstance(value, dict):
        value = {"value": value}
    return {key: item if _is_small(item) else {"bytes": byte_size(item)} for key, item in value.items()}


def turn_page(instance_id: str, *, before: int | None = None, limit: int = 50) -> list[TurnView]:
    """Turns of a conversation, newest first, below a position."""
    rows = Turn.objects.select_related("fiber").filter(instance_id=instance_id)
    if before is not None:
        rows = rows.filter(position__lt=before)
    return [turn_view(turn) for turn in rows.order_by("-position")[:limit]]


def turn_view(turn: Turn) -> TurnView:
    """A turn as lists show it. Needs its fiber loaded."""
    status = turn_status(turn.fiber.status, turn.fiber.reason)
    # The end of a turn that was stopped or failed is stored a moment before its fiber has that status.
    ended, begun = turn.finished_at if status in FINAL else None, turn.started_at
    return filled(
        TurnView,
        turn,
        answered_by=turn.answered_by_id,
        retry_of=turn.retry_of_id,
        status=status,
        model=turn.model_name,
        model_report=_model_report(turn.model_report),
        end_reason=(turn.model_report or {}).get("ended"),
        duration_ms=round((ended - begun).total_seconds() * 1000) if ended and begun else None,
        error=_error(turn, status),
        waits=_waits(turn.fiber),
        retry=pending_retry(turn.retry) if status is TurnStatus.RUNNING else None,
        started_at=begun,
        finished_at=ended,
    )


def _error(turn: Turn, status: TurnStatus) -> JSONObject | None:
    if _went_with_conversation(turn):
        return {
            "code": DELETED_CODE,
            "message": gettext("The conversation was deleted before this answer was complete."),
        }
    has_failed = status is TurnStatus.ERROR or bool(turn.error_text)
    return {"code": turn.error_code, "message": turn.error_text} if has_failed else None


def _went_with_conversation(turn: Turn) -> bool:
    """Whether the deletion of its conversation, which is back, stopped it."""
    return turn.fiber.status == FiberStatus.CANCELLED and turn.fiber.reason == DELETED_REASON


def _is_to_be_answered(turn: Turn) -> bool:
    """Whether its answer is missing and was not stopped by a person: it failed, or ended with its conversation.

    One that never began and whose messages were to come with its beginning has left nothing to be answered.
    """
    if turn_status(turn.fiber.status, turn.fiber.reason) is TurnStatus.ERROR:
        return True
    return _went_with_conversation(turn) and (turn.started_at is not None or bool(turn.input_ids))


def _model_report(stored: JSONObject | None) -> JSONObject | None:
    """The models of a turn for clients. Programs cannot have fields that are called `for` and `from`."""
    if stored is None or "models" not in stored:
        return None
    switches = [
        {"call": each["for"], "from_model": each["from"], "to_model": each["to"], "code": each["code"]}
        for each in stored["switches"]
    ]
    return {"models": stored["models"], "switches": switches}


def _waits(fiber: Fiber) -> tuple[JSONObject, ...]:
    shown = ("kind", "label", "call_id", "since", "until")
    is_parked = fiber.status == FiberStatus.PARKED
    return tuple({name: wait.get(name) for name in shown} for wait in fiber.waits) if is_parked else ()


def _has_calls(message: StoredMessage) -> bool:
    return any("toolCallId" in part for part in message.parts)


def _view(
    message: StoredMessage,
    families: dict[str, list[str]],
    turns: dict[str, TurnView],
    durations: dict[str, dict[str, int]],
) -> MessageView:
    siblings = families.get(message.id, [message.id])
    return MessageView(
        message=message,
        sibling_ids=siblings,
        position=siblings.index(message.id),
        turn=_answered_by(message, turns),
        tool_ms=durations.get(message.turn_id, {}) if message.role == "assistant" else {},
    )


def _with_answers(views: list[MessageView]) -> list[MessageView]:
    """The views of a page, root first; the last one of an answer of several messages has their sums."""
    found = answers_of([view.turn for view in views])
    return [replace(view, answer=answer) if answer else view for view, answer in zip(views, found, strict=True)]


def answers_of(turns: Sequence[TurnView | None]) -> list[AnswerTotals | None]:
    """The sums, each where its answer ends, of the turns of a page of messages; nothing for an answer of one turn.

    Shape: as many as turns. A turn that another one of the page continues is no end. What lies before the page is not
    counted.
    """
    known = {turn.id: turn for turn in turns if turn is not None}
    continued = {turn.parent_id for turn in known.values()}
    return [None if turn is None or turn.id in continued else _sums(_chain(turn, known)) for turn in turns]


def _chain(turn: TurnView, known: dict[str, TurnView]) -> list[TurnView]:
    found = [turn]
    while (parent := known.get(found[0].parent_id or "")) is not None:
        found.insert(0, parent)
    return found


def _sums(turns: list[TurnView]) -> AnswerTotals | None:
    if len(turns) == 1:
        return None
    durations = [turn.duration_ms for turn in turns if turn.duration_ms is not None]
    return AnswerTotals(
        turn_ids=[turn.id for turn in turns],
        input_tokens=sum(turn.input_tokens for turn in turns),
        output_tokens=sum(turn.output_tokens for turn in turns),
        reasoning_tokens=sum(turn.reasoning_tokens for turn in turns),
        cached_tokens=sum(turn.cached_tokens for turn in turns),
        cost=sum((turn.cost for turn in turns), Decimal()),
        step_count=sum(turn.step_count for turn in turns),
        duration_ms=sum(durations) if durations else None,
    )


def _answered_by(message: StoredMessage, turns: dict[str, TurnView]) -> TurnView | None:
    """The turn whose answer this is; a message that was added while it ran is not its answer."""
    turn = turns.get(message.turn_id)
    return turn if turn is not None and turn.assistant_id == message.id else None


def _alone(message: StoredMessage, turns: dict[str, TurnView]) -> MessageView:
    # A queued message names its turn, so that a client can take it back.
    return MessageView(message=message, sibling_ids=[message.id], position=0, turn=turns.get(message.turn_id))


def _turn(turn_id: str) -> Turn:
    turn = Turn.objects.select_related("fiber").filter(pk=turn_id).first()
    if turn is None:
        raise TurnNotFound
    return turn


def _is_small(value: JSONValue) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 200)


def _turns(instance_id: str, turn_ids: Iterable[str]) -> dict[str, TurnView]:
    wanted = {turn_id for turn_id in turn_ids if turn_id}
    rows = Turn.objects.select_related("fiber").filter(instance_id=instance_id, id__in=wanted) if wanted else ()
    return {turn.id: turn_view(turn) for turn in rows}


@dataclass(frozen=True, slots=True)
class _Edge:
    """The live end of a conversation: the running turn and the queue."""

    running: TurnView | None
    activity: Activity | None
    failed: TurnView | None
    compacting: Compacting


def _edge(instance: AgentInstance) -> _Edge:
    """The oldest turn under way, the newest final one whose answer is missing, and a summary that is on its way."""
    fibers = active_fibers(instance.id)
    active = with_activity(active_turns(instance.id)) if fibers else ()
    here = (turn for turn in active if turn.session_id == instance.session_id)
    live = next((turn for turn in here if turn.finished_at is None), None)
    turns = Turn.objects.select_related("fiber").filter(session_id=instance.session_id, instance_id=instance.id)
    final = turns.filter(fiber__status__in=TERMINAL, answered_by=None).order_by("-position").first()
    return _Edge(
        running=turn_view(live) if live else None,
        activity=activity_of(live) if live else None,
        failed=turn_view(final) if final and _is_to_be_answered(final) else None,
        compacting=compaction_state(fibers, instance.session_id),
    )
