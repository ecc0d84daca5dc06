"""The chat's durable functions: a turn, the hook after it, and the completion of turns that were abandoned."""

import itertools
import logging
from dataclasses import replace
from functools import partial

from chat.agent.base import Agent, InstanceKey
from chat.agent.think import Think
from chat.agent.values.background import CompletedFiber
from chat.background.queue import run_queued
from chat.background.recovery import note_lost, recover_lost
from chat.background.rows import id_of, members, routes
from chat.background.runs import run_method
from chat.conversations.account_removal import remove_account
from chat.conversations.archive_run import import_archive, look_through
from chat.conversations.data_export_run import export_everything
from chat.core import durable_names as names
from chat.core.loop.hooks import ChatResponse, ResponseStatus
from chat.core.model.chosen_model import stored_choice
from chat.durable_streams.wakes import look_at_lease, wake_worker
from chat.durable_tools.declared import members as tool_members
from chat.durable_tools.declared import queue_of_call
from chat.durable_tools.ending import deliver as deliver_tool_call
from chat.durable_tools.ending import note_never_started
from chat.durable_tools.running import run_call
from chat.errors import AgentNotFound
from chat.inbox.queries import members as query_agents
from chat.inbox.queries import run_query_agent
from chat.instance.instance import make_agent, started_agent
from chat.instances.notifications import notify_waiters
from chat.instances.rows import key_of
from chat.mcp_servers.background import connect_server, read_server
from chat.models import AgentInstance, Turn, TurnTrigger
from chat.models.runs import AgentRun
from chat.schedules.reconciling import reconcile_class
from chat.schedules.runs import callable_members, note_ended, run_scheduled
from chat.sub_agents.registry import info_of
from chat.turns.admission.continuation import expire_question
from chat.turns.background.compaction import compact_session
from chat.turns.background.notices import push, spread_notice
from chat.turns.background.summaries import write_summary
from chat.turns.background.titles import write_title
from chat.turns.delegation.ending import deliver, settle_run, wake_parent
from chat.turns.delegation.stopping import stop_all_of
from chat.turns.delegation.watching import check_limits
from chat.turns.execution.asking_with import with_keys_of_owner, with_keys_of_turn
from chat.turns.execution.begin import begin_claimed, mark_never_started
from chat.turns.execution.context_window import auto_compaction_is_on
from chat.turns.execution.recovery import budget_of_turn
from chat.turns.execution.runner import TurnRun
from chat.turns.execution.sealing import seal_turn
from chat.turns.inbox.answering import deliver as deliver_answer
from chat.turns.inbox.pausing import PAUSE
from chat.turns.inbox.sending import wake_again
from chat.user_code.call_hook import call_hook, is_overridden, notify_hook, user_code_boundary
from chat.webhooks.receiving import run_wake, webhook_names
from fibers.context import FiberContext
from fibers.core.states import WORKER_LOST, FiberStatus
from fibers.errors import Failed, GivenUp
from fibers.registry import durable
from fibers.waits import Wait
from sessions_app.core.messages.shapes import Message
from sessions_app.errors import CompactionFailed
from sessions_app.messages import selectors
from sessions_app.models import CompactionTrigger, Session
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

logger = logging.getLogger(__name__)

COMPACTED = "compacted"
RESUME_SECONDS = 15 * 60.0
"""A started turn that lay for longer than this is sealed with a visible "continue", not resumed by surprise."""


# Functions of other modules that take a fiber as they are.
durable(names.ARCHIVE_SCAN_FIBER)(look_through)
durable(names.ARCHIVE_RUN_FIBER)(import_archive)
durable(names.DATA_EXPORT_FIBER)(export_everything)
durable(names.ACCOUNT_REMOVAL_FIBER)(remove_account)
durable(names.MCP_FIBER)(connect_server)
durable(names.STREAM_WAKE_FIBER)(wake_worker)
durable(names.WEBHOOK_FIBER, members=webhook_names)(run_wake)
durable(names.NOTICE_FIBER)(spread_notice)
durable(names.PUSH_FIBER)(push)
durable(names.MCP_READ_FIBER)(read_server)
durable(names.QUERY_AGENT, members=query_agents)(run_query_agent)
durable(
    names.TOOL_CALL,
    members=tool_members,
    sealed=names.TOOL_CALL_ENDED,
    never_started=note_never_started,
    queue=queue_of_call,
)(run_call)


@durable(
    names.TURN_FIBER,
    sealed=names.SEALED_TURN_FIBER,
    resume_seconds=RESUME_SECONDS,
    never_started=mark_never_started,
    begin=begin_claimed,
    budget=budget_of_turn,
)
async def run_turn(context: FiberContext) -> JSONValue:
    """Answer one request."""
    async with with_keys_of_turn(context):
        return await TurnRun(context, make_agent).run()


@durable(names.RESPONSE_FIBER)
async def run_response_hook(context: FiberContext) -> JSONValue:
    """Call `on_chat_response` once the turn's lane is free; at least once."""
    response, agent = await db(_response, context.payload)
    context.on_settled(partial(_notify_waiters, context.payload["turn_id"]))
    if agent is not None:
        await notify_hook(agent, "on_start")
        await call_hook(agent, "on_chat_response", response)
    return None


@durable(names.TITLE_FIBER)
async def write_title_of(context: FiberContext) -> JSONValue:
    """Write the title of a conversation; nothing waits for it."""
    async with with_keys_of_owner(context):
        await write_title(context, make_agent)
    return None


@durable(names.SUMMARY_FIBER)
async def write_summary_of(context: FiberContext) -> JSONValue:
    """Write the summary of a conversation for people; nothing waits for it."""
    async with with_keys_of_owner(context):
        await write_summary(context, make_agent)
    return None


@durable(names.STREAM_LEASE_FIBER)
async def look_at_subscription(context: FiberContext) -> JSONValue:
    """Free the work of a worker that has not reported in time."""
    await db(look_at_lease, context.payload)
    return None


@durable(names.AGENT_FIBER_SEALED)
async def tidy_agent_fiber(context: FiberContext) -> JSONValue:
    """Have an agent's fibers that lost their worker taken up."""
    await db(note_lost, context)
    return None


@durable(
    names.AGENT_FIBER, members=members, sealed=names.AGENT_FIBER_SEALED, retries_at_once=True, interrupts_when_lost=True
)
async def run_agent_fiber(context: FiberContext) -> JSONValue:
    """Call a method of an agent in the background."""
    return await run_method(context, started_agent)


@durable(names.AGENT_QUEUE, members=members)
async def run_queued_call(context: FiberContext) -> JSONValue:
    """Run a call of an agent's queue."""
    return await run_queued(context, started_agent)


@durable(names.AGENT_RUN, sealed=names.AGENT_FIBER_SEALED, interrupts_when_lost=True)
async def run_lost_function(_context: FiberContext) -> JSONValue:
    """Give up a function of `run_fiber` that a worker gets: its process has stopped, and the function with it."""
    raise GivenUp(WORKER_LOST)


@durable(names.AGENT_FIBER_DONE, members=routes)
async def run_completed_hook(context: FiberContext) -> JSONValue:
    """Call `on_fiber_complete`; at least once."""
    payload = context.payload
    instance = await db(lambda: AgentInstance.objects.filter(pk=payload["instance_id"]).first())
    if instance is not None:
        done = CompletedFiber(
            id=id_of(payload["fiber_id"], payload),
            method=payload["method"],
            payload=payload["payload"],
            result=payload["result"],
        )
        await notify_hook(await started_agent(key_of(instance)), "on_fiber_complete", done)
    return None


@durable(names.AGENT_FIBERS_LOST, members=routes)
async def take_up_lost_fibers(context: FiberContext) -> JSONValue:
    """Call the hooks of an agent for the fibers that lost their workers."""
    instance = await db(lambda: AgentInstance.objects.filter(pk=context.payload["instance_id"]).first())
    if instance is not None:
        agent = await started_agent(key_of(instance))
        if agent.fibers:
            await recover_lost(instance.pk, agent)
    return None


@durable(names.SCHEDULED_FIBER, members=callable_members, sealed=names.SCHEDULED_ENDED_FIBER)
async def run_occurrence(context: FiberContext) -> JSONValue:
    """Run what a schedule of a conversation has due: a method of its agent, or a prompt. At least once."""
    return await run_scheduled(context, make_agent)


@durable(names.SCHEDULED_ENDED_FIBER)
async def note_failed_occurrence(context: FiberContext) -> JSONValue:
    """Let the owner of a schedule know that a run has failed."""
    await db(note_ended, context.payload)
    return None


@durable(names.DECLARED_FIBER)
async def reconcile_schedules(context: FiberContext) -> JSONValue:
    """Bring the schedules of a class's conversations in step with what it declares, some at a time."""
    return await reconcile_class(context, make_agent)


async def _notify_waiters(turn_id: str, _status: FiberStatus) -> None:
    await db(notify_waiters, turn_id)


def _response(payload: JSONObject) -> tuple[ChatResponse, Think | None]:
    turn = Turn.objects.select_related("instance").get(pk=payload["turn_id"])
    stored = selectors.get_message(turn.session_id, turn.assistant_id)
    empty: Message = {"id": turn.assistant_id, "role": "assistant", "parts": []}
    agent = make_agent(key_of(turn.instance))
    if isinstance(agent, Think):
        agent.model_choice = stored_choice(turn.options.get("model_choice"))
    response = ChatResponse(
        message=empty if stored is None else stored.to_ui(),
        request_id=turn.request_id,
        continuation=turn.trigger == TurnTrigger.CONTINUE,
        status=ResponseStatus(payload["status"]),
        error=payload["error"],
        output=payload.get("output"),
    )
    return response, agent if isinstance(agent, Think) else None


@durable(names.RUN_ENDED_FIBER)
async def end_run(context: FiberContext) -> JSONValue:
    """Decide how a run has ended, if it has, and report it: to the parent's turn, its code, its conversation."""
    run = await db(settle_run, context.fiber_id, context.payload)
    if run is None:
        return None
    await db(deliver, run)
    parent = await db(lambda: AgentInstance.objects.filter(pk=run.parent_id).first())
    agent = None if parent is None else _find_agent(key_of(parent))
    if agent is not None:
        await context.step("hooks", partial(_report_run, agent, run))
    if run.options.get("wakes_parent"):
        await db(wake_parent, run)
    return None


async def _report_run(agent: Agent, run: AgentRun) -> JSONValue:
    """Call what the parent's class has for the end of a run. What raises there is logged, and changes nothing."""
    info = info_of(run)
    method = str(run.options.get("on_end") or "")
    if method or is_overridden(agent, "on_agent_tool_finish"):
        await notify_hook(agent, "on_start")
        await notify_hook(agent, "on_agent_tool_finish", info)
    if method:
        try:
            with user_code_boundary(method):
                await call_user_code(getattr(agent, method), info)
        except ThinkError as error:
            logger.warning("hook failed", extra={"action": "hook_failed", "hook": method, "code": error.code})
    return None


@durable(names.RUN_WATCH_FIBER)
async def watch_run(context: FiberContext) -> JSONValue:
    """Watch the limits of a detached run: parked until the next one is due, and cancelled when the run has ended."""
    for number in itertools.count():
        wait = Wait(key=f"limit:{number}", kind="run")
        if await context.recorded(wait.step_key) is None:
            found = await db(check_limits, context.payload["run_id"])
            if found is None:
                return None
            await context.wait(replace(wait, seconds=found.seconds))
    return None


@durable(names.AGENT_REPLY_FIBER)
async def deliver_reply(context: FiberContext) -> JSONValue:
    """Give the reply of an agent to the call that waits for it."""
    return await db(deliver_answer, context.payload)


@durable(names.AGENT_INBOX_FIBER)
async def look_at_inbox(context: FiberContext) -> JSONValue:
    """Have what is left in an inbox answered."""
    return await db(wake_again, context.payload["instance_id"])


@durable(names.AGENT_PAUSE_FIBER)
async def hold_lane(context: FiberContext) -> JSONValue:
    """Stand at the head of an agent's lane until it goes on."""
    await context.wait(PAUSE)
    return None


@durable(names.STOP_RUNS_FIBER)
async def stop_runs(context: FiberContext) -> JSONValue:
    """Stop the runs for which no turn waits any more."""
    return await db(stop_all_of, context.payload["turn_id"], context.payload["reason"])


@durable(names.TOOL_CALL_ENDED)
async def deliver_call(context: FiberContext) -> JSONValue:
    """Give the end of a call that ran elsewhere to the turn that waits for it, or to its conversation."""
    await db(deliver_tool_call, context.payload)
    return None


@durable(names.EXPIRY_FIBER)
async def expire(context: FiberContext) -> JSONValue:
    """Deny an approval that was not answered in time. It starts when that time is over."""
    return await db(expire_question, int(context.payload["row_id"]), str(context.payload["instance_id"]))


@durable(names.COMPACT_FIBER, resume_seconds=RESUME_SECONDS)
async def compact(context: FiberContext) -> JSONValue:
    """Compact a session: asked for by a person, or because it has outgrown its threshold."""
    known = await context.recorded(COMPACTED)
    if known is not None:
        return known.value
    payload = context.payload
    instance = await db(lambda: AgentInstance.objects.filter(pk=payload["instance_id"]).first())
    agent = None if instance is None else _find_agent(key_of(instance))
    trigger = CompactionTrigger(payload["trigger"])
    if not isinstance(agent, Think) or await db(_is_unwanted, agent, payload["session_id"], trigger):
        return None
    await notify_hook(agent, "on_start")
    try:
        async with with_keys_of_owner(context):
            done = await compact_session(
                agent,
                payload["session_id"],
                trigger=trigger,
                instructions=payload.get("instructions", ""),
                user_id=payload.get("user_id"),
                also=lambda done: context.record_in(COMPACTED, {"compaction_id": done.compaction_id}),
            )
    except CompactionFailed as error:
        raise Failed(error.code, error.message, is_final=True) from error
    return None if done is None else {"compaction_id": done.compaction_id}


def _is_unwanted(agent: Think, session_id: str, trigger: CompactionTrigger) -> bool:
    """Whether the session is gone, or is not to be compacted without being asked."""
    if not Session.objects.filter(pk=session_id).exists():
        return True
    return trigger is CompactionTrigger.AUTO and not auto_compaction_is_on(agent, session_id)


@durable(names.SEALED_TURN_FIBER)
async def seal(context: FiberContext) -> JSONValue:
    """Store the partial answer of an abandoned turn, with the reason."""
    await seal_turn(context, _find_agent)
    return None


def _find_agent(key: InstanceKey) -> Agent | None:
    """An object of the turn's class, `None` when that is gone."""
    try:
        return make_agent(key)
    except AgentNotFound:
        return None
