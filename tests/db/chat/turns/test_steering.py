"""A message that is sent while an answer is written steers it, waits for it, or stops it."""

import asyncio

import pytest

from chat.models import Delivery
from chat.testing import worker
from fibers import context as contexts
from fibers.context import FiberContext
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle
from sessions_app.core.messages.steered import steered_in
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.gated import until
from tests.db.chat.turns.agents.steering import WORK, at_work, says, story, turns_in_order, working
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of

pytestmark = pytest.mark.django_db(transaction=True)


async def idle() -> None:
    async def is_idle() -> bool:
        return not await db(Fiber.objects.filter(finished_at=None).exists)

    await until(is_idle)


@pytest.mark.parametrize("agent", ["worker", "steered-worker"])
async def test_a_steering_message_is_read_by_the_next_step_and_stands_in_the_answer(
    make_room: MakeRoom, agent: str
) -> None:
    room = make_room(agent)
    options = {"delivery": Delivery.STEER} if agent == "worker" else {}
    async with worker(), at_work() as opened:
        first = await room.admit(WORK)
        await working()
        second = await room.admit("say: Changed course.", **options)
        opened.set()
        await idle()
    assert await story(room) == ["user: " + WORK, "steer: say: Changed course.", "assistant: Changed course."]
    turns = await turns_in_order(room)
    assert [status_of(turn) for turn in turns] == ["completed", "skipped"]
    assert turns[1].answered_by_id == first.turn.pk
    assert (turns[1].pk, turns[1].finished_at is not None) == (second.turn.pk, True)
    roles = [message["role"] for message in room.model.requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    await room.say("say: Later.")
    assert [message["role"] for message in room.model.requests[-1]["messages"]] == [
        *roles,
        "assistant",
        "user",
    ]


async def test_a_steering_message_that_comes_too_late_is_answered_in_its_turn(make_room: MakeRoom) -> None:
    room, speaks = make_room("worker"), asyncio.Event()

    def probe(_context: FiberContext, key: str) -> None:
        if key == "chunk:text-delta":
            speaks.set()

    contexts.passed_probes.append(probe)
    try:
        async with worker():
            await room.admit('call tool add {"a": 1, "b": 1} id=a1\nrate 20/s\nstream 20 words')
            async with asyncio.timeout(20):
                await speaks.wait()  # the last step has begun
            await room.admit("say: Next.", delivery=Delivery.STEER)
            await idle()
    finally:
        contexts.passed_probes.remove(probe)
    told = await story(room)
    assert [line.partition(":")[0] for line in told] == ["user", "assistant", "user", "assistant"]
    assert told[2:] == ["user: say: Next.", "assistant: Next."]
    assert [status_of(turn) for turn in await turns_in_order(room)] == ["completed"] * 2


async def test_those_that_queue_wait_behind_those_that_steer_and_an_interrupt_drops_none(make_room: MakeRoom) -> None:
    room = make_room("worker")
    async with worker(), at_work() as opened:
        await room.admit(WORK)
        await working()
        await room.admit("say: one")
        await room.admit("say: two", delivery=Delivery.QUEUE)
        await room.admit("say: now", delivery=Delivery.INTERRUPT)
        opened.set()
        await idle()
    told = await story(room)
    assert told[1:] == [
        "user: say: now",
        "assistant: now",
        "user: say: one",
        "assistant: one",
        "user: say: two",
        "assistant: two",
    ]
    assert [status_of(turn) for turn in await turns_in_order(room)] == ["aborted"] + ["completed"] * 3


@pytest.mark.parametrize("step", ["call:t1", "steer:1", "model:1"])
async def test_a_worker_that_dies_around_it_neither_loses_nor_repeats_it(make_room: MakeRoom, step: str) -> None:
    room = make_room("worker")
    await room.admit(WORK)
    await room.admit("say: Changed course.", delivery=Delivery.STEER)
    with crash_after(step):
        await run_until_idle(skip_delays=True)
    assert await story(room) == ["user: " + WORK, "steer: say: Changed course.", "assistant: Changed course."]
    [_, answer] = await room.transcript()
    assert len(steered_in(answer)) == 1
    assert [status_of(turn) for turn in await turns_in_order(room)] == ["completed", "skipped"]


async def test_what_an_answer_took_in_outlives_a_stop(make_room: MakeRoom) -> None:
    room = make_room("worker")
    work = "call tool toil {} id=t1\ncall tool toil {} id=t2\nsay: Done."
    async with worker(), at_work() as opened:
        first = await room.admit('call tool add {"a": 1, "b": 1} id=a1\nsay: on.\n' + work)
        await room.admit(work, delivery=Delivery.STEER)
        await working()
        await room.handle.cancel_chat(first.turn.request_id)
        opened.set()
        await idle()
    assert (await story(room))[1:] == ["steer: " + work]


async def test_every_caller_that_waits_gets_the_same_answer(make_room: MakeRoom) -> None:
    room = make_room("worker")
    async with worker(), at_work() as opened:
        asked = asyncio.create_task(room.handle.chat(WORK))
        await working()
        steered = [
            asyncio.create_task(room.handle.chat(f"say: Course {number}.", delivery="steer")) for number in range(2)
        ]

        async def are_waiting() -> bool:
            return len(await turns_in_order(room)) == 3

        await until(are_waiting)
        opened.set()
        answers = await asyncio.gather(asked, *steered)
    assert len({answer.turn_id for answer in answers}) == 1
    assert {answer.status for answer in answers} == {"completed"}
    assert len({answer.message["id"] for answer in answers if answer.message}) == 1


@pytest.mark.parametrize(
    ("kind", "between"), [(Delivery.QUEUE, "say: so.\n"), (Delivery.QUEUE, ""), (Delivery.STEER, "")]
)
async def test_a_message_from_before_a_question_neither_answers_nor_expires_it(
    make_room: MakeRoom, kind: Delivery, between: str
) -> None:
    """It was written without knowing the question, which is there still once the message has its own answer."""
    desk = Desk(make_room("asking-worker"))
    asking = f'call tool toil {{}} id=t1\n{between}call tool pay {{"amount": 5}} id=p1\nsay: {{results}}.'
    async with at_work() as lets_go, worker():
        await desk.room.admit(says(asking, "asks"), request_id="asks")
        await working()
        await desk.room.admit(says("say: Second.", "second"), request_id="second", delivery=kind)
        lets_go.set()
        await idle()
    first, second = await turns_in_order(desk.room)
    assert [(status_of(each), each.answered_by_id) for each in (first, second)] == [("completed", None)] * 2
    assert (await desk.row("p1")).status == "asked"
    assert [kind for kind, _, _ in await desk.events("p1")] == ["asked"]
    await desk.reply("p1", is_approved=True)
    assert (await desk.row("p1")).status == "succeeded"
