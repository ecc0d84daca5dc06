"""A stream as lines of JSON: `{"t":"text","d"}`, `{"t":"think","d"}`, `{"t":"tool","n","a"}`. Pure.

Each line is a whole event; what is none of the three is not in it.
"""

from typing import Any

from chat.core.wire.brief_events import BriefEvent, ReasoningPiece, TextPiece, ToolCalled, brief_event
from thinkproject.kernel.jsonvalue import dump, load


def line_of(chunk: Any) -> str:
    """The line of a chunk, with its line end; empty for a chunk that has none."""
    match brief_event(chunk):
        case TextPiece(delta=delta):
            return dump({"t": "text", "d": delta}) + "\n"
        case ReasoningPiece(delta=delta):
            return dump({"t": "think", "d": delta}) + "\n"
        case ToolCalled(name=name, arguments=arguments):
            return dump({"t": "tool", "n": name, "a": arguments}) + "\n"
    return ""


class LineReader:
    """Reads such a stream from pieces of text that end anywhere. Lines that are none are skipped."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str) -> list[BriefEvent]:
        """The events of the lines that are whole now."""
        *lines, self._rest = (self._rest + piece).split("\n")
        return [event for line in lines if (event := _event(line)) is not None]

    def flush(self) -> list[BriefEvent]:
        """The event of the last line, if the stream ended without a line end."""
        return self.feed("\n")


def _event(line: str) -> BriefEvent | None:
    try:
        raw = load(line)
    except ValueError:
        return None
    match raw:
        case {"t": "text", "d": str(delta)}:
            return TextPiece(delta)
        case {"t": "think", "d": str(delta)}:
            return ReasoningPiece(delta)
        case {"t": "tool", "n": str(name)}:
            return ToolCalled(name, raw.get("a"))
    return None
