"""Links for readers: made by the owner of a conversation at a message, listed, revoked, removed when they are over."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from chat.errors import InputInvalid, SharedNotFound
from chat.instances.rows import hold_instance
from chat.models import AgentInstance, ShareLink
from chat.shares.projection import Ticked
from sessions_app.errors import MessageNotFound
from sessions_app.messages import selectors
from sessions_app.models import Message
from thinkproject.kernel.phrases import Phrase

MAX_DAYS: Final = 365
MAX_LINKS: Final = 50
"""Links of one conversation that work at a time."""
MAX_MESSAGES: Final = 500
"""Messages on the path that a link shows: it is one page."""
MAX_BYTES: Final = 8 * 1024 * 1024
"""Bytes of these messages as they are stored."""
MAX_LISTED: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class NewShare:
    """A link to make. `message_id`: where it ends; the end of the shown path without one. Units: `days` it works."""

    days: int
    message_id: str | None = None
    ticked: Ticked = field(default_factory=Ticked)


@transaction.atomic
def make_link(instance: AgentInstance, wanted: NewShare) -> tuple[ShareLink, str]:
    """Make a link to the shown path up to a message; the second value is its secret, which is not stored.

    Errors: `MessageNotFound` for a message that is not on the shown path; `InputInvalid` without messages, for too long
    a path, for too many links, in a sub-agent, and in a temporary conversation.
    """
    if not 1 <= wanted.days <= MAX_DAYS:
        raise InputInvalid(Phrase("A link works for 1 to {limit} days.", limit=MAX_DAYS))
    if instance.parent_id is not None:
        raise InputInvalid("A sub-agent is shared with the conversation that it works for.")
    hold_instance(instance)
    if instance.is_temporary:
        raise InputInvalid("A temporary conversation cannot be shared. Keep the conversation first.")
    if _working(ShareLink.objects.filter(instance=instance), timezone.now()).count() >= MAX_LINKS:
        raise InputInvalid(Phrase("This conversation has {limit} links. Take one back first.", limit=MAX_LINKS))
    session_id, message_id = _place(instance, wanted.message_id)
    secret = secrets.token_urlsafe(32)
    row = ShareLink.objects.create(
        instance=instance,
        session_id=session_id,
        message_id=message_id,
        title=instance.title,
        token_hash=hash_of(secret),
        shows_tools=wanted.ticked.tools,
        shows_files=wanted.ticked.files,
        shows_reasoning=wanted.ticked.reasoning,
        expires_at=timezone.now() + timedelta(days=wanted.days),
    )
    return row, secret


def links_of(instance: AgentInstance) -> list[ShareLink]:
    """Links of a conversation that work, newest first. One query."""
    return list(_listed(ShareLink.objects.filter(instance=instance)))


def links_of_owner(owner_id: Any) -> list[ShareLink]:
    """Links that work to all conversations of a person, newest first, their conversations loaded. One query."""
    return list(_listed(ShareLink.objects.filter(instance__owner_id=owner_id)))


def revoke_link(owner_id: Any, share_id: str) -> None:
    """End a link at once. Errors: `SharedNotFound`, also for another's and for one that has ended."""
    rows = ShareLink.objects.filter(pk=share_id, instance__owner_id=owner_id, revoked_at=None)
    if "\x00" in share_id or not rows.update(revoked_at=timezone.now()):
        raise SharedNotFound


def revoke_links_of(instance_ids: list[str]) -> None:
    """End all links of these conversations, in the transaction of the caller."""
    ShareLink.objects.filter(instance_id__in=instance_ids, revoked_at=None).update(revoked_at=timezone.now())


def prune_links(*, days: int = 30, dry_run: bool = False) -> int:
    """Remove links that expired or were revoked so many days ago. Returns how many (or would be)."""
    before = timezone.now() - timedelta(days=days)
    rows = ShareLink.objects.filter(Q(expires_at__lt=before) | Q(revoked_at__lt=before))
    return rows.count() if dry_run else rows.delete()[0]


def hash_of(secret: str) -> str:
    """The form in which a secret is stored and looked for."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _listed(rows: QuerySet[ShareLink]) -> QuerySet[ShareLink]:
    return _working(rows, timezone.now()).select_related("instance").order_by("-created_at", "pk")[:MAX_LISTED]


def _working(rows: QuerySet[ShareLink], now: datetime) -> QuerySet[ShareLink]:
    return rows.filter(revoked_at=None, expires_at__gt=now)


def _place(instance: AgentInstance, message_id: str | None) -> tuple[str, str]:
    """The session and the last message of what is shown. Errors: those of `make_link` about messages."""
    session_id = instance.session_id
    last = None if session_id is None else message_id or selectors.leaf_id(session_id)
    if session_id is None or last is None:
        raise InputInvalid("There is nothing to share yet: this conversation has no messages.")
    if not selectors.is_on_path(session_id, last):
        raise MessageNotFound(Phrase("The message {id!r} is not among those that are shown.", id=last))
    page = selectors.path_page(session_id, leaf=last, limit=MAX_MESSAGES)
    stored = Message.objects.named(session_id, [each.id for each in page.messages])
    if page.has_more or sum(stored.values_list("byte_size", flat=True)) > MAX_BYTES:
        raise InputInvalid(
            Phrase(
                "A link shows at most {limit} messages and {size} MB of them. Share an earlier message, or export it.",
                limit=MAX_MESSAGES,
                size=MAX_BYTES // 1024 // 1024,
            )
        )
    return session_id, last
