"""The hot log in Redis: one Redis Stream per turn, appended and published in one call of a script.

The script checks the fence, the epoch and that the first offset is the next one, so that a stale worker cannot add its
own version of a record. Keys of one stream carry its name as hash tag: with Redis Cluster they live in one slot.
One instance belongs to one event loop.
"""

import hashlib
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from redis.exceptions import NoScriptError, RedisError

from chat.streams.conf import stream_settings
from chat.streams.errors import Fenced, LogUnavailable
from chat.streams.logs.redis_connection import Command, RedisLink
from chat.streams.logs.redis_scripts import APPEND, OPEN
from chat.streams.logs.redis_subscriber import RedisHub, channel_of
from chat.streams.logs.subscription import Subscription
from chat.streams.records import Append, AppendResult, HotSlice, Opened, Record, StreamOutcome

ABANDONED_SECONDS = 7 * 86_400
"""An idle stream that was never closed expires after this."""
READ_CONNECTIONS = 16
WRITE_CONNECTIONS = 2

_SCRIPTS = {hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(): text for text in (OPEN, APPEND)}
_OPEN_SHA, _APPEND_SHA = _SCRIPTS


class RedisLog:
    """`StreamLog` over Redis."""

    def __init__(self, url: str) -> None:
        self._writing = RedisLink(url, WRITE_CONNECTIONS)
        self._reading = RedisLink(url, READ_CONNECTIONS)
        self._hub = RedisHub(self._reading.new_connection)

    async def open(self, stream: str, *, fence: int, floor: int) -> Opened:
        """Take the stream: from here on lower fences are refused."""
        command = ("EVALSHA", _OPEN_SHA, 2, *keys_of(stream), fence, floor, new_epoch(), ABANDONED_SECONDS)
        with _translated():
            answer = (await self._call([command]))[0]
        if answer[0] == StreamOutcome.FENCED:
            raise Fenced(stream=stream)
        return Opened(epoch=answer[1], next_offset=int(answer[2]), tail=tuple(answer[3]))

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        """Append and publish for many streams in one round trip."""
        with _translated():
            replies = await self._call([_append_command(append) for append in appends])
        return [AppendResult(StreamOutcome(reply[0]), reply[1]) for reply in replies]

    async def read(self, stream: str, offset: int, limit: int) -> HotSlice:
        """Return records from the offset on, with the state that they belong to."""
        log_key, meta_key = keys_of(stream)
        with _translated():
            replies = await self._reading.exchange(
                [
                    ("MULTI",),
                    ("HMGET", meta_key, "epoch", "next", "closed"),
                    ("XRANGE", log_key, f"0-{offset + 1}", "+", "COUNT", limit),
                    ("EXEC",),
                ]
            )
            (epoch, following, closed), entries = _checked(replies)[-1]
        if epoch is None:
            return HotSlice()
        records = tuple(Record(int(entry_id[2:]) - 1, fields[1]) for entry_id, fields in entries)
        return HotSlice(epoch=epoch, next_offset=int(following), is_closed=closed is not None, records=records)

    async def close(self, stream: str) -> None:
        """Mark the stream as final, wake its followers, let it expire."""
        log_key, meta_key = keys_of(stream)
        seconds = stream_settings.hot_retention_seconds
        with _translated():
            replies = await self._writing.exchange(
                [
                    ("MULTI",),
                    ("HSET", meta_key, "closed", "1"),
                    ("EXPIRE", meta_key, seconds),
                    ("EXPIRE", log_key, seconds),
                    ("PUBLISH", channel_of(stream), ""),
                    ("EXEC",),
                ]
            )
            _checked(replies)

    @asynccontextmanager
    async def subscribe(self, stream: str, max_batches: int) -> AsyncIterator[Subscription]:
        """Subscribe over the loop's shared connection."""
        subscription = Subscription(max_batches)
        try:
            await self._hub.join(stream, subscription)
            yield subscription
        finally:
            self._hub.leave(stream, subscription)
            subscription.stop()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._hub.aclose()
        await self._writing.aclose()
        await self._reading.aclose()

    async def _call(self, calls: list[Command]) -> list[Any]:
        replies = await self._writing.exchange(calls)
        unknown = [index for index, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            load = [("SCRIPT", "LOAD", text) for text in _SCRIPTS.values()]
            again = await self._writing.exchange([*load, *(calls[index] for index in unknown)])
            for index, reply in zip(unknown, again[len(load) :], strict=True):
                replies[index] = reply
        return _checked(replies)


def keys_of(stream: str) -> tuple[str, str]:
    """Keys of the log and of its meta hash, in one slot of a cluster."""
    return f"think:{{{stream}}}:log", f"think:{{{stream}}}:meta"


def new_epoch() -> str:
    """Name of a new life of a stream."""
    return secrets.token_hex(6)


def _append_command(append: Append) -> Command:
    head = ("EVALSHA", _APPEND_SHA, 2, *keys_of(append.stream), channel_of(append.stream), append.fence, append.epoch)
    rewrite = ("1", new_epoch()) if append.is_rewrite else ("", "")
    return (*head, append.first, *rewrite, append.trim_below, ABANDONED_SECONDS, *append.texts)


def _checked(replies: list[Any]) -> list[Any]:
    """Raise the first error of the replies, including those inside a transaction; its `EXEC` itself succeeds."""
    for reply in replies:
        for item in (reply, *reply) if isinstance(reply, list) else (reply,):
            if isinstance(item, RedisError):
                raise item
    return replies


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise LogUnavailable(f"The hot log does not answer: {type(error).__name__}") from error
