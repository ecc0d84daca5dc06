"""Turns that code starts."""

import asyncio
from typing import Any

import pytest

from chat.agent.values.turns import SKIPPED, SavedTurn
from chat.errors import InputInvalid
from chat.instance.instance import make_agent
from chat.models import AgentInstance, Turn
from chat.reads.transcripts import transcript, turn_page
from chat.testing import worker
from chat.turns.admission.stop import clear_instance
from chat.turns.state import input_reservation
from chat.turns.state.status import TurnStatus
from fibers.testing import crash_after, run_until_idle
from sessions_app.compactions.services import add_compaction
from sessions_app.core.messages.shapes import Message, NewMessage
from sessions_app.messages.services import select_leaf
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from tests.db.chat.turns.agents.gated import Endless, gate, reached, settled, statuses, until
from tests.sent_notes import without_notes
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of, text_of
from .methods_support import count_turns, said, texts, user

# --- save_messages ---------------------------------------------------------------------------------------------------


async def test_a_function_gives_the_messages_when_the_turn_starts(make_room: MakeRoom) -> None:
    """The function is called when its turn starts; turns that come later wait behind its place."""
    room = make_room("gated")
    received: list[list[str]] = []

    def go_on(current: list[Message]) -> list[NewMessage]:
        received.append([text_of(message) for message in current])
        return [*current, user(f"say: after {len(current)}")]

    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        saving = asyncio.create_task(room.handle.save_messages(go_on))

        async def has_its_place() -> bool:
            return await count_turns() == 2

        await until(has_its_place)
        last = await room.admit("say: last")
        assert received == []
        opened.set()
        result = await settled(saving)

        async def is_over() -> bool:
            return status_of(await room.turn(last.turn.pk)) == "completed"

        await until(is_over)
    assert received == [["say: one", "one"]]
    assert result.status == "completed"
    assert await texts(room) == ["say: one", "one", "say: after 2", "after 2", "say: last", "last"]


async def test_an_async_function_may_give_a_text(make_room: MakeRoom) -> None:
    room = make_room()

    async def speak(current: list[Message]) -> str:
        assert current == []
        return "say: hello"

    async with worker():
        assert (await room.handle.save_messages(speak)).status == "completed"
    assert await texts(room) == ["say: hello", "hello"]


async def test_a_function_without_messages_is_skipped(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker():
        result = await room.handle.save_messages(lambda current: current)
        assert result.status == "skipped"
        assert (await room.handle.chat("say: next")).status is TurnStatus.COMPLETED
    assert statuses() == ["completed"]
    assert await texts(room) == ["say: next", "next"]


async def test_a_failing_function_raises_for_its_caller_and_stores_nothing(make_room: MakeRoom) -> None:
    room = make_room("gated")

    def fail(current: list[Message]) -> str:
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
    monkeypatch.setattr(input_reservation, "CALLER_SECONDS", 0.3)
    room = make_room("gated")
    calling = asyncio.create_task(room.handle.save_messages(lambda _current: "say: never"))

    async def has_its_place() -> bool:
        return await count_turns() == 1

    await until(has_its_place)
    calling.cancel()  # the process of the caller dies: no one fills the place
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


async def test_pre_aborted_signal(make_room: MakeRoom) -> None:
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
    assert not [task for task in asyncio.all_tasks() if "_stop_on" in repr(task)]  # no one listens any more


async def test_what_is_stopped_beforehand_can_never_be_claimed(make_room: MakeRoom) -> None:
    """It is accepted and stopped in one transaction: no worker comes in between."""
    room = make_room()
    admission = await room.admit("say: one", is_stopped=True)
    assert status_of(await room.turn(admission.turn.pk)) == "aborted"
    await room.say("say: two")
    assert await texts(room) == ["say: one", "say: two", "onetwo"]


async def test_a_signal_in_mid_answer_keeps_the_partial(make_room: MakeRoom) -> None:
    room = make_room("gated")
    signal = asyncio.Event()
    MODELS["current"] = Endless(signal)  # it is set once three words are out
    async with worker():
        saving = asyncio.create_task(room.handle.save_messages("Tell me all.", signal=signal))
        assert (await settled(saving)).status == "aborted"
        [_user, partial] = await room.transcript()
        assert 0 < len(text_of(partial).split()) <= 3
        MODELS["current"] = room.model
        await room.handle.chat("say: next")
    assert (await room.transcript())[1] == partial
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

    async def think(_current: list[Message]) -> str:
        calling.set()
        await asyncio.sleep(600)  # until the turn is stopped
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


async def test_continuing_goes_on_from_the_last_answer(make_room: MakeRoom) -> None:
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


async def test_an_agent_reads_its_messages_from_the_tree_each_time(make_room: MakeRoom) -> None:
    """Those of other processes and other versions too: nothing is kept with the agent."""
    room = make_room()
    instance = make_agent(room.key).instance

    async def texts_of_agent() -> list[str]:
        return [text_of(message) for message in await instance.sessions.shown()]

    assert await texts_of_agent() == []
    turn = await room.say("say: one")
    assert await texts_of_agent() == ["say: one", "one"]
    await room.handle.add_messages(said("another version", "b1"), parent=turn.input_ids[0])
    assert await texts_of_agent() == ["say: one", "another version"]
    await db(select_leaf, turn.session_id, turn.assistant_id)  # as another process does
    assert await texts_of_agent() == ["say: one", "one"]
    await db(
        lambda: add_compaction(turn.session_id, first_id=turn.input_ids[0], last_id=turn.assistant_id, summary="S")
    )
    assert await texts_of_agent() == ["say: one", "one"]  # a summary stands for them where models read
    await room.say("say: two")
    sent = [without_notes(message["content"]) for message in room.model.requests[-1]["messages"]]
    assert sent[-2:] == ["S", "say: two"]
    await db(clear_instance, room.key)
    assert await texts_of_agent() == []


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


async def test_a_turn_names_its_trigger(make_room: MakeRoom) -> None:
    """A person, code, or code that goes on: said with every answer that a page or the API shows."""
    room = make_room()
    await room.say("say: asked")
    async with worker():
        await room.handle.save_messages("say: injected")
        await room.handle.submit_messages("say: handed in")
        assert await room.handle.wait_until_stable(20)
        await room.handle.continue_last_turn()
    instance = await db(AgentInstance.objects.get)
    page = await db(lambda: transcript(lambda: instance))
    answers = [shown for shown in page.messages if shown.message.role == "assistant"]
    began = [shown.turn.trigger for shown in answers if shown.turn is not None]
    assert began == ["submit-message", "program", "program"]
    turns = await db(turn_page, instance.pk)  # newest first; the last one had nothing to add
    assert [turn.trigger for turn in turns] == ["continue", "program", "program", "submit-message"]
