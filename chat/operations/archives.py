"""Uploaded archives that are not needed any more, in storage and in rows."""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from chat.files.attachments import ORPHAN_HOURS
from chat.models import ArchiveImport
from fibers.core.states import TERMINAL
from thinkproject.kernel.object_storage import delete_after_commit, referenced_by, sweep_objects

FOLDER: Final = "think/archives"


def prune_archives(*, dry_run: bool = False, limit: int = 100) -> int:
    """Remove uploads that were not imported in time, and objects without a row. Returns how many (or would be).

    Safe to run at any time and twice. The row stays, and says what came of it.
    """
    before = timezone.now() - timedelta(hours=ORPHAN_HOURS)
    has_ended = Q(scan=None) | Q(scan__status__in=TERMINAL), Q(run=None) | Q(run__status__in=TERMINAL)
    stale = ArchiveImport.objects.filter(*has_ended, created_at__lt=before).exclude(storage_name="")
    rows = list(stale.values_list("pk", "storage_name")[:limit])
    if rows and not dry_run:
        with transaction.atomic():
            ArchiveImport.objects.filter(pk__in=[pk for pk, _ in rows]).update(storage_name="")
            delete_after_commit([name for _, name in rows])
    return len(rows) + sweep_objects(FOLDER, referenced_by(ArchiveImport), before=before.timestamp(), dry_run=dry_run)
