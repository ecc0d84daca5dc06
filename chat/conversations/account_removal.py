"""The end of an account: closed at once, removed in the background with everything that is the person's."""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Sum

from chat.access.browsers import sign_out_others
from chat.account_errors import LastAdministrator
from chat.core.durable_names import ACCOUNT_REMOVAL_FIBER
from chat.models import AgentInstance, Attachment, Membership
from chat.operations.removal import delete_instance
from fibers.context import FiberContext
from fibers.services import start_fiber
from thinkproject.kernel.aio import db
from thinkproject.kernel.owner_lock import lock_owner
from tools_app.models import StoredWorkspace

MAX_RETRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """Counts of what goes with an account. `memberships`: conversations of others that the person leaves."""

    conversations: int
    files: int
    file_bytes: int
    workspaces: int
    memberships: int
    is_last_administrator: bool


def belongings_of(user: AbstractBaseUser) -> Belongings:
    """Count what goes with an account. Five queries."""
    files = Attachment.objects.filter(owner_id=user.pk)
    workspaces = StoredWorkspace.objects.filter(owner_id=user.pk, root="", file_count__gt=0)
    return Belongings(
        conversations=AgentInstance.objects.filter(owner_id=user.pk, parent=None).count(),
        files=files.count(),
        file_bytes=files.aggregate(total=Sum("byte_size"))["total"] or 0,
        workspaces=workspaces.count(),
        memberships=Membership.objects.filter(user_id=user.pk, revoked_at=None).count(),
        is_last_administrator=_is_last_administrator(user),
    )


def begin_removal(user: AbstractBaseUser) -> None:
    """Close an account and have it removed. From the commit on it has no sign-in, and no token of it works.

    Errors: `LastAdministrator`, and nothing has changed.
    """
    with transaction.atomic():
        lock_owner(user.pk)
        if _is_last_administrator(user):
            raise LastAdministrator
        get_user_model().objects.filter(pk=user.pk).update(is_active=False)
        start_fiber(
            ACCOUNT_REMOVAL_FIBER,
            {"user_id": user.pk},
            key=f"account-removal:{user.pk}",
            max_retries=MAX_RETRIES,
        )
        sign_out_others(user, "")


async def remove_account(context: FiberContext) -> None:
    """Remove a closed account: each conversation by itself, then the rest at once. Safe to run again."""
    user_id = context.payload["user_id"]
    for instance_id in await db(_conversations, user_id):
        await db(_remove_conversation, instance_id)
        context.advance()
    await db(_remove_person, user_id)


def _conversations(user_id: Any) -> list[str]:
    mine = AgentInstance.objects.filter(owner_id=user_id, owner__is_active=False, parent=None)
    return list(mine.order_by("pk").values_list("pk", flat=True))


def _remove_conversation(instance_id: str) -> None:
    instance = AgentInstance.objects.filter(pk=instance_id).first()
    if instance is not None:
        delete_instance(instance)


def _remove_person(user_id: Any) -> None:
    """Delete the row, and with it what refers to it (`chat.operations.removal`), unless it was opened again."""
    user = get_user_model().objects.filter(pk=user_id, is_active=False).first()
    if user is not None:
        user.delete()


def _is_last_administrator(user: AbstractBaseUser) -> bool:
    if not getattr(user, "is_superuser", False):
        return False
    return not get_user_model().objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk).exists()
