"""The rows behind addresses: find, make, lock. Whether the asker may use the address was decided in `auth.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.db import IntegrityError, transaction

from chat.agent.base import InstanceKey
from chat.errors import InstanceNotFound
from chat.instances.addresses import MAX_HOPS
from chat.instances.quota import check_instance_quota
from chat.models import AgentInstance
from sessions_app.messages.services import create_session
from sessions_app.messages.sessions import hide_sessions
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.statements import Columns, Statement, instant
from tools_app.calls.selectors import OPEN_CALLS

BATCH = 200
"""How many rows one query is given the keys of."""


def key_of(instance: AgentInstance) -> InstanceKey:
    """The address of a row. No query, also for a sub-agent."""
    owner_id = instance.owner_id
    return InstanceKey(
        owner_id=owner_id,
        agent=instance.agent,
        name=instance.name,
        instance_id=instance.pk,
        parent=parent_key(owner_id, instance.ancestors),
    )


def parent_key(owner_id: int | None, ancestors: Sequence[Sequence[str]]) -> InstanceKey | None:
    """The address of the nearest ancestor, from the column `ancestors`."""
    parent: InstanceKey | None = None
    for agent, name in ancestors:
        parent = InstanceKey(owner_id=owner_id, agent=agent, name=name, parent=parent)
    return parent


def path_of(key: InstanceKey) -> str:
    """The URL path of an address, after `/agents/`."""
    lineage = (*key.ancestors, key)
    return "/sub/".join(f"{quote(each.agent, safe='')}/{quote(each.name, safe='')}" for each in lineage)


def lookup_of(key: InstanceKey, prefix: str = "") -> dict[str, Any]:
    """Filter that finds the row of an address, and no other; `prefix` leads to the row, as in `instance__`.

    A sub-agent is found through the rows above it, along the indexes of addresses.
    """
    found: dict[str, Any] = {}
    at: InstanceKey | None = key
    while at is not None:
        found |= {f"{prefix}owner_id": at.owner_id, f"{prefix}agent": at.agent, f"{prefix}name": at.name}
        found[f"{prefix}deleted_at"] = None
        prefix, at = f"{prefix}parent__", at.parent
    return {**found, prefix.removesuffix("__"): None}


def find_instance(key: InstanceKey, *, with_session: bool = False) -> AgentInstance | None:
    """Find the row of an address, its session loaded if wanted; there is none before the first write."""
    rows = AgentInstance.objects.filter(**lookup_of(key))
    return (rows.select_related("session") if with_session else rows).first()


def ensure_instance(
    key: InstanceKey,
    *,
    title: str = "",
    title_is_provisional: bool = False,
    model_choice: JSONObject | None = None,
    is_temporary: bool = False,
    project_id: str | None = None,
) -> AgentInstance:
    """Find the row of an address, or make it with its first session, and those above it. Errors: `QuotaExceeded`.

    `project_id`: of a project that the caller holds.
    """
    found = find_instance(key)
    if found is not None:
        return found
    begun = {
        "title": title,
        "title_is_provisional": title_is_provisional,
        "model_choice": model_choice,
        "is_temporary": is_temporary,
        "project_id": project_id,
    }
    try:
        return _make_instance(key, begun)
    except (IntegrityError, InstanceNotFound):
        # Another process created it between our query and our insert, or deleted its parent.
        return _make_instance(key, begun)


@transaction.atomic
def _make_instance(key: InstanceKey, begun: JSONObject) -> AgentInstance:
    instance = find_instance(key)
    if instance is None:
        parent = None if key.parent is None else ensure_instance(key.parent)
        _hold_lineage(parent)
        check_instance_quota(key.owner_id)
        instance = AgentInstance(
            owner_id=key.owner_id,
            parent=parent,
            ancestors=[[above.agent, above.name] for above in key.ancestors],
            agent=key.agent,
            name=key.name,
            **begun,
        )
        instance.is_temporary = instance.is_temporary or (parent is not None and parent.is_temporary)
        instance.session = create_session(owner_id=key.owner_id, scope=instance.id)
        instance.save(force_insert=True)
        if instance.is_temporary:
            hide_sessions([instance.pk], is_hidden=True)
    return instance


def ensure_session(instance: AgentInstance) -> str:
    """Id of the current session; where there is none, a new one. Inside a transaction that holds the row."""
    if instance.session_id is None:
        instance.session = create_session(owner_id=instance.owner_id, scope=instance.pk)
        AgentInstance.objects.filter(pk=instance.pk).update(session=instance.session)
        if instance.is_temporary:
            hide_sessions([instance.pk], is_hidden=True)
    assert instance.session_id is not None
    return instance.session_id


def _hold_lineage(parent: AgentInstance | None) -> None:
    """Lock the rows above a new one, root first, so that none of them is deleted without it. `InstanceNotFound`."""
    if parent is not None:
        _hold_lineage(parent.parent)
        hold_instance(parent)


_ROW: Final = Columns(AgentInstance)
_OWNER: Final = Columns(AgentInstance, ("owner_id",))
_HOLD: Final = Statement(
    "UPDATE think_chat_agentinstance SET generation = generation WHERE id = %s RETURNING :row:", row=_ROW
)
_LOCK: Final = Statement(
    "UPDATE think_chat_agentinstance SET turn_count = turn_count + 1, active_at = %s "
    "WHERE id = %s AND deleted_at IS NULL RETURNING :row:",
    row=_ROW,
)
_LOCK_ADDRESS: Final = Statement(
    """
    UPDATE think_chat_agentinstance SET turn_count = turn_count + 1, active_at = %s
    WHERE owner_id = %s AND agent = %s AND name = %s AND parent_id IS NULL AND deleted_at IS NULL
    RETURNING :row:
    """,
    row=_ROW,
)
_LOCK_ROOT: Final = Statement(
    """
    UPDATE think_chat_agentinstance SET turn_count = turn_count + 1, active_at = %s
    WHERE owner_id = %s AND agent = %s AND name = %s AND parent_id IS NULL AND deleted_at IS NULL
    RETURNING :row:, :has_open_calls:,
        EXISTS (SELECT 1 FROM think_sessions_message m WHERE m.message_id = %s)
    """,
    row=_ROW,
    has_open_calls=OPEN_CALLS.replace(":scope:", "think_chat_agentinstance.id"),
)


def hold_instance(instance: AgentInstance) -> None:
    """Lock the row until the transaction ends and read it afresh, a deleted one too; nothing is counted.

    Errors: `InstanceNotFound`.
    """
    _read_again(instance, _HOLD.one(instance.pk))


def hold_if_there(instance: AgentInstance) -> bool:
    """Do the same; false when the row is gone."""
    row = _HOLD.one(instance.pk)
    if row is not None:
        _read_again(instance, row)
    return row is not None


def lock_instance(instance: AgentInstance) -> AgentInstance:
    """Lock the row until the transaction ends, count one more position, and read it afresh. One statement.

    A conditional UPDATE locks on SQLite and on PostgreSQL alike. Errors: `InstanceNotFound`.
    """
    return _read_again(instance, _LOCK.one(instant(), instance.pk))


def lock_address(key: InstanceKey) -> AgentInstance:
    """Do the same for the row of an address, made if there is none. One statement for a user's that is no sub-agent.

    Errors: `InstanceNotFound`, `QuotaExceeded`.
    """
    if key.owner_id is not None and key.parent is None:
        owner = _OWNER.prepare({"owner_id": key.owner_id})
        row = _LOCK_ADDRESS.one(instant(), *owner, key.agent, key.name)
        if row is not None:
            return _ROW.build(row)
    return lock_instance(ensure_instance(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedInstance:
    """A row that is locked, and what its lock has looked up on the way; true where it has not looked.

    `has_open_calls`: calls may wait for an answer from outside. `may_be_known`: some conversation may have the message.
    """

    row: AgentInstance
    has_open_calls: bool = True
    may_be_known: bool = True


def lock_root(key: InstanceKey, message_id: str) -> LockedInstance | None:
    """Do the same for the address of a user's instance that stands below no other one. Nothing before the first write.

    Looks for the message of this id, too. One statement.
    """
    if key.owner_id is None or key.parent is not None:
        return None
    owner = _OWNER.prepare({"owner_id": key.owner_id})
    row = _LOCK_ROOT.one(instant(), *owner, key.agent, key.name, message_id)
    if row is None:
        return None
    return LockedInstance(row=_ROW.build(row), has_open_calls=bool(row[-2]), may_be_known=bool(row[-1]))


def _read_again(instance: AgentInstance, row: tuple[Any, ...] | None) -> AgentInstance:
    if row is None:
        raise InstanceNotFound()
    vars(instance).update(vars(_ROW.build(row)))
    return instance


def descendants(instance_id: str) -> list[str]:
    """The sub-agents of an instance and theirs, level by level: a query for each level and batch."""
    found: list[str] = []
    edge = [instance_id]
    for _ in range(MAX_HOPS):
        below = AgentInstance.everything.order_by().values_list("pk", flat=True)
        parts = [edge[begin : begin + BATCH] for begin in range(0, len(edge), BATCH)]
        edge = [child for part in parts for child in below.filter(parent_id__in=part)]
        if not edge:
            break
        found += edge
    return found
