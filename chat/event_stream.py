"""A turn's log as server-sent events, from an offset, live until the turn is final.

Each event's id is the chunk's offset, so that a browser reconnects where it was. A pause is filled with comments, at
which the caller's authority is asked for again. Holds no database connection between two looks.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

from chat.conf_access import AccessSettings
from chat.streams.reader import Event, follow
from chat.streams.records import CaughtUp, End, Record, Reset
from thinkproject.kernel.jsonvalue import JSONObject, dump

HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "x-vercel-ai-ui-message-stream": "v1",
    "X-Content-Type-Options": "nosniff",
}
CONTENT_TYPE = "text/event-stream; charset=utf-8"
KEEP_ALIVE = b": keep-alive\n\n"
_conf = AccessSettings()


async def turn_events(
    stream: str,
    *,
    offset: int,
    is_over: Callable[[], Awaitable[bool]],
    still_allowed: Callable[[], Awaitable[bool]],
    describe_end: Callable[[], Awaitable[JSONObject]],
) -> AsyncGenerator[bytes, None]:
    """Encode the log from an offset, then the end as an `end` event. Stops silently once the caller may no longer.

    A `reset` event says that what came before does not hold; the chunks from 0 follow.
    """
    yield b": open\n\n"
    async with aclosing(watched(stream, offset=offset, is_over=is_over, still_allowed=still_allowed)) as events:
        async for event in events:
            if isinstance(event, End):
                yield f"event: end\ndata: {dump(await describe_end())}\n\n".encode()
            elif not isinstance(event, CaughtUp):
                yield _encode(event)


async def watched(
    stream: str,
    *,
    offset: int = 0,
    is_over: Callable[[], Awaitable[bool]],
    still_allowed: Callable[[], Awaitable[bool]],
) -> AsyncGenerator[Event | None, None]:
    """Follow a log; nothing (`None`) stands for a pause. `End` comes last, unless the caller may no longer."""
    loop = asyncio.get_running_loop()
    checked_at = loop.time()
    async with aclosing(
        _with_pauses(follow(stream, offset, is_over=is_over), _conf.stream_keep_alive_seconds)
    ) as events:
        async for event in events:
            if loop.time() - checked_at >= _conf.stream_keep_alive_seconds:
                checked_at = loop.time()
                if not await still_allowed():
                    return
            yield event


def start_offset(last_event_id: str | None, offset: int) -> int:
    """Where to begin: after the last event the browser saw, else at the offset asked for."""
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 16:
        return int(last_event_id) + 1
    return offset


def _encode(event: list[Record] | Reset | None) -> bytes:
    match event:
        case None:
            return KEEP_ALIVE
        case Reset():
            return b"event: reset\ndata: {}\n\n"
        case list():
            # A record is on one line: JSON escapes line feeds, so it never breaks the framing.
            return "".join(f"id: {record.offset}\ndata: {record.text}\n\n" for record in event).encode()


async def _with_pauses(events: AsyncIterator[Event], seconds: float) -> AsyncGenerator[Event | None, None]:
    """Pass the events on, and nothing (`None`) whenever there was none for so long. Closes the source."""
    pending: asyncio.Future[Event] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait({pending}, timeout=seconds)
            if not done:
                yield None
                continue
            try:
                event = pending.result()
            except StopAsyncIteration:
                return
            finally:
                pending = None
            yield event
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
        if isinstance(events, AsyncGenerator):
            await events.aclose()
