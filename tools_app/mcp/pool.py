"""The connections of one process: made when they are needed, one for each server and user, closed when they are not.

A connection that is being made is waited for. One that failed is left alone for a time that doubles, here
and, by its row, in every other process. What fails is the call that needed the connection, and nothing else.
"""

import asyncio
import contextlib
import logging
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from django.utils import timezone

from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.loading import load
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.secrets import SecretUnreadable
from tools_app.core.mcp.catalogue import CatalogueLimits, Listed, build_catalogue
from tools_app.core.mcp.servers import McpScope, McpTransport
from tools_app.errors import McpSignInNeeded, McpUnavailable
from tools_app.mcp import health, rows
from tools_app.mcp.answers import ServerError
from tools_app.mcp.conf import mcp_settings
from tools_app.mcp.tokens import TokenAuth
from tools_app.models.mcp import McpServer

if TYPE_CHECKING:
    from mcp.client import Client

    from tools_app.mcp.connection import Answer, McpConnection

logger = logging.getLogger(__name__)

R = TypeVar("R")
Key: TypeAlias = tuple[str, str, Any]
LISTED_AGE: Final = timedelta(hours=1)
LIST_CHANGED_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 300.0
"""After which an unused connection is closed."""
"""How long a server's notifications of changes are gathered before its catalogue is read again."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server as one user reaches it, read from its row."""

    server: McpServer
    user_id: Any = None  # whose sign-in is used
    read_at: datetime = field(default_factory=timezone.now)

    @property
    def key(self) -> Key:
        """Equal for those who share a connection: at a site's server without sign-ins all do."""
        server = self.server
        is_shared = server.scope == McpScope.SITE and not server.needs_sign_in
        name = server.pk if server.scope == McpScope.SITE else ""
        return (name, server.config_hash, None if is_shared else self.user_id or server.instance_id)


@dataclass(eq=False, slots=True)
class _Entry:
    """The state of one connection of this process."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: "McpConnection | None" = None
    is_opening: bool = False
    auth: TokenAuth | None = None
    failures: int = 0
    retry_at: float = 0.0  # of the loop's clock
    failed_at: datetime | None = None
    error: str = ""
    refresh: asyncio.TimerHandle | None = None
    read_at: float | None = None  # when calls last had the catalogue read

    def check_breaker(self, target: Target, now: float) -> None:
        """Fail at once while the server is left alone. Errors: `McpUnavailable`."""
        stored = target.server.retry_at
        there = 0.0 if stored is None else (stored - timezone.now()).total_seconds()
        # A row that was read after the failure here and knows of none has been connected to since, elsewhere.
        is_newer = self.failed_at is not None and self.failed_at < target.read_at
        seconds = there if not self.failures or is_newer else self.retry_at - now
        if seconds > 0:
            raise McpUnavailable(
                Phrase(
                    "The MCP server {name!r} cannot be reached; it is tried again in {seconds} s. {error}",
                    name=target.server.name,
                    seconds=max(1, round(seconds)),
                    error=self.error or target.server.error,
                )
            )

    def note_failure(self, error: McpUnavailable, now: float) -> None:
        """Leave the server alone for a time that doubles."""
        self.failures += 1
        self.failed_at = timezone.now()
        self.retry_at = now + health.retry_delay(self.failures)
        self.error = error.message


class McpPool:
    """The connections of one loop."""

    def __init__(self) -> None:
        self.attempts = 0  # connections that were tried, for tests and the log
        self._loop = asyncio.get_running_loop()
        self._entries: dict[Key, _Entry] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def request(
        self,
        target: Target,
        make: Callable[["Client"], Awaitable[R]],
        answer: "Answer | None" = None,
        *,
        refreshes: bool = True,
    ) -> R:
        """Send a request over the connection to a server, which is made if there is none.

        `refreshes`: whether the server's catalogue is read as well, where it is old or changes may have been missed.
        A server that has forgotten the session gets a new one, and the request again, which it had not taken. Errors:
        `McpUnavailable` at once where the server has just failed; `McpSignInNeeded`; `ServerError`.
        """
        entry = self._entries.setdefault(target.key, _Entry())
        connection = await self._connected(target, entry)
        if refreshes and (connection.listen_again() or _is_old(target.server, entry, self._loop.time())):
            entry.read_at = self._loop.time()
            self.refresh_soon(target)
        try:
            return await connection.request(make, answer)
        except (McpUnavailable, ServerError):  # the client of the protocol has one error for every status
            await self._check_sign_in(target, entry)
            if not connection.has_lost_session:
                raise
            self._start(connection.close())
            renewed = await self._connected(target, entry)
            if refreshes:
                self.refresh_soon(target)  # it has begun anew, and may offer something else
            return await renewed.request(make, answer)
        finally:
            self._close_when_idle(target.key, entry)

    async def refresh(self, target: Target, *, insists: bool = False) -> JSONObject:
        """Read what a server offers, and store it. Errors: `McpUnavailable`, `McpSignInNeeded`.

        `insists`: a person or code wants this now, whatever has failed just before at this address.
        """
        server = target.server
        if insists and (known := self._entries.get(target.key)) is not None:
            known.failures, known.retry_at = 0, 0.0
        limits = CatalogueLimits(tools=mcp_settings.tools_per_server)
        try:
            listed = await self.request(target, _list, refreshes=False)
        except ServerError as error:
            failure = McpUnavailable(f"The server answers with an error: {error.message[:200]}")
            await db(health.note_failure, server.pk, server.config_hash, failure.message)
            raise failure from error
        catalogue = await asyncio.to_thread(build_catalogue, listed, limits)
        await db(health.store_catalogue, server.pk, server.config_hash, catalogue)
        return catalogue

    def refresh_soon(self, target: Target) -> "asyncio.Task[Any]":
        """Do the same in a task of its own; what fails is noted in the row. The task never raises."""
        return self._start(self._refresh(target))

    async def drop(self, server: McpServer) -> None:
        """Close the connections to a server that was removed or changed."""
        for key, entry in list(self._entries.items()):
            if key[0] == server.pk or key[1] == server.config_hash:
                await self._discard(key, entry)

    async def close(self) -> None:
        """Close every connection, and end what is under way."""
        for key, entry in list(self._entries.items()):
            await self._discard(key, entry)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def _connected(self, target: Target, entry: _Entry) -> "McpConnection":
        async with entry.lock:
            if entry.connection is not None and entry.connection.is_open:
                return entry.connection
            entry.check_breaker(target, self._loop.time())
            self._entries.setdefault(target.key, entry)  # it may have been let go of while this call waited
            await self._make_room(entry)
            try:
                entry.connection, self.attempts = None, self.attempts + 1
                entry.connection = connection = await self._open(target, entry)
                had_failed, entry.failures, entry.retry_at = entry.failures > 0, 0, 0.0
                if had_failed or target.server.failures:
                    await db(health.note_working, target.server.pk)
                return connection
            except McpUnavailable as error:
                await self._failed(target, entry, error)
                raise
            finally:
                entry.is_opening = False

    async def _open(self, target: Target, entry: _Entry) -> "McpConnection":
        await load("tools_app.mcp.connection")
        try:
            connection = self._new_connection(target, entry)
        except SecretUnreadable as error:
            raise McpUnavailable(error.phrase) from error
        try:
            await connection.open()
        except BaseException:
            await connection.close()
            raise
        return connection

    def _new_connection(self, target: Target, entry: _Entry) -> "McpConnection":
        from tools_app.mcp.connection import McpConnection  # noqa: PLC0415 - it needs the protocol's package
        from tools_app.mcp.transports import Way  # noqa: PLC0415 - as above

        spec = rows.spec_of(target.server)
        is_program = target.server.transport == McpTransport.STDIO
        entry.auth = None if is_program else TokenAuth(target.server.pk, target.user_id)

        def list_changed() -> None:
            if entry.refresh is None:
                entry.refresh = self._loop.call_later(LIST_CHANGED_SECONDS, self._refresh_changed, target, entry)

        return McpConnection(Way(spec, entry.auth), on_list_changed=list_changed)

    async def _failed(self, target: Target, entry: _Entry, error: McpUnavailable) -> None:
        await self._check_sign_in(target, entry)
        entry.note_failure(error, self._loop.time())
        await db(health.note_failure, target.server.pk, target.server.config_hash, error.message)

    async def _check_sign_in(self, target: Target, entry: _Entry) -> None:
        """Errors: `McpSignInNeeded` where the server refused us because the user is not, or no longer, signed in."""
        if entry.auth is None or not entry.auth.was_refused:
            return
        await self._discard(target.key, entry)
        await db(health.note_sign_in_needed, target.server.pk)
        raise McpSignInNeeded(Phrase("Sign in at the MCP server {name!r} first.", name=target.server.name))

    async def _make_room(self, wanted: _Entry) -> None:
        """Take a place, closing what has been idle for longest where there is none. Errors: `McpUnavailable`.

        Nothing is awaited between the look and the taking, so connections that begin at once are not too many.
        """
        while sum(_takes_place(entry) for entry in self._entries.values() if entry is not wanted) >= (
            mcp_settings.connections
        ):
            idle = [
                (entry.connection.last_used, key, entry)
                for key, entry in self._entries.items()
                if entry is not wanted and entry.connection and entry.connection.is_idle and not entry.is_opening
            ]
            if not idle:
                raise McpUnavailable("There are too many connections to MCP servers at present.")
            _, key, oldest = min(idle, key=lambda each: each[0])
            await self._discard(key, oldest)
        wanted.is_opening = True

    def _close_when_idle(self, key: Key, entry: _Entry) -> None:
        self._loop.call_later(IDLE_SECONDS, self._look_if_idle, key, entry)

    def _look_if_idle(self, key: Key, entry: _Entry) -> None:
        connection = entry.connection
        if connection is None or not connection.is_idle:
            return
        if self._loop.time() - connection.last_used >= IDLE_SECONDS - 0.01:
            _detach(self._entries, key, entry)  # at once: a call that begins now makes a connection of its own
            self._start(connection.close())

    def _refresh_changed(self, target: Target, entry: _Entry) -> None:
        entry.refresh = None
        self._start(self._refresh(target))

    async def _refresh(self, target: Target) -> None:
        with contextlib.suppress(McpUnavailable):  # noted where it failed
            await self.refresh(target)

    async def _discard(self, key: Key, entry: _Entry) -> None:
        connection = _detach(self._entries, key, entry)
        if connection is not None:
            await connection.close()

    def _start(self, work: Any) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            extra = {"action": "mcp_background_failed", "error": type(error).__name__}
            logger.warning("work on an mcp server failed", extra=extra)


async def _list(client: "Client") -> Listed:
    from tools_app.mcp.listing import list_all  # noqa: PLC0415 - as the connection, which is there by now

    return await list_all(client)


def _is_old(server: McpServer, entry: _Entry, now: float) -> bool:
    """Whether the catalogue is to be read again. The row may be older than what this process has read since."""
    if server.listed_at is not None and server.listed_at > timezone.now() - LISTED_AGE:
        return False
    return entry.read_at is None or now - entry.read_at > LISTED_AGE.total_seconds()


def _takes_place(entry: _Entry) -> bool:
    return entry.is_opening or entry.connection is not None


def _detach(entries: dict[Key, _Entry], key: Key, entry: _Entry) -> "McpConnection | None":
    """Let go of a connection, which is then to be closed."""
    if entries.get(key) is entry:
        del entries[key]
    if entry.refresh is not None:
        entry.refresh.cancel()
    connection, entry.connection = entry.connection, None
    return connection


_pools: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, McpPool]" = weakref.WeakKeyDictionary()


def pool() -> McpPool:
    """The connections of the running loop. All fibers of a worker share one loop."""
    loop = asyncio.get_running_loop()
    found = _pools.get(loop)
    if found is None:
        found = _pools[loop] = McpPool()
    return found
