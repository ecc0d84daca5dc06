"""Turns that code starts: the telling tests (C6, 30 to 37 and 62) and what they leave open."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from chat.agent import InstanceKey
from chat.errors import InputInvalid, NestedTurn, TurnConflict
from chat.making import make_agent
from chat.models import AgentInstance, Turn
from chat.testing import worker
from chat.turns import slots
from chat.turns.admission import clear_instance
from chat.turns.intake import Submit
from chat.turns.status import TurnStatus
from chat.verbs import SKIPPED, SavedTurn, Submission
from fibers import recovery
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle
from sessions_app.core.tree import Leaf
from sessions_app.errors import MessageInvalid, MessageNotFound
from sessions_app.services import put_assistant
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.models import ToolCallRecord

from .agents import SEEN
from .conftest import MakeRoom, Room, status_of, text_of
from .gated import INSIDE, Quiet, asked, gate, reached, settled, statuses, until


def user(text: str, message_id: str = "") -> JSONObject:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def said(text: str, message_id: str) -> JSONObject:
    return {"id": message_id, "role": "assistant", "parts": [{"type": "text", "text": text}]}


async def count_turns() -> int:
    return await db(Turn.objects.count)


async def texts(room: Room) -> list[str]:
    return [text for _, text in await room.texts()]


# --- save_messages ---------------------------------------------------------------------------------------------------


async def test_c6_30_function_form(make_room: MakeRoom) -> None:
    """The function is called when its turn starts; turns that come later wait behind its place."""
    room = make_room("gated")
    heard: list[list[str]] = []

    def go_on(current: list[JSONObject]) -> list[JSONObject]:
        heard.append([text_of(message) for message in current])
        return [*current, user(f"say: after {len(current)}")]

    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        saving = asyncio.create_task(room.handle.save_messages(go_on))

        async def has_its_place() -> bool:
            return await count_turns() == 2

        await until(has_its_place)
        last = await room.admit("say: last")
        assert heard == []
        opened.set()
        result = await settled(saving)

        async def is_over() -> bool:
            return status_of(await room.turn(last.turn.pk)) == "completed"

        await until(is_over)
    assert heard == [["say: one", "one"]]
    assert result.status == "completed"
    assert await texts(room) == ["say: one", "one", "say: after 2", "after 2", "say: last", "last"]


async def test_an_async_function_may_give_a_text(make_room: MakeRoom) -> None:
    room = make_room()

    async def speak(current: list[JSONObject]) -> str:
        assert current == []
        return "say: hello"

    async with worker():
        assert (await room.handle.save_messages(speak)).status == "completed"
    assert await texts(room) == ["say: hello", "hello"]


async def test_a_function_that_says_nothing_is_skipped(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker():
        result = await room.handle.save_messages(lambda current: current)
        assert result.status == "skipped"
        assert (await room.handle.chat("say: next")).status is TurnStatus.COMPLETED
    assert statuses() == ["completed"]
    assert await texts(room) == ["say: next", "next"]


async def test_a_function_that_fails_tells_its_caller_and_stores_nothing(make_room: MakeRoom) -> None:
    room = make_room("gated")

    def fail(current: list[JSONObject]) -> str:
        raise KeyError("the function broke")

    async with worker():
        with pytest.raises(KeyError, match="the function broke"):
            await room.handle.save_messages(fail)
        with pytest.raises(InputInvalid, match="role 'user'"):
            await room.handle.save_messages(lambda _current: said("mine", "x"))
        assert (await room.handle.chat("say: next")).status is TurnStatus.COMPLETED
    assert await texts(room) == ["say: next", "next"]
    assert statuses() == ["completed"]


async def test_a_turn_whose_caller_is_gone_is_skipped(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "CALLER_SECONDS", 0.3)
    room = make_room("gated")
    calling = asyncio.create_task(room.handle.save_messages(lambda _current: "say: never"))

    async def has_its_place() -> bool:
        return await count_turns() == 1

    await until(has_its_place)
    calling.cancel()  # the process of the caller dies: nobody fills the place
    await asyncio.gather(calling, return_exceptions=True)
    async with worker():
        assert (await room.handle.chat("say: next")).status is TurnStatus.COMPLETED
    first = await db(lambda: Turn.objects.select_related("fiber").order_by("position").first())
    assert first is not None
    assert (status_of(first), first.finished_at is not None) == ("skipped", True)
    assert await texts(room) == ["say: next", "next"]


async def test_what_a_function_gave_outlives_a_crash(make_room: MakeRoom) -> None:
    room = make_room()
    with crash_after("begin"):
        saving = asyncio.create_task(room.handle.save_messages(lambda _current: "say: kept"))

        async def is_answered() -> bool:
            await run_until_idle(skip_delays=True)
            return saving.done()

        await until(is_answered)
    assert (await saving).status == "completed"
    assert await texts(room) == ["say: kept", "kept"]


async def test_several_messages_are_placed_together_and_answered_once(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        result = await room.handle.save_messages(["say: one", user("say: two")])
    assert result.status == "completed"
    assert await texts(room) == ["say: one", "say: two", "onetwo"]
    assert await count_turns() == 1


async def test_nothing_to_say_is_skipped_without_a_turn(make_room: MakeRoom) -> None:
    room = make_room()
    assert await room.handle.save_messages([]) == SKIPPED
    assert await room.handle.run_turn([]) == SKIPPED
    assert await count_turns() == 0


async def test_a_failed_turn_is_a_status(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        result = await room.handle.save_messages("error 400")
    assert result.status == "error"
    assert result.error


async def test_a_turn_that_is_cleared_away_is_skipped(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        saving = asyncio.create_task(room.handle.save_messages("say: two"))

        async def is_accepted() -> bool:
            return await count_turns() == 2

        await until(is_accepted)
        await db(clear_instance, room.key)
        assert (await settled(saving)).status == "skipped"
        opened.set()


# --- signals ---------------------------------------------------------------------------------------------------------


async def test_c6_31_pre_aborted_signal(make_room: MakeRoom) -> None:
    room = make_room("gated")
    signal = asyncio.Event()
    signal.set()
    async with worker():
        result = await room.handle.save_messages("say: one", signal=signal)
        assert (await room.handle.chat("say: two", signal=signal)).status == "aborted"
        assert (await room.handle.save_messages(lambda _now: "say: three", signal=signal)).status == "aborted"
    assert result.status == "aborted"
    assert result.request_id
    assert await room.texts() == [("user", "say: one"), ("user", "say: two")]
    assert room.model.requests == []
    assert statuses() == []
    assert not [task for task in asyncio.all_tasks() if "_stop_on" in repr(task)]  # nobody listens any more


async def test_a_signal_in_mid_answer_keeps_the_partial(make_room: MakeRoom) -> None:
    room = make_room("gated")
    signal = asyncio.Event()
    async with worker(), gate() as opened:
        saving = asyncio.create_task(room.handle.save_messages("say: one", signal=signal))
        await reached()
        signal.set()
        assert (await settled(saving)).status == "aborted"
        opened.set()
        await room.handle.chat("say: next")
    assert statuses() == ["aborted", "completed"]


async def test_a_signal_frees_a_function_that_waits(make_room: MakeRoom) -> None:
    room = make_room("gated")
    signal = asyncio.Event()
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        saving = asyncio.create_task(room.handle.save_messages(lambda _now: "say: never", signal=signal))

        async def has_its_place() -> bool:
            return await count_turns() == 2

        await until(has_its_place)
        signal.set()
        assert (await settled(saving)).status == "aborted"
        opened.set()
    assert await texts(room) in (["say: one", "one"], ["say: one"])


async def test_a_turn_that_waits_for_its_words_can_be_stopped(make_room: MakeRoom) -> None:
    room = make_room("gated")
    calling = asyncio.Event()

    async def think(_current: list[JSONObject]) -> str:
        calling.set()
        await asyncio.sleep(600)
        return "say: never"

    async with worker():
        saving = asyncio.create_task(room.handle.save_messages(think))
        await calling.wait()
        assert await room.handle.abort_all_requests()
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)
        assert (await room.handle.chat("say: next")).status is TurnStatus.COMPLETED
    assert await texts(room) == ["say: next", "next"]
    assert statuses() == ["completed"]  # what never began has no hook


# --- continue_last_turn ----------------------------------------------------------------------------------------------


async def test_c6_32_continue(make_room: MakeRoom) -> None:
    room = make_room("gated")
    assert await room.handle.continue_last_turn() == SavedTurn(request_id="", status="skipped")
    await room.say("stream 6 words\nerror in stream after 3 code context_length_exceeded", body={"colour": "red"})
    async with worker():
        result = await room.handle.continue_last_turn()
        assert result.status == "completed"
        await room.handle.continue_last_turn({"colour": "blue"})
    contexts = [value for name, value in SEEN if name == "before_turn"]
    assert [(context.continuation, context.body) for context in contexts] == [
        (False, {"colour": "red"}),
        (True, {"colour": "red"}),
        (True, {"colour": "blue"}),
    ]
    assert room.model.requests[1]["messages"][-1]["role"] != "assistant"
    _user, first, second = (await room.transcript())[:3]
    assert (first["role"], second["role"]) == ("assistant", "assistant")
    assert first["id"] != second["id"]
    assert len((text_of(first) + text_of(second)).split()) == 6


async def test_nothing_is_continued_after_a_question(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("error 400")
    assert await room.handle.continue_last_turn() == SKIPPED


async def test_the_last_body_is_the_newest_clients(make_room: MakeRoom) -> None:
    async def stored() -> Any:
        return await db(lambda: AgentInstance.objects.get().last_body)

    room = make_room()
    await room.say("say: one", body={"colour": "red"})
    async with worker():
        await room.handle.save_messages("say: mine")  # says nothing about what a client asked for
    assert await stored() == {"colour": "red"}
    await room.say("say: two")
    assert await stored() == {}
    await room.say("say: three", body={"colour": "red"})
    await db(clear_instance, room.key)
    assert await stored() == {}


async def test_a_hook_may_go_on_by_itself(make_room: MakeRoom) -> None:
    room = make_room("follower")
    async with worker():
        await room.handle.chat("say: one")

        async def went_on() -> bool:
            return len([1 for name, _ in SEEN if name == "on_chat_response"]) == 2

        await until(went_on)
    [went] = [value for name, value in SEEN if name == "went on"]
    assert went.status == "completed"
    responses = [value for name, value in SEEN if name == "on_chat_response"]
    assert [response.continuation for response in responses] == [False, True]


# --- add_messages ----------------------------------------------------------------------------------------------------


async def test_c6_33_add_messages_branch(make_room: MakeRoom) -> None:
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
    return INSIDE["said"]


async def test_c6_34_nested_blocking_turn(make_room: MakeRoom) -> None:
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


async def test_c6_34_submit_and_add_work_inside_a_turn(make_room: MakeRoom) -> None:
    room = make_room("inside")

    async def act(agent: Any) -> Submission:
        await agent.add_messages(said("a note", "note"))
        await agent.run_turn("say: second", mode="submit")
        submission: Submission = await agent.submit_messages("say: submitted")
        return submission

    submission = await inside(room, act)
    assert (submission.accepted, submission.status) == (True, "pending")
    await run_until_idle(skip_delays=True)
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
    """An answer follows what its own turn added, never what somebody else shows."""
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


async def test_c6_35_submission_idempotency(make_room: MakeRoom) -> None:
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


async def test_c6_36_cancel_before_the_slot(make_room: MakeRoom) -> None:
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


async def test_c6_37_restart_before_its_messages_were_applied(make_room: MakeRoom) -> None:
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


async def test_c6_37_restart_after_they_were_applied_goes_on(make_room: MakeRoom) -> None:
    """Nothing is replayed: the turn goes on from its record."""
    room = make_room()
    with crash_after("begin"):
        submission = await room.handle.submit_messages(["say: a", "say: b"])
        await run_until_idle(skip_delays=True)
    found = await room.handle.inspect_submission(submission.id)
    assert found is not None
    assert found.status == "completed"
    assert await texts(room) == ["say: a", "say: b", "ab"]


async def test_c6_37_applied_and_not_resumed_in_time_is_an_error(make_room: MakeRoom) -> None:
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


async def test_c6_37_a_clear_skips_what_waits_and_later_ones_run(make_room: MakeRoom) -> None:
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


# --- run_turn, stopping, waiting -------------------------------------------------------------------------------------


async def test_run_turn_has_three_modes(make_room: MakeRoom) -> None:
    room = make_room()
    callback = Quiet()
    async with worker():
        waited = await room.handle.run_turn("say: one")
        streamed = await room.handle.run_turn("say: two", mode="stream", callback=callback)
        submitted = await room.handle.run_turn("say: three", mode="submit")
        assert await room.handle.wait_until_stable(20)
        continued = await room.handle.run_turn(continuation=True)
    assert isinstance(waited, SavedTurn)
    assert isinstance(submitted, Submission)
    assert [one.status for one in (waited, streamed, continued)] == ["completed"] * 3
    assert callback.told == ["start", "event", "done"]
    assert (await texts(room))[:6] == ["say: one", "one", "say: two", "two", "say: three", "three"]


async def test_requests_are_stopped_by_their_id_or_all(make_room: MakeRoom) -> None:
    room = make_room("gated")
    assert await room.handle.abort_all_requests() is False
    async with worker(), gate() as opened:
        first = await room.admit("say: one")
        await reached()
        second = await room.admit("say: two")
        assert await room.handle.abort_request("nobody") is False
        assert await room.handle.abort_request(second.turn.request_id, "not needed")
        assert status_of(await room.turn(second.turn.pk)) == "aborted"
        assert await room.handle.abort_all_requests()
        assert await room.handle.wait_until_stable(20)
        opened.set()
    assert status_of(await room.turn(first.turn.pk)) == "aborted"


async def tool_message(room: Room, state: str, turn_id: str = "trn_x") -> None:
    """A conversation whose last answer holds a call in this state."""
    await room.handle.add_messages(user("question", "q"))
    instance = await db(AgentInstance.objects.get)
    part = {"type": "tool-ask", "toolCallId": "call", "state": state, "input": {}}
    answer = {"id": "answer", "role": "assistant", "parts": [part]}
    await db(lambda: put_assistant(str(instance.session_id), answer, after=Leaf.ACTIVE, turn_id=turn_id))


@pytest.mark.parametrize(
    ("state", "is_pending"),
    [
        ("approval-requested", True),
        ("input-available", True),
        ("approval-responded", False),
        ("output-available", False),
        ("output-denied", False),
        ("input-streaming", False),
    ],
)
async def test_c6_62_stability(make_room: MakeRoom, state: str, is_pending: bool) -> None:
    room = make_room()
    assert await room.handle.wait_until_stable(0)  # idle
    await tool_message(room, state)
    assert await room.handle.has_pending_interaction() is is_pending
    assert await room.handle.wait_until_stable(0) is not is_pending


async def test_c6_62_a_dead_server_call_is_not_pending(make_room: MakeRoom) -> None:
    room = make_room()
    await tool_message(room, "input-available")
    await db(lambda: ToolCallRecord.objects.create(turn_id="trn_x", call_id="call", tool_name="ask"))
    assert not await room.handle.has_pending_interaction()


async def test_c6_62_what_runs_or_waits_is_not_stable(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        await room.handle.submit_messages("say: two")
        assert not await room.handle.wait_until_stable(0.05)
        opened.set()
        assert await room.handle.wait_until_stable()
    assert await texts(room) == ["say: one", "one", "say: two", "two"]
