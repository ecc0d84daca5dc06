"""Temporary conversations: in no list, no search and no memory, and removed within a day of their last message.

The row says that it is temporary, as those of the sub-agents below it do; its sessions are hidden, as those of deleted
conversations are. It reads what its owner keeps for all conversations, instructions and memory, and writes none of it.
Nothing that outlives a day is made of it: no schedules, no links, no members. Its removal is that of all conversations.
"""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from chat.errors import InputInvalid, InstanceNotFound
from chat.instances.notifications import notify_conversation
from chat.instances.rows import descendants, hold_instance
from chat.models import AgentInstance
from chat.operations.removal import delete_instance
from sessions_app.messages.sessions import hide_sessions

KEPT_HOURS: Final = 24
"""Hours after the last message by which it is gone."""
_ROUND: Final = timedelta(hours=1)  # at most between two rounds of retention
BATCH: Final = 500


@transaction.atomic
def keep_instance(instance: AgentInstance) -> None:
    """Make an ordinary conversation of a temporary one, with all below it. One that is ordinary stays as it is.

    Errors: `InputInvalid` for a sub-agent, which is what the conversation above it is.
    """
    hold_instance(instance)
    if not instance.is_temporary:
        return
    if instance.parent_id is not None:
        raise InputInvalid("A sub-agent is kept with the conversation that it works for.")
    family = [instance.pk, *descendants(instance.pk)]
    AgentInstance.objects.filter(pk__in=family).update(is_temporary=False)
    hide_sessions(family, is_hidden=False)
    instance.is_temporary = False
    notify_conversation(instance.owner_id, instance.pk)


def expired_temporary() -> QuerySet[AgentInstance]:
    """Temporary conversations that would outlive their day before the next round."""
    before = timezone.now() - timedelta(hours=KEPT_HOURS) + _ROUND
    return AgentInstance.objects.filter(parent=None, is_temporary=True, active_at__lt=before)


def prune_temporary() -> int:
    """Remove some of them with all that is theirs, and stop what runs there. Returns how many. One transaction each."""
    removed = 0
    for row in expired_temporary().order_by("active_at", "pk")[:BATCH]:
        # Asked again while no turn can begin: it may have been kept or written in. Taking the lock counts one position.
        still = AgentInstance.objects.filter(pk=row.pk, is_temporary=True, turn_count=row.turn_count + 1)
        try:
            removed += delete_instance(row, only_if=still.exists)
        except InstanceNotFound:  # another process was faster
            continue
    return removed
