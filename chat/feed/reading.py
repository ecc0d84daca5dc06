"""Opening, reading and pruning of feeds. A feed is one person's; that of a conversation is a part of its owner's.

The numbers of a feed have no gaps: what has been read up to `floor` can be pruned, and what follows is all there.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from chat.feed.errors import FeedGone
from chat.models import FeedChange, FeedHead
from tools_app.models import WorkspaceAttachment

KEPT_DAYS: Final = 14
KEPT_CHANGES: Final = 100_000
"""Changes of one feed that are kept, however young they are."""
IDLE_DAYS: Final = 30
"""A feed without a reader for so long is closed: nothing is written to it any more."""
PAGE: Final = 500
_USED: Final = timedelta(hours=1)
_ROUND: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedChange:
    """One change. `instance_id`: its conversation; empty for a workspace, which several can use."""

    seq: int
    instance_id: str
    type: str
    key: str
    op: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """Some changes in order. `position`: up to which they go, other conversations' changes included."""

    changes: list[NamedChange]
    position: int
    is_up_to_date: bool


def open_feed(owner_id: Any) -> int:
    """See to it that changes are written from now on. Returns the number of the last change.

    Every change that commits after this has is in the feed. One query where the feed is open.
    """
    head = FeedHead.objects.filter(pk=owner_id).first()
    if head is None or not head.is_open:
        with transaction.atomic():
            if connection.vendor == "postgresql":
                # Transactions that looked for this row at their commit, and are not over, hold a lock that this waits
                # for; later ones wait for this, and see the row.
                with connection.cursor() as cursor:
                    cursor.execute("LOCK TABLE think_chat_feedhead IN SHARE ROW EXCLUSIVE MODE")
            head, is_new = FeedHead.objects.get_or_create(pk=owner_id)
            if not is_new and not head.is_open:
                opened = {"is_open": True, "floor": F("seq"), "opened_at": timezone.now(), "used_at": timezone.now()}
                FeedHead.objects.filter(pk=owner_id).update(**opened)
                head.refresh_from_db()
    return head.seq


def last_change(owner_id: Any) -> int:
    """The number of the last change of a feed that is read. Errors: `FeedGone` of a closed one. One query, mostly."""
    head = FeedHead.objects.filter(pk=owner_id, is_open=True).first()
    if head is None:
        raise FeedGone
    now = timezone.now()
    if head.used_at < now - _USED:
        FeedHead.objects.filter(pk=owner_id).update(used_at=now)
    return head.seq


def read_changes(owner_id: Any, after: int, *, instance_id: str = "", limit: int = PAGE) -> FeedPage:
    """The changes after a position, at most so many, of one conversation where it is named. Two queries, or three.

    Errors: `FeedGone` for a position whose followers are not kept, or that there never was.
    """
    rows = FeedChange.objects.filter(feed=owner_id, seq__gt=after).order_by("seq")[:limit]
    found = [
        NamedChange(seq=seq, instance_id=instance, type=kind, key=key, op=op, at=at)
        for seq, instance, kind, key, op, at in rows.values_list("seq", "instance_id", "type", "key", "op", "at")
    ]
    # Asked second: what was pruned before the first query is below the floor now.
    head = FeedHead.objects.filter(pk=owner_id, is_open=True).values_list("seq", "floor").first()
    if head is None or not head[1] <= after <= head[0]:
        raise FeedGone
    position = found[-1].seq if found else after
    if instance_id:
        found = _of_conversation(found, instance_id)
    return FeedPage(changes=found, position=position, is_up_to_date=position >= head[0])


def _of_conversation(found: list[NamedChange], instance_id: str) -> list[NamedChange]:
    keys: set[str] = set()
    if any(not each.instance_id for each in found):
        keys = set(WorkspaceAttachment.objects.filter(scope=instance_id).values_list("workspace_id", flat=True))
    return [each for each in found if each.instance_id == instance_id or (not each.instance_id and each.key in keys)]


def prune_feeds(*, dry_run: bool = False) -> int:
    """Remove some of the changes that are old or too many, and close feeds without readers. Returns how many rows."""
    now = timezone.now()
    oldest = FeedChange.objects.filter(
        feed=OuterRef("pk"), seq=OuterRef("floor") + 1, at__lt=now - timedelta(days=KEPT_DAYS)
    )
    full = Q(seq__gt=F("floor") + KEPT_CHANGES)
    idle = FeedHead.objects.filter(is_open=True, used_at__lt=now - timedelta(days=IDLE_DAYS))
    heads = FeedHead.objects.filter(Exists(oldest) | full, is_open=True)
    if dry_run:
        return heads.count() + idle.count()
    return sum(_close(pk) for pk in list(idle.values_list("pk", flat=True)[:100])) + sum(
        _prune(pk, now - timedelta(days=KEPT_DAYS)) for pk in list(heads.values_list("pk", flat=True)[:100])
    )


@transaction.atomic
def _close(owner_id: Any) -> int:
    FeedHead.objects.filter(pk=owner_id).update(is_open=False, floor=F("seq"))
    return 1 + FeedChange.objects.filter(feed=owner_id).delete()[0]


@transaction.atomic
def _prune(owner_id: Any, before: datetime) -> int:
    head = FeedHead.objects.select_for_update().get(pk=owner_id)
    kept_from = head.seq - KEPT_CHANGES
    rows = FeedChange.objects.filter(feed=owner_id).order_by("seq").values_list("seq", "at")[:_ROUND]
    gone = [seq for seq, at in rows if at < before or seq <= kept_from]
    if not gone:
        return 0
    FeedHead.objects.filter(pk=owner_id).update(floor=gone[-1])
    return FeedChange.objects.filter(feed=owner_id, seq__lte=gone[-1]).delete()[0]
