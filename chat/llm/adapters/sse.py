"""Incremental decoder of server-sent events; knows the framing only.

Source: the HTML standard, "Interpreting an event stream". One deviation: `flush` hands out an event whose closing blank
line never came, because several model servers leave it out after their last event.
"""

from typing import Final, NamedTuple

MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
BOM: Final = b"\xef\xbb\xbf"


class SSEOverflow(ValueError):
    """A line or an event exceeds the decoder's limit."""


class SSEEvent(NamedTuple):
    """One event. `data` holds its `data` lines joined by newlines; `event` is empty for the default type."""

    event: bytes
    data: bytes


class SSEDecoder:
    """Decode a byte stream; the result does not depend on where it is split.

    Errors: `SSEOverflow` when a line or an event grows beyond `max_bytes`.
    """

    __slots__ = ("_data", "_data_bytes", "_event", "_line", "_max_bytes", "_skip_newline", "_start")

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event = b""
        self._skip_newline = False
        self._start = True

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """Take the next bytes; return the events that they complete, oldest first."""
        if self._is_one_event(chunk):
            return [SSEEvent(b"", chunk[6:-2])]
        if self._skip_newline and chunk:
            # The carriage return before ended its line at once; the newline that follows belongs to it.
            self._skip_newline = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            self._line += chunk
            self._check(len(self._line))
            return []
        lines = (bytes(self._line) + chunk).splitlines()
        self._line.clear()
        last = chunk[-1]
        if last == 0x0D:
            self._skip_newline = True
        elif last != 0x0A:
            self._line += lines.pop()
            self._check(len(self._line))
        return self._take(lines)

    def flush(self) -> list[SSEEvent]:
        """End of the stream: the event that was still open, if it has data. The decoder starts afresh."""
        lines = [bytes(self._line), b""] if self._line else [b""]
        self._line.clear()
        events = self._take(lines)
        self._skip_newline, self._start = False, True
        return events

    def _is_one_event(self, chunk: bytes) -> bool:
        """Whether the bytes are one plain event and nothing is open: what nearly every read of a model's stream is."""
        return (
            chunk.startswith(b"data: ")
            and chunk.endswith(b"\n\n")
            and chunk.count(b"\n") == 2
            and b"\r" not in chunk
            and len(chunk) <= self._max_bytes
            and not (self._line or self._data or self._event or self._skip_newline or self._start)
        )

    def _take(self, lines: list[bytes]) -> list[SSEEvent]:
        events: list[SSEEvent] = []
        for line in lines:
            if self._start:
                self._start = False
                line = line.removeprefix(BOM)  # noqa: PLW2901 - the mark belongs to the stream, not to its first line
            if line.startswith(b"data:"):
                self._add_data(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append(SSEEvent(self._event, data))
                    self._data.clear()
                    self._data_bytes = 0
                self._event = b""
            else:
                self._take_field(line)
        return events

    def _add_data(self, value: bytes) -> None:
        self._data.append(value)
        self._data_bytes += len(value) + 1
        self._check(self._data_bytes)

    def _take_field(self, line: bytes) -> None:
        if line.startswith(b"event:"):
            self._event = line[7:] if line[6:7] == b" " else line[6:]
        elif line == b"data":
            self._add_data(b"")

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise SSEOverflow(f"an event of more than {self._max_bytes} bytes")
