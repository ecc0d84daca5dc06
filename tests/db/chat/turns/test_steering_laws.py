"""Whatever comes when, and whatever dies: each message is answered once, in an order that its lane allows."""

import asyncio
import random
from typing import Any

import pytest
from django.db import transaction
from typing_extensions import Unpack

from chat.crashing.everywhere import CrashEverywhere, CrashOptions
from chat.instance.handle import AgentHandle
from chat.models import Delivery, Turn
from chat.testing import worker
from chat.turns.admission.admit import TurnRequest, admit
from fibers import context as contexts
from fibers.context import FiberContext
from fibers.models import Fiber
from fibers.testing import die, run_until_idle
from sessions_app.core.messages.steered import steered_in
from tests.db.chat.turns.agents.gated import until
from tests.db.chat.turns.agents.steering import Worker, says, turns_in_order
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = 24
"""All pairs of crashes take most of an hour: tests take every sixth of these parts."""
STEPS = "".join(f'call tool add {{"a": {n}, "b": 1}} id=a{n}\nsay: on.\n' for n in range(3))


class SteeredCrashes(Worker):
    """Without instants: two runs are compared."""

    tells_time = False

    def get_model(self) -> Any:
        return "default"


async def crashed_steering(crash_everywhere: CrashEverywhere, **options: Unpack[CrashOptions]) -> set[str]:
    """Keys of the points where a steered turn was crashed."""
    script = 'call tool add {"a": 1, "b": 1} id=one\nsay: Not this.'

    async def ask_and_steer(handle: AgentHandle) -> None:
        def both() -> None:
            with transaction.atomic():
                admit(handle.key, TurnRequest(intake=says(script, "asked"), request_id="asked"))
                steer = TurnRequest(
                    intake=says("say: Shorter.", "steers"), request_id="steers", delivery=Delivery.STEER
                )
                admit(handle.key, steer)

        await db(both)

    crashes = await crash_everywhere(SteeredCrashes, "", ask_and_steer, **options)
    return {point.key for points in crashes.points for point in points}


@pytest.mark.long
async def test_a_steered_turn_survives_a_crash_at_every_point(crash_everywhere: CrashEverywhere) -> None:
    points = await crashed_steering(crash_everywhere)
    assert {"before:steer:1", "steer:1", "chunk:data-think-steer"} <= points


@pytest.mark.long
@pytest.mark.parametrize("number", range(0, PARTS, 6))
async def test_a_steered_turn_survives_two_crashes(crash_everywhere: CrashEverywhere, number: int) -> None:
    assert await crashed_steering(crash_everywhere, pairs=True, part=(number, PARTS))


async def placed(room: Room) -> list[str]:
    """Ids of the person's messages in the order in which models read them."""
    found: list[str] = []
    for message in await room.transcript():
        assert not message.get("metadata", {}).get("queued"), f"{message['id']} still waits"
        found += [message["id"]] if message["role"] == "user" else [each["id"] for each in steered_in(message)]
    return found


def dying(chance: random.Random) -> Any:
    """A worker that dies now and then, at any record."""

    def probe(context: FiberContext, _key: str) -> None:
        if chance.random() < 0.08:
            die(context)

    return probe


@pytest.mark.long_for("3", "4", "5", "6", "7")
@pytest.mark.parametrize("seed", range(8), ids=str)
async def test_each_message_is_answered_once_in_an_order_that_the_lane_allows(make_room: MakeRoom, seed: int) -> None:
    room, chance = make_room("worker"), random.Random(seed)
    kinds = [chance.choice([Delivery.QUEUE, Delivery.STEER, Delivery.STEER]) for _ in range(7)]
    probe = dying(chance)
    contexts.recorded_probes.append(probe)
    try:
        async with worker():
            for number, kind in enumerate(kinds):
                text = STEPS + f"say: answer {number}"
                await room.admit(says(text, f"m{number}"), request_id=f"r{number}", delivery=kind)
                await asyncio.sleep(chance.choice([0, 0.01, 0.1]))  # when it comes is what is random
    finally:
        contexts.recorded_probes.remove(probe)
    await run_until_idle(skip_delays=True)

    async def is_over() -> bool:
        return not await db(Fiber.objects.filter(finished_at=None).exists)

    await until(is_over)
    order = await placed(room)
    assert sorted(order) == [f"m{number}" for number in range(len(kinds))]
    for kind in (Delivery.QUEUE, Delivery.STEER):
        same = [message_id for message_id in order if kinds[int(message_id[1:])] is kind]
        assert same == sorted(same), f"those that {kind} keep their order"
    turns = await turns_in_order(room)
    assert all(turn.finished_at for turn in turns)
    await db(_check_answers, turns, order)


def _check_answers(turns: list[Turn], order: list[str]) -> None:
    """Each turn has answered its message, or names the turn that has; one that has been taken in has begun nothing."""
    by_id = {turn.pk: turn for turn in turns}
    for turn in turns:
        if turn.answered_by_id is None:
            assert turn.started_at is not None
            assert turn.fiber.status == "completed"
        else:
            assert turn.started_at is None
            assert by_id[turn.answered_by_id].started_at is not None
            assert order.index(f"m{turn.request_id[1:]}") > 0
