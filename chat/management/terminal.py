"""Render a running turn on a terminal or a pipe. Its only I/O is printing.

On a terminal everything goes to one screen, reasoning dimmed, control characters of the model's removed. On a pipe the
answers alone go to standard output, byte for byte; the rest goes to standard error.
"""

import re
from dataclasses import dataclass, field
from typing import TextIO

from chat.core.wire.chunks import RESUMED, STATUS, Chunk
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load

LINE_CHARACTERS = 100
RETRY_REASONS = {"rate_limited": "Rate limited", "overloaded": "The model is overloaded"}
DIM, BOLD, RED, RESET = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[0m"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass
class Screen:
    """Prints chunks as they come: a callback of `AgentHandle.chat`."""

    out: TextIO
    err: TextIO
    is_terminal: bool
    error: str | None = None
    request_id: str = ""
    has_begun: bool = False
    _printed: int = 0
    _skipped: int = 0  # of what comes: it was printed before
    _calls: dict[str, tuple[str, JSONValue]] = field(default_factory=dict)
    _open: str = ""  # what the line that is being written holds: text, reasoning, or nothing

    def on_start(self, request_id: str) -> None:
        """A turn was accepted."""
        self.error, self.request_id, self.has_begun = None, request_id, False
        self._printed = self._skipped = 0
        self._calls.clear()

    def goes_on(self) -> None:
        """The same turn is followed once more from its beginning: print what is new."""
        self._skipped = self._printed

    def on_event(self, text: str) -> None:
        """Print one chunk."""
        self.has_begun = True
        if self._skipped:
            self._skipped -= 1
        else:
            self._printed += 1
            self._show(load(text))

    def _show(self, chunk: Chunk) -> None:
        kind = str(chunk["type"])
        if kind in {"text-delta", "reasoning-delta"}:
            self._write(kind.removesuffix("-delta"), str(chunk["delta"]))
        elif kind in {"text-end", "reasoning-end"}:
            self.end_line()
        elif kind in {"tool-input-available", "tool-input-error"}:
            self._calls[chunk["toolCallId"]] = (chunk["toolName"], chunk["input"])
            if kind == "tool-input-error":
                self._tool(chunk, f"failed: {chunk['errorText']}")
        elif kind == "tool-output-available" and not chunk.get("preliminary"):
            self._tool(chunk, _brief(chunk["output"]))
        elif kind == "tool-output-error":
            self._tool(chunk, f"failed: {chunk['errorText']}")
        elif kind == "tool-output-denied":
            self._tool(chunk, "refused")
        elif kind in {STATUS, RESUMED}:
            self._status(chunk["data"])
        elif kind in {"file", "source-url"}:
            self.note(f"{kind.partition('-')[0]}: {chunk['url']}")

    def on_reset(self) -> None:
        """Discard the printed answer: it is streamed again from its beginning."""
        self._printed = self._skipped = 0
        self.note("(the answer begins again)")

    def on_done(self) -> None:
        """The answer is stored."""
        self.end_line()

    def on_error(self, text: str) -> None:
        """The turn failed."""
        self.end_line()
        self.error = text

    def note(self, text: str) -> None:
        """Print a notice on a line of its own, outside of the answer."""
        self.end_line()
        self._print(self._aside, text, DIM)

    def complain(self, text: str) -> None:
        """Print an error."""
        self.end_line()
        self._print(self.err, f"error: {text}", RED)

    def end_line(self) -> None:
        """Finish the line that is being written."""
        if self._open:
            stream = self.out if self._open == "text" or self.is_terminal else self.err
            stream.write((RESET if self.is_terminal and self._open == "reasoning" else "") + "\n")
            stream.flush()
            self._open = ""

    @property
    def _aside(self) -> TextIO:
        return self.out if self.is_terminal else self.err

    def _write(self, kind: str, text: str) -> None:
        if not text:
            return
        stream = self.out if kind == "text" else self._aside
        if self._open != kind:
            self.end_line()
            if kind == "reasoning" and self.is_terminal:
                stream.write(DIM)
            self._open = kind
        stream.write(clean(text) if self.is_terminal else text)
        stream.flush()

    def _status(self, status: JSONObject) -> None:
        kind = status.get("kind")
        if "replaced" in status:
            self.note(f"(in place of {_brief(status['replaced'])}:)")
        elif kind == "retry":
            self.note(_retry(status))
        elif kind == "failover":
            self.note(f"({status['from']} did not answer, {status['to']} goes on)")

    def _tool(self, chunk: Chunk, outcome: str) -> None:
        name, arguments = self._calls.get(chunk["toolCallId"], ("tool", {}))
        self.note(_cut(f"⚙ {name} {_brief(arguments)} → {outcome}"))

    def _print(self, stream: TextIO, text: str, style: str) -> None:
        line = f"{style}{clean(text)}{RESET}" if self.is_terminal else text
        stream.write(f"{line}\n")
        stream.flush()


def clean(text: str) -> str:
    """Remove terminal control sequences."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def _retry(status: JSONObject) -> str:
    reason = RETRY_REASONS.get(status["code"], "The model did not answer")
    seconds = max(1, round(status["delaySeconds"]))
    return f"({reason}, retrying in {seconds} s, attempt {status['attempt']} of {status['attempts']})"


def _brief(value: JSONValue) -> str:
    return " ".join((value if isinstance(value, str) else dump(value)).split())


def _cut(text: str) -> str:
    return text if len(text) <= LINE_CHARACTERS else f"{text[: LINE_CHARACTERS - 1]}…"
