"""Delete whole conversations by age, number per owner, or owner, after a preview of the exact list.

Only roots are looked at; their sub-agents go with them. What is pinned or has a turn under way stays, and what a fork
shares with a conversation that goes stays for the fork.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, F, QuerySet, Sum, Window
from django.db.models.functions import Coalesce, RowNumber

from chat.errors import InputInvalid
from chat.models import AgentInstance, Attachment, Turn
from chat.operations.families import busy_of, families_of
from chat.operations.removal import delete_instance
from sessions_app.models import Message
from thinkproject.kernel.phrases import Phrase

MAX_PLANNED: Final = 200
MAX_DAYS: Final = 36_500
MAX_COUNTED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRule:
    """Selects conversations to delete; all given conditions must hold, and at least one must be given.

    `days`: not active for so long; `keep`: not among the so many newest of their owner; `owner_id`: of this person.
    Errors: `InputInvalid`.
    """

    days: int | None = None
    keep: int | None = None
    owner_id: Any = None
    archived_only: bool = True

    def __post_init__(self) -> None:
        if self.days is None and self.keep is None and self.owner_id is None:
            raise InputInvalid("Say how old, how many for each owner, or whose.")
        if (self.days is not None and not 0 <= self.days <= MAX_DAYS) or (self.keep is not None and self.keep < 0):
            raise InputInvalid(Phrase("Days can be 0 to {limit:,}, and a count cannot be negative.", limit=MAX_DAYS))

    def rows(self, now: datetime) -> QuerySet[AgentInstance]:
        """Conversations that match the rule, longest inactive first, with and without active turns."""
        rows = AgentInstance.objects.filter(parent=None, pinned_at=None)
        if self.archived_only:
            rows = rows.filter(archived_at__isnull=False)
        if self.days is not None:
            rows = rows.filter(active_at__lt=now - timedelta(days=self.days))
        if self.owner_id is not None:
            rows = rows.filter(owner_id=self.owner_id)
        if self.keep is not None:
            newest_first = Window(RowNumber(), partition_by=F("owner_id"), order_by=[F("active_at").desc(), F("id")])
            ranked = AgentInstance.objects.filter(parent=None).annotate(place=newest_first)
            if self.owner_id is not None:
                ranked = ranked.filter(owner_id=self.owner_id)
            rows = rows.filter(pk__in=ranked.filter(place__gt=self.keep).values("pk"))
        return rows.order_by("active_at", "id")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedConversation:
    """One conversation that would go, with its sub-agents: how much of what. `byte_size`: of messages and files."""

    id: str
    title: str
    title_is_provisional: bool  # then it is the first words of a message
    name: str
    agent: str
    owner: str
    active_at: datetime
    sub_agent_count: int
    turn_count: int
    message_count: int
    file_count: int
    byte_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunePlan:
    """A preview. `matching_count`: conversations that match the rule, counted up to 10,000.

    `busy_count` of those looked at have work under way or schedules and stay; `staying_count` messages stay for forks.
    """

    conversations: list[PlannedConversation]
    matching_count: int
    busy_count: int
    staying_count: int

    @property
    def has_more(self) -> bool:
        """Whether the rule names more than were looked at."""
        return self.matching_count > len(self.conversations) + self.busy_count

    @property
    def message_count(self) -> int:
        """Number of messages, including those kept for forks."""
        return sum(each.message_count for each in self.conversations)

    @property
    def byte_size(self) -> int:
        """Bytes of messages and files of all of them."""
        return sum(each.byte_size for each in self.conversations)


def plan_pruning(rule: PruneRule, now: datetime, *, limit: int = MAX_PLANNED, skip: Collection[str] = ()) -> PrunePlan:
    """Preview a rule, longest inactive first. Reads only; fixed queries plus one per level of sub-agents."""
    rows = rule.rows(now).exclude(pk__in=skip) if skip else rule.rows(now)
    looked_at = list(rows.select_related("owner")[:limit])
    families = families_of([row.pk for row in looked_at])
    busy = busy_of(families)
    going = [row for row in looked_at if row.pk not in busy]
    ids = [member for row in going for member in families[row.pk]]
    sizes = _Sizes(ids)
    return PrunePlan(
        conversations=[_planned(row, families[row.pk], sizes) for row in going],
        matching_count=rows[:MAX_COUNTED].count(),
        busy_count=len(looked_at) - len(going),
        staying_count=_staying(ids),
    )


def prune_conversations(rule: PruneRule, now: datetime, ids: Sequence[str]) -> int:
    """Delete the given conversations that still match the rule and have nothing under way. Returns their number.

    Durability: one transaction each, so a stop in between leaves whole conversations. Safe to repeat.
    """
    return sum(_prune_one(rule, now, instance_id) for instance_id in ids)


def prune_by_rule(rule: PruneRule, now: datetime) -> Iterator[int]:
    """Delete everything that the rule names, some at a time, yielding how many went."""
    kept: set[str] = set()
    while True:
        rows = rule.rows(now).exclude(pk__in=kept) if kept else rule.rows(now)
        ids = list(rows.values_list("pk", flat=True)[:MAX_PLANNED])
        if not ids:
            return
        yield prune_conversations(rule, now, ids)
        # What is still there was busy, or woke up meanwhile: it is not looked at again.
        kept.update(AgentInstance.objects.filter(pk__in=ids).values_list("pk", flat=True))


def _prune_one(rule: PruneRule, now: datetime, instance_id: str) -> bool:
    row = rule.rows(now).filter(pk=instance_id).first()
    if row is None or busy_of(families_of([row.pk])):
        return False
    # Asked again while no turn can begin: a message may have come in between. Taking the lock counts one position.
    unchanged = AgentInstance.objects.filter(
        pk=row.pk, turn_count=row.turn_count + 1, pinned_at=row.pinned_at, archived_at=row.archived_at
    )
    return delete_instance(row, only_if=unchanged.exists)


class _Sizes:
    """Sizes of several instances. Three queries."""

    def __init__(self, ids: Sequence[str]) -> None:
        counted, size = Count("pk"), Coalesce(Sum("byte_size"), 0)
        messages = Message.objects.filter(session__scope__in=ids).values_list("session__scope")
        files = Attachment.objects.filter(instance_id__in=ids).values_list("instance_id")
        turns = Turn.objects.filter(instance_id__in=ids).values_list("instance_id")
        self.messages = {key: (n, size) for key, n, size in messages.annotate(n=counted, size=size).order_by()}
        self.files = {key: (n, size) for key, n, size in files.annotate(n=counted, size=size).order_by()}
        self.turns = dict(turns.annotate(n=counted).order_by())


def _planned(row: AgentInstance, family: Sequence[str], sizes: _Sizes) -> PlannedConversation:
    messages = [sizes.messages.get(member, (0, 0)) for member in family]
    files = [sizes.files.get(member, (0, 0)) for member in family]
    return PlannedConversation(
        id=row.pk,
        title=row.title or row.name,
        title_is_provisional=row.title_is_provisional,
        name=row.name,
        agent=row.agent,
        owner="" if row.owner is None else row.owner.get_username(),
        active_at=row.active_at,
        sub_agent_count=len(family) - 1,
        turn_count=sum(sizes.turns.get(member, 0) for member in family),
        message_count=sum(count for count, _ in messages),
        file_count=sum(count for count, _ in files),
        byte_size=sum(size for _, size in [*messages, *files]),
    )


def _staying(ids: Sequence[str]) -> int:
    """Number of these instances' messages shared by forks of others. One query."""
    return Message.objects.staying_without(ids).count() if ids else 0
