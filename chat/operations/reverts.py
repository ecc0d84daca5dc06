"""The removal of undos, with what they replaced in files."""

from datetime import timedelta
from typing import Final

from django.db.models import QuerySet
from django.utils import timezone

from chat.models import Revert
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.turn_files import forget_backups

BATCH: Final = 1_000


def forget_reverts(reverts: QuerySet[Revert]) -> None:
    """Delete undos with what was kept for them. Inside the caller's transaction. One statement where there are none."""
    ids = list(reverts.values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        forget_backups(some)
        Revert.objects.filter(pk__in=some).delete()


def expired_reverts() -> QuerySet[Revert]:
    """Undos older than `THINK_WORKSPACE_BACKUP_DAYS`: nothing is left by which they could be taken back."""
    days = workspace_settings.backup_days
    if not days:
        return Revert.objects.none()
    return Revert.objects.filter(created_at__lt=timezone.now() - timedelta(days=days))


def prune_reverts() -> int:
    """Remove some of them. Returns how many."""
    ids = list(expired_reverts().order_by("created_at").values_list("pk", flat=True)[:BATCH])
    return Revert.objects.filter(pk__in=ids).delete()[0] if ids else 0
