"""After-turn actions: an ordered list, each run in the transaction that ends the turn.

An action starts durable work or writes rows, and never waits: a crash leaves either the end with everything that
follows from it, or neither. Packages above add theirs with `register` when their app is ready.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.agent.think import Think
from chat.core.context.session_setup import ContextUsage
from chat.core.durable_names import RESPONSE_FIBER
from chat.core.loop.totals import TurnTotals
from chat.instances.notifications import notify_context_usage
from chat.instances.runs import note_turn_end, stop_runs_of
from chat.models import NoticeKind, Turn, TurnTrigger
from chat.push.starting import note
from chat.turns.admission.continuation import continue_when_ready
from chat.turns.background.summaries import start_summary, writes_summaries
from chat.turns.background.titles import start_title, writes_titles
from chat.turns.delegation.ending import last_text
from chat.turns.execution.turn_facts import TurnFacts, has_calls
from chat.turns.inbox.answering import STOPPED, answer_taken
from chat.turns.state.compaction_queue import start_compaction
from chat.user_code.call_hook import is_overridden
from fibers.services import start_fiber
from sessions_app.core.messages.shapes import Message
from sessions_app.models import CompactionTrigger
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.calls.selectors import open_calls

LONG: Final = timedelta(seconds=30)
"""An answer that has taken longer is pushed to who asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """A turn's outcome. `message`: the answer so far, without parts if there is none."""

    outcome: str  # completed, aborted, error
    message: Message
    totals: TurnTotals
    agent: Think | None  # none where the turn failed before it had one
    error_text: str = ""
    error_code: str = ""
    max_messages: int | None = None  # of the active path; older ones are archived
    original_ids: tuple[str, ...] = ()  # attachments that hold what the message lost
    output: JSONValue = None  # the structured answer
    pruned: Mapping[str, Sequence[str]] = field(default_factory=dict)  # calls by message whose outputs are dropped
    context_usage: ContextUsage | None = None  # of the session, where it has a threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTurn:
    """A turn whose end is being stored. `was_stored`: its answer is in the conversation."""

    facts: TurnFacts
    end: TurnEnd
    was_stored: bool

    @property
    def is_completed(self) -> bool:
        """Whether the turn ended well, with an answer."""
        return self.was_stored and self.end.outcome == "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterTurn:
    """One action. `wants` costs no query; `run` is called where it is true, inside the transaction."""

    name: str
    wants: Callable[[EndedTurn], bool]
    run: Callable[[EndedTurn], None]


def register(action: AfterTurn) -> None:
    """Append an action. Errors: `ValueError` for a duplicate name."""
    if any(known.name == action.name for known in _actions):
        raise ValueError(f"There is an action {action.name!r} already.")
    _actions.append(action)


def unregister(name: str) -> None:
    """Take an action away again, for tests."""
    _actions[:] = [known for known in _actions if known.name != name]


def run_after_turn(ended: EndedTurn) -> None:
    """Run the actions that want this turn, in order. An exception rolls the turn's end back."""
    for action in _actions:
        if action.wants(ended):
            action.run(ended)


def response_key(turn_id: str) -> str:
    """Key of the fiber that runs a turn's response hook."""
    return f"response:{turn_id}"


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


def _start_title(ended: EndedTurn) -> None:
    start_title(ended.facts.key, ended.facts.session_id, ended.facts.generation)


def _is_untitled(ended: EndedTurn) -> bool:
    agent = ended.end.agent
    return ended.is_completed and ended.facts.is_untitled and agent is not None and writes_titles(agent)


def _wants_summary(ended: EndedTurn) -> bool:
    agent = ended.end.agent
    is_talk = ended.was_stored and ended.facts.direct_call is None
    return is_talk and agent is not None and writes_summaries(agent)


def _report_usage(ended: EndedTurn) -> None:
    """Notify clients of the size of the context, and compact a session that is beyond its threshold."""
    facts, usage = ended.facts, ended.end.context_usage
    assert usage is not None
    if usage.threshold:
        notify_context_usage(facts.key, facts.session_id, usage.tokens, usage.threshold, usage.warning)
    if usage.is_over:
        start_compaction(facts.key.instance_id, facts.session_id, CompactionTrigger.AUTO, facts.key.owner_id)


def _has_response_hook(ended: EndedTurn) -> bool:
    return ended.end.agent is not None and is_overridden(ended.end.agent, "on_chat_response")


def _start_response_hook(ended: EndedTurn) -> None:
    end = ended.end
    start_response_hook(ended.facts.turn_id, ended.facts.key, end.outcome, end.error_text, end.output)


def _note_run(ended: EndedTurn) -> None:
    """A sub-agent's turn has ended: a run may have ended with it."""
    facts, end = ended.facts, ended.end
    note_turn_end(
        facts.key.instance_id,
        facts.turn_id,
        end.outcome,
        error=end.error_text,
        code=end.error_code,
        output=end.output,
        finish=end.totals.finish_reason,
    )


def _answer_inbox(ended: EndedTurn) -> None:
    """Answer what the turn has taken from the inbox, unless the answer goes on: in a turn that follows."""
    facts, end = ended.facts, ended.end
    turn_ids = [facts.turn_id, *facts.goes_on_from]
    if ended.is_completed:
        if has_calls(end.message) and (
            open_calls(facts.key.instance_id).filter(turn_id__in=turn_ids).exists()
            or Turn.objects.filter(parent_id=facts.turn_id, finished_at=None).exists()
        ):
            return
        answer_taken(facts.instance, turn_ids, last_text(end.message))
    else:
        answer_taken(facts.instance, turn_ids, "", failure=end.error_text or STOPPED)


def _was_long(ended: EndedTurn) -> bool:
    """Whether a person has waited for this answer for so long that they may be elsewhere by now."""
    facts = ended.facts
    asked = facts.trigger is not TurnTrigger.PROGRAM and facts.key.parent is None
    return asked and ended.is_completed and timezone.now() - facts.accepted_at > LONG


def _note_answer(ended: EndedTurn) -> None:
    facts = ended.facts
    if facts.user_id is not None:
        _note(NoticeKind.ANSWER, facts, user_id=facts.user_id)


def _note_failure(ended: EndedTurn) -> None:
    """The prompt of a schedule was answered with an error: its owner learns it."""
    facts = ended.facts
    options = Turn.objects.filter(pk=facts.turn_id).values_list("options", flat=True).first() or {}
    if "schedule" in options.get("metadata", {}) and facts.key.owner_id is not None:
        _note(NoticeKind.SCHEDULE, facts, user_id=facts.key.owner_id)


def _note(kind: NoticeKind, facts: TurnFacts, *, user_id: Any) -> None:
    note(
        kind,
        facts.turn_id,
        facts.key.owner_id,
        user_id=user_id,
        turn_id=facts.turn_id,
        instance_id=facts.key.instance_id,
    )


BUILT_IN: Final = (
    AfterTurn(
        name="continue",
        wants=lambda ended: ended.is_completed and has_calls(ended.end.message),
        run=lambda ended: continue_when_ready(ended.facts.turn_id),
    ),
    AfterTurn(name="title", wants=_is_untitled, run=_start_title),
    AfterTurn(
        name="summary",
        wants=_wants_summary,
        run=lambda ended: start_summary(ended.facts.key, ended.facts.session_id),
    ),
    AfterTurn(
        name="context_usage",
        wants=lambda ended: ended.was_stored and ended.end.context_usage is not None,
        run=_report_usage,
    ),
    AfterTurn(name="response_hook", wants=_has_response_hook, run=_start_response_hook),
    AfterTurn(
        name="stop_runs",
        wants=lambda ended: ended.end.outcome != "completed",
        run=lambda ended: stop_runs_of(ended.facts.turn_id, "parent-stopped"),
    ),
    AfterTurn(name="push_answer", wants=_was_long, run=_note_answer),
    AfterTurn(
        name="push_failure",
        wants=lambda ended: ended.end.outcome == "error" and ended.facts.trigger is TurnTrigger.PROGRAM,
        run=_note_failure,
    ),
    AfterTurn(name="inbox", wants=lambda ended: ended.facts.is_of_inbox, run=_answer_inbox),
    AfterTurn(name="run", wants=lambda ended: ended.facts.key.parent is not None, run=_note_run),
)
_actions: list[AfterTurn] = list(BUILT_IN)
