"""The start of a run: the row, the child, its turn, in one transaction. Sync; runs on the database bridge."""

import contextlib
from typing import Any, Final

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.agent.values.runs import RunRequest, failed, input_text
from chat.core.durable_names import RUN_WATCH_FIBER, TURN_FIBER
from chat.errors import ChatError, InputInvalid, QuotaExceeded, TurnConflict
from chat.instances.addresses import MAX_HOPS, is_name
from chat.instances.notifications import group_of, notify_run
from chat.instances.quota import ENDS_SOON_SECONDS
from chat.instances.rows import ensure_instance, hold_instance
from chat.instances.runs import MAX_RETRIES, end_run_as
from chat.models import AgentInstance, Turn
from chat.models.runs import AgentRun
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from chat.turns.conf import turn_settings
from chat.turns.policies import delegating
from fibers.context import current_fiber
from fibers.services import start_fiber
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size, dump, fingerprint
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from tools_app.models import StoredWorkspace, WorkspaceAttachment
from tools_app.workspace.services import DEFAULT_NAME, attach, ensure_for_scope

MAX_RUN_ID: Final = 128
MAX_INPUT_BYTES: Final = 1024 * 1024
PREVIEW_CHARS: Final = 2_000
MAX_SAME: Final = 3
"""How often one turn may have the same agent work on the same input."""


def start_run(parent_key: InstanceKey, request: RunRequest) -> AgentRun:
    """Start a run, or find the one with this id.

    Durability: when this returns the run is stored, with the child's turn or with the reason why there is none. Errors:
    `AgentNotFound`, `InputInvalid`, `TurnConflict`; nothing is stored then.
    """
    route = request.agent
    if not issubclass(get_agent_class(route), Think):
        raise TurnConflict(Phrase("Agent {agent!r} does not chat.", agent=route))
    wakes = request.detached is not None and request.detached.wakes_parent
    if wakes and not issubclass(get_agent_class(parent_key.agent), Think):
        raise InputInvalid(
            Phrase("Agent {agent!r} does not chat: no message can wake it; give `on_end`.", agent=parent_key.agent)
        )
    run_id = request.run_id or new_id("run")
    if not is_name(run_id) or len(run_id) > MAX_RUN_ID:
        raise InputInvalid(Phrase("A run id has 1 to {limit} characters and names a sub-agent.", limit=MAX_RUN_ID))
    try:
        size = byte_size(request.input)
    except (TypeError, ValueError) as error:
        raise InputInvalid(Phrase("The input of a run must be JSON: {error}", error=error)) from error
    if size > MAX_INPUT_BYTES:
        raise InputInvalid(Phrase("The input of a run has at most {limit} bytes.", limit=MAX_INPUT_BYTES))
    with transaction.atomic():
        parent = ensure_instance(parent_key)
        hold_instance(parent)  # the runs of one parent are counted and started one after the other
        known = AgentRun.objects.filter(parent=parent, run_id=run_id).first()
        if known is None:
            return _start(parent, parent_key, request, run_id)
        if known.agent != route:
            raise TurnConflict(Phrase("The run id {id!r} belongs to a run of another agent.", id=run_id))
        return known


def _start(parent: AgentInstance, parent_key: InstanceKey, request: RunRequest, run_id: str) -> AgentRun:
    turn_id = _turn_here(parent_key)
    run = AgentRun.objects.create(
        parent=parent,
        owner_id=parent.owner_id,
        run_id=run_id,
        agent=request.agent,
        parent_turn_id=turn_id,
        call_id=request.call_id[:200],
        display_order=request.display_order,
        display=request.display,
        input_preview=_preview(request.input),
        is_detached=request.detached is not None,
        options=_options(request),
    )
    outcome = _refusal(parent, parent_key, request, run)
    if outcome is None:
        try:
            with transaction.atomic():
                _admit(parent_key, request, run)
        except ChatError as error:
            is_full = isinstance(error, QuotaExceeded)
            outcome = failed(run_id, "error", error.message, retryable=is_full)
    if outcome is not None:
        end_run_as(run.pk, outcome, cause="refused")
        run.outcome = outcome  # for the caller; the fiber stores it, and reports it like any other end
    elif request.detached is not None:
        start_fiber(RUN_WATCH_FIBER, {"run_id": run.pk}, key=watch_key(run.pk), max_retries=MAX_RETRIES)
    notify_run(parent_key, run.pk)
    return run


def watch_key(run_id: str) -> str:
    """Key of the fiber that watches the limits of a detached run."""
    return f"run-watch:{run_id}"


def _admit(parent_key: InstanceKey, request: RunRequest, run: AgentRun) -> None:
    """Make the child and its turn. Errors: those of admission, `QuotaExceeded` for too many runs of the user."""
    child_key = parent_key.below(request.agent, run.run_id)
    files = _held_files(run) if request.workspace == "shared" else None
    child = ensure_instance(child_key)
    if files is not None:
        attach(files.workspace_id, child.pk, name=DEFAULT_NAME, can_write=files.can_write)
    words: Any = {"role": "user", "parts": [{"type": "text", "text": input_text(request.input)}]}
    with contextlib.nullcontext() if request.is_of_person else delegating():
        admission = admit(
            child_key,
            TurnRequest(
                intake=Program(messages=[words]), idempotency_key=run.pk, body={"agentRun": {"runId": run.run_id}}
            ),
        )
    limit = turn_settings.runs_per_user
    if limit and run.owner_id is not None:
        lock_owner(run.owner_id)
        if AgentRun.objects.filter(owner_id=run.owner_id, finished_at=None).count() > limit:
            raise QuotaExceeded(
                Phrase("You have {limit} runs of agents under way.", limit=limit), retry_after_seconds=ENDS_SOON_SECONDS
            )
    run.child, run.turn = child, admission.turn
    AgentRun.objects.filter(pk=run.pk).update(child=child, turn=admission.turn)


def _held_files(run: AgentRun) -> WorkspaceAttachment:
    """The parent's use of its workspace, whose row is locked: before the owner's, which a new child locks."""
    workspace = ensure_for_scope(run.parent_id, run.owner_id, DEFAULT_NAME)
    StoredWorkspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    return WorkspaceAttachment.objects.get(scope=run.parent_id, name=DEFAULT_NAME)


def _refusal(parent: AgentInstance, parent_key: InstanceKey, request: RunRequest, run: AgentRun) -> JSONObject | None:
    """The outcome of a run that may not begin."""
    others = AgentRun.objects.filter(parent=parent).exclude(pk=run.pk)
    limit = _limit_of(parent)
    if limit is not None and others.filter(finished_at=None).count() >= limit:
        return failed(run.run_id, "error", f"maxConcurrentAgentTools ({limit}) exceeded", retryable=True)
    if len(parent_key.ancestors) >= MAX_HOPS:
        return failed(run.run_id, "error", f"Agents work for each other at most {MAX_HOPS} levels deep.")
    above = [key.agent for key in (*parent_key.ancestors, parent_key)]
    agent_class = get_agent_class(request.agent)
    if request.agent in above and not getattr(agent_class, "allows_recursion", False):
        return failed(run.run_id, "error", f"Agent {request.agent!r} is above this one already: that would be a loop.")
    if run.parent_turn_id is not None:
        same = others.filter(parent_turn_id=run.parent_turn_id, agent=request.agent).values_list("options", flat=True)
        if sum(options.get("input") == run.options["input"] for options in same) >= MAX_SAME:
            text = f"The same task was given to {request.agent!r} {MAX_SAME} times in this turn."
            return failed(run.run_id, "error", text, reason="repeated")
    return None


def _limit_of(parent: AgentInstance) -> int | None:
    """The number of runs that an instance may have under way, as its class says; `None` sets no limit."""
    if not is_served(parent.agent):
        return None
    limit: int | None = getattr(get_agent_class(parent.agent), "max_concurrent_agent_tools", None)
    return limit


def _options(request: RunRequest) -> JSONObject:
    options: JSONObject = {"input": fingerprint(request.input)}
    if request.mcp == "shared":
        options["mcp"] = "shared"
    return options if request.detached is None else {**options, **request.detached.to_json()}


def _preview(value: JSONValue) -> JSONValue:
    """The input as clients are shown it."""
    if isinstance(value, str):
        return value[:PREVIEW_CHARS]
    text = dump(value)
    return value if len(text) <= PREVIEW_CHARS else f"{text[:PREVIEW_CHARS]}…"


def _turn_here(key: InstanceKey) -> str | None:
    """The turn of this conversation in whose course the run is started."""
    fiber = current_fiber()
    if fiber is None or fiber.name != TURN_FIBER or fiber.metadata.get("address") != group_of(key):
        return None
    turn_id = str(fiber.payload["turn_id"])
    return turn_id if Turn.objects.filter(pk=turn_id).exists() else None
