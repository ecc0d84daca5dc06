"""The synced state of an instance: one JSON value, stored under a version, sent to every client.

Every writer comes through here: a client's frame in a web process, `set_state` in a hook, tool or callable.
Shape: any JSON of at most a MiB. The newest write wins; clients receive the versions in order.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F

from chat.agent.base import Agent, InstanceKey, StateSource
from chat.agent.connection import ClientConnection
from chat.errors import StateOutdated, StateRefused
from chat.instances.config import load_config, save_config
from chat.instances.notifications import StateChanged, group_of, notify_on_commit
from chat.instances.rows import ensure_instance, find_instance
from chat.models import AgentInstance
from chat.user_code.call_hook import call_hook, notify_hook
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONValue, byte_size
from thinkproject.kernel.phrases import Phrase

logger = logging.getLogger(__name__)

STATE_BYTES = 1024 * 1024  # as JSON
REJECTED = Phrase("State update rejected")
READ_ONLY = Phrase("Connection is readonly")


@dataclass(slots=True, kw_only=True)
class ClientScope:
    """A client for which code runs, and whether that code has set the client's instance's state."""

    key: InstanceKey
    connection: ClientConnection
    has_set_state: bool = False


_asking: ContextVar[ClientScope | None] = ContextVar("think_asking", default=None)


@contextmanager
def acting_for_client(key: InstanceKey, connection: ClientConnection) -> Iterator[ClientScope]:
    """Code in this block acts for a client: a read-only client's may not set the state of its instance."""
    asking = ClientScope(key=key, connection=connection)
    token = _asking.set(asking)
    try:
        yield asking
    finally:
        _asking.reset(token)


def asking_client(key: InstanceKey) -> str:
    """Id of the connection that code acts for, where that is one to this instance; else nothing."""
    asking = _asking.get()
    return asking.connection.id if asking is not None and asking.key == key else ""


@dataclass(frozen=True, slots=True)
class InstanceState:
    """The synced state and the configuration of an instance, for its agent and code. `agent`: gives its agent."""

    key: InstanceKey
    agent: Callable[[], Awaitable[Agent]]

    async def load(self, default: JSONValue = None) -> JSONValue:
        """Give the stored state, or the default."""
        return await db(_load, self.key, default)

    async def change(self, value: JSONValue) -> None:
        """Validate, store and send a state that code sets."""
        await change_state(await self.agent(), value, "server")

    async def load_config(self) -> Any:
        """Give the stored configuration."""
        return await db(load_config, self.key)

    async def save_config(self, value: Any) -> None:
        """Check and store the configuration."""
        await db(save_config, self.key, value)


async def change_state(
    agent: Agent, value: JSONValue, source: StateSource, *, origin: str = "", version: int | None = None
) -> None:
    """Check the client's permission, validate, store and send a state, then run the hook.

    Durability: stored when this returns. `origin` labels the connection that has it already; with `version` it is
    stored only over that one. Errors: `StateRefused`, `StateOutdated`; then nothing has changed.
    """
    _check_size(value)
    try:
        may_only_read = await is_read_only(agent)
        if not may_only_read:
            await call_hook(agent, "validate_state_change", value, source)
    except ThinkError as error:  # whatever the developer's code raised: its words stay on the server
        logger.info("state refused", extra={"action": "state_refused", "agent": agent.key.agent, "source": source})
        raise StateRefused(REJECTED) from error
    if may_only_read:
        raise StateRefused(READ_ONLY)
    await db(_store, agent.key, value, origin, version)
    asking = _asking.get()
    if asking is not None and asking.key == agent.key:
        asking.has_set_state = True
    await notify_hook(agent, "on_state_changed", value, source)


async def is_read_only(agent: Agent) -> bool:
    """Whether this code acts for a client that may see the instance's state and not set it. Errors: `ThinkError`."""
    asking = _asking.get()
    if asking is None or asking.key != agent.key:
        return False
    return bool(await call_hook(agent, "is_read_only", asking.connection))


def _load(key: InstanceKey, default: JSONValue) -> JSONValue:
    instance = find_instance(key)
    return default if instance is None or instance.state_version == 0 else instance.state


def _check_size(value: JSONValue) -> None:
    try:
        size = byte_size(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StateRefused(Phrase("State is not JSON: {error}", error=error)) from error
    if size > STATE_BYTES:
        text = Phrase("State is too large: {size} bytes, at most {limit}", size=size, limit=STATE_BYTES)
        raise StateRefused(text, size=size, limit=STATE_BYTES)


@transaction.atomic
def _store(key: InstanceKey, value: JSONValue, origin: str, version: int | None) -> None:
    instance = ensure_instance(key)
    rows = AgentInstance.objects.filter(pk=instance.pk)
    if version is not None:
        rows = rows.filter(state_version=version)
    if not rows.update(state=value, state_version=F("state_version") + 1):
        raise StateOutdated
    instance.refresh_from_db(fields=["state_version"])
    changed: StateChanged = {"type": "state.changed", "version": instance.state_version, "origin": origin}
    notify_on_commit(group_of(key), changed)
