"""What is done for a turn costs what is under way, not what was ever said: compared at 20 and 20,000 turns."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn, new_turn_id
from chat.reads.snapshots import snapshot
from chat.reads.transcripts import transcript
from chat.turns import policies
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Submit
from chat.turns.admission.stop import clear_instance
from fibers.models import Fiber, new_fiber_id
from fibers.queue import leases
from sessions_app.core.messages.shapes import NewMessage
from tests.db.costs import cost, take_statistics
from thinkproject.kernel.ids import new_id

SHORT, LONG = 20, 20_000
MakeInstance = Callable[..., AgentInstance]


def fill(instance: AgentInstance, count: int) -> None:
    """So many turns that ended well, long ago."""
    assert instance.session is not None
    ended = timezone.now() - timedelta(days=1)
    fibers = [
        Fiber(
            id=new_fiber_id(),
            name="chat.turn",
            status="completed",
            attempt=1,
            lane=f"instance:{instance.pk}",
            lane_position=number * 10,
            owner_id=instance.owner_id,
            available_at=ended,
            created_at=ended,
            updated_at=ended,
            finished_at=ended,
        )
        for number in range(1, count + 1)
    ]
    Fiber.objects.bulk_create(fibers, batch_size=1_000)
    turns = [
        Turn(
            id=new_turn_id(),
            instance=instance,
            session=instance.session,
            fiber=fiber,
            position=number,
            request_id=new_id("req"),
            trigger="submit-message",
            generation=0,
            assistant_id=new_id("msg"),
            started_at=ended,
            finished_at=ended,
        )
        for number, fiber in enumerate(fibers, 1)
    ]
    Turn.objects.bulk_create(turns, batch_size=1_000)
    Turn.objects.filter(instance=instance).update(accepted_at=ended)
    AgentInstance.objects.filter(pk=instance.pk).update(turn_count=count)


def _admit(instance: AgentInstance) -> str:
    message: NewMessage = {"role": "user", "parts": [{"type": "text", "text": "more"}]}
    return admit(key_of(instance), TurnRequest(intake=Submit(message=message))).turn.fiber_id


def _claim(instance: AgentInstance) -> None:
    found = leases.next_in_lane(f"instance:{instance.pk}")
    assert found is not None
    assert leases.claim(found, "w1") is not None


def _snapshot(instance: AgentInstance, under_way: int) -> None:
    assert instance.owner_id is not None
    assert len(snapshot(key_of(instance), instance.owner_id).turns) == under_way


STEPS: dict[str, Callable[[AgentInstance], object]] = {
    "look at an idle conversation": lambda instance: _snapshot(instance, 0),
    "may another turn be asked for": lambda instance: policies.check_admission(instance),
    "accept a turn": _admit,
    "accept another turn": _admit,
    "claim the first": _claim,
    "look at a busy conversation": lambda instance: _snapshot(instance, 2),
    "open it": lambda instance: transcript(lambda: instance),
    "clear it": lambda instance: clear_instance(key_of(instance)),
    "look at a cleared conversation": lambda instance: _snapshot(instance, 1),  # the running one has to learn of it
}


@pytest.mark.long
@pytest.mark.django_db
def test_a_turn_costs_the_same_after_20_000_others(alice: User, bob: User, make_instance: MakeInstance) -> None:
    short, long = make_instance(bob, "short"), make_instance(alice, "long")
    fill(short, SHORT)
    take_statistics()
    alone = _costs(short)
    fill(long, LONG)
    take_statistics()
    beside, of_long = _costs(short), _costs(long)
    slow = {
        name: (few, beside[name], of_long[name])
        for name, few in alone.items()
        if max(beside[name], of_long[name]) > 2 * few + SHORT
    }
    assert slow == {}


def _costs(instance: AgentInstance) -> dict[str, int]:
    """What each step reads; nothing of it stays."""
    found = {}
    with transaction.atomic():
        for name, step in STEPS.items():
            instance.refresh_from_db()
            with transaction.atomic(), cost() as read:
                step(instance)
                found[name] = read()
        transaction.set_rollback(True)
    return found
