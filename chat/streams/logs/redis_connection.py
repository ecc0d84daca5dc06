"""Commands to Redis in one round trip, packed by hiredis.

redis-py's pipeline packs each argument in Python, which was most of the log's CPU; its connections and its pool are
used as they are, for what they know of addresses, TLS and authentication.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from hiredis import pack_command
from redis.asyncio import BlockingConnectionPool, Connection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

TIMEOUT_SECONDS = 5.0

Command = tuple[str | int, ...]


class RedisLink:
    """A bounded pool of connections of one loop. Replies are text; errors of single commands come as values."""

    def __init__(self, url: str, max_connections: int) -> None:
        self._pool = BlockingConnectionPool.from_url(
            url,
            max_connections=max_connections,
            timeout=TIMEOUT_SECONDS,
            decode_responses=True,
            protocol=2,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=None,  # one timeout for an exchange; the subscriber waits as long as it takes
            retry=Retry(NoBackoff(), 0),  # the flusher retries, and knows how
        )

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands together and return their replies. Errors: `RedisError`, `OSError`, also for no answer."""
        packed = [pack_command(command) for command in commands]  # type: ignore[arg-type]  # its stub means one item
        connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # redis
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await connection.send_packed_command(packed, check_health=False)
                return [await _reply(connection) for _ in commands]
        finally:
            # An interrupted one has disconnected itself: no other caller reads a late reply.
            await self._pool.release(connection)

    def new_connection(self) -> Connection:
        """Return a connection of one's own, not connected yet; nothing limits how long it waits for a reply."""
        connection: Connection = self._pool.make_connection()  # type: ignore[no-untyped-call]  # redis
        return connection

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.disconnect()


async def _reply(connection: Connection) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error
