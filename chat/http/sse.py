"""Server-sent events of turns: a turn's log from an offset, and the body that every event stream of ours has.

Each event's id is the chunk's offset, so that a browser reconnects where it was. A pause is filled with comments, at
which the caller's authority is asked for again. Holds no database connection between two looks.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from chat.core.wire.ag_ui import AgUiEncoder
from chat.core.wire.chunks import Chunk
from chat.core.wire.ndjson import line_of
from chat.http.conf import http_settings
from chat.instances.notifications import user_group
from chat.instances.waiting import notifications
from chat.streams.reader import follow
from chat.streams.records import CaughtUp, End, Record, Reset
from thinkproject.kernel.jsonvalue import JSONObject, dump, load

logger = logging.getLogger(__name__)

HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "x-vercel-ai-ui-message-stream": "v1",
    "X-Content-Type-Options": "nosniff",
}
CONTENT_TYPE = "text/event-stream; charset=utf-8"
LINES_TYPE = "application/x-ndjson; charset=utf-8"
KEEP_ALIVE = b": keep-alive\n\n"
MAX_OFFSET: Final = 2**53 - 1
"""Largest offset that every reader of JSON, Redis and the database can hold."""


async def turn_events(
    stream: str,
    *,
    offset: int,
    is_over: Callable[[], Awaitable[bool]],
    describe_end: Callable[[], Awaitable[JSONObject]],
) -> AsyncGenerator[bytes, None]:
    """Encode the log from an offset, then the end as an `end` event.

    A `reset` event says that what came before does not hold; the chunks from 0 follow.
    """
    async with aclosing(follow(stream, offset, is_over=is_over)) as events:
        async for event in events:
            if isinstance(event, End):
                yield f"event: end\ndata: {dump(await describe_end())}\n\n".encode()
            elif not isinstance(event, CaughtUp):
                yield _encode(event)


async def ag_ui_events(
    stream: str,
    encoder: AgUiEncoder,
    *,
    offset: int,
    is_over: Callable[[], Awaitable[bool]],
    describe_end: Callable[[], Awaitable[JSONObject]],
) -> AsyncGenerator[bytes, None]:
    """Encode the log as events of AG-UI, of the records from an offset on; the log is read from its beginning.

    Of the events of one record the last has its offset as `id`. A lost log ends the run with an error: a reader begins
    anew.
    """
    if offset == 0:
        yield _ag_ui(encoder.begin())
    async with aclosing(follow(stream, 0, is_over=is_over)) as events:
        async for event in events:
            if isinstance(event, End):
                end = await describe_end()
                yield _ag_ui(encoder.end(str(end["outcome"]), end["error"]))
            elif isinstance(event, Reset):
                yield _ag_ui(encoder.end("error", "The stream was lost. Read it from the beginning."))
                return
            elif not isinstance(event, CaughtUp):
                encoded = ((record.offset, encoder.encode(cast("Chunk", load(record.text)))) for record in event)
                pieces = [_ag_ui(made, at) for at, made in encoded if made and at >= offset]
                if pieces:
                    yield b"".join(pieces)


def _ag_ui(events: Sequence[JSONObject], offset: int | None = None) -> bytes:
    texts = [f"data: {dump(event)}\n\n" for event in events]
    if texts and offset is not None:
        texts[-1] = f"id: {offset}\n{texts[-1]}"
    return "".join(texts).encode()


def wants_ag_ui(accept: str) -> bool:
    """Whether a request asks for the events of AG-UI: `Accept: text/event-stream; profile=ag-ui`."""
    return any("profile" in each and "ag-ui" in each.partition("profile")[2] for each in accept.lower().split(","))


async def ndjson_lines(
    stream: str, *, offset: int, is_over: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[bytes, None]:
    """Encode text, reasoning and calls of the log from an offset as lines of JSON. A lost log ends them."""
    async with aclosing(follow(stream, offset, is_over=is_over)) as events:
        async for event in events:
            if isinstance(event, Reset):
                return
            if isinstance(event, list):
                lines = "".join(line_of(load(record.text)) for record in event)
                if lines:
                    yield lines.encode()


def wants_ndjson(accept: str) -> bool:
    """Whether a request asks for lines of JSON: `Accept: application/x-ndjson`."""
    return any(each.partition(";")[0].strip() == "application/x-ndjson" for each in accept.lower().split(","))


async def event_body(
    source: AsyncGenerator[bytes, None],
    *,
    still_allowed: Callable[[], Awaitable[bool]],
    on_failure: bytes = b"",
    member_id: Any = None,
    is_lines: bool = False,
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a source, and comments in its pauses. Ends early once the caller may no longer.

    `is_lines`: the source is NDJSON, whose pauses are filled with empty lines.
    `member_id`: key of who reads another's conversation, so that it ends at once when that person is let out.
    Any exception ends the body too, after `on_failure`, and is logged once: a response that neither goes on nor ends
    would keep its reader waiting for ever. Closes the source.
    """
    seconds, clock = http_settings.stream_keep_alive_seconds, asyncio.get_running_loop().time
    asked_at = clock()
    step: asyncio.Future[bytes] | None = None
    rights = _ChangesOfRights(member_id)
    try:
        yield b"\n" if is_lines else b": open\n\n"
        while True:
            step = step or asyncio.ensure_future(anext(source))
            await rights.wait_with(step, seconds)
            failure = step.exception() if step.done() else None
            if failure is None and (rights.has_come() or clock() - asked_at >= seconds):
                asked_at = clock()
                [answer] = await asyncio.gather(still_allowed(), return_exceptions=True)
                if answer is False:
                    return
                failure = answer if isinstance(answer, BaseException) else None
            if failure is not None:
                if not isinstance(failure, StopAsyncIteration):
                    logger.error("event stream failed", exc_info=failure, extra={"action": "event_stream_failed"})
                    yield on_failure
                return
            if step.done():
                piece, step = step.result(), None
                yield piece
            else:
                yield b"\n" if is_lines else KEEP_ALIVE
    finally:
        if step is not None:
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
        await rights.close()
        await source.aclose()


class _ChangesOfRights:
    """Whether something about a member has changed since it was asked for; never of a person's own conversation."""

    def __init__(self, member_id: Any) -> None:
        self._changed = asyncio.Event()
        self._task = None if member_id is None else asyncio.create_task(self._listen(user_group(member_id)))

    async def _listen(self, group: str) -> None:
        async with notifications(group) as notified:
            while True:
                await notified.wait()
                notified.clear()
                self._changed.set()

    async def wait_with(self, step: "asyncio.Future[bytes]", seconds: float) -> None:
        """Wait for the step or a change, at most so long."""
        if self._task is None:
            await asyncio.wait({step}, timeout=seconds)
            return
        change = asyncio.ensure_future(self._changed.wait())
        either: set[asyncio.Future[Any]] = {step, change}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        change.cancel()

    def has_come(self) -> bool:
        """Whether there was a change since the last time."""
        has_come = self._changed.is_set()
        self._changed.clear()
        return has_come

    async def close(self) -> None:
        """Listen no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def start_offset(last_event_id: str | None, offset: int) -> int:
    """The offset to start from: after the browser's last event, else the requested one."""
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 16:
        return int(last_event_id) + 1
    return offset


def _encode(event: list[Record] | Reset) -> bytes:
    if isinstance(event, Reset):
        return b"event: reset\ndata: {}\n\n"
    # A record is on one line: JSON escapes line feeds, so it never breaks the framing.
    return "".join(f"id: {record.offset}\ndata: {record.text}\n\n" for record in event).encode()
