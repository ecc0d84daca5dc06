"""The guard of conversations in the database: what was seen, what was decided. The only writers and readers of it.

    see(place, [SeenText(Origin.MCP, "notes")], at=Spot(name=f"catalogue {fingerprint}"))

Sync; each joins the transaction that is there.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from thinkproject.kernel.append_only import erasing
from tools_app.core.guard.rules import CLEAN, GuardDecision, SeenText, Spot, Standing, noted
from tools_app.core.origins import Origin
from tools_app.models.guard import Guard, GuardEvent, GuardEventKind

HAS_GUARD: Final = "EXISTS (SELECT 1 FROM think_tools_guard g WHERE g.session_id = :session:)"
"""Whether text of others was in a conversation, as part of another statement; `:session:` stands for an expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardScope:
    """The conversation of a guard. `scope`: the instance. `turn_id`: the turn that saw something, if one did."""

    session_id: str
    scope: str
    owner_id: int | None
    turn_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardView:
    """A guard for people. `texts`: the newest first, as many as were asked for."""

    standing: Standing
    is_guarded: bool
    texts: list[GuardEvent]
    decided_by: str = ""
    decided_at: datetime | None = None


def see(place: GuardScope, texts: Iterable[SeenText], *, at: Spot) -> int:
    """Write that texts of others are in the context of a conversation. Returns how many are new.

    The same origin and source at the same spot is one text, so this is safe to repeat.
    """
    wanted = noted(texts)
    return _see(place, wanted, at) if wanted else 0


@transaction.atomic
def _see(place: GuardScope, wanted: list[SeenText], at: Spot) -> int:
    Guard.objects.get_or_create(
        session_id=place.session_id, defaults={"scope": place.scope, "owner_id": place.owner_id}
    )
    row = Guard.objects.select_for_update(no_key=True).get(pk=place.session_id)
    spot = {"message_id": at.message_id[:200], "call_id": at.call_id[:128], "name": at.name[:128]}
    known = set(row.events.filter(kind=GuardEventKind.SEEN, **spot).values_list("origin", "source"))
    new = [text for text in wanted if (text.origin.value, text.source) not in known]
    GuardEvent.objects.bulk_create(
        GuardEvent(
            guard=row,
            kind=GuardEventKind.SEEN,
            number=row.seen + number,
            origin=text.origin.value,
            source=text.source,
            turn_id=place.turn_id,
            **spot,
        )
        for number, text in enumerate(new, start=1)
    )
    row.seen += len(new)
    if new:
        row.save(update_fields=["seen"])
    return len(new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """A person's decision. `seen`: how many texts were shown to that person; later ones are not covered by it."""

    decision: GuardDecision
    seen: int
    actor_id: int | None
    via: str


@transaction.atomic
def decide(session_id: str, deciding: Deciding) -> Standing | None:
    """Write a decision about the guard of a conversation; the last one counts. `None` where there is no guard."""
    row = Guard.objects.select_for_update(no_key=True).filter(pk=session_id).first()
    if row is None:
        return None
    row.decision = deciding.decision.value
    row.decided_through = min(max(deciding.seen, 0), row.seen)
    row.decided_by_id = deciding.actor_id
    row.decided_at = timezone.now()
    row.save(update_fields=["decision", "decided_through", "decided_by", "decided_at"])
    GuardEvent.objects.create(
        guard=row,
        kind=GuardEventKind(deciding.decision.value),
        number=row.decided_through,
        actor_id=deciding.actor_id,
        via=deciding.via,
    )
    return row.standing


def standing_of(session_id: str) -> Standing:
    """The standing of the guard of a conversation. One query."""
    row = Guard.objects.filter(pk=session_id).first()
    return CLEAN if row is None else row.standing


def view_of(session_id: str, origins: Collection[Origin], *, limit: int = 50) -> GuardView:
    """The guard of a conversation for people, as far as texts of these origins count. Two queries."""
    row = Guard.objects.select_related("decided_by").filter(pk=session_id).first()
    if row is None:
        return GuardView(standing=CLEAN, is_guarded=False, texts=[])
    texts = row.events.filter(kind=GuardEventKind.SEEN, origin__in=[origin.value for origin in origins])
    newest = list(texts.order_by("-pk")[:limit])
    counted = replace(row.standing, seen=newest[0].number if newest else 0)
    return GuardView(
        standing=row.standing,
        is_guarded=counted.is_guarded(),
        texts=newest,
        decided_by="" if row.decided_by is None else row.decided_by.get_username(),
        decided_at=row.decided_at,
    )


def texts_of(session_id: str, *, limit: int = 2_000) -> dict[tuple[Spot, SeenText], int]:
    """The texts of others in a conversation with their numbers, the oldest first. One query; the newest, if many."""
    rows = GuardEvent.objects.filter(guard_id=session_id, kind=GuardEventKind.SEEN).order_by("-pk")[:limit]
    return {(row.spot, row.text): row.number for row in reversed(rows)}


def sources_in(session_ids: Collection[str], *, limit: int = 20) -> list[SeenText]:
    """Texts of others that these conversations have read, each source once, the newest first. One query."""
    rows = GuardEvent.objects.filter(guard_id__in=session_ids, kind=GuardEventKind.SEEN)
    newest = rows.values_list("origin", "source").annotate(newest=Max("pk")).order_by("-newest")[:limit]
    return [SeenText(Origin(origin), source) for origin, source, _ in newest]


def copy_guard(source_id: str, target: GuardScope) -> None:
    """Give the guard of a conversation to one that goes on from it: its texts, and no decision. In a transaction."""
    row = Guard.objects.filter(pk=source_id).first()
    if row is None:
        return
    made = Guard.objects.create(
        session_id=target.session_id, scope=target.scope, owner_id=target.owner_id, seen=row.seen
    )
    names = ("kind", "number", "origin", "source", "message_id", "call_id", "name", "turn_id")
    GuardEvent.objects.bulk_create(
        GuardEvent(guard=made, **{name: getattr(event, name) for name in names})
        for event in row.events.filter(kind=GuardEventKind.SEEN)
    )


def forget_guards(session_ids: Collection[str]) -> None:
    """Delete the guards of these conversations, whose history is gone."""
    with erasing():
        Guard.objects.filter(session_id__in=session_ids).delete()
