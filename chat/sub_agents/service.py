"""Sub-agents and runs of an instance: the database side of `chat.agent.methods.sub_agents`."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, Protocol

from django.db.models.functions import Now

from chat.agent.base import InstanceKey
from chat.agent.registry import is_served
from chat.agent.values.runs import AgentRunInfo, RunRequest, SubAgentInfo, started
from chat.errors import AgentNotFound
from chat.instances.addresses import MAX_HOPS, is_name
from chat.instances.notifications import turn_group
from chat.instances.rows import BATCH, find_instance
from chat.instances.waiting import wait_until
from chat.models.runs import AgentRun
from chat.operations.removal import delete_instance
from chat.sub_agents import registry
from chat.turns.delegation.ending import attach
from chat.turns.delegation.reports import TurnReports
from chat.turns.delegation.starting import start_run
from chat.turns.delegation.stopping import stop_below, stop_run
from fibers.context import current_fiber
from fibers.errors import Parked
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, fingerprint
from thinkproject.kernel.phrases import Phrase
from tools_app.core.current_call import CurrentCall, current_call
from tools_app.core.guard.reach import is_reading, note_here
from tools_app.guard.standings import texts_of

RUN_WAIT = "agent-run"
"""Kind of the wait of a parent's turn."""


class MakeHandle(Protocol):
    """Makes a handle of an instance."""

    def __call__(self, key: InstanceKey) -> Any:
        """Make it. No query is made."""


@dataclass(slots=True)
class InstanceSubAgents:
    """The sub-agents of an instance, for its agent and code."""

    handle_of: ClassVar[MakeHandle]  # set by `chat.wiring`: handles lie above, and reach this
    key: InstanceKey
    reports: TurnReports | None = None  # of the turn that the agent object works for

    def open(self, route: str, name: str) -> Any:
        """A handle of a sub-agent."""
        return self.handle_of(child_key(self.key, route, name))

    def open_parent(self) -> Any:
        """A handle of the parent."""
        return None if self.key.parent is None else self.handle_of(self.key.parent)

    async def abort(self, route: str, name: str, reason: str) -> bool:
        """Stop a sub-agent and all below it."""
        return await db(_abort, child_key(self.key, route, name), reason)

    async def delete(self, route: str, name: str) -> bool:
        """Stop and remove a sub-agent."""
        return await db(_delete, child_key(self.key, route, name))

    async def has(self, route: str, name: str) -> bool:
        """Whether there is one."""
        return await db(find_instance, self.key.below(route, name)) is not None

    async def list_all(self, route: str) -> list[SubAgentInfo]:
        """Read the registry."""
        return await db(registry.sub_agents_of, self.key, route)

    async def find_run(self, run_id: str) -> AgentRunInfo | None:
        """Read a run."""
        run = await db(registry.run_of, self.key, run_id)
        return None if run is None else registry.info_of(run)

    async def abort_run(self, run_id: str, reason: str) -> bool:
        """Stop a run."""
        run = await db(registry.run_of, self.key, run_id)
        return run is not None and run.finished_at is None and await db(stop_run, run, reason)

    async def clear_runs(self, older_than_seconds: float) -> int:
        """Remove runs that have ended, and their children."""
        return await db(_clear_runs, self.key, older_than_seconds)

    async def run(self, request: RunRequest) -> JSONObject:
        """Start a run, or find it, and wait for its end unless it is detached."""
        call = current_call()
        if call is not None:
            request = _of_call(request, call)
        run = await db(start_run, self.key, request)
        outcome = run.outcome
        if outcome is None and run.is_detached:
            return started(run.run_id)
        if outcome is None:
            outcome = await _wait(run, call)
        await _note_texts(run.pk)
        assert isinstance(outcome, dict)
        return outcome

    def report_progress(self, fraction: float, message: str) -> None:
        """Show how far this agent's run is."""
        if self.reports is not None:
            self.reports.progress(fraction, message)

    def report_milestone(self, name: str, data: JSONObject) -> None:
        """Keep a milestone in the answer."""
        if self.reports is not None:
            self.reports.milestone(name, data)


def child_key(key: InstanceKey, route: str, name: str) -> InstanceKey:
    """The address of a sub-agent.

    Errors: `AgentNotFound` for an agent that is not served, an impossible name, and one that lies too deep.
    """
    if not is_served(route) or not is_name(name) or len(key.ancestors) >= MAX_HOPS:
        raise AgentNotFound(
            Phrase("There can be no sub-agent {route!r} of the name {name!r} here.", route=route, name=name)
        )
    return key.below(route, name)


def _of_call(request: RunRequest, call: CurrentCall) -> RunRequest:
    """The request with what follows from the call that makes it: the same run when the call runs again."""
    context = call.context
    run_id = request.run_id
    if not run_id:
        run_id = f"run_{fingerprint([context.idempotency_key, next(call.ordinals)])[:24]}"
    return replace(request, run_id=run_id, call_id=request.call_id or context.call_id)


async def _wait(run: AgentRun, call: CurrentCall | None) -> JSONValue:
    """Wait for the end of a run: parked within a call of a turn that can, elsewhere in this task."""
    fiber = current_fiber()
    if call is None or call.context.waiter is None or fiber is None:
        await wait_until(lambda: db(_has_ended, run.pk), group=turn_group(run.pk))
        return await db(_outcome, run.pk)
    display = run.display or {}
    label = str(display.get("name") or run.agent)
    try:
        await call.context.wait(RUN_WAIT, label=label, key=run.pk, request={"runId": run.run_id})
    except Parked as parked:
        [wait] = parked.waits
        outcome = await db(attach, run.pk, fiber.fiber_id, wait.key, call.context.turn_id or None)
        if outcome is None:
            raise
        return outcome
    return await db(_outcome, run.pk)


def _has_ended(run_id: str) -> bool:
    return not AgentRun.objects.filter(pk=run_id, finished_at=None).exists()


def _outcome(run_id: str) -> JSONValue:
    return AgentRun.objects.values_list("outcome", flat=True).get(pk=run_id)


async def _note_texts(run_id: str) -> None:
    """Pass on that the child's conversation holds texts of strangers: its answer may repeat them."""
    if not is_reading():
        return
    session_id = await db(lambda: AgentRun.objects.values_list("turn__session_id", flat=True).get(pk=run_id))
    for _, text in await db(texts_of, session_id) if session_id else ():
        note_here(text.origin, text.source)


def _abort(key: InstanceKey, reason: str) -> bool:
    instance = find_instance(key)
    return instance is not None and stop_below(instance.pk, reason)


def _delete(key: InstanceKey) -> bool:
    instance = find_instance(key)
    return instance is not None and delete_instance(instance)


def _clear_runs(key: InstanceKey, older_than_seconds: float) -> int:
    """Each in transactions of its own; what a crash leaves is removed by the next call."""
    instance = find_instance(key)
    if instance is None:
        return 0
    before = Now() - timedelta(seconds=older_than_seconds)
    rows = AgentRun.objects.filter(parent=instance, finished_at__lte=before).select_related("child")
    found = list(rows.order_by("finished_at", "pk")[:BATCH])
    for run in found:
        if run.child is not None:
            delete_instance(run.child)
        run.delete()
    return len(found)
