"""Turns whose worker dies: they go on and end as an undisturbed one, or are given up with what was said kept."""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from django.utils import timezone

from chat.core.loop.hooks import ResponseStatus
from chat.core.model.language_model import ModelEvent, ModelRequest
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.reads.snapshots import is_final
from chat.streams.logs.log import get_log
from chat.streams.reader import read
from chat.streams.writing import writer
from chat.testing import worker
from chat.turns.admission.intake import Continue
from chat.turns.admission.stop import cancel_turn
from chat.turns.state.status import TurnStatus
from fibers.execution import recovery
from fibers.testing import claim_for_test, crash_after, expire_lease, run_until_idle
from sessions_app.core.messages.shapes import Message
from tests.db.chat.streams.support import wipe
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, SEEN
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, load
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, status_of, text_of
from .recovering import Mortal, mortal

TWO_CALLS = (
    'say: First.\ncall tool add {"a": 1, "b": 2} id=one\ncall tool add {"a": 3, "b": 4} id=two\nsay: It is {results}.'
)


def seen(name: str) -> list[Any]:
    return [value for found, value in SEEN if found == name]


def plain(message: Message) -> list[JSONObject]:
    """The parts without the ids that differ from turn to turn."""
    return [{k: v for k, v in part.items() if k != "id"} for part in message["parts"]]


async def undisturbed(make_room: MakeRoom, text: str) -> list[JSONObject]:
    room = make_room(name="undisturbed")
    await room.say(text)
    CALLS.clear()
    return plain((await room.transcript())[-1])


@pytest.mark.parametrize(
    ("key", "attempts", "requests"),
    [
        ("begin", 2, 2),
        ("model:0", 2, 2),
        ("call:one", 2, 2),
        ("call:two", 2, 2),
        ("ending", 2, 2),  # nothing of the end is stored, but the log has it
        ("model:1", 1, 2),  # in one transaction with the end of the turn: all of it is there
        ("final", 1, 2),
    ],
)
async def test_a_crash_after_any_record_changes_nothing(
    make_room: MakeRoom, key: str, attempts: int, requests: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else what waits may be written in between on a slow machine, by time and after the last boundary of a text.
    settings.THINK_STREAM_COLD_SECONDS = 1000.0
    monkeypatch.setattr(writer, "BOUNDARY_SECONDS", 1000.0)
    expected = await undisturbed(make_room, TWO_CALLS)
    room = make_room()
    with crash_after(key):
        turn = await room.say(TWO_CALLS)
    assert status_of(turn) == "completed"
    assert turn.fiber.attempt == attempts
    assert plain((await room.transcript())[-1]) == expected
    assert [role for role, _ in await room.texts()] == ["user", "assistant"]
    rows = await db(lambda: list(ToolCallRecord.objects.filter(turn_id=turn.pk).values_list("call_id", "status")))
    assert sorted(rows) == [("one", "succeeded"), ("two", "succeeded")]
    assert len(room.model.requests) == requests
    records = [load(record.text) for record in await read(turn.pk, 0)]
    outputs = [chunk["toolCallId"] for chunk in records if chunk["type"] == "tool-output-available"]
    assert sorted(outputs) == ["one", "two"]


@pytest.mark.parametrize("key", ["ending", "model:1", "final"])
async def test_a_settled_call_is_not_run_again(make_room: MakeRoom, key: str) -> None:
    room = make_room()
    with crash_after(key):
        await room.say(TWO_CALLS)
    assert sorted(CALLS) == [(1, 2), (3, 4)]


@pytest.mark.parametrize("deaths", [(0,), (1,), (4,), (2, 3), (0, 0, 2)])
async def test_a_crash_in_mid_answer_loses_and_doubles_no_text(make_room: MakeRoom, deaths: tuple[int, ...]) -> None:
    expected = await undisturbed(make_room, "stream 12 words")
    room = make_room()
    with mortal(room, *deaths):
        turn = await room.say("stream 12 words")
    assert status_of(turn) == "completed"
    parts = plain((await room.transcript())[-1])
    assert [part for part in parts if part["type"] != "data-think-resumed"] == expected
    _check_seams(parts, deaths)
    kinds = [load(record.text)["type"] for record in await read(turn.pk, 0)]
    assert (kinds.count("start"), kinds.count("finish"), kinds.count("text-start")) == (1, 1, 1)


async def test_a_hot_log_that_is_lost_in_a_takeover_loses_and_doubles_no_text(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await undisturbed(make_room, "stream 12 words")
    enter = writer.StreamWriter.__aenter__

    async def enter_and_lose(self: writer.StreamWriter) -> writer.StreamWriter:
        entered = await enter(self)
        await wipe(get_log())
        return entered

    monkeypatch.setattr(writer.StreamWriter, "__aenter__", enter_and_lose)
    room = make_room()
    with mortal(room, 4):
        turn = await room.say("stream 12 words")
    assert status_of(turn) == "completed"
    parts = plain((await room.transcript())[-1])
    assert [part for part in parts if part["type"] != "data-think-resumed"] == expected
    _check_seams(parts, (4,))


def _check_seams(parts: list[JSONObject], deaths: tuple[int, ...]) -> None:
    """Each place where a text was cut is marked once, in order; an attempt of which nothing was shown leaves none."""
    (text,) = [part["text"] for part in parts if part["type"] == "text"]
    seams = [part["data"]["offset"] for part in parts if part["type"] == "data-think-resumed"]
    assert seams == sorted(set(seams))
    assert len(seams) == sum(death > 0 for death in deaths)
    assert all(0 < offset < len(text) for offset in seams)


async def test_half_a_call_is_a_failed_one_that_the_model_sees(make_room: MakeRoom) -> None:
    room = make_room()
    with mortal(room, 2) as model:
        turn = await room.say('call tool add {"a": 1, "b": 2}\nsay: {result}')
    answer = (await room.transcript())[-1]
    [call] = [part for part in answer["parts"] if "toolCallId" in part]
    reason = "The tool call was interrupted before its arguments were complete."
    assert (call["state"], call["errorText"]) == ("output-error", reason)
    assert model.requests[-1]["messages"][-1]["role"] == "tool"
    assert reason in text_of(answer)
    assert (CALLS, status_of(turn)) == ([], "completed")


async def test_nothing_shown_is_asked_again_and_something_shown_is_continued(make_room: MakeRoom) -> None:
    room = make_room()
    with mortal(room, 0) as model:
        await room.say("stream 5 words")
    assert model.requests[0] == model.requests[1]
    with mortal(room, 2) as model:
        await room.say("stream 7 words")
    before, after = model.requests
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert [message["role"] for message in after["messages"][-2:]] == ["assistant", "user"]


async def test_the_agent_may_decline_to_go_on(make_room: MakeRoom) -> None:
    room = make_room("careful")
    with mortal(room, 3):
        turn = await room.say("stream 12 words")
    assert (status_of(turn), turn.error_text) == ("error", "The assistant was interrupted.")
    [context] = seen("on_chat_recovery")
    shown = text_of((await room.transcript())[-1])
    assert context.partial_text == shown != ""
    assert (context.kind, context.attempt, context.turn_id) == ("continue", 2, turn.pk)
    assert context.created_at == turn.accepted_at.isoformat()
    assert len(room.model.requests) == 1


async def test_recovery_before_anything_was_shown_is_a_retry(make_room: MakeRoom) -> None:
    room = make_room("careful")
    with mortal(room, 0):
        await room.say("stream 12 words")
    [context] = seen("on_chat_recovery")
    assert (context.kind, context.partial_text) == ("retry", "")
    assert [role for role, _ in await room.texts()] == ["user"]


async def test_an_unwanted_partial_is_dropped_but_for_settled_calls(make_room: MakeRoom) -> None:
    room = make_room("thrifty")
    with mortal(room, 3):
        await room.say("stream 12 words")
    assert [role for role, _ in await room.texts()] == ["user"]
    room = make_room("thrifty", name="calls")
    with crash_after("ending"):  # both calls are settled by then, in whatever order
        await room.say(TWO_CALLS)
    parts = (await room.transcript())[-1]["parts"]
    assert [part["state"] for part in parts] == ["output-available"] * 2


@pytest.mark.parametrize(("agent", "ending"), [("thrifty", "error"), ("careful", "error"), ("plain", "aborted")])
async def test_a_result_that_was_settled_and_not_yet_shown_outlives_the_turn(
    make_room: MakeRoom, agent: str, ending: str
) -> None:
    """Its effect has happened: whether the agent drops the partial, declines to go on, or a person stops the turn."""
    room = make_room(agent)
    admission = await room.admit('call tool add {"a": 1, "b": 2} id=one\nsay: It is {result}.')
    with crash_after("call:one"):
        await run_until_idle(recover=False)
    if ending == "aborted":
        await db(cancel_turn, admission.turn.pk)
    await run_until_idle(skip_delays=True)
    turn = await room.turn(admission.turn.pk)
    assert status_of(turn) == ending
    [call] = [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]
    assert (call["state"], call["output"]) == ("output-available", 3)
    chunks = [load(record.text) for record in await read(turn.pk, 0)]
    assert [chunk["output"] for chunk in chunks if chunk["type"] == "tool-output-available"] == [3]


async def test_the_next_turn_goes_on_below_what_a_lost_one_left(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room()
    # A heartbeat in between counts as progress, and on a busy machine there are several.
    with mortal(room, 3, *[0] * 10, spares="say: next"):
        first = await room.admit("stream 12 words")
        second = await room.admit("say: next")
        await run_until_idle(skip_delays=True)
    turns = [await room.turn(admission.turn.pk) for admission in (first, second)]
    assert [status_of(turn) for turn in turns] == ["error", "completed"]
    roles = [role for role, _ in await room.texts()]
    assert roles == ["user", "assistant", "user", "assistant"]  # and not a branch beside the rest of the first


async def test_a_message_that_arrives_while_a_turn_is_down_is_answered_after_it(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    with mortal(room, 3):
        first = await room.admit("stream 12 words")
        await run_until_idle(recover=False)  # the worker has died, and no one has noticed yet
        second = await room.admit("say: and then?")
        await run_until_idle(recover=False)
        assert status_of(await room.turn(second.turn.pk)) == "pending"
        await run_until_idle(skip_delays=True)
    turns = [await room.turn(admission.turn.pk) for admission in (first, second)]
    assert [(status_of(turn), turn.fiber.attempt) for turn in turns] == [("completed", 2), ("completed", 1)]
    assert [role for role, _ in await room.texts()] == ["user", "assistant"] * 2
    question, answer, *later = [text for _, text in await room.texts()]
    assert (question, len(answer.split())) == ("stream 12 words", 12)
    assert later == ["say: and then?", "and then?"]
    sent = room.model.requests[-1]["messages"]
    assert answer in [message["content"] for message in sent if message["role"] == "assistant"]
    assert len(seen("on_chat_response")) == 2


async def test_a_turn_that_keeps_losing_its_worker_is_given_up(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 1
    room = make_room("recorder")
    with mortal(room, 3, 0, 0, 0, 0, 0):
        turn = await room.say("stream 12 words")
    assert status_of(turn) == "error"
    assert turn.error_text == "reworded: The assistant was interrupted and could not recover. Please try again."
    assert turn.finished_at is not None
    partial = text_of((await room.transcript())[-1])
    assert 0 < len(partial.split()) < 12
    [response] = seen("on_chat_response")
    assert (response.status, text_of(response.message)) == (ResponseStatus.ERROR, partial)
    MODELS["current"] = ScriptedModel()
    assert status_of(await room.say("say: fine")) == "completed"


async def test_a_turn_that_is_given_up_is_over_once_its_rest_is_stored(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room()
    admission = await room.admit("say: hi")
    turn = admission.turn
    assert await db(claim_for_test, turn.fiber_id) is not None
    await db(lambda: Turn.objects.filter(pk=turn.pk).update(started_at=timezone.now()))
    await db(expire_lease, turn.fiber_id)
    await db(lambda: recovery.sweep(prune=False))
    assert status_of(await room.turn(turn.pk)) == "error"
    assert await db(is_final, turn.pk) is False
    await run_until_idle()
    assert await db(is_final, turn.pk) is True
    assert "could not recover" in (await room.turn(turn.pk)).error_text


async def test_a_class_decides_how_often_a_turn_continues_and_with_which_text(make_room: MakeRoom) -> None:
    room = make_room("hasty")
    with mortal(room, 3, 0, 0, 0, 0, 0):
        turn = await room.say("stream 12 words")
    assert (status_of(turn), turn.error_text) == ("error", "The line broke twice. Ask again.")
    assert text_of((await room.transcript())[-1])


async def test_a_class_has_words_for_a_turn_that_the_sweep_gives_up(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room("hasty")
    with mortal(room, 0, 0, 0):
        turn = await room.say("stream 12 words")
    assert (status_of(turn), turn.error_text) == ("error", "The line broke twice. Ask again.")


async def test_an_agent_may_resign_from_recovery(make_room: MakeRoom) -> None:
    room = make_room("resigned")
    with mortal(room, 3):
        turn = await room.say("stream 12 words")
    assert (status_of(turn), len(room.model.requests)) == ("error", 1)
    assert text_of((await room.transcript())[-1])


async def test_the_end_of_an_abandoned_turn_is_sent(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room("recorder")
    sent: list[str] = []

    class Callback:
        def on_error(self, text: str) -> None:
            sent.append(text)

    with mortal(room, 2, 0, 0):
        waiting = asyncio.create_task(room.handle.chat("stream 12 words", Callback()))
        for _ in range(500):
            await run_until_idle(skip_delays=True)
            await asyncio.sleep(0.02)
            if waiting.done():
                break
    result = await waiting
    assert result.status is TurnStatus.ERROR
    assert (
        sent == [result.error] == ["reworded: The assistant was interrupted and could not recover. Please try again."]
    )
    assert result.message is not None
    assert len(seen("on_chat_response")) == 1


async def test_a_running_turn_is_stopped_and_keeps_its_text(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        admission = await room.admit("stream 400 words at 60/s")
        for _ in range(500):
            await asyncio.sleep(0.02)
            if len(await read(admission.turn.pk, 0)) > 5:
                break
        assert await db(cancel_turn, admission.turn.pk) is True
        for _ in range(500):
            await asyncio.sleep(0.02)
            if (await room.turn(admission.turn.pk)).fiber.finished_at is not None:
                break
        assert await db(cancel_turn, admission.turn.pk) is False
        result = await room.handle.chat("say: next")
    assert status_of(await room.turn(admission.turn.pk)) == "aborted"
    partial = text_of((await room.transcript())[1])
    shown = [load(record.text) for record in await read(admission.turn.pk, 0)]
    assert partial == "".join(chunk["delta"] for chunk in shown if chunk["type"] == "text-delta")
    assert 0 < len(partial.split()) < 400
    assert result.status is TurnStatus.COMPLETED


async def test_a_crash_while_it_is_being_stopped_still_stops_it(make_room: MakeRoom) -> None:
    room = make_room()
    model = Mortal(3)
    room.model = MODELS["current"] = model
    admission = await room.admit("stream 12 words")

    class Stopping(Mortal):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            await db(cancel_turn, admission.turn.pk)
            async for event in super().stream(request):
                yield event

    MODELS["current"] = Stopping(3)
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(admission.turn.pk)) == "aborted"
    MODELS["current"] = ScriptedModel()
    assert status_of(await room.say("say: next")) == "completed"


async def test_a_stopped_answer_is_continued_where_it_stopped(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    await room.say("stream 12 words\nerror in stream after 5 code context_length_exceeded")
    turn = await room.say(Continue())
    assert status_of(turn) == "completed"
    _user, first, second = await room.transcript()
    words = (text_of(first) + text_of(second)).split()
    assert [int(re.sub("[a-z]", "", word)) for word in words] == list(range(12))  # the words are numbered
    assert seen("on_chat_response")[-1].continuation
