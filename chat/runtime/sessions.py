"""The sessions of an instance: create, switch, rename, delete. The instance's row names the current one.

Sockets are notified and read the rows again. Authorization happens before.
"""

from dataclasses import dataclass, fields
from typing import Final

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.agent.values.turns import StoredSession
from chat.errors import InputInvalid, QuotaExceeded
from chat.instances.notifications import group_of, notify_conversation, notify_on_commit
from chat.instances.rows import ensure_instance, find_instance, hold_instance, key_of
from chat.models import AgentInstance, Turn
from chat.turns.admission.stop import clear_instance, stopping
from chat.turns.state.deletion import delete_turns
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.session_facts import SessionFacts
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import SessionNotFound
from sessions_app.messages import selectors, services, sessions
from sessions_app.messages.sessions import SessionInfo, hide_sessions
from sessions_app.models import Session
from thinkproject.kernel.aio import db
from thinkproject.kernel.append_only import erasing
from thinkproject.kernel.phrases import Phrase

MAX_LISTED = 200
MAX_SESSIONS = 1_000
_SHARED: Final = [field.name for field in fields(SessionFacts)]


def keeps_sessions(agent: str) -> bool:
    """Whether a class allows several sessions in an instance; false for a class that is no longer served."""
    found = get_agent_class(agent) if is_served(agent) else None
    return found is not None and issubclass(found, Think) and found.keeps_sessions


def stored_sessions(instance: AgentInstance) -> list[StoredSession]:
    """Histories of an instance: pinned ones first, then the most recently changed. One query."""
    found = sessions.session_list(scope=instance.pk, is_archived=None, limit=MAX_LISTED)
    return [to_stored(info, instance.session_id) for info in found]


def stored_session(instance: AgentInstance, session_id: str) -> StoredSession:
    """One of them. Errors: `SessionNotFound`, also for a history of another instance."""
    return to_stored(_info(instance, session_id), instance.session_id)


def create_session(key: InstanceKey, name: str = "") -> StoredSession:
    """Make an empty history and make it the current one. An instance that this makes has no other.

    Errors: `InputInvalid` when the class does not keep several, `QuotaExceeded`, `AgentNotFound`.
    """
    _require_several(key)
    with transaction.atomic():
        is_first = find_instance(key) is None
        instance = ensure_instance(key)
        hold_instance(instance)
        if is_first and instance.session_id is not None:
            services.rename_session(instance.session_id, name)
            return stored_session(instance, instance.session_id)
        check_session_quota(instance)
        made = services.create_session(owner_id=instance.owner_id, scope=instance.pk, name=name)
        if instance.is_temporary:
            hide_sessions([instance.pk], is_hidden=True)
        choose(instance, made.pk)
    return stored_session(instance, made.pk)


def check_session_quota(instance: AgentInstance) -> None:
    """Look whether there is room for one more; exact where the caller holds the instance's row.

    Errors: `QuotaExceeded`.
    """
    if not has_room_for_sessions(instance):
        raise too_many_sessions()


def has_room_for_sessions(instance: AgentInstance, *, spare: int = 1) -> bool:
    """Whether so many more histories would still be within the limit."""
    at = MAX_SESSIONS - spare
    return not Session.objects.filter(scope=instance.pk)[at : at + 1].exists()


def too_many_sessions() -> QuotaExceeded:
    """The error beyond the limit."""
    return QuotaExceeded(Phrase("A conversation keeps {limit} histories. Delete some first.", limit=MAX_SESSIONS))


def switch_session(key: InstanceKey, session_id: str) -> None:
    """Make a history the current one. Choosing the current one changes nothing.

    Errors: `SessionNotFound`, `InputInvalid` when the class does not keep several.
    """
    _require_several(key)
    with transaction.atomic():
        instance = _held(key)
        _info(instance, session_id)
        if instance.session_id != session_id:
            choose(instance, session_id)


def rename_session(key: InstanceKey, session_id: str, name: str) -> None:
    """Give a history a name. Errors: `SessionNotFound`."""
    _info(_found(key), session_id)
    services.rename_session(session_id, name)


def delete_session(key: InstanceKey, session_id: str) -> None:
    """Stop a session's turns and delete it with its data; other sessions are not affected.

    Durability: one transaction; a runner that still writes finds its rows gone and stops. Errors: `SessionNotFound`,
    `InputInvalid` when the class does not keep several.
    """
    _require_several(key)
    _info(_found(key), session_id)
    with stopping(key, queued_reason="deleted", session_of=lambda _instance: session_id) as instance, erasing():
        _info(instance, session_id)
        delete_turns(Turn.objects.filter(instance=instance, session_id=session_id))
        if instance.session_id == session_id:
            choose(instance, None)
        services.delete_session(session_id)


def choose(instance: AgentInstance, session_id: str | None) -> None:
    """Make a session of the instance current, or none, and notify. Inside a transaction that holds the row."""
    AgentInstance.objects.filter(pk=instance.pk).update(session_id=session_id)
    instance.session_id = session_id
    notify_on_commit(group_of(key_of(instance)), {"type": "session.switched"})
    notify_conversation(instance.owner_id, instance.pk)


def to_stored(info: SessionInfo, current_id: str | None) -> StoredSession:
    """A session as the methods and the API give it."""
    shared = {name: getattr(info, name) for name in _SHARED}
    return StoredSession(**shared, message_count=info.path_length, is_current=info.id == current_id)


def list_sessions(key: InstanceKey) -> list[StoredSession]:
    """Histories of the instance at an address; none before the first write."""
    instance = find_instance(key)
    return [] if instance is None else stored_sessions(instance)


def read_history(key: InstanceKey, leaf_id: str | None) -> list[StoredMessage]:
    """The path to a message of the current history, or the active one; its newest stretch."""
    instance = find_instance(key)
    if instance is None or instance.session_id is None:
        return []
    leaf = Leaf.ACTIVE if leaf_id is None else leaf_id
    return selectors.model_history(instance.session_id, leaf=leaf, max_messages=selectors.MAX_HISTORY)


def count_messages(key: InstanceKey) -> int:
    """Number of messages of the current session on all branches."""
    instance = find_instance(key)
    return 0 if instance is None or instance.session_id is None else sessions.message_count(instance.session_id)


def clear_messages(key: InstanceKey) -> None:
    """Stop the turns of the current history and remove its messages."""
    if find_instance(key) is not None:
        clear_instance(key)


def _require_several(key: InstanceKey) -> None:
    if not keeps_sessions(key.agent):
        raise InputInvalid(
            Phrase("Agent {agent!r} keeps one history; set keeps_sessions in its class for more.", agent=key.agent)
        )


def _found(key: InstanceKey) -> AgentInstance:
    instance = find_instance(key)
    if instance is None:
        raise SessionNotFound("This conversation has no histories yet.")
    return instance


def _held(key: InstanceKey) -> AgentInstance:
    instance = _found(key)
    hold_instance(instance)
    return instance


def _info(instance: AgentInstance, session_id: str) -> SessionInfo:
    found = None if "\0" in session_id else sessions.find_info(session_id, scope=instance.pk)
    if found is None:
        raise SessionNotFound(Phrase("There is no history {id!r} in this conversation.", id=session_id))
    return found


@dataclass(frozen=True, slots=True)
class InstanceSessions:
    """The histories of an instance, for agents and code."""

    key: InstanceKey

    async def list_all(self) -> list[StoredSession]:
        """Read them."""
        return await db(list_sessions, self.key)

    async def create(self, name: str) -> StoredSession:
        """Make a history and make it current."""
        return await db(create_session, self.key, name)

    async def switch(self, session_id: str) -> None:
        """Make a history current."""
        await db(switch_session, self.key, session_id)

    async def rename(self, session_id: str, name: str) -> None:
        """Give a history a name."""
        await db(rename_session, self.key, session_id, name)

    async def delete(self, session_id: str) -> None:
        """Remove a history."""
        await db(delete_session, self.key, session_id)

    async def path(self, leaf_id: str | None) -> list[StoredMessage]:
        """Read a path of the current history."""
        return await db(read_history, self.key, leaf_id)

    async def shown(self) -> list[Message]:
        """Read the shown path of the current history."""
        return await db(_shown, self.key)

    async def count_messages(self) -> int:
        """Count the messages of the current history."""
        return await db(count_messages, self.key)

    async def clear(self) -> None:
        """Remove the messages of the current history."""
        await db(clear_messages, self.key)


def _shown(key: InstanceKey) -> list[Message]:
    instance = find_instance(key)
    if instance is None or instance.session_id is None:
        return []
    most = {"max_messages": selectors.HISTORY_MESSAGES, "max_bytes": selectors.HISTORY_BYTES}
    found = selectors.window(instance.session_id, **most)
    return [message.to_ui() for message in found if message.placed]
