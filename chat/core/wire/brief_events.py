"""The three events that brief encodings of a stream show: pieces of text, pieces of reasoning, calls of tools. Pure."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from thinkproject.kernel.jsonvalue import JSONValue


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the answer's text."""

    delta: str


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """A piece of the model's reasoning."""

    delta: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A call of a tool, its arguments complete and before it has ended."""

    name: str
    arguments: JSONValue


BriefEvent: TypeAlias = TextPiece | ReasoningPiece | ToolCalled


def brief_event(chunk: Any) -> BriefEvent | None:
    """The event that a brief encoding shows of a chunk; `None` for all others."""
    match chunk:
        case {"type": "text-delta", "delta": str(delta)}:
            return TextPiece(delta)
        case {"type": "reasoning-delta", "delta": str(delta)}:
            return ReasoningPiece(delta)
        case {"type": "tool-input-available", "toolName": str(name), "input": arguments}:
            return ToolCalled(name, arguments)
    return None
