"""The end of a run: decided once, and delivered to what waits for it. Sync; runs on the database bridge.

The end of a child's turn is reported in its own transaction (`chat/instances/runs.py`). A fiber of its own looks at the
child then, in a transaction that holds nothing but the run's row, and answers the parent's wait in another one.
"""

import re
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now

from chat.agent.registry import get_agent_class, is_served
from chat.agent.values.runs import failed, succeeded
from chat.core.loop.step_limit import STEP_LIMIT
from chat.core.model.language_model import FinishReason
from chat.core.wire.accumulator import fold, tool_name
from chat.instances.notifications import notify_conversation, notify_run, notify_waiters
from chat.instances.rows import key_of
from chat.members.selectors import user_key
from chat.models import AgentInstance, Turn, TurnOptions
from chat.models.runs import AgentRun
from chat.streams.logs.database_log import cold_records
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from chat.turns.delegation.starting import watch_key
from chat.turns.policies import delegating
from fibers import services
from fibers.selectors import find_by_key
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.truncation import cut_text
from sessions_app.messages import selectors
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load
from tools_app.calls.selectors import open_calls
from tools_app.core.guard.rules import SeenText, Spot
from tools_app.guard.standings import GuardScope, see, texts_of

ENDED_BY: Final = "ended_by"
WAIT: Final = "wait"
MAX_SUMMARY_CHARS: Final = 100_000
MAX_RECORDS: Final = 20_000
"""Of an answer that is being written, as far as its last words are looked for."""

_CUT_TEXTS: Final = {
    "step-limit": "The agent reached its limit of steps before it was done. What it had found by then is the summary.",
    "length": "The agent's answer was cut at its model's limit of length. What there is of it is the summary.",
    "empty": "The agent ended without a word.",
}
"""By reason: why an answer that ended well is no success."""


@transaction.atomic
def settle_run(fiber_id: str, payload: JSONObject) -> AgentRun | None:
    """Set the outcome of a run, once. Returns the run to the fiber that has set it, also when that runs again.

    `None` while the child goes on or waits for a person, and for a run that has ended before or is gone.
    """
    run = AgentRun.objects.select_for_update(of=("self",), no_key=True).filter(pk=payload["run_id"]).first()
    if run is None:
        return None
    if run.finished_at is not None:
        return run if run.options.get(ENDED_BY) == fiber_id else None
    outcome = payload.get("outcome")
    if outcome is None:
        if run.child_id is not None and goes_on(run.child_id):
            return None
        outcome = _outcome_of(run, payload["ended"])
    run.outcome = outcome
    run.options = {**run.options, ENDED_BY: fiber_id}
    AgentRun.objects.filter(pk=run.pk).update(outcome=run.outcome, options=run.options, finished_at=Now())
    return run


def goes_on(instance_id: str) -> bool:
    """Whether a child has a turn that has not ended, or waits for an answer to a call."""
    return Turn.objects.filter(instance_id=instance_id, finished_at=None).exists() or open_calls(instance_id).exists()


def _outcome_of(run: AgentRun, ended: JSONObject) -> JSONObject:
    """The outcome for the parent. A failure has what the child had found by then, as `summary`."""
    status, error = str(ended["status"]), str(ended.get("error") or "")
    turn = Turn.objects.filter(pk=str(ended["turn_id"])).first()
    message, output = _answer(turn), ended.get("output")
    said = cut_text(last_text(message), MAX_SUMMARY_CHARS)
    cut = _cut_reason(turn, ended, has_answer=bool(said) or output is not None) if status == "completed" else ""
    if status == "completed" and not cut:
        return succeeded(run.run_id, said, output)
    found = cut_text(_found_in(message, run), MAX_SUMMARY_CHARS)
    if cut:
        return failed(run.run_id, "error", _CUT_TEXTS[cut], reason=cut, summary=found or None)
    if status in {"aborted", "skipped"}:
        reason = None if status == "aborted" else status
        return failed(run.run_id, "aborted", error or "The run was stopped.", reason=reason, summary=found or None)
    is_retryable = status == "interrupted" or ended.get("code") in _RETRYABLE
    return failed(run.run_id, status, error or "The agent failed.", retryable=is_retryable, summary=found or None)


def _cut_reason(turn: Turn | None, ended: JSONObject, *, has_answer: bool) -> str:
    """Why a turn that ended well is no success all the same; empty where it is one."""
    if turn is not None and (turn.model_report or {}).get("ended") == STEP_LIMIT:
        return "step-limit"
    if ended.get("finish") == FinishReason.LENGTH:
        return "length"
    return "" if has_answer or turn is None else "empty"


def found_by(run: AgentRun) -> str:
    """Findings of the child of a run: of the answer that it writes, else of its last one. May be empty."""
    turn = Turn.objects.filter(instance_id=run.child_id).order_by("-position").first()
    if turn is None:
        return ""
    message = _answer(turn)
    if turn.finished_at is None:
        message = fold(load(record.text) for record in cold_records(turn.pk, 0, MAX_RECORDS))
    return cut_text(_found_in(message, run), MAX_SUMMARY_CHARS)


def _found_in(message: Message, run: AgentRun) -> str:
    return last_text(message, without=_limit_text(run)) or last_results(message)


_RETRYABLE: Final = frozenset(
    {"interrupted", "rate_limited", "overloaded", "network_lost", "stream_stalled", "turn_timeout"}
)


def _answer(turn: Turn | None) -> Message:
    stored = None if turn is None else selectors.get_message(turn.session_id, turn.assistant_id)
    return {"id": "", "role": "assistant", "parts": []} if stored is None else stored.to_ui()


def _limit_text(run: AgentRun) -> re.Pattern[str]:
    """The words with which an answer of the child ends at its limit of steps: they are for people."""
    words = getattr(get_agent_class(run.agent), "step_limit_text", "") if is_served(run.agent) else ""
    return re.compile(re.escape(words).replace(re.escape("{steps}"), r"\d+") + r"\Z")


def last_text(message: Message, without: re.Pattern[str] | None = None) -> str:
    """The text of the last step that has any. `without`: an end that is none of it."""
    texts = ["".join(str(part["text"]) for part in step if part["type"] == "text") for step in _steps(message)]
    found = (text if without is None else without.sub("", text) for text in reversed(texts))
    return next((text for text in found if text), "")


def last_results(message: Message) -> str:
    """The results of the calls of the last step that has any, each with its tool."""
    results = (
        [f"{tool_name(part)}: {_in_words(part['output'])}" for part in step if part.get("output") is not None]
        for step in reversed(_steps(message))
    )
    return next(("\n".join(found) for found in results if found), "")


def _steps(message: Message) -> list[list[Part]]:
    steps: list[list[Part]] = [[]]
    for part in message["parts"]:
        if part["type"] == "step-start":
            steps.append([])
        steps[-1].append(part)
    return steps


def _in_words(value: JSONValue) -> str:
    return value if isinstance(value, str) else dump(value)


def attach(run_id: str, fiber_id: str, wait_key: str, turn_id: str | None) -> JSONValue:
    """Have the end of a run answer this wait of a fiber. Returns the outcome of one that has ended already.

    Durability: committed; an end that comes later finds it.
    """
    with transaction.atomic():
        run = AgentRun.objects.select_for_update(of=("self",), no_key=True).get(pk=run_id)
        if run.finished_at is not None:
            return run.outcome
        options = {**run.options, WAIT: {"fiber_id": fiber_id, "key": wait_key}}
        AgentRun.objects.filter(pk=run_id).update(options=options, parent_turn_id=turn_id or run.parent_turn_id)
        return None


def deliver(run: AgentRun) -> None:
    """Give the end of a run to who waits for it. Safe to call again."""
    wait = run.options.get(WAIT)
    if wait is not None:
        services.answer_wait(wait["fiber_id"], wait["key"], {"runId": run.run_id})
    watch = find_by_key(watch_key(run.pk)) if run.is_detached else None
    if watch is not None:
        services.cancel_fiber(watch.pk, reason="run ended")
    notify_waiters(run.pk)
    parent = AgentInstance.objects.filter(pk=run.parent_id).first()
    if parent is not None:
        notify_run(key_of(parent), run.pk)
        notify_conversation(parent.owner_id, parent.pk)


@transaction.atomic
def wake_parent(run: AgentRun) -> None:
    """Put a message about the end of a run into the parent's conversation and have it answered. Once for each run.

    What the child's conversation holds of strangers is in the parent's from then on. Errors: those of admission.
    """
    parent = AgentInstance.objects.filter(pk=run.parent_id).first()
    if parent is None:
        return
    about: JSONObject = {"agentRun": {"runId": run.run_id, "agent": run.agent}}
    words: Any = {"role": "user", "parts": [{"type": "text", "text": _report(run)}], "metadata": about}
    intake = Program(messages=[words], enters_at_start=True)
    starter = Turn.objects.filter(pk=run.parent_turn_id).first()
    request = TurnRequest(
        intake=intake,
        idempotency_key=f"wake:{run.pk}",
        body=about,
        options=_denied_to_starter(starter),
        actor_id=None if starter is None else user_key(starter.author),
    )
    with delegating():
        turn = admit(key_of(parent), request).turn
    place = GuardScope(session_id=turn.session_id, scope=parent.pk, owner_id=parent.owner_id, turn_id=turn.pk)
    see(place, _texts_of_child(run), at=Spot(name=f"run {run.pk}"))


def _denied_to_starter(turn: Turn | None) -> TurnOptions:
    """Options with the lists from above of the turn that has started the run: the turn that goes on gets them, too."""
    return {"denied": turn.options["denied"]} if turn is not None and "denied" in turn.options else {}


def _texts_of_child(run: AgentRun) -> list[SeenText]:
    turn = Turn.objects.filter(pk=run.turn_id).first()
    return [] if turn is None else [text for _, text in texts_of(turn.session_id)]


def _report(run: AgentRun) -> str:
    outcome = run.outcome or {}
    if outcome.get("ok"):
        said = outcome.get("summary") or "It wrote no text."
        return f"[Agent {run.agent}, run {run.run_id}, has ended.]\n\n{said}"
    failure = f"[Agent {run.agent}, run {run.run_id}, has failed ({outcome.get('status')}): {outcome.get('error')}]"
    return "\n\n".join(words for words in (failure, outcome.get("summary")) if words)
