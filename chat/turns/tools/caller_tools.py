"""Tools that the program that asks for a turn brings for this turn, as the turn knows them.

Their declarations are stored with the turn. A call parks the turn, and the program answers from where it is
(`caller_calls.py`), so neither process has to know the other one.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from chat.errors import InputInvalid
from chat.turns.tools.client_tools import MAX_BYTES, MAX_TOOLS
from fibers.waits import WaitEnd
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size
from thinkproject.kernel.phrases import Phrase
from tools_app.calls.answers import output_in
from tools_app.core.output_limits import OutputLimit
from tools_app.core.tool import Tool, ToolContext, client_tool
from tools_app.core.tool_calls import ToolCall
from tools_app.core.tool_output import ToolOutput
from tools_app.errors import ToolDeclarationInvalid, ToolTimeout

CALLER: Final = "caller"
CALLER_SECONDS = 30.0
"""Beyond a tool's own time: for the program that runs it."""
"""The kind of a wait for the program that asked for the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerRequest:
    """A call that waits for the program. `wait_key`: of its wait, which is answered."""

    wait_key: str
    call: ToolCall
    idempotency_key: str


def declarations_of(tools: Iterable[Tool]) -> list[JSONObject]:
    """The tools as they are stored with a turn.

    Errors: `InputInvalid` for too many or too large ones; `ToolDeclarationInvalid` for one that needs more of its turn
    than a call and an answer.
    """
    declared = [_declaration(tool) for tool in tools]
    if len(declared) > MAX_TOOLS or byte_size(declared) > MAX_BYTES:
        raise InputInvalid(
            Phrase(
                "A turn may be given {limit} tools of {kibibytes} KiB together.",
                limit=MAX_TOOLS,
                kibibytes=MAX_BYTES // 1024,
            )
        )
    return declared


def _declaration(tool: Tool) -> JSONObject:
    if tool.action is not None or tool.needs_approval is not False:
        raise ToolDeclarationInvalid(
            f"Tool {tool.name!r} is approved by a person or has a ledger, which outlives the one turn that it is given "
            "to; let the agent have it (get_tools)."
        )
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "title": tool.title,
        "seconds": tool.timeout_seconds + CALLER_SECONDS,
        "output_limit": None if tool.output_limit is None else asdict(tool.output_limit),
    }


def to_tools(declarations: Iterable[JSONObject]) -> list[Tool]:
    """Make the turn's tools of what is stored with it."""
    return [_tool(declared) for declared in declarations]


def _tool(declared: JSONObject) -> Tool:
    made = client_tool(declared["name"], declared["description"], declared["parameters"], title=declared["title"])
    seconds, limit = declared["seconds"], declared["output_limit"]

    async def ask_caller(context: ToolContext, **given: Any) -> ToolOutput:
        request: JSONObject = {
            "tool": made.name,
            "input": given["input"],
            "call_id": context.call_id,
            "idempotency_key": context.idempotency_key,
        }
        end = await context.wait(CALLER, label=made.title or made.name, seconds=seconds, request=request)
        return _output_of(made, end, seconds)

    return replace(
        made,
        function=ask_caller,
        context_parameter="context",
        output_limit=None if limit is None else OutputLimit(**limit),
    )


def _output_of(tool: Tool, end: WaitEnd, seconds: float) -> ToolOutput:
    """The program's answer as the tool's output. Errors: `ToolError` for a failure, `ToolTimeout` for no answer."""
    if end.has_expired:
        raise ToolTimeout(
            f"The program that runs the tool {tool.name!r} did not answer within {seconds:g} s; it may have ended. "
            "Whether the call had an effect is not known."
        )
    unreadable = f"The program that runs the tool {tool.name!r} gave an answer that cannot be read."
    return output_in(end.answer, unreadable=unreadable)


def request_in(wait: JSONValue) -> CallerRequest | None:
    """The call that a stored wait of a parked turn is for; nothing for a wait of another kind."""
    if not isinstance(wait, dict) or wait.get("kind") != CALLER:
        return None
    request = wait.get("request")
    if not isinstance(request, dict) or "idempotency_key" not in request:
        return None  # a tool of the agent's own waits for something that it calls by this name, too
    call = ToolCall(call_id=request["call_id"], tool_name=request["tool"], input=request["input"])
    return CallerRequest(wait_key=wait["key"], call=call, idempotency_key=request["idempotency_key"])
