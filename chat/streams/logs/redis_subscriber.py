"""The subscriber connection of an event loop, shared by all its followers.

Redis forgets what it published; so each (re)connection interrupts every follower, who then reads the log from its
offset, and a join returns after Redis acknowledged the subscription. A join never fails: without Redis the follower
polls at its idle time, and is interrupted as soon as the subscription stands.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from redis.asyncio import Connection
from redis.exceptions import RedisError

from chat.streams.logs.subscription import Subscription
from chat.streams.records import Published, Record
from thinkproject.kernel.retry import RetryPolicy

logger = logging.getLogger(__name__)

ACK_SECONDS = 2.0
GRACE_SECONDS = 5.0
PING_SECONDS = 15.0
RECONNECT: Final = RetryPolicy(first_seconds=0.05, max_seconds=2.0)


def channel_of(stream: str) -> str:
    """Channel on which the stream's batches are announced."""
    return f"think:{{{stream}}}:live"


def parse_announcement(payload: str) -> Published | None:
    """Decode a message of the append script; `None` marks the end of the stream."""
    head, _, body = payload.partition("\n")
    if not head:
        return None
    epoch, _, first = head.partition(" ")
    return Published(epoch, [Record(offset, text) for offset, text in enumerate(body.split("\n"), int(first))])


class RedisHub:
    """Reference-counted subscriptions over one connection, made when first needed and again when lost."""

    def __init__(self, make_connection: Callable[[], Connection]) -> None:
        self._make_connection = make_connection
        self._followers: dict[str, set[Subscription]] = {}
        self._acks: dict[str, asyncio.Event] = {}
        self._leaving: dict[str, asyncio.TimerHandle] = {}
        self._sending = asyncio.Lock()
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._sender: asyncio.Task[None] | None = None
        self._has_received = False
        self._is_alive = False

    async def join(self, stream: str, subscription: Subscription) -> None:
        """Add a follower. Returns once Redis acknowledged, or after a bounded wait."""
        channel = channel_of(stream)
        leaving = self._leaving.pop(channel, None)
        if leaving is not None:
            leaving.cancel()
        self._followers.setdefault(channel, set()).add(subscription)
        ack = self._acks.get(channel)
        if ack is None:
            ack = self._acks[channel] = asyncio.Event()
            if self._connection is not None:
                await self._send("SUBSCRIBE", channel)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="think-stream-hub")
        if not ack.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(ACK_SECONDS):
                    await ack.wait()

    def leave(self, stream: str, subscription: Subscription) -> None:
        """Remove a follower; the last one's channel is dropped after a grace, as tabs reload."""
        channel = channel_of(stream)
        followers = self._followers.get(channel)
        if followers is None:
            return
        followers.discard(subscription)
        if not followers and channel not in self._leaving:
            loop = asyncio.get_running_loop()
            self._leaving[channel] = loop.call_later(GRACE_SECONDS, self._drop, channel)

    async def aclose(self) -> None:
        """Close the connection."""
        for timer in self._leaving.values():
            timer.cancel()
        self._leaving.clear()
        self._followers.clear()
        self._acks.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None

    def _drop(self, channel: str) -> None:
        self._leaving.pop(channel, None)
        if not self._followers.get(channel):
            self._followers.pop(channel, None)
            self._acks.pop(channel, None)
            self._sender = asyncio.get_running_loop().create_task(self._send("UNSUBSCRIBE", channel))

    async def _send(self, *command: str) -> None:
        # One command at a time: concurrent writes on one connection interleave and lose subscriptions.
        async with self._sending:
            connection = self._connection
            if connection is None or (command[0] == "UNSUBSCRIBE" and command[1] in self._followers):
                return  # who joined again meanwhile has sent his SUBSCRIBE before this
            try:
                await connection.send_command(*command)
            except (RedisError, OSError):
                await connection.disconnect(nowait=True)  # the reader notices and connects again

    async def _run(self) -> None:
        failures = 0
        while True:
            connection = self._make_connection()
            try:
                await connection.connect()  # type: ignore[no-untyped-call]  # redis
                self._connection = connection
                if self._followers:
                    await self._send("SUBSCRIBE", *self._followers)
                await self._listen(connection)
            except (RedisError, OSError) as error:
                logger.warning("stream subscriber lost its connection", extra={"error": type(error).__name__})
            finally:
                failures = 1 if self._has_received else failures + 1
                self._has_received = False
                self._connection = None
                with suppress(RedisError, OSError):
                    await connection.disconnect(nowait=True)
                for ack in self._acks.values():
                    ack.clear()
            await asyncio.sleep(RECONNECT.delay_seconds(failures, jitter=random.random()))  # noqa: S311 - no secret

    async def _listen(self, connection: Connection) -> None:
        watchdog = asyncio.get_running_loop().create_task(self._watch(connection))
        try:
            while True:
                message = await connection.read_response()
                self._is_alive = True
                if isinstance(message, list) and len(message) == 3:
                    self._handle(message[0], message[1], message[2])
        finally:
            watchdog.cancel()

    async def _watch(self, connection: Connection) -> None:
        # A timeout around each read would cost more than the read.
        while True:
            self._is_alive = False
            await asyncio.sleep(PING_SECONDS)
            if self._is_alive:
                continue
            await self._send("PING")
            await asyncio.sleep(ACK_SECONDS)
            if not self._is_alive:
                await connection.disconnect(nowait=True)
                return

    def _handle(self, kind: str, channel: str, payload: str) -> None:
        followers = self._followers.get(channel)
        if kind == "subscribe":
            self._has_received = True
            ack = self._acks.get(channel)
            if ack is not None:
                ack.set()
            for follower in followers or ():
                follower.interrupt()
        elif kind == "message" and followers:
            published = parse_announcement(payload)
            for follower in followers:
                if published is None:
                    follower.wake()
                else:
                    follower.push(published)
