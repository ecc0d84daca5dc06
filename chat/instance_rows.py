"""The rows behind addresses: find, make, lock. Whether the asker may use the address was decided in `auth.py`."""

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from chat.agent import InstanceKey
from chat.errors import InstanceNotFound
from chat.limits import check_instance_quota
from chat.models import AgentInstance
from sessions_app.services import create_session


def key_of(instance: AgentInstance) -> InstanceKey:
    """The address of a row."""
    return InstanceKey(owner_id=instance.owner_id, agent=instance.agent, name=instance.name, instance_id=instance.pk)


def find_instance(key: InstanceKey) -> AgentInstance | None:
    """Find the row of an address; there is none before the first write."""
    return AgentInstance.objects.filter(owner_id=key.owner_id, agent=key.agent, name=key.name, parent=None).first()


def ensure_instance(key: InstanceKey, *, title: str = "") -> AgentInstance:
    """Find the row of an address, or make it with its first session. Errors: `QuotaExceeded`."""
    found = find_instance(key)
    if found is not None:
        return found
    try:
        return _make_instance(key, title)
    except IntegrityError:
        # Somebody else made it between our look and our insert; theirs is the one.
        found = find_instance(key)
        if found is None:
            raise
        return found


@transaction.atomic
def _make_instance(key: InstanceKey, title: str) -> AgentInstance:
    instance = find_instance(key)
    if instance is None:
        check_instance_quota(key.owner_id)
        instance = AgentInstance(owner_id=key.owner_id, agent=key.agent, name=key.name, title=title)
        instance.session = create_session(owner_id=key.owner_id, scope=instance.id)
        instance.save(force_insert=True)
    return instance


def hold_instance(instance: AgentInstance) -> None:
    """Lock the row until the transaction ends and read it afresh; nothing is counted. Errors: `InstanceNotFound`."""
    if not AgentInstance.objects.filter(pk=instance.pk).update(generation=F("generation")):
        raise InstanceNotFound()
    instance.refresh_from_db()


def lock_instance(instance: AgentInstance) -> AgentInstance:
    """Lock the row until the transaction ends, count one more position, and read it afresh.

    A conditional UPDATE locks on SQLite and on PostgreSQL alike.
    """
    changed = AgentInstance.objects.filter(pk=instance.pk).update(
        turn_count=F("turn_count") + 1, active_at=timezone.now()
    )
    if not changed:
        raise InstanceNotFound()
    instance.refresh_from_db()
    return instance
