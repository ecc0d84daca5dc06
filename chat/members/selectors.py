"""Reading who is a member of what. The owner's role costs no query; sub-agents have the members of their root."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from chat.members import policy
from chat.models import AgentInstance, Invitation, Membership, Role
from sessions_app.models import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person in a conversation. `id`: of the membership, nothing for the owner; `since`: when it began."""

    id: str | None
    user_id: Any
    name: str
    role: Role
    invited_by: str | None
    since: datetime


def role_of(user_id: Any, instance: AgentInstance) -> Role | None:
    """The role of a user in a conversation, `None` for a stranger. Two queries for others than the owner."""
    if instance.owner_id is None or instance.deleted_at is not None:
        return None
    if instance.owner_id == user_id:
        return Role.OWNER
    rows = Membership.objects.filter(instance_id=root_id_of(instance), user_id=user_id, revoked_at=None)
    role = rows.values_list("role", flat=True).first()
    return None if role is None else Role(role)


def role_in(user_id: Any, instance_id: str) -> Role | None:
    """The same by the conversation's id; also `None` where it is gone."""
    instance = AgentInstance.objects.filter(pk=instance_id).only("pk", "owner_id", "parent_id", "deleted_at").first()
    return None if instance is None else role_of(user_id, instance)


def is_still_in(user_id: Any, instance_id: str, owner_id: Any) -> bool:
    """Whether who follows a conversation of this owner's still has a role in it. No query for the owner."""
    return user_id == owner_id or role_in(user_id, instance_id) is not None


def role_at_file(user_id: Any, file_id: str, owner_id: Any) -> Role | None:
    """The role of a user in a conversation of this owner's that shows a file which is in several, as forks make it.

    Reads the messages of what is shared with the user, if anything of this owner's is.
    """
    rows = _of(user_id).filter(instance__owner_id=owner_id)
    for instance_id, role in rows.values_list("instance_id", "role"):
        if Message.objects.filter(session__scope=instance_id, content__contains=file_id).exists():
            return Role(role)
    return None


def root_id_of(instance: AgentInstance) -> str:
    """The id of the conversation that a sub-agent works for, over all of its parents. A query for each of them."""
    root_id, parent_id = instance.pk, instance.parent_id
    while parent_id is not None:
        root_id = parent_id
        parent_id = AgentInstance.objects.filter(pk=root_id).values_list("parent_id", flat=True).first()
    return root_id


def shared_with(user_id: Any) -> dict[str, Role]:
    """The conversations of others in which a user has a role, by id. One query."""
    rows = _of(user_id).values_list("instance_id", "role")
    return {instance_id: Role(role) for instance_id, role in rows}


def owners_of_shared(user_id: Any) -> dict[str, Any]:
    """The owners of the conversations in which a user has a role, by the conversation's id. One query."""
    return dict(_of(user_id).values_list("instance_id", "instance__owner_id"))


def _of(user_id: Any) -> QuerySet[Membership]:
    """Memberships of a user in conversations that are there."""
    return Membership.objects.filter(user_id=user_id, revoked_at=None, instance__deleted_at=None)


def scopes_shared_with(user_id: Any, needs: Role) -> RawSQL:
    """The conversations of others, with their sub-agents, in which a user has this role or more: a subquery of ids."""
    roles = [role.value for role in Role if role is not Role.OWNER and policy.allows(role, needs)]
    key = Membership._meta.get_field("user").get_db_prep_value(user_id, connection)  # SQLite takes no UUID as it is
    return RawSQL(_SHARED.format(marks=", ".join(["%s"] * len(roles))), [key, *roles])  # noqa: S611 - constants


_SHARED: Final = """
WITH RECURSIVE shared(id) AS (
    SELECT m.instance_id FROM think_chat_membership m JOIN think_chat_agentinstance i ON i.id = m.instance_id
    WHERE m.user_id = %s AND m.revoked_at IS NULL AND i.deleted_at IS NULL AND m.role IN ({marks})
    UNION
    SELECT a.id FROM think_chat_agentinstance a JOIN shared ON a.parent_id = shared.id
)
SELECT id FROM shared
"""


def people_in(instance: AgentInstance) -> list[Person]:
    """The owner, then the members in the order in which they came. Of a sub-agent: its root's. Two queries."""
    root_id = root_id_of(instance)
    root = AgentInstance.objects.select_related("owner").get(pk=root_id)
    rows = Membership.objects.filter(instance_id=root_id, revoked_at=None).select_related("user", "invited_by")
    members = [_person(row) for row in rows.order_by("created_at", "pk")]
    if root.owner is None:
        return members
    owner = Person(
        id=None,
        user_id=root.owner_id,
        name=root.owner.get_username(),
        role=Role.OWNER,
        invited_by=None,
        since=root.created_at,
    )
    return [owner, *members]


def former_in(instance: AgentInstance) -> dict[Any, str]:
    """Names of those who were members and are none now, by their keys: they may have written. One query, or a few."""
    rows = Membership.objects.filter(instance_id=root_id_of(instance)).select_related("user")
    present = {row.user_id for row in rows if row.revoked_at is None}
    return {row.user_id: row.user.get_username() for row in rows if row.user_id not in present}


def open_invitations(instance: AgentInstance) -> list[Invitation]:
    """Invitations of a conversation that can be accepted, newest first."""
    rows = Invitation.objects.filter(instance=instance, ended_at=None, expires_at__gt=timezone.now())
    return list(rows.select_related("made_by").order_by("-created_at", "pk"))


def user_key(author: str) -> Any:
    """The key of the user whom a row names as its author; `None` for the owner."""
    return get_user_model()._meta.pk.to_python(author) if author else None


def author_of(user_id: Any, owner_id: Any) -> str:
    """The author that rows of a conversation name for a user; empty for its owner, and for the server."""
    return "" if user_id is None or user_id == owner_id else str(user_id)


def names_of(user_ids: Iterable[Any]) -> dict[Any, str]:
    """Names of users; those that are gone are left out. No query without any."""
    wanted = set(user_ids) - {None}
    if not wanted:
        return {}
    return {user.pk: user.get_username() for user in get_user_model().objects.filter(pk__in=wanted)}


def _person(row: Membership) -> Person:
    return Person(
        id=row.pk,
        user_id=row.user_id,
        name=row.user.get_username(),
        role=Role(row.role),
        invited_by=None if row.invited_by is None else row.invited_by.get_username(),
        since=row.created_at,
    )
