"""Calls that a tool makes while it runs, as code of a model does: their ids, their approval, and who runs them."""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolProgress, ToolResult

MAX_ID_CHARS: Final = 128
"""Characters of a call's id, as its row takes it and clients may send it."""

_ROOM: Final = 100


def inner_call_id(outer: str, ordinal: int) -> str:
    """The id of a call within another one: `<outer>:<ordinal>`. That of an outer id which is too long is shortened."""
    return f"{inner_prefix(outer)}{ordinal}"


def inner_prefix(outer: str) -> str:
    """The beginning of the ids of all calls within another one."""
    if len(outer) > _ROOM:
        outer = f"{outer[: _ROOM - 17]}~{hashlib.sha256(outer.encode()).hexdigest()[:16]}"
    return f"{outer}:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call within another one that a person has to approve. `context`: of the outer call."""

    tool: Tool
    call: ToolCall
    ordinal: int
    context: ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecision:
    """A person's decision. `edited_input`: the arguments that run instead; they are checked again.

    `refused`: the result of a call that may not run, whatever a person says; nobody was asked.
    """

    is_approved: bool
    reason: str = ""
    edited_input: JSONObject | None = None
    refused: ToolResult | None = None


Ask: TypeAlias = Callable[[AskedCall], Awaitable[CallDecision]]
"""Gives the decision about a call, or parks the turn until there is one (`ToolContext.wait`)."""


class InnerCalls(Protocol):
    """A turn's part in the calls that one of its calls makes: the `inner` of a `ToolContext`."""

    def run(
        self, tool: Tool, call: ToolCall, context: ToolContext, *, is_approved: bool
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        """Run a call as those of a model are run, hooks included. Ends with one result."""
        ...

    async def keep(self, call: ToolCall, result: ToolResult) -> JSONObject:
        """Store the files of a result. Gives what has to be recorded of it besides its output; empty for nothing."""
        ...

    def deliver(self, call_id: str, kept: JSONObject) -> None:
        """Give what `keep` gave to the outer call's result. Safe to call again with the same call."""
        ...
