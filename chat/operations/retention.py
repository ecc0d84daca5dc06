"""Retention policies: logs of final turns, ended streams, old journals, unused files, tokens, children of ended runs.

Each policy is bounded in one go, safe to run at any time, twice, and in several processes. No word of a conversation is
removed here, but for those of people whose account is gone, of sub-agents whose run ended long ago, of temporary
conversations that were left a day ago, and of what its owner deleted 30 days ago.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.db.models import QuerySet
from django.utils import timezone

from chat.access import api_tokens, browsers, sign_in
from chat.access.oauth import clients, grants
from chat.durable_streams.finding import remove_ended
from chat.feed.reading import prune_feeds
from chat.files import attachments
from chat.members.services import prune_invitations
from chat.models import Turn
from chat.operations.archives import prune_archives
from chat.operations.conf import retention_settings
from chat.operations.data_exports import prune_exports
from chat.operations.deleted import expired_deleted, prune_deleted
from chat.operations.ended_runs import expired_children, prune_children
from chat.operations.reverts import expired_reverts, prune_reverts
from chat.operations.temporary import expired_temporary, prune_temporary
from chat.people.feedback import feedback_without_answer, prune_feedback
from chat.shares.services import prune_links
from chat.streams.logs.database_log import prunable_segments, prune_segments
from fibers.core.states import FiberStatus
from fibers.execution.recovery import sweep
from fibers.models import FiberStep
from sessions_app.messages.services import prune_unreached
from sessions_app.transfer.import_session import prune_unfinished
from tools_app.actions.ledger import expired_effects, prune_effects
from tools_app.permissions.rows import expired_rules, prune_rules
from tools_app.workspace import objects, turn_files

BATCH = 1_000
_WENT_WELL = (FiberStatus.COMPLETED, FiberStatus.CANCELLED)


def old_steps() -> QuerySet[FiberStep]:
    """Journal rows of turns that went well long ago; a failed turn keeps its own, as it may be run again."""
    if not retention_settings.journal_days:
        return FiberStep.objects.none()
    before = timezone.now() - timedelta(days=retention_settings.journal_days)
    turns = Turn.objects.filter(fiber__status__in=_WENT_WELL, fiber__finished_at__lt=before)
    return FiberStep.objects.filter(fiber__in=turns.values("fiber"))


def prune_journals() -> int:
    """Remove some of the old journal rows. Returns how many."""
    ids = list(old_steps().values_list("pk", flat=True)[:BATCH])
    return FiberStep.objects.filter(pk__in=ids).delete()[0] if ids else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One kind of data. `count`: rows to delete, `None` if unknown; `prune`: delete a batch, return its size."""

    name: str
    count: Callable[[], int | None]
    prune: Callable[[], int]


POLICIES = (
    Policy(name="streams", count=lambda: prunable_segments().count(), prune=prune_segments),
    Policy(name="feeds", count=partial(prune_feeds, dry_run=True), prune=prune_feeds),
    Policy(name="durable-streams", count=partial(remove_ended, dry_run=True), prune=remove_ended),
    Policy(name="journals", count=lambda: old_steps().count(), prune=prune_journals),
    Policy(name="feedback", count=lambda: feedback_without_answer().count(), prune=prune_feedback),
    Policy(name="files", count=partial(attachments.sweep_orphans, dry_run=True), prune=attachments.sweep_orphans),
    Policy(name="workspaces", count=partial(objects.sweep_orphans, dry_run=True), prune=objects.sweep_orphans),
    Policy(
        name="backups",
        count=lambda: turn_files.expired_backups().count(),
        prune=turn_files.prune_backups,
    ),
    Policy(name="undos", count=lambda: expired_reverts().count(), prune=prune_reverts),
    Policy(name="tokens", count=partial(api_tokens.prune_tokens, dry_run=True), prune=api_tokens.prune_tokens),
    Policy(name="grants", count=partial(grants.prune_grants, dry_run=True), prune=grants.prune_grants),
    Policy(name="programs", count=partial(clients.prune_clients, dry_run=True), prune=clients.prune_clients),
    Policy(name="links", count=partial(sign_in.prune_links, dry_run=True), prune=sign_in.prune_links),
    Policy(name="browsers", count=partial(browsers.prune_browsers, dry_run=True), prune=browsers.prune_browsers),
    Policy(name="invitations", count=partial(prune_invitations, dry_run=True), prune=prune_invitations),
    Policy(name="shares", count=partial(prune_links, dry_run=True), prune=prune_links),
    Policy(name="temporary", count=lambda: expired_temporary().count(), prune=prune_temporary),
    Policy(name="deleted", count=lambda: expired_deleted().count(), prune=prune_deleted),
    Policy(name="actions", count=lambda: expired_effects().count(), prune=prune_effects),
    Policy(name="rules", count=lambda: expired_rules().count(), prune=prune_rules),
    Policy(name="messages", count=lambda: None, prune=prune_unreached),
    Policy(name="archives", count=partial(prune_archives, dry_run=True), prune=prune_archives),
    Policy(name="exports", count=partial(prune_exports, dry_run=True), prune=prune_exports),
    Policy(name="imports", count=lambda: None, prune=prune_unfinished),
    Policy(name="runs", count=lambda: expired_children().count(), prune=prune_children),
    Policy(name="fibers", count=lambda: None, prune=lambda: sweep().pruned),
)


def prune_all(policy: Policy, *, max_rounds: int = 10_000) -> Iterator[int]:
    """Prune until nothing is left, yielding how many went in each round."""
    for _ in range(max_rounds):
        removed = policy.prune()
        if not removed:
            return
        yield removed


def tidy() -> dict[str, int]:
    """Run one bounded round of every policy, on a schedule. Returns the number of deleted rows."""
    return {policy.name: policy.prune() for policy in POLICIES}
