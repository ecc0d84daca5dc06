"""Server-sent events of turns: a turn's log from an offset, and the body that every event stream of ours has.

Each event's id is the chunk's offset, so that a browser reconnects where it was. A pause is filled with comments, at
which the caller's authority is asked for again. Holds no database connection between two looks.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from chat.http.conf import http_settings
from chat.streams.reader import follow
from chat.streams.records import CaughtUp, End, Record, Reset
from thinkproject.kernel.jsonvalue import JSONObject, dump

logger = logging.getLogger(__name__)

HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "x-vercel-ai-ui-message-stream": "v1",
    "X-Content-Type-Options": "nosniff",
}
CONTENT_TYPE = "text/event-stream; charset=utf-8"
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


async def event_body(
    source: AsyncGenerator[bytes, None], *, still_allowed: Callable[[], Awaitable[bool]], on_failure: bytes = b""
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a source, and comments in its pauses. Ends early once the caller may no longer.

    Any exception ends the body too, after `on_failure`, and is logged once: a response that neither goes on nor ends
    would keep its reader waiting for ever. Closes the source.
    """
    seconds, clock = http_settings.stream_keep_alive_seconds, asyncio.get_running_loop().time
    asked_at = clock()
    step: asyncio.Future[bytes] | None = None
    try:
        yield b": open\n\n"
        while True:
            step = step or asyncio.ensure_future(anext(source))
            await asyncio.wait({step}, timeout=seconds)
            failure = step.exception() if step.done() else None
            if failure is None and clock() - asked_at >= seconds:
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
                yield KEEP_ALIVE
    finally:
        if step is not None:
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
        await source.aclose()


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
