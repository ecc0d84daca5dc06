"""Changes of who is a member: added by name or by an invitation, given another role, revoked, left.

The conversation was opened with the role that this needs. Every change takes effect at once: open
connections of that person read their role again, and close where there is none.
"""

import hashlib
import secrets
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from chat.errors import InputInvalid, InvitationNotFound, MemberNotFound
from chat.instances.notifications import group_of, notify_conversation, notify_on_commit, user_group
from chat.instances.rows import descendants, hold_instance, key_of
from chat.members.selectors import open_invitations
from chat.models import AgentInstance, Invitation, Membership, Role, Turn
from fibers.services import cancel_fiber
from thinkproject.kernel.phrases import Phrase

MAX_MEMBERS: Final = 50
"""Members of one conversation at a time, besides its owner."""
MAX_INVITATIONS: Final = 20
"""Invitations of one conversation that are open at a time."""
MAX_DAYS: Final = 30


@transaction.atomic
def add_member(instance: AgentInstance, name: str, role: Role, *, by: Any) -> Membership:
    """Make the user of this name a member, or give one that is a member this role.

    `by`: key of who adds. Errors: `InputInvalid` for an unknown or inactive user, for the owner, for too many members,
    and in a sub-agent.
    """
    user_model: Any = get_user_model()
    user = user_model.objects.filter(**{user_model.USERNAME_FIELD: name}, is_active=True).first()
    if user is None:
        raise InputInvalid(Phrase("There is no person named {name!r:.80} here.", name=name))
    _hold_root(instance)
    return _join(instance, user, role, by=by)


@transaction.atomic
def change_role(instance: AgentInstance, member_id: str, role: Role) -> Membership:
    """Give a member another role. Errors: `MemberNotFound`; `InputInvalid` for the owner's role."""
    row = _find(instance, member_id)
    row.role = _given(role)
    row.save(update_fields=["role"])
    if row.role == Role.READER:
        _stop_turns(instance, row.user_id)
    _notify(instance, row.user_id)
    return row


@transaction.atomic
def remove_member(instance: AgentInstance, member_id: str) -> None:
    """End a membership for good. Errors: `MemberNotFound`, also for one that has ended."""
    _end(instance, _find(instance, member_id))


@transaction.atomic
def leave(instance: AgentInstance, user_id: Any) -> None:
    """End one's own membership. Errors: `MemberNotFound`, also for the owner, who cannot leave."""
    row = Membership.objects.select_for_update().filter(instance=instance, user_id=user_id, revoked_at=None).first()
    if row is None:
        raise MemberNotFound
    _end(instance, row)


@transaction.atomic
def invite(instance: AgentInstance, role: Role, *, by: Any, days: int) -> tuple[Invitation, str]:
    """Make an invitation; the second value is its secret, which is not stored.

    Units: `days` until it expires, 1 to `MAX_DAYS`. Errors: `InputInvalid`, also where too many are open.
    """
    if not 1 <= days <= MAX_DAYS:
        raise InputInvalid(Phrase("An invitation works for 1 to {limit} days.", limit=MAX_DAYS))
    _hold_root(instance)
    if len(open_invitations(instance)) >= MAX_INVITATIONS:
        raise InputInvalid(
            Phrase("This conversation has {limit} open invitations. Take one back first.", limit=MAX_INVITATIONS)
        )
    secret = secrets.token_urlsafe(32)
    row = Invitation.objects.create(
        instance=instance,
        role=_given(role),
        token_hash=_hash(secret),
        made_by_id=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    return row, secret


def withdraw_invitation(instance: AgentInstance, invitation_id: str) -> None:
    """Take an invitation back. Errors: `InvitationNotFound`, also for one that has ended."""
    rows = Invitation.objects.filter(instance=instance, pk=invitation_id, ended_at=None)
    if not rows.update(ended_at=timezone.now()):
        raise InvitationNotFound


@transaction.atomic
def accept_invitation(user: AbstractBaseUser, secret: str) -> Membership:
    """Become a member by an invitation, which works once. A role that the user has already is never made less.

    Errors: `InvitationNotFound` for an unknown, expired, accepted or withdrawn one, alike; `InputInvalid` as
    `add_member`, and then the invitation stays.
    """
    row = Invitation.objects.select_for_update().filter(token_hash=_hash(secret)).select_related("instance").first()
    if row is None or row.ended_at is not None or row.expires_at <= timezone.now():
        raise InvitationNotFound
    _hold_root(row.instance)
    if row.instance.deleted_at is not None:  # it works again if the conversation is restored
        raise InvitationNotFound
    known = Membership.objects.filter(instance=row.instance, user_id=user.pk, revoked_at=None).first()
    role = Role(row.role)
    if known is not None and _rank(Role(known.role)) > _rank(role):
        role = Role(known.role)
    member = _join(row.instance, user, role, by=row.made_by_id)
    Invitation.objects.filter(pk=row.pk).update(ended_at=timezone.now())
    return member


def prune_invitations(*, days: int = 30, dry_run: bool = False) -> int:
    """Remove invitations that expired or ended so many days ago. Returns how many (or would be)."""
    before = timezone.now() - timedelta(days=days)
    rows = Invitation.objects.filter(expires_at__lt=before) | Invitation.objects.filter(ended_at__lt=before)
    return rows.count() if dry_run else rows.delete()[0]


def _join(instance: AgentInstance, user: AbstractBaseUser, role: Role, *, by: Any) -> Membership:
    if user.pk == instance.owner_id:
        raise InputInvalid("The owner of this conversation is in it already.")
    rows = Membership.objects.filter(instance=instance, revoked_at=None)
    row = rows.filter(user_id=user.pk).first()
    if row is None:
        if rows.count() >= MAX_MEMBERS:
            raise InputInvalid(Phrase("A conversation has at most {limit} members.", limit=MAX_MEMBERS))
        row = Membership(instance=instance, user_id=user.pk, invited_by_id=by)
    row.role = _given(role)
    row.save()
    _notify(instance, user.pk)
    return row


def _hold_root(instance: AgentInstance) -> None:
    """Lock the conversation, so that two who add count each other.

    Errors: `InputInvalid` in a sub-agent, and in a temporary conversation.
    """
    if instance.parent_id is not None:
        raise InputInvalid("A sub-agent has the members of the conversation that it works for.")
    hold_instance(instance)
    if instance.is_temporary:
        raise InputInvalid("A temporary conversation cannot be shared. Keep the conversation first.")


def _find(instance: AgentInstance, member_id: str) -> Membership:
    rows = Membership.objects.select_for_update().filter(instance=instance, revoked_at=None)
    row = None if "\x00" in member_id else rows.filter(pk=member_id).first()
    if row is None:
        raise MemberNotFound
    return row


def _end(instance: AgentInstance, row: Membership) -> None:
    row.revoked_at = timezone.now()
    row.save(update_fields=["revoked_at"])
    _stop_turns(instance, row.user_id)
    _notify(instance, row.user_id)


def _stop_turns(instance: AgentInstance, user_id: Any) -> None:
    """Stop what still works or waits with the rights of a person who may not ask any more, also in sub-agents."""
    family = [instance.pk, *descendants(instance.pk)]
    turns = Turn.objects.filter(instance_id__in=family, author=str(user_id), finished_at=None)
    for turn in turns.select_related("instance"):
        if cancel_fiber(turn.fiber_id, reason="stopped"):
            notify_on_commit(group_of(key_of(turn.instance)), {"type": "turn.settled", "turn_id": turn.pk})


def _given(role: Role) -> Role:
    if role is Role.OWNER:
        raise InputInvalid("A conversation has one owner: this role cannot be given.")
    return role


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _rank(role: Role) -> int:
    return list(Role).index(role)


def _notify(instance: AgentInstance, user_id: Any) -> None:
    """Have this person's connections read their role again, and the conversation's the list of people."""
    notify_on_commit(user_group(user_id), {"type": "authority.changed"})
    notify_on_commit(group_of(key_of(instance)), {"type": "people.changed"})
    for each in (user_id, instance.owner_id):
        notify_conversation(each, instance.pk)
