"""Calls that a tool makes while it runs, as code of a model does: their ids, and what a person decides about one."""

import hashlib
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool_calls import ToolResult

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
class CallDecision:
    """A person's decision. `edited_input`: the arguments that run instead; they are checked again.

    `refused`: the result of a call that may not run whatever a person says; then no person was asked.
    """

    is_approved: bool
    reason: str = ""
    edited_input: JSONObject | None = None
    refused: ToolResult | None = None
