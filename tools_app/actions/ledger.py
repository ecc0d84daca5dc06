"""The ledger of actions: who may run one, and how it ended. The only writer of `ActionRecord`.

An attempt is known by its token. What settles or releases a row says which attempt it is, so an attempt that was given
up changes nothing any more.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, fingerprint
from tools_app.core.action_rules import ActionStatus
from tools_app.models import ActionRecord

LEASE_SECONDS: Final = 300.0
KEEP_SETTLED: Final = timedelta(days=30)
KEEP_PENDING: Final = timedelta(days=90)
BATCH: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An effect that a call asks for. `timeout_seconds`: how long its function may run."""

    scope: str
    owner_id: int | None
    action: str
    key: str
    is_explicit: bool
    input: JSONObject
    timeout_seconds: float
    undo: str = ""
    turn_id: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunAction:
    """The effect is this attempt's to have."""

    record_id: int
    token: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """It has happened already."""

    output: JSONValue
    reply: tuple[JSONObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAction:
    """Another attempt has begun, and its end is not known. `is_lost`: its time is over."""

    is_lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicting:
    """The key belongs to a call with other arguments."""


@transaction.atomic
def begin_effect(effect: Effect) -> BegunAction | Replayed | PendingAction | Conflicting:
    """Claim an effect, or say why it is not this call's to have.

    Durability: of calls at the same moment one begins. A failed one is free for any arguments; one whose attempt never
    ended is free again once its lease is over, and only where its key is explicit.
    """
    begun = _attempt(effect)
    row, made = ActionRecord.objects.get_or_create(
        scope=effect.scope,
        action=effect.action,
        key=effect.key,
        defaults={**begun, "owner_id": effect.owner_id, "is_explicit": effect.is_explicit},
    )
    if made:
        return BegunAction(record_id=row.pk, token=row.attempt_token, attempt=1)
    if row.status == ActionStatus.FAILED:
        return _claim(row, begun, Q(status=ActionStatus.FAILED))
    if row.input_hash != begun["input_hash"]:
        return Conflicting()
    if row.status == ActionStatus.SETTLED:
        return _replay(row)
    if row.is_explicit:
        return _claim(row, begun, Q(status=ActionStatus.PENDING, lease_until__lte=Now()))
    return PendingAction(is_lost=not ActionRecord.objects.filter(pk=row.pk, lease_until__gt=Now()).exists())


def _attempt(effect: Effect) -> dict[str, Any]:
    lease = max(LEASE_SECONDS, effect.timeout_seconds + LEASE_SECONDS / 5)
    return {
        "input": effect.input,
        "input_hash": fingerprint(effect.input),
        "status": ActionStatus.PENDING,
        "attempt_token": new_id("try"),
        "lease_until": Now() + timedelta(seconds=lease),
        "undo": effect.undo,
        "turn_id": effect.turn_id,
        "call_id": effect.call_id,
    }


def _claim(row: ActionRecord, begun: dict[str, Any], condition: Q) -> BegunAction | PendingAction:
    """Take over a row that is still as it was read."""
    free = ActionRecord.objects.filter(condition, pk=row.pk, attempt_token=row.attempt_token)
    if not free.update(**begun, attempt=F("attempt") + 1, output=None, reply=None, settled_at=None):
        return PendingAction(is_lost=False)
    return BegunAction(record_id=row.pk, token=begun["attempt_token"], attempt=row.attempt + 1)


def settle_effect(begun: BegunAction, output: JSONValue, reply: Collection[JSONObject]) -> Replayed | None:
    """Write that an effect happened. `None`: it is settled by this attempt; otherwise how another attempt settled it.

    An attempt that lost its row leaves it as it is; where that has no result either, its own is all there is.
    """
    values = {"status": ActionStatus.SETTLED, "output": output, "reply": list(reply), "settled_at": timezone.now()}
    if _mine(begun).update(**values):
        return None
    row = ActionRecord.objects.filter(pk=begun.record_id, status=ActionStatus.SETTLED).first()
    return Replayed(output=output, reply=tuple(reply)) if row is None else _replay(row)


def release_effect(begun: BegunAction, error: JSONValue) -> bool:
    """Write that an effect did not happen; its key is free. `False` if the row is another attempt's by now."""
    values = {"status": ActionStatus.FAILED, "output": error, "settled_at": timezone.now()}
    return bool(_mine(begun).update(**values))


def release_stuck(record_id: int, reason: str) -> bool:
    """Free the key of a pending effect, for a person who knows that it did not happen; `False` if it is not pending."""
    rows = ActionRecord.objects.filter(pk=record_id, status=ActionStatus.PENDING)
    return bool(
        rows.update(status=ActionStatus.FAILED, output=reason, attempt_token=new_id("try"), settled_at=timezone.now())
    )


def confirm_stuck(record_id: int, output: JSONValue) -> bool:
    """Settle a pending effect, for a person who knows that it did happen; `False` if it is not pending."""
    rows = ActionRecord.objects.filter(pk=record_id, status=ActionStatus.PENDING)
    return bool(
        rows.update(status=ActionStatus.SETTLED, output=output, attempt_token=new_id("try"), settled_at=timezone.now())
    )


def _mine(begun: BegunAction) -> QuerySet[ActionRecord]:
    return ActionRecord.objects.filter(pk=begun.record_id, attempt_token=begun.token, status=ActionStatus.PENDING)


def _replay(row: ActionRecord) -> Replayed:
    return Replayed(output=row.output, reply=tuple(row.reply or ()))


def effects_of(owner_id: Any) -> QuerySet[ActionRecord]:
    """The effects of a user, newest first."""
    return ActionRecord.objects.filter(owner_id=owner_id).order_by("-pk")


def effects_of_turns(scopes: Collection[str], turn_ids: Collection[str]) -> list[ActionRecord]:
    """The settled effects of these scopes in these turns, newest first. One query."""
    rows = ActionRecord.objects.filter(scope__in=scopes, turn_id__in=turn_ids, status=ActionStatus.SETTLED)
    return list(rows.order_by("-pk"))


def forget_effects(scopes: Collection[str]) -> None:
    """Delete what the ledger holds of these conversations."""
    ActionRecord.objects.filter(scope__in=scopes).delete()


def expired_effects() -> QuerySet[ActionRecord]:
    """Effects that are kept no longer: 30 days after they ended, and 90 after they began without an end."""
    now = timezone.now()
    ended = Q(status__in=(ActionStatus.SETTLED, ActionStatus.FAILED), settled_at__lt=now - KEEP_SETTLED)
    return ActionRecord.objects.filter(ended | Q(status=ActionStatus.PENDING, created_at__lt=now - KEEP_PENDING))


def prune_effects() -> int:
    """Remove some of those. Returns how many."""
    ids = list(expired_effects().values_list("pk", flat=True)[:BATCH])
    return ActionRecord.objects.filter(pk__in=ids).delete()[0] if ids else 0
