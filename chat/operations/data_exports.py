"""Exports of everything of a person's that are not needed any more, in storage and in rows."""

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from chat.models import DataExport
from fibers.core.states import TERMINAL
from fibers.services import cancel_fiber
from thinkproject.kernel.object_storage import delete_after_commit, referenced_by, sweep_objects

FOLDER: Final = "think/exports"
KEPT_DAYS: Final = 7
"""The time for which an export can be downloaded."""
ORPHAN_HOURS: Final = 24


def forget_exports(owner_id: Any) -> None:
    """Stop and remove the exports of a person's, in a transaction of the caller's; their objects after the commit."""
    with transaction.atomic():
        rows = list(DataExport.objects.filter(owner_id=owner_id))
        for row in rows:
            if row.fiber_id is not None:
                cancel_fiber(row.fiber_id, reason="removed")
        DataExport.objects.filter(pk__in=[row.pk for row in rows]).delete()
        delete_after_commit([row.storage_name for row in rows if row.storage_name])


def prune_exports(*, dry_run: bool = False, limit: int = 100) -> int:
    """Remove exports whose time is over, and objects without a row. Returns how many (or would be)."""
    now = timezone.now()
    has_ended = Q(fiber=None) | Q(fiber__status__in=TERMINAL)
    old = DataExport.objects.filter(has_ended, created_at__lt=now - timedelta(days=KEPT_DAYS))
    rows = list(old.values_list("pk", "storage_name")[:limit])
    if rows and not dry_run:
        with transaction.atomic():
            DataExport.objects.filter(pk__in=[pk for pk, _ in rows]).delete()
            delete_after_commit([name for _, name in rows if name])
    before = (now - timedelta(hours=ORPHAN_HOURS)).timestamp()
    return len(rows) + sweep_objects(FOLDER, referenced_by(DataExport), before=before, dry_run=dry_run)
