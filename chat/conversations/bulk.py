"""Verbs on many conversations at once: one transaction, an outcome for each, and no query for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from chat.errors import InstanceNotFound
from chat.instances.notifications import notify_conversation
from chat.members.selectors import shared_with
from chat.models import AgentInstance
from chat.operations.deleted import put_into_deleted, restore_instances
from chat.people.projects import move_to_project

MAX_IDS: Final = 100


class BulkOutcome(StrEnum):
    """The outcome for one of them. The values are those of the API."""

    DONE = "done"
    MISSING = "missing"  # there is none, or it is another person's
    DENIED = "denied"  # it is shared with the person, who does not own it


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """The outcome for one conversation."""

    id: str
    outcome: BulkOutcome


@transaction.atomic
def archive_all(user_id: Any, ids: Sequence[str], *, is_archived: bool) -> list[BulkResult]:
    """Put conversations away, or restore them, in the order of the ids. Four queries at most."""
    mine = set(_own(user_id, ids).select_for_update().order_by("pk").values_list("pk", flat=True))
    AgentInstance.objects.filter(pk__in=mine).update(archived_at=timezone.now() if is_archived else None)
    for instance_id in sorted(mine):
        notify_conversation(user_id, instance_id)
    return _results(user_id, ids, mine)


def move_all(user_id: Any, ids: Sequence[str], project_id: str | None) -> list[BulkResult]:
    """Put root conversations into a project, or into none. As `move_to_project`."""
    return _results(user_id, ids, move_to_project(user_id, ids, project_id))


@transaction.atomic
def delete_all(user_id: Any, ids: Sequence[str]) -> list[BulkResult]:
    """Put root conversations into *Deleted*. As `put_into_deleted`."""
    mine = list(_own(user_id, ids).filter(parent=None))
    if mine:
        put_into_deleted(mine)
    return _results(user_id, ids, {row.pk for row in mine})


def restore_all(user_id: Any, ids: Sequence[str]) -> list[BulkResult]:
    """Bring deleted conversations back. As `restore_instances`."""
    return _results(user_id, ids, set(restore_instances(user_id, ids)))


def own_ids(user_id: Any, ids: Sequence[str]) -> list[str]:
    """These ids, each once. One query. Errors: `InstanceNotFound` where one is not of a conversation of this person."""
    wanted = list(dict.fromkeys(ids))
    mine = set(_own(user_id, wanted).values_list("pk", flat=True))
    if not mine.issuperset(wanted):
        raise InstanceNotFound
    return wanted


def _own(user_id: Any, ids: Sequence[str]) -> Any:
    return AgentInstance.objects.filter(owner_id=user_id, pk__in=[each for each in ids if "\x00" not in each])


def _results(user_id: Any, ids: Sequence[str], done: set[str]) -> list[BulkResult]:
    wanted = list(dict.fromkeys(ids))
    shared = shared_with(user_id) if not done.issuperset(wanted) else {}
    others = {each: BulkOutcome.DENIED if each in shared else BulkOutcome.MISSING for each in wanted}
    return [BulkResult(id=each, outcome=BulkOutcome.DONE if each in done else others[each]) for each in wanted]
