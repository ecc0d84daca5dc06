"""Messages that are added or submitted without waiting, also inside a turn."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from chat.agent.base import InstanceKey
from chat.agent.values.turns import SavedTurn, Submission
from chat.errors import InputInvalid, NestedTurn, TurnConflict
from chat.instance.instance import make_agent
from chat.models import Turn
from chat.testing import worker
from chat.turns.admission.intake import Submit
from chat.turns.admission.stop import clear_instance
from fibers.execution import recovery
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle
from sessions_app.errors import MessageInvalid, MessageNotFound
from tests.db.chat.turns.agents.gated import INSIDE, Quiet, asked, gate, reached, statuses
from thinkproject.kernel.aio import db
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, text_of
from .methods_support import count_turns, said, texts, user

# --- add_messages ----------------------------------------------------------------------------------------------------


async def test_add_messages_branch(make_room: MakeRoom) -> None:
    room = make_room()
    chain = [user("A", "a"), said("B", "b"), user("C", "c")]
    assert await room.handle.add_messages(chain) == ["a", "b", "c"]
    assert await texts(room) == ["A", "B", "C"]
    assert await room.handle.add_messages(said("D", "d"), parent="a") == ["d"]
    assert await texts(room) == ["A", "D"]
    assert [text_of(m) for m in await room.handle.messages()] == ["A", "D"]
    with pytest.raises(MessageNotFound):
        await room.handle.add_messages([user("E", "e"), user("F", "f")], parent="nobody")
    with pytest.raises(MessageInvalid):
        await room.handle.add_messages([user("E", "e"), {"role": "nobody", "parts": []}])
    assert await texts(room) == ["A", "D"]
    await room.handle.add_messages([user("changed", "c"), said("D2", "d")], parent="b", mode="upsert")
    assert await texts(room) == ["A", "D2"]
    await room.handle.add_messages([user("changed again", "c"), said("D3", "d")])  # known ones stay as they are
    assert await texts(room) == ["A", "D2"]
    assert await count_turns() == 0
    await room.handle.add_messages("a new beginning", parent=None)
    assert await texts(room) == ["a new beginning"]


async def test_the_model_sees_what_was_added(make_room: MakeRoom) -> None:
    room = make_room("gated")
    await room.handle.add_messages([user("imported"), said("answer", "x")])
    await room.say("say: next")
    assert asked() == [["imported"], ["say: next"]]


# --- inside a turn ---------------------------------------------------------------------------------------------------


async def inside(room: Room, act: Any) -> Any:
    """Run one turn in which a tool does this."""
    INSIDE.update(act=act, said=None)
    async with worker():
        await room.handle.chat("call tool act_in_turn {}\nsay: ready")
        assert await room.handle.wait_until_stable(20)
    return INSIDE["said"]


async def test_nested_blocking_turn(make_room: MakeRoom) -> None:
    room = make_room("inside")

    async def act(agent: Any) -> list[str]:
        refused = []
        for attempt in (
            lambda: agent.run_turn("say: inner"),
            lambda: agent.run_turn("say: inner", mode="stream", callback=Quiet()),
            lambda: agent.run_turn(continuation=True),
            lambda: agent.save_messages("say: inner"),
            lambda: agent.save_messages(lambda _now: "say: inner"),
            agent.continue_last_turn,
            agent.wait_until_stable,
        ):
            with pytest.raises(NestedTurn, match="cannot be called from inside") as error:
                await attempt()
            refused.append(error.value.code)
        return refused

    assert await inside(room, act) == ["nested_turn"] * 7
    assert await count_turns() == 1


async def test_submit_and_add_work_inside_a_turn(make_room: MakeRoom) -> None:
    room = make_room("inside")

    async def act(agent: Any) -> Submission:
        await agent.add_messages(said("a note", "note"))
        await agent.run_turn("say: second", mode="submit")
        submission: Submission = await agent.submit_messages("say: submitted")
        return submission

    submission = await inside(room, act)
    assert (submission.accepted, submission.status) == (True, "pending")
    # A note of the turn comes before its answer, and both stay on the path.
    assert (await texts(room))[1:] == ["a note", "ready", "say: second", "second", "say: submitted", "submitted"]


async def test_another_conversation_may_be_waited_for_inside_a_turn(make_room: MakeRoom) -> None:
    room = make_room("inside")
    other = InstanceKey(owner_id=room.key.owner_id, agent="plain", name="other")

    async def act(_agent: Any) -> str:
        agent: Any = make_agent(other)
        saved: SavedTurn = await agent.save_messages("say: over there")
        return saved.status

    assert await inside(room, act) == "completed"


async def test_another_branch_that_is_shown_meanwhile_gets_no_answer_of_this_turn(make_room: MakeRoom) -> None:
    """An answer follows what its own turn added, never what another user shows."""
    room = make_room("gated")
    first = await room.say(Submit(message=user("say: one", "u1")))
    async with worker(), gate() as opened:
        await room.admit("say: two")
        await reached()
        await room.handle.add_messages(user("elsewhere", "e"), parent=first.assistant_id)
        opened.set()
        assert await room.handle.wait_until_stable(20)
    assert await texts(room) == ["say: one", "one", "say: two", "two"]


# --- submissions -----------------------------------------------------------------------------------------------------


async def test_a_key_is_one_submission(make_room: MakeRoom) -> None:
    room = make_room()
    found = await asyncio.gather(
        *(room.handle.submit_messages(user("say: once"), idempotency_key="k", metadata={"n": 1}) for _ in range(4))
    )
    assert sorted(submission.accepted for submission in found) == [False, False, False, True]
    assert len({submission.id for submission in found}) == 1
    assert found[0].metadata == {"n": 1}
    await run_until_idle()
    assert await texts(room) == ["say: once", "once"]
    again = await room.handle.submit_messages("say: twice", idempotency_key="k")
    assert (again.accepted, again.status, again.id) == (False, "completed", found[0].id)


async def test_cancel_before_the_slot(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        submission = await room.handle.submit_messages(["say: a", "say: b", "say: c"])
        assert [text_of(message) for message in await room.transcript()] == ["say: one"]
        assert await room.handle.cancel_submission(submission.id)
        assert not await room.handle.cancel_submission(submission.id)
        opened.set()
        assert await room.handle.wait_until_stable(20)
        await room.handle.chat("say: two")
    found = await room.handle.inspect_submission(submission.id)
    assert found is not None
    assert found.status == "aborted"
    assert await texts(room) == ["say: one", "one", "say: two", "two"]
    assert statuses() == ["completed", "completed"]
    assert "say: a" not in str(await db(lambda: list(Turn.objects.values_list("options", flat=True))))


async def test_a_submission_does_not_overtake(make_room: MakeRoom) -> None:
    """Cancelled before its slot it leaves no trace: who was asked may still answer."""
    room = make_room()
    turn = await room.say("say: one")
    values = {"turn_id": turn.pk, "call_id": "c", "tool_name": "ask", "scope": turn.instance_id}
    await db(lambda: ToolCallRecord.objects.create(**values, status=CallStatus.WAITING))
    submission = await room.handle.submit_messages("say: two")
    assert await room.handle.has_pending_interaction()
    await room.handle.cancel_submission(submission.id)
    await run_until_idle()
    assert await room.handle.has_pending_interaction()
    await room.handle.submit_messages("say: three")
    await run_until_idle()
    assert not await room.handle.has_pending_interaction()


async def test_restart_before_its_messages_were_applied(make_room: MakeRoom) -> None:
    """The worker died between taking it and beginning it: it waits again, and is done once."""
    room = make_room()
    submission = await room.handle.submit_messages(["say: a", "say: b"])
    fiber = Fiber.objects.filter(pk=(await room.turn(submission.id)).fiber_id)
    await db(lambda: fiber.update(status="running", worker="dead", fence=1, attempt=1, lease_until=Now()))
    assert await texts(room) == []
    await run_until_idle(skip_delays=True)
    found = await room.handle.inspect_submission(submission.id)
    assert found is not None
    assert found.status == "completed"
    assert await texts(room) == ["say: a", "say: b", "ab"]


async def test_restart_after_they_were_applied_goes_on(make_room: MakeRoom) -> None:
    """Nothing is replayed: the turn goes on from its record."""
    room = make_room()
    with crash_after("begin"):
        submission = await room.handle.submit_messages(["say: a", "say: b"])
        await run_until_idle(skip_delays=True)
    found = await room.handle.inspect_submission(submission.id)
    assert found is not None
    assert found.status == "completed"
    assert await texts(room) == ["say: a", "say: b", "ab"]


async def test_applied_and_not_resumed_in_time_is_an_error(make_room: MakeRoom) -> None:
    room = make_room()
    with crash_after("begin"):
        submission = await room.handle.submit_messages("say: a")
        await run_until_idle(recover=False)
    long_ago = Now() - timedelta(minutes=20)
    await db(lambda: Fiber.objects.filter(status="running").update(lease_until=long_ago))
    await db(recovery.sweep)
    await run_until_idle(skip_delays=True)
    found = await room.handle.inspect_submission(submission.id)
    assert found is not None
    assert found.status == "error"
    assert "interrupted" in str(found.error)
    assert await texts(room) == ["say: a"]
    assert room.model.requests == []


async def test_a_clear_skips_what_waits_and_later_ones_run(make_room: MakeRoom) -> None:
    room = make_room()
    waiting = await room.handle.submit_messages("say: a")
    await db(clear_instance, room.key)
    later = await room.handle.submit_messages("say: b")
    await run_until_idle()
    found = await room.handle.list_submissions()
    assert [(one.id, one.status) for one in found] == [(later.id, "completed"), (waiting.id, "skipped")]
    assert await texts(room) == ["say: b", "b"]


async def test_submissions_run_in_their_order(make_room: MakeRoom) -> None:
    room = make_room()
    for text in ("a", "b", "c"):
        await room.handle.submit_messages(f"say: {text}")
    await run_until_idle()
    assert await texts(room) == ["say: a", "a", "say: b", "b", "say: c", "c"]


async def test_impossible_submissions_change_nothing(make_room: MakeRoom) -> None:
    room = make_room()
    await room.admit("say: one", idempotency_key="clients")
    bad: list[tuple[Any, dict[str, Any]]] = [
        ([], {}),
        ("say: x", {"idempotency_key": ""}),
        ("say: x", {"idempotency_key": "k" * 129}),
        ("say: x", {"metadata": {"x": object()}}),
        ("say: x", {"metadata": {"x": "y" * 20_000}}),
        (said("mine", "x"), {}),
    ]
    for messages, options in bad:
        with pytest.raises(InputInvalid):
            await room.handle.submit_messages(messages, **options)
    with pytest.raises(TurnConflict, match="no submission"):
        await room.handle.submit_messages("say: x", idempotency_key="clients")
    assert await count_turns() == 1
    assert await room.handle.list_submissions() == []


async def test_submissions_of_others_are_unknown(make_room: MakeRoom) -> None:
    room, other = make_room(), make_room(name="other")
    submission = await room.handle.submit_messages("say: a")
    plain = await room.admit("say: b")
    assert await other.handle.inspect_submission(submission.id) is None
    assert not await other.handle.cancel_submission(submission.id)
    assert not await room.handle.cancel_submission(plain.turn.pk)
    assert await room.handle.inspect_submission(plain.turn.pk) is None
