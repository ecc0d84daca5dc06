"""The model's side of tools that run elsewhere: a call is a fiber of the family `chat.tool`, and its caller is parked.

The key of that fiber follows from the call, so a turn that runs again finds the one it started. Nothing here knows
which process has the function.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from django.db import transaction
from pydantic import TypeAdapter
from typing_extensions import TypedDict, Unpack

from chat.agent.base import InstanceKey
from chat.durable_tools import declared
from chat.durable_tools.jobs import answer_of_job, is_over, job_group
from chat.errors import AgentNotFound
from chat.instances.quota import check_fiber_quota
from chat.instances.rows import find_instance
from chat.instances.waiting import wait_until
from chat.models import AgentInstance
from fibers.context import FiberContext, current_fiber
from fibers.errors import Parked
from fibers.selectors import find_by_key
from fibers.services import cancel_fiber, start_fiber
from thinkproject.kernel.aio import call_tool_code, db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.calls.answers import output_in, texts_in
from tools_app.calls.services import note_executor
from tools_app.core.call_check import to_json
from tools_app.core.schema_check import check_schema, problems
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall
from tools_app.core.tool_output import ToolOutput
from tools_app.errors import ResultInvalid, ToolDeclarationInvalid, ToolError, ToolTimeout

WAIT: Final = "job"
"""The kind and the key of a wait for an executor."""

DEFAULT_SECONDS: Final = 3600.0
TIMED_OUT: Final = "timed_out"

Transform = Callable[[ToolCall, ToolContext], JSONObject]
"""Makes what is stored with a call besides it, for its executor: `ToolContext.shared` there. May be async."""


class SharedOptions(TypedDict, total=False):
    """Options of tools that run elsewhere.

    `executor`: the environment that runs them; without one any worker that has the function. `retries`: how often a
    call that failed is tried again (0). `transform` adds what the executor needs besides the call, as a tenant.
    `output`: the form of the results, a type or a JSON Schema; one of another form is an error. `get_result` makes the
    model's result of the executor's.
    """

    executor: str
    retries: int
    transform: Transform
    output: Any
    get_result: Callable[[Any], Any]


class DurableOptions(SharedOptions, total=False):
    """Options of durable tools. Units: `timeout_seconds` of the wait (an hour).

    `late`: what becomes of a call whose caller has given up: `discard` (it is stopped) or `keep` (it goes on, and its
    result stays with the call, for people).
    """

    timeout_seconds: float
    late: Literal["discard", "keep"]


class AsyncOptions(SharedOptions, total=False):
    """Options of async tools. `notify`: the end of a job enters the conversation as a message, which is answered.

    `get_immediate_result` makes what the model gets at once, of the job's id.
    """

    notify: bool
    get_immediate_result: Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec:
    """A tool and its options, checked."""

    tool: Tool
    executor: str
    options: Any
    output_schema: JSONObject | None
    is_async: bool = False


def make_durable_tool(tool: Tool, **options: Unpack[DurableOptions]) -> Tool:
    """Make a tool whose calls run in another process, while the turn waits without a worker.

    The model sees the same name, description and schema. Input is checked here, before anything is stored. Durability:
    the call is stored before anything runs, once, however often the turn runs again; its result ends the wait. A stop
    of the turn stops it. Errors of a call, for the model: `ToolTimeout` after `timeout_seconds`, `ToolError` for one
    that failed or was stopped. Errors: `ToolDeclarationInvalid` for an action, whose ledger is here.
    """
    spec = _spec(tool, options)

    async def ask_executor(context: ToolContext, **given: Any) -> ToolOutput:
        call = _checked(tool, context, given["input"])
        seconds = options.get("timeout_seconds", DEFAULT_SECONDS)
        answer = await _answered(spec, call, context, seconds)
        return await _output(spec, answer, context)

    return _replaced(tool, ask_executor, seconds=options.get("timeout_seconds", DEFAULT_SECONDS))


def make_durable_tools(tools: Iterable[Tool], **options: Unpack[DurableOptions]) -> list[Tool]:
    """Make each of these durable, with the same options."""
    return [make_durable_tool(tool, **options) for tool in tools]


def make_async_tool(tool: Tool, **options: Unpack[AsyncOptions]) -> Tool:
    """Make a tool whose calls run in another process and are not waited for: the model gets a job's id at once.

    Shape of its result: `{"jobId", "status": "queued"}`, or what `get_immediate_result` makes. The model asks about it
    with `check_async_job_status`. Durability: as of `make_durable_tool`; a stop of the turn leaves the job. Errors of a
    call: `QuotaExceeded` for too much background work of the user, `ToolError` outside of a conversation.
    """
    spec = replace(_spec(tool, options), is_async=True)

    async def start_job(context: ToolContext, **given: Any) -> Any:
        call = _checked(tool, context, given["input"])
        job_id = await _started(spec, call, context, wait=None)
        immediate = options.get("get_immediate_result")
        return {"jobId": job_id, "status": "queued"} if immediate is None else await call_tool_code(immediate, job_id)

    return _replaced(tool, start_job, seconds=tool.timeout_seconds)


def _spec(tool: Tool, options: Any) -> _Spec:
    if tool.action is not None:
        raise ToolDeclarationInvalid(f"The action {tool.name!r} has its ledger here and cannot run elsewhere.")
    member = declared.member_of(tool.name, options.get("executor", ""))
    declared.asked_for.add(member)
    output = options.get("output")
    schema = output if output is None or isinstance(output, dict) else TypeAdapter(output).json_schema()
    if schema is not None:
        check_schema(schema)
    return _Spec(tool=tool, executor=options.get("executor", ""), options=options, output_schema=schema)


def _replaced(tool: Tool, function: Callable[..., Any], *, seconds: float) -> Tool:
    return replace(
        tool, function=function, context_parameter="context", arguments=None, reruns=True, timeout_seconds=seconds + 60
    )


def _checked(tool: Tool, context: ToolContext, value: JSONObject) -> ToolCall:
    """The call, with an input that its executor can take. Errors: `ToolInputInvalid`."""
    tool.parse(value)
    found = problems(value, tool.input_schema) if tool.arguments is None else []
    if found:
        raise ToolError(f"Invalid input for tool {tool.name!r}:\n- " + "\n- ".join(found))
    return ToolCall(call_id=context.call_id, tool_name=tool.name, input=value)


async def _answered(spec: _Spec, call: ToolCall, context: ToolContext, seconds: float) -> JSONValue:
    """The executor's answer: parked for it within a turn, else awaited. Errors: `ToolTimeout`."""
    fiber = current_fiber()
    if context.waiter is None or fiber is None:
        job_id = await _started(spec, call, context, wait=None)
        if await wait_until(lambda: db(is_over, job_id), group=job_group(job_id), timeout_seconds=seconds):
            return await db(answer_of_job, job_id)
    else:
        label = spec.tool.title or spec.tool.name
        try:
            end = await context.wait(WAIT, label=label, seconds=seconds, request={"executor": spec.executor})
        except Parked as parked:
            [wait] = parked.waits
            await _started(spec, call, context, wait={"fiber_id": fiber.fiber_id, "key": wait.key})
            raise
        if not end.has_expired:
            return end.answer
    if spec.options.get("late", "discard") == "discard":
        await db(_stop, call_key(context))
    raise ToolTimeout(f"The tool {spec.tool.name!r} gave no result within {seconds:g} s.")


async def _started(spec: _Spec, call: ToolCall, context: ToolContext, *, wait: JSONObject | None) -> str:
    transform = spec.options.get("transform")
    more = {} if transform is None else to_json(await call_tool_code(transform, call, context))
    session_id = "" if context.guard is None else context.guard.session_id
    payload: JSONObject = {
        "method": call.tool_name,
        "payload": call.input,
        "id": "",
        "call": {
            "call_id": call.call_id,
            "user_id": context.user_id,
            "agent": context.agent,
            "instance_name": context.instance_name,
            "turn_id": context.turn_id,
            "idempotency_key": context.idempotency_key,
        },
        "session_id": session_id,
        "wait": wait,
        "is_async": spec.is_async,
        "late": spec.options.get("late", "discard"),
        "notify": bool(spec.options.get("notify")),
        "output_schema": spec.output_schema,
        "reruns": spec.tool.reruns,
        "more": more,
    }
    return await db(_start, spec, payload, context, current_fiber())


def _start(spec: _Spec, payload: JSONObject, context: ToolContext, fiber: FiberContext | None) -> str:
    """Start the call's fiber, or find it. Fenced: a worker that was taken for dead starts nothing."""
    with fiber.fenced() if fiber is not None else transaction.atomic():
        instance = _instance_of(context)
        if payload["is_async"] and find_by_key(call_key(context)) is None:
            check_fiber_quota(instance.owner_id)
        started = start_fiber(
            declared.fiber_name(declared.member_of(spec.tool.name, spec.executor)),
            {**payload, "instance_id": instance.pk},
            owner_id=instance.owner_id,
            key=call_key(context),
            scope=instance.pk,
            max_retries=spec.options.get("retries", 0),
        )
        note_executor(context.idempotency_key, started.pk)
    return started.pk


def _instance_of(context: ToolContext) -> AgentInstance:
    turn = None if not context.turn_id else AgentInstance.objects.filter(turns__pk=context.turn_id).first()
    if turn is not None:
        return turn
    found = find_instance(InstanceKey(owner_id=context.user_id, agent=context.agent, name=context.instance_name))
    if found is None:
        raise AgentNotFound("A tool that runs elsewhere is called within a conversation.")
    return found


def call_key(context: ToolContext) -> str:
    """The key of a call's fiber: the same whenever the call runs again."""
    return f"durable:{context.idempotency_key}"[:200]


def _stop(key: str) -> None:
    fiber = find_by_key(key)
    if fiber is not None:
        cancel_fiber(fiber.pk, reason=TIMED_OUT)


async def _output(spec: _Spec, answer: JSONValue, context: ToolContext) -> ToolOutput:
    """The tool's output. Errors: `ToolError`, also for one of another form than was declared."""
    name = spec.tool.name
    for text in texts_in(answer):
        context.note_origin(text.origin, text.source)
    output = output_in(answer, unreadable=f"The executor of the tool {name!r} gave an answer that cannot be read.")
    found = [] if spec.output_schema is None else problems(output.value, spec.output_schema)
    if found:
        raise ResultInvalid(f"The result of the tool {name!r} does not have its form:\n- " + "\n- ".join(found))
    get_result = spec.options.get("get_result")
    return output if get_result is None else replace(output, value=await call_tool_code(get_result, output.value))
