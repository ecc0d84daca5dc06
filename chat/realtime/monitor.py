"""Monitors the sockets of this process for lost notifications and for authority that ended.

One task looks at all of them: a query for the turns of two hundred instances every few seconds, and one for two hundred
credentials every `THINK_AUTHORITY_SECONDS`. A socket costs a task of its own only when something is wrong with it.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import OuterRef

from chat.access.auth import Credential, holding
from chat.agent.base import InstanceKey
from chat.conf import chat_settings
from chat.instances.rows import parent_key
from chat.models import AgentInstance
from chat.realtime.runs.feed import RunFeed
from chat.realtime.threads.feed import ThreadFeed
from chat.realtime.turn_feed import TurnFeed
from chat.sub_agents.views import run_count
from thinkproject.kernel.aio import db

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
AUTHORITY_CHECKS = 4
"""How many sockets whose credential does not hold are checked by themselves at a time."""
_BATCH = 200


class Authorised(Protocol):
    """A connection whose authority is monitored."""

    credential: Credential
    is_member: bool

    def authority_held(self) -> None:
        """Note that the credential was read, and holds."""

    async def check_authority(self) -> bool:
        """Close the connection when its user may not use it any more."""


class Monitored(Authorised, Protocol):
    """A connection that follows an instance and may miss notifications."""

    key: InstanceKey
    session_id: str | None
    state_version: int
    feed: TurnFeed
    runs: RunFeed
    threads: ThreadFeed | None

    async def follow_current(self) -> None:
        """Switch to the instance's current session."""

    async def catch_up_to(self, position: int) -> None:
        """Enqueue the turns before this position that the connection has not seen."""

    async def send_state(self) -> None:
        """Send the state if it is newer than the last one sent."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of an instance: turns, states, changes of its current session, and runs of other agents for it."""

    turns: int
    states: int
    session_id: str | None
    change_seq: int | None
    runs: int | None  # none: no run


class Connections:
    """The sockets of this process. The watching task lives as long as there are any.

    Each socket is checked in a task of its own: one that fails or is not read delays no other.
    """

    def __init__(self) -> None:
        self._live: dict[Authorised, float] = {}  # to when authority was checked last
        self._following: dict[Authorised, Monitored] = {}  # to themselves: those of the live ones that follow
        self._checking: dict[tuple[str, Authorised], asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._authority_checks = asyncio.Semaphore(AUTHORITY_CHECKS)

    def __len__(self) -> int:
        return len(self._live)

    def follow(self, connection: Monitored) -> None:
        """A socket came in that follows its instance."""
        self._following[connection] = connection
        self.add(connection)

    def add(self, connection: Authorised) -> None:
        """A socket came in."""
        self._live[connection] = time.monotonic()
        if self._task is None or self._task.done():
            self._authority_checks = asyncio.Semaphore(AUTHORITY_CHECKS)
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def discard(self, connection: Authorised) -> None:
        """A socket left. Safe to call twice."""
        self._following.pop(connection, None)
        self._live.pop(connection, None)

    async def _watch(self) -> None:
        while self._live:
            await asyncio.sleep(LOOK_SECONDS)
            # A database that is away for a moment, or a defect, must not end the watch.
            _log_failures(await asyncio.gather(self._check_authority(), return_exceptions=True))
            _log_failures(await asyncio.gather(self._look(), return_exceptions=True))

    async def _look(self) -> None:
        by_key: dict[InstanceKey, list[Monitored]] = {}
        for connection in self._following.values():
            by_key.setdefault(connection.key, []).append(connection)
            if connection.threads is not None:
                self._start("threads", connection, connection.threads.catch_up())
        keys = list(by_key)
        for begin in range(0, len(keys), _BATCH):
            for key, counts in await db(_counts, keys[begin : begin + _BATCH]):
                for connection in by_key.get(key, ()):
                    if _needs(connection, counts):
                        self._start("missed", connection, _catch_up(connection, counts))

    async def _check_authority(self) -> None:
        """Read the credentials of all sockets that are due, each once."""
        now = time.monotonic()
        due: dict[Credential, list[Authorised]] = {}
        for connection, checked_at in self._live.items():
            if checked_at < now - chat_settings.authority_seconds:
                due.setdefault(connection.credential, []).append(connection)
        credentials = list(due)
        for begin in range(0, len(credentials), _BATCH):
            batch = credentials[begin : begin + _BATCH]
            held = await db(holding, batch)
            for credential in batch:
                for connection in due[credential]:
                    self._checked_authority(connection, now, is_held=credential in held)

    def _checked_authority(self, connection: Authorised, now: float, *, is_held: bool) -> None:
        if connection not in self._live:
            return
        self._live[connection] = now
        if is_held and not connection.is_member:  # a member's role is another row
            connection.authority_held()
        else:
            self._start("authority", connection, self._check(connection))

    async def _check(self, connection: Authorised) -> None:
        async with self._authority_checks:
            if connection in self._live:
                await connection.check_authority()

    def _start(self, what: str, connection: Authorised, work: Coroutine[Any, Any, None]) -> None:
        """Check one socket, unless the same check of it has not ended yet."""
        if (what, connection) in self._checking:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._checking[what, connection] = task
        task.add_done_callback(lambda done: self._checked(what, connection, done))

    def _checked(self, what: str, connection: Authorised, task: "asyncio.Task[None]") -> None:
        self._checking.pop((what, connection), None)
        if not task.cancelled():
            _log_failures([task.exception()])


def _log_failures(outcomes: Sequence[BaseException | None]) -> None:
    for error in outcomes:
        if error is not None:
            logger.error("watch failed", extra={"action": "watch_failed"}, exc_info=error)


def _needs(connection: Monitored, counts: Counts) -> bool:
    """Whether a connection may have missed something."""
    feed = connection.feed
    is_elsewhere = connection.session_id is not None and connection.session_id != counts.session_id
    is_late = feed.seen.up_to < counts.turns or connection.state_version < counts.states
    is_late = is_late or connection.runs.count != (counts.runs or 0)
    return is_elsewhere or is_late or (feed.is_idle and _is_behind(feed.sender.version, counts))


async def _catch_up(connection: Monitored, counts: Counts) -> None:
    """Bring one connection up to date."""
    feed = connection.feed
    if connection.session_id is not None and connection.session_id != counts.session_id:
        await connection.follow_current()
    if feed.seen.up_to < counts.turns:
        await connection.catch_up_to(counts.turns + 1)
    if connection.state_version < counts.states:
        await connection.send_state()
    if connection.runs.count != (counts.runs or 0):
        await connection.runs.catch_up()
    # Turns send the transcript by themselves. A change without a turn that was not sent is a lost notification.
    if feed.is_idle and _is_behind(feed.sender.version, counts):
        feed.path.note()


def _is_behind(sent: tuple[str, int] | None, counts: Counts) -> bool:
    """Whether the session has changed since a transcript was sent. `sent`: session and change that were sent."""
    if sent is None or counts.session_id is None or counts.change_seq is None:
        return False
    return sent[0] != counts.session_id or sent[1] < counts.change_seq


def _counts(keys: list[InstanceKey]) -> list[tuple[InstanceKey, Counts]]:
    """Counters of turns, states and changes of these instances, possibly of others too.

    One query for the roots, one for the sub-agents of each depth. Lists cost a tenth of what as many alternatives cost
    to build, and idle sockets have this asked all day long.
    """
    by_depth: dict[int, list[InstanceKey]] = {}
    for key in keys:
        by_depth.setdefault(len(key.ancestors), []).append(key)
    found: list[tuple[InstanceKey, Counts]] = []
    for same in by_depth.values():
        rows = AgentInstance.objects.filter(**_lists(same))
        address = ("owner_id", "agent", "name", "ancestors")
        counts = ("turn_count", "state_version", "session_id", "session__change_seq", run_count(OuterRef("pk")))
        for owner, agent, name, above, *row in rows.values_list(*address, *counts):
            parent = parent_key(owner, above)
            found.append((InstanceKey(owner_id=owner, agent=agent, name=name, parent=parent), Counts(*row)))
    return found


def _lists(keys: list[InstanceKey]) -> dict[str, Any]:
    """Filter for addresses of one depth: a list for each column of them and of the rows above."""
    found: dict[str, Any] = {}
    prefix = ""
    level: list[InstanceKey] = keys
    while level:
        found[f"{prefix}owner_id__in"] = {key.owner_id for key in level}
        found[f"{prefix}agent__in"] = {key.agent for key in level}
        found[f"{prefix}name__in"] = {key.name for key in level}
        prefix, level = f"{prefix}parent__", [key.parent for key in level if key.parent is not None]
    return {**found, prefix.removesuffix("__"): None}


connections = Connections()
