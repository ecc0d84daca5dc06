"""What a message does that arrives while a turn runs."""

import asyncio
from typing import Any

import pytest
from django.db.models.functions import Now

from chat.errors import TurnDropped
from chat.models import AgentInstance, Turn
from chat.testing import worker
from chat.turns.admission.admit import Admission
from chat.turns.admission.intake import Edit, Regenerate, Submit
from chat.turns.admission.stop import clear_instance
from fibers.models import Fiber
from fibers.testing import make_due, run_until_idle
from tests.db.chat.turns.agents.gated import asked, gate, reached, statuses, until
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of, text_of


def message(text: str, message_id: str = "") -> Any:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


async def statuses_of(room: Room, *admissions: Admission) -> list[str]:
    return [status_of(await room.turn(admission.turn.pk)) for admission in admissions]


async def finished(room: Room) -> None:
    async def is_idle() -> bool:
        return not await db(Fiber.objects.filter(finished_at=None).exists)

    await until(is_idle)


async def test_queued_messages_are_answered_in_order(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker(), gate() as opened:
        turns = [await room.admit("say: one")]
        await reached()
        turns.append(await room.admit("say: two"))
        opened.set()
        await finished(room)
    assert await statuses_of(room, *turns) == ["completed"] * 2
    assert [text for _, text in await room.texts()] == ["say: one", "one", "say: two", "two"]


async def test_only_the_latest_waiting_message_is_answered(make_room: MakeRoom) -> None:
    room = make_room("latest")
    async with worker(), gate() as opened:
        first = await room.admit("say: one")
        await reached()
        second = await room.admit("say: two")
        third = await room.admit("say: three")
        # At once: the first still runs, and is not stopped.
        assert await statuses_of(room, first, second, third) == ["running", "skipped", "pending"]
        marks = [found.get("metadata", {}) for found in await room.transcript()]
        assert [mark.get("stopped", False) for mark in marks] == [False, True, False]
        opened.set()
        await finished(room)
    assert await statuses_of(room, first, second, third) == ["completed", "skipped", "completed"]
    assert await room.texts() == [
        ("user", "say: one"),
        ("assistant", "one"),
        ("user", "say: two"),
        ("user", "say: three"),
        ("assistant", "twothree"),
    ]
    assert statuses() == ["completed", "completed"]  # the one that was superseded has no hook
    assert len(room.model.requests) == 2
    assert (await room.turn(second.turn.pk)).finished_at is not None


async def test_a_message_while_a_turn_runs_is_dropped(make_room: MakeRoom) -> None:
    room = make_room("drop")
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        before = await db(lambda: AgentInstance.objects.values().get())
        with pytest.raises(TurnDropped):
            await room.admit("say: two", request_id="again", body={"colour": "red"})
        assert await db(lambda: AgentInstance.objects.values().get()) == before
        assert await db(Turn.objects.count) == 1
        opened.set()
        await finished(room)
    assert await room.texts() == [("user", "say: one"), ("assistant", "one")]
    assert statuses() == ["completed"]
    turn = await room.say("say: two", request_id="again")  # the same request, when there is room for it
    assert status_of(turn) == "completed"


async def test_regenerate_and_edit_are_never_dropped(make_room: MakeRoom) -> None:
    room = make_room("drop")
    first = await room.say("say: one")
    async with worker(), gate() as opened:
        await room.admit("say: two")
        await reached()
        again = await room.admit(Regenerate(message_id=first.assistant_id))
        edited = await room.admit(Edit(message_id=first.input_ids[0], message=message("say: other")))
        opened.set()
        await finished(room)
    assert await statuses_of(room, again, edited) == ["completed", "completed"]


@pytest.mark.parametrize("agent", ["latest", "merge", "drop", "debounce"])
async def test_after_a_clear_nothing_overlaps(make_room: MakeRoom, agent: str) -> None:
    room = make_room(agent)
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        await db(clear_instance, room.key)
        after = await room.admit("say: two")
        turn = await room.turn(after.turn.pk)
        assert turn.fiber.available_at <= turn.fiber.created_at  # nothing to wait for
        opened.set()
        await finished(room)
    assert await statuses_of(room, after) == ["completed"]
    assert [text for _, text in await room.texts()] == ["say: two", "two"]


@pytest.mark.parametrize("agent", ["latest", "merge", "drop", "debounce"])
async def test_a_first_message_never_overlaps(make_room: MakeRoom, agent: str) -> None:
    room = make_room(agent)
    for text in ("one", "two"):
        admission = await room.admit(f"say: {text}")
        assert await run_until_idle() > 0  # due at once
        assert await statuses_of(room, admission) == ["completed"]


@pytest.mark.parametrize("agent", ["latest", "merge", "drop", "debounce"])
async def test_turns_of_the_server_are_not_concerned(make_room: MakeRoom, agent: str) -> None:
    room = make_room(agent)
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        saving = asyncio.create_task(room.handle.save_messages("say: saved"))
        submission = await room.handle.submit_messages("say: submitted")

        async def are_accepted() -> bool:
            return await db(Turn.objects.count) == 3

        await until(are_accepted)
        opened.set()
        assert (await saving).status == "completed"
        await finished(room)
        found = await room.handle.inspect_submission(submission.id)
    assert found is not None
    assert found.status == "completed"


async def test_turns_of_the_server_are_not_superseded(make_room: MakeRoom) -> None:
    room = make_room("latest")
    submission = await room.handle.submit_messages("say: mine")
    branch = await room.admit(Submit(message=message("say: branch"), parent_id=None, parent_is_explicit=True))
    waiting = await room.admit("say: one")
    newest = await room.admit("say: two")
    assert await statuses_of(room, branch, waiting, newest) == ["pending", "skipped", "pending"]
    found = await room.handle.inspect_submission(submission.id)
    assert found is not None
    assert found.status == "pending"


async def test_a_request_that_was_superseded_and_is_sent_again_is_the_same(make_room: MakeRoom) -> None:
    room = make_room("latest")
    first = await room.admit("say: one", request_id="r1")
    await room.admit("say: two", request_id="r2")
    again = await room.admit("say: one", request_id="r1")
    assert (again.is_new, again.turn.pk) == (False, first.turn.pk)
    assert await statuses_of(room, first) == ["skipped"]
    assert await db(Turn.objects.count) == 2


async def test_merge_is_one_message_for_the_model(make_room: MakeRoom) -> None:
    """D2.7: the model is sent one text, what is stored stays separate, then and later."""
    room = make_room("merge")
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        second = await room.admit("say: two")
        third = await room.admit("say: three")
        fourth = await room.admit("say: four")
        assert await statuses_of(room, second, third, fourth) == ["skipped", "skipped", "pending"]
        opened.set()
        await finished(room)
    assert asked()[-1] == ["say: two\n\nsay: three\n\nsay: four"]
    assert [text for _, text in await room.texts()] == [
        "say: one",
        "one",
        "say: two",
        "say: three",
        "say: four",
        "twothreefour",
    ]
    await room.say("say: five")
    assert asked()[-2:] == [["say: two\n\nsay: three\n\nsay: four"], ["say: five"]]


async def test_latest_leaves_the_messages_apart(make_room: MakeRoom) -> None:
    room = make_room("latest")
    await room.admit("say: one")
    await room.say("say: two")
    assert asked() == [["say: one", "say: two"]]


async def test_what_is_merged_is_written_down_with_the_turn(make_room: MakeRoom) -> None:
    """The one that runs the turn joins, also after a crash. What was superseded hands on what it would have joined."""
    room = make_room("merge")
    await room.admit("say: one")
    await room.admit("say: two")
    turn = await room.admit("say: three")
    stored = await room.turn(turn.turn.pk)
    assert len(stored.options["merged"]) == 2
    await run_until_idle()
    assert asked() == [["say: one\n\nsay: two\n\nsay: three"]]


async def test_debounce_waits_for_quiet_and_answers_the_newest(make_room: MakeRoom) -> None:
    room = make_room("debounce")
    first = await room.admit("say: one")
    async with gate() as opened:
        running = asyncio.create_task(run_until_idle())
        await reached()
        second = await room.admit("say: two")
        third = await room.admit("say: three")
        assert await statuses_of(room, first, second, third) == ["running", "skipped", "pending"]
        waiting = (await room.turn(third.turn.pk)).fiber
        assert round((waiting.available_at - waiting.created_at).total_seconds(), 1) == 5
        opened.set()
        await running
        # The lane is free and it is not due; a process that dies now loses nothing, for the row says when.
        assert await statuses_of(room, first, third) == ["completed", "pending"]
        fourth = await room.admit("say: four")  # what waits for quiet counts as waiting
        assert await statuses_of(room, third, fourth) == ["skipped", "pending"]
        await run_until_idle()
        assert await statuses_of(room, fourth) == ["pending"]
        await db(make_due)
        await run_until_idle()
    assert await statuses_of(room, fourth) == ["completed"]
    assert [text for role, text in await room.texts() if role == "user"] == [
        "say: one",
        "say: two",
        "say: three",
        "say: four",
    ]
    assert statuses() == ["completed", "completed"]


async def test_a_clear_ends_what_waits_for_quiet(make_room: MakeRoom) -> None:
    room = make_room("debounce")
    await room.admit("say: one")
    waiting = await room.admit("say: two")
    await db(clear_instance, room.key)
    assert await statuses_of(room, waiting) == ["skipped"]
    await db(make_due)
    await run_until_idle()
    assert await room.transcript() == []
    assert room.model.requests == []


async def test_many_submits_at_once_leave_one_that_waits(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 0
    room = make_room("latest")
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        burst = await asyncio.gather(*(room.admit(f"say: {number}") for number in range(12)))
        found = await statuses_of(room, *burst)
        assert sorted(found) == ["pending"] + ["skipped"] * 11
        newest = max(burst, key=lambda admission: admission.turn.position)
        assert await statuses_of(room, newest) == ["pending"]
        opened.set()
        await finished(room)
    assert len([1 for role, _ in await room.texts() if role == "user"]) == 13
    assert len(room.model.requests) == 2
    assert text_of((await room.transcript())[0]) == "say: one"


async def test_a_delay_is_by_the_clock_of_the_database(make_room: MakeRoom) -> None:
    room = make_room("debounce")
    await room.admit("say: one")
    waiting = await room.admit("say: two")
    due = Fiber.objects.filter(pk=(await room.turn(waiting.turn.pk)).fiber_id, available_at__gt=Now())
    assert await db(due.exists)
    assert not await db(lambda: Fiber.objects.claimable().filter(pk=waiting.turn.fiber_id).exists())
