"""The program's side of the tools that it brings for a turn: it finds their calls, runs them and answers.

The calls are the waits of the parked turn, read from the database, so any process with the database can serve them.
A call that a program has begun is not begun again by it. Of two programs that answer one call the first counts.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, TypedDict, TypeVar

from django.db import OperationalError

from chat.agent.base import InstanceKey
from chat.errors import InputInvalid
from chat.instances.notifications import turn_group
from chat.instances.waiting import wait_until
from chat.models import Turn
from chat.turns.tools.caller_tools import CallerRequest, declarations_of, request_in
from fibers.core.states import FiberStatus
from fibers.errors import Parked
from fibers.models import Fiber
from fibers.services import answer_wait
from thinkproject.kernel.aio import call_tool_code, db
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.retry import RetryPolicy
from tools_app.calls.answers import answer_of
from tools_app.calls.run import execute
from tools_app.core.schema_check import check_schema, problems
from tools_app.core.tool import Tool, ToolContext, client_tool
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.core.toolset import Toolset, ToolSource
from tools_app.errors import ToolInputInvalid

logger = logging.getLogger(__name__)

TRIES: Final = 5
RETRY: Final = RetryPolicy(first_seconds=0.1, max_seconds=2.0)

OnToolCall: TypeAlias = Callable[[ToolCall], Any]
"""Runs a call of a declared tool and gives its output. May be async; what it raises is an error for the model."""

Given = TypeVar("Given")


class ExtraTools(TypedDict, total=False):
    """The tools that a caller brings for one turn.

    `tools`: as `get_tools()` gives them; they run in the caller's process. `client_tools`: declarations alone, made by
    `client_tool` or as `{name, description, parameters}`; their calls go to `on_client_tool_call`.
    """

    tools: ToolSource
    client_tools: Sequence[JSONObject | Tool]
    on_client_tool_call: OnToolCall


class CallerTools:
    """The tools that one program brings for a turn, ready to run. Of two of one name the declared one counts.

    Errors: `ToolDeclarationInvalid` for what can be no such tool, `SchemaInvalid`; `InputInvalid` for declarations
    without a function that runs them, and for too many tools.
    """

    def __init__(self, extra: ExtraTools) -> None:
        on_call = extra.get("on_client_tool_call")
        own = Toolset(extra.get("tools") or (), [_declared(item) for item in extra.get("client_tools") or ()])
        if on_call is None and any(tool.is_client for tool in own):
            raise InputInvalid("Tools without a function need on_client_tool_call, which runs them.")
        self._tools = {tool.name: _run_by(tool, on_call) if tool.is_client and on_call else tool for tool in own}
        self.declarations = declarations_of(self._tools.values())

    def __bool__(self) -> bool:
        return bool(self._tools)

    async def run(self, request: CallerRequest, key: InstanceKey, turn_id: str) -> ToolResult:
        """Run a call. Whatever goes wrong is a result that the model sees."""
        call = request.call
        if call.tool_name not in self._tools:
            text = f"The program that asked for this turn has no tool {call.tool_name!r} any more."
            return ToolResult(output=text, is_error=True)
        context = ToolContext(
            call_id=call.call_id,
            tool_name=call.tool_name,
            user_id=key.owner_id,
            agent=key.agent,
            instance_name=key.name,
            turn_id=turn_id,
            attempt=1,
            idempotency_key=request.idempotency_key,
        )
        result = ToolResult(output=None)
        try:
            async for item in execute(self._tools[call.tool_name], call, context):
                if isinstance(item, ToolResult):
                    result = item
        except Parked:  # it was made inside another turn, and waits with that turn's context
            return ToolResult(output="A tool that is given to a turn cannot wait for another one.", is_error=True)
        return result


@asynccontextmanager
async def serving(key: InstanceKey, turn: Turn, tools: CallerTools | None) -> AsyncIterator[None]:
    """Run and answer the calls of a turn until the end of the block. Calls that still run then are cancelled."""
    if not tools:
        yield
        return
    task = asyncio.create_task(serve_calls(key, turn, tools))
    try:
        yield
    finally:
        task.cancel()
        for error in await asyncio.gather(task, return_exceptions=True):
            if not isinstance(error, asyncio.CancelledError):
                extra = {"action": "caller_calls_unserved", "turn_id": turn.pk}
                logger.error("calls of a turn were not served", exc_info=error, extra=extra)


async def serve_calls(key: InstanceKey, turn: Turn, tools: CallerTools) -> None:
    """Run and answer the calls of a turn, side by side, until this is cancelled."""
    taken: set[str] = set()
    found: list[CallerRequest] = []
    running: set[asyncio.Task[None]] = set()

    async def have_come() -> bool:
        found[:] = [each for each in await _tried(partial(_open_requests, turn.fiber_id)) if each.wait_key not in taken]
        return bool(found)

    try:
        while await wait_until(have_come, group=turn_group(turn.pk)):
            for request in found:
                taken.add(request.wait_key)
                task = asyncio.create_task(_answer(key, turn, tools, request))
                running.add(task)
                task.add_done_callback(running.discard)
    finally:
        left = list(running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _answer(key: InstanceKey, turn: Turn, tools: CallerTools, request: CallerRequest) -> None:
    result = await tools.run(request, key, turn.pk)
    is_first = await _tried(partial(answer_wait, turn.fiber_id, request.wait_key, answer_of(result)))
    if not is_first:
        extra = {"action": "caller_answer_late", "turn_id": turn.pk, "call_id": request.call.call_id}
        logger.warning("an answer to a call came too late", extra=extra)


def _open_requests(fiber_id: str) -> list[CallerRequest]:
    """The calls that a parked turn waits for, oldest first. One query."""
    parked = Fiber.objects.filter(pk=fiber_id, status=FiberStatus.PARKED)
    waits = parked.values_list("waits", flat=True).first() or []
    return [request for request in map(request_in, waits) if request is not None]


async def _tried(operation: Callable[[], Given]) -> Given:
    """Ask the database, again if it is away for a moment."""
    for attempt in range(1, TRIES):
        try:
            return await db(operation)
        except OperationalError:
            extra = {"action": "caller_calls_retry", "attempt": attempt}
            logger.warning("the database is not there for a caller", exc_info=True, extra=extra)
            await asyncio.sleep(RETRY.delay_seconds(attempt, jitter=0.5))
    return await db(operation)


def _declared(given: JSONObject | Tool) -> Tool:
    if isinstance(given, Tool):
        return given
    if not isinstance(given.get("name"), str):
        raise InputInvalid("A declared tool has a name, a description and a JSON Schema of its parameters.")
    return client_tool(given["name"], given.get("description") or "", given.get("parameters"))


def _run_by(tool: Tool, on_call: OnToolCall) -> Tool:
    """A declared tool that the caller's function runs, with an input that fits its schema."""
    check_schema(tool.input_schema)

    async def run(context: ToolContext, **given: Any) -> Any:
        found = problems(given["input"], tool.input_schema)
        if found:
            raise ToolInputInvalid(f"Invalid input for tool {tool.name!r}:\n- " + "\n- ".join(found))
        call = ToolCall(call_id=context.call_id, tool_name=tool.name, input=given["input"])
        return await call_tool_code(on_call, call)

    return replace(tool, function=run, context_parameter="context")
