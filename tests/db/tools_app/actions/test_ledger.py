"""The rows of the ledger: one effect for each key, whatever is lost."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.utils import timezone

from tools_app.actions import ledger
from tools_app.actions.ledger import BegunAction, Conflicting, PendingAction, Replayed
from tools_app.core.action_rules import ActionStatus
from tools_app.models import ActionRecord

from .support import EFFECT

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_two_calls_with_one_key_the_first_begins() -> None:
    assert isinstance(ledger.begin_effect(EFFECT), BegunAction)
    assert ledger.begin_effect(EFFECT) == PendingAction(is_lost=False)


def test_a_settled_effect_is_replayed_with_its_reply() -> None:
    begun = ledger.begin_effect(EFFECT)
    assert isinstance(begun, BegunAction)
    assert ledger.settle_effect(begun, {"id": 7}, [{"type": "data-card", "id": "x", "data": 1}]) is None
    assert ledger.begin_effect(replace(EFFECT, turn_id="t2", call_id="c9")) == Replayed(
        output={"id": 7}, reply=({"type": "data-card", "id": "x", "data": 1},)
    )
    kept = ActionRecord.objects.get()
    assert (kept.status, kept.undo, kept.input, kept.turn_id) == ("settled", "cancel", {"order": "A-1"}, "t1")


@pytest.mark.parametrize("is_settled", [True, False])
def test_the_same_key_with_other_arguments_is_a_conflict(is_settled: bool) -> None:
    begun = ledger.begin_effect(EFFECT)
    assert isinstance(begun, BegunAction)
    if is_settled:
        ledger.settle_effect(begun, "x", ())
    assert ledger.begin_effect(replace(EFFECT, input={"order": "A-1", "amount": 2})) == Conflicting()


def test_keys_count_within_one_conversation_and_one_action() -> None:
    assert isinstance(ledger.begin_effect(EFFECT), BegunAction)
    assert isinstance(ledger.begin_effect(replace(EFFECT, scope="s2")), BegunAction)
    assert isinstance(ledger.begin_effect(replace(EFFECT, action="ship")), BegunAction)


def test_a_failed_effect_frees_its_key_for_any_arguments() -> None:
    begun = ledger.begin_effect(EFFECT)
    assert isinstance(begun, BegunAction)
    assert ledger.release_effect(begun, "broken")
    again = ledger.begin_effect(replace(EFFECT, input={"order": "A-1", "amount": 2}))
    assert isinstance(again, BegunAction)
    assert again.attempt == 2
    assert ActionRecord.objects.get().input == {"order": "A-1", "amount": 2}


def test_a_lost_effect_is_claimed_anew_where_its_key_is_explicit() -> None:
    first = ledger.begin_effect(EFFECT)
    assert isinstance(first, BegunAction)
    ActionRecord.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    second = ledger.begin_effect(EFFECT)
    assert isinstance(second, BegunAction)
    assert second.attempt == 2
    assert ledger.begin_effect(EFFECT) == PendingAction(is_lost=False)
    assert not ledger.release_effect(first, "too late")
    assert ledger.settle_effect(second, "second", ()) is None
    assert ledger.settle_effect(first, "first", ()) == Replayed(output="second", reply=())
    assert ActionRecord.objects.get().output == "second"


def test_a_lost_effect_without_a_key_of_its_own_stays_unknown() -> None:
    effect = replace(EFFECT, key="t1:c1", is_explicit=False)
    assert isinstance(ledger.begin_effect(effect), BegunAction)
    ActionRecord.objects.update(lease_until=timezone.now() - timedelta(days=1))
    assert ledger.begin_effect(effect) == PendingAction(is_lost=True)


def test_a_long_run_has_a_longer_lease() -> None:
    ledger.begin_effect(replace(EFFECT, timeout_seconds=3600))
    assert ActionRecord.objects.get().lease_until > timezone.now() + timedelta(seconds=3600)


def test_stuck_effects_are_released_or_confirmed_once() -> None:
    begun = ledger.begin_effect(EFFECT)
    assert isinstance(begun, BegunAction)
    assert ledger.release_stuck(begun.record_id, "It did not happen.")
    assert not ledger.release_stuck(begun.record_id, "again")
    assert not ledger.confirm_stuck(begun.record_id, "again")
    assert not ledger.release_effect(begun, "late")
    other = ledger.begin_effect(EFFECT)
    assert isinstance(other, BegunAction)
    assert ledger.confirm_stuck(other.record_id, "It happened.")
    assert ledger.begin_effect(EFFECT) == Replayed(output="It happened.", reply=())


def test_retention_keeps_settled_effects_for_30_days_and_pending_ones_for_90() -> None:
    now = timezone.now()
    for key, status, days in (
        ("a", ActionStatus.SETTLED, 31),
        ("b", ActionStatus.SETTLED, 29),
        ("c", ActionStatus.FAILED, 31),
        ("d", ActionStatus.PENDING, 31),
        ("e", ActionStatus.PENDING, 91),
    ):
        ledger.begin_effect(replace(EFFECT, key=key))
        at = now - timedelta(days=days)
        ended = None if status is ActionStatus.PENDING else at
        ActionRecord.objects.filter(key=key).update(status=status, created_at=at, settled_at=ended)
    assert ledger.prune_effects() == 3
    assert sorted(ActionRecord.objects.values_list("key", flat=True)) == ["b", "d"]
    assert ledger.prune_effects() == 0


def test_effects_go_with_their_conversation_and_their_owner() -> None:
    owner = User.objects.create_user("alice")
    ledger.begin_effect(replace(EFFECT, owner_id=owner.pk))
    ledger.begin_effect(replace(EFFECT, scope="s2", owner_id=owner.pk))
    ledger.forget_effects(["s1"])
    assert [each.scope for each in ledger.effects_of(owner.pk)] == ["s2"]
    owner.delete()
    assert not ActionRecord.objects.exists()


def test_of_many_threads_one_begins_and_of_many_settlements_one_counts() -> None:
    begun = _in_threads(lambda _n: ledger.begin_effect(EFFECT))
    winners = [each for each in begun if isinstance(each, BegunAction)]
    assert len(winners) == 1
    ends = _in_threads(lambda n: ledger.settle_effect(winners[0], f"by {n}", ()))
    kept = ActionRecord.objects.get()
    assert sum(end is None for end in ends) == 1
    assert {end.output for end in ends if isinstance(end, Replayed)} == {kept.output}


def _in_threads(work: Callable[[int], Any], count: int = 4) -> list[Any]:
    found: list[Any] = []

    def run(number: int) -> None:
        try:
            found.append(work(number))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    connection.close()
    assert len(found) == count
    return found
