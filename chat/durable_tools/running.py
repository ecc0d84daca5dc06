"""The executor's side: the function of the family `chat.tool`, in whatever process has the tool's function."""

import time
from typing import Final

from chat.background.recovery import NOT_RESTARTED
from chat.core.durable_names import TOOL_CALL_ENDED
from chat.durable_tools.declared import Implementation, implementation_of
from fibers.context import FiberContext
from fibers.errors import GivenUp
from fibers.services import start_fiber
from thinkproject.kernel.aio import call_tool_code, db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.calls.answers import answer_of
from tools_app.calls.run import execute
from tools_app.core.schema_check import problems
from tools_app.core.tool import ToolContext
from tools_app.core.tool_calls import ToolCall, ToolProgress, ToolResult
from tools_app.errors import ResultInvalid, ToolError

REPORT_SECONDS: Final = 1.0
"""Reports of a call are stored at most this often: each is a write."""
MAX_RETRIES: Final = 8
BY_HAND: Final[JSONObject] = {"user_id": None, "agent": "", "instance_name": "", "turn_id": ""}


async def run_call(context: FiberContext) -> JSONValue:
    """Run a call and store its answer. What the tool raises fails the fiber, which is tried again where it may be."""
    entry = implementation_of(context.name)
    call, tool_context = call_in(context.fiber_id, context.payload, context.attempt)
    if not entry.tool.reruns:
        begun = begun_key(context.retries)
        if await context.recorded(begun) is not None:
            raise GivenUp(NOT_RESTARTED)  # its executor was lost, and it may not run twice
        await context.record(begun, None)
    answer = answer_of(await _result(context, entry, call, tool_context))
    check_answer(context.payload, answer)
    await db(_complete, context, answer)
    return answer


def begun_key(retries: int) -> str:
    """The journal key of a try that has begun, for tools that may not run twice. A try after an error has its own."""
    return f"begun:{retries}"


async def _result(
    context: FiberContext, entry: Implementation, call: ToolCall, tool_context: ToolContext
) -> ToolResult:
    if entry.on_executing is not None:
        await call_tool_code(entry.on_executing, call, tool_context)
    result, reported_at = ToolResult(output=None), 0.0
    context.passed(f"tool:{call.tool_name}:{call.call_id}:begins")
    async for item in execute(entry.tool, call, tool_context):
        if isinstance(item, ToolResult):
            result = item
        elif time.monotonic() - reported_at >= REPORT_SECONDS:
            reported_at = time.monotonic()
            await context.stash(_report(item))
    context.passed(f"tool:{call.tool_name}:{call.call_id}:returned")
    return result


def _report(progress: ToolProgress) -> JSONObject:
    shown: JSONObject = {name: value for name, value in progress.details.items() if name in ("title", "metadata")}
    return {**shown, "output": progress.output} if progress.has_output else shown


def check_answer(payload: JSONObject, answer: JSONObject) -> None:
    """Errors: `ToolError` for the answer of a failed call, `ResultInvalid` for one of another form than declared."""
    if answer["is_error"]:
        raise ToolError(str(answer["output"]))
    schema = payload.get("output_schema")
    found = [] if schema is None else problems(answer["output"], schema)
    if found:
        raise ResultInvalid("The result does not have the form of this tool's results:\n- " + "\n- ".join(found))


def call_in(fiber_id: str, payload: JSONObject, attempt: int) -> tuple[ToolCall, ToolContext]:
    """The call of a payload, and its context in an executor. `shared` is what `transform` has added.

    One that code has started by hand needs a `method` and a `payload` alone: no turn waits for it.
    """
    facts = {**BY_HAND, "call_id": fiber_id, "idempotency_key": fiber_id, **payload.get("call", {})}
    call = ToolCall(call_id=facts["call_id"], tool_name=payload["method"], input=payload["payload"])
    context = ToolContext(tool_name=payload["method"], attempt=attempt, shared=payload.get("more", {}), **facts)
    return call, context


def _complete(context: FiberContext, answer: JSONObject) -> None:
    with context.completing(answer):
        start_ending(context.fiber_id, context.payload)


def start_ending(fiber_id: str, payload: JSONObject) -> None:
    """Have the end of a call delivered, in the transaction that ends it."""
    start_fiber(
        TOOL_CALL_ENDED,
        {"fiber_id": fiber_id, "payload": payload},
        key=f"{fiber_id}:ended",
        max_retries=MAX_RETRIES,
    )
