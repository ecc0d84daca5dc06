"""Turns, errors and aborts, through the handle that server code holds."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from chat.core.model.language_model import Finish, FinishReason, ModelEvent, ModelRequest
from chat.errors import TurnFailed
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.testing import worker
from chat.turns.admission.stop import clear_instance
from chat.turns.state.status import TurnStatus
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of, text_of

FATAL = "code context_length_exceeded"
FAILS_AFTER_TEXT = f"say: Some text\nerror in stream after 1 {FATAL}"


class Callback:
    """Keeps what it is sent, in order."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []

    def on_start(self, request_id: str) -> None:
        self.sent.append(("start", request_id))

    async def on_event(self, text: str) -> None:
        self.sent.append(("event", json.loads(text)))

    def on_done(self) -> None:
        self.sent.append(("done", None))

    async def on_error(self, text: str) -> None:
        self.sent.append(("error", text))

    def names(self) -> list[str]:
        return [name for name, _ in self.sent if name != "event"]


class Speaking(Callback):
    """Tells when the answer has begun."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = asyncio.Event()

    async def on_event(self, text: str) -> None:
        await super().on_event(text)
        if "text-delta" in text:
            self._begun.set()

    async def begun(self) -> None:
        async with asyncio.timeout(20):
            await self._begun.wait()


class Empty(ScriptedModel):
    """Ends without a word."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        yield Finish(reason=FinishReason.STOP)


def responses() -> list[Any]:
    return [value for name, value in SEEN if name == "on_chat_response"]


async def test_a_class_without_a_model_explains_what_to_do(make_room: MakeRoom) -> None:
    room = make_room("no-model")
    async with worker():
        callback = Callback()
        result = await room.handle.chat("hi", callback)
        assert callback.names() == ["start", "error"]
        assert "Override get_model() in NoModel" in str(result.error)
        assert (await room.handle.chat("again", Callback())).status is TurnStatus.ERROR


async def test_two_turns_accumulate(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        results = [await room.handle.chat(f"say: {text}") for text in ("one", "two")]
    assert [role for role, _ in await room.texts()] == ["user", "assistant", "user", "assistant"]
    assert [result.message for result in results] == (await room.transcript())[1::2]


async def test_done_comes_after_the_answer_is_stored(make_room: MakeRoom) -> None:
    room = make_room()
    stored: list[list[tuple[str, str]]] = []

    class Looking(Callback):
        async def on_done(self) -> None:  # type: ignore[override]  # may be sync or async
            stored.append(await room.texts())

    async with worker():
        await room.handle.chat("say: one", Looking())
    assert stored == [[("user", "say: one"), ("assistant", "one")]]


async def test_duplicate_user_id(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        for text in ("say: A", "say: B"):
            await room.handle.chat({"id": "m", "role": "user", "parts": [{"type": "text", "text": text}]})
    assert [text_of(m) for m in await room.transcript() if m["role"] == "user"] == ["say: A"]


async def _failed(room: Room) -> Callback:
    callback = Callback()
    await room.handle.chat(FAILS_AFTER_TEXT, callback)
    return callback


async def test_partial_kept_on_error(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    async with worker():
        callback = await _failed(room)
    assert callback.names() == ["start", "error"]
    errors = [value for name, value in SEEN if name == "on_chat_error"]
    assert len(errors) == 1
    assert callback.sent[-1][1] == f"reworded: {errors[0][0]}"
    _user, assistant = await room.transcript()
    assert text_of(assistant)
    assert "Some text".startswith(text_of(assistant))
    assert errors[0][1].messages_persisted


async def test_turn_after_error(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        await _failed(room)
        result = await room.handle.chat("say: fine")
    assert result.status is TurnStatus.COMPLETED
    assert len(await room.transcript()) == 4


async def test_an_aborted_turn_keeps_its_text(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    signal = asyncio.Event()

    class Stopping(Callback):
        async def on_event(self, text: str) -> None:
            await super().on_event(text)
            if text.count("text-delta"):
                signal.set()

    callback = Stopping()
    async with worker():
        result = await room.handle.chat("stream 200 words at 50/s", callback, signal=signal)
        assert result.status is TurnStatus.ABORTED
        assert callback.names() == ["start"]
        assert [r.status for r in responses()] == ["aborted"]
        partial = text_of((await room.transcript())[-1])
        assert 0 < len(partial.split()) < 200
        await room.handle.chat("say: next")
    assert len(await room.transcript()) == 4


async def test_cancel_by_another_call(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    callback = Speaking()
    async with worker():
        chatting = asyncio.create_task(room.handle.chat("stream 200 words at 50/s", callback))
        await callback.begun()
        [(_, request_id)] = [sent for sent in callback.sent if sent[0] == "start"]
        assert await room.handle.cancel_chat(request_id)
        assert (await chatting).status is TurnStatus.ABORTED
        assert "done" not in callback.names()
        assert [response.status for response in responses()] == ["aborted"]
        assert 0 < len(text_of((await room.transcript())[-1]).split()) < 200
        await room.handle.chat("say: next")
    assert len(await room.transcript()) == 4


async def test_unknown_cancel_id(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        assert await room.handle.cancel_chat("nobody") is False
        assert (await room.handle.chat("say: fine")).status is TurnStatus.COMPLETED


async def test_an_empty_answer_is_a_success(make_room: MakeRoom) -> None:
    room = make_room("recorder", name="empty")
    async with worker():
        callback = Callback()
        MODELS["current"] = Empty()
        result = await room.handle.chat("say nothing", callback)
    assert callback.names() == ["start", "done"]
    assert result.message is None
    assert [(r.status, r.message["parts"]) for r in responses()] == [("completed", [])]
    assert [role for role, _ in await room.texts()] == ["user"]


async def test_error_before_any_part(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    async with worker():
        result = await room.handle.chat("error 400", Callback())
    assert result.status is TurnStatus.ERROR
    assert [r.status for r in responses()] == ["error"]
    assert [role for role, _ in await room.texts()] == ["user"]


async def test_in_band_error_is_terminal(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    async with worker():
        result = await room.handle.chat(f"say: too late\nerror in stream after 0 {FATAL}", Callback())
    assert result.status is TurnStatus.ERROR
    assert [role for role, _ in await room.texts()] == ["user"]
    assert [response.status for response in responses()] == ["error"]


async def test_a_callback_that_raises_stops_no_turn(make_room: MakeRoom) -> None:
    room = make_room("recorder")

    class Throwing(Callback):
        async def on_error(self, text: str) -> None:
            raise ValueError("the callback broke")

    async with worker():
        with pytest.raises(ValueError, match="the callback broke"):
            await room.handle.chat("error 400", Throwing())
    assert len([1 for name, _ in SEEN if name == "on_chat_error"]) == 1
    assert len(responses()) == 1


async def test_without_on_error_the_caller_gets_the_error(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        with pytest.raises(TurnFailed):
            await room.handle.chat("error 400")


async def test_response_hook_is_outside_the_lock(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    async with worker():
        callback = Speaking()
        first = asyncio.create_task(room.handle.chat("stream 20 words at 50/s", callback))
        await callback.begun()
        await room.handle.chat("say: two")
        await first
    assert [len(text_of(r.message).split()) for r in responses()] == [20, 1]
    assert len(await room.transcript()) == 4


async def test_a_hook_may_wait_for_a_turn_of_its_own(make_room: MakeRoom) -> None:
    room = make_room("chainer")

    async def has_chained() -> bool:
        return len(SEEN) >= 3

    async with worker():
        await room.handle.chat("say: one")
        await until(has_chained)
    assert [text for _, text in await room.texts()] == ["say: one", "one", "say: and more", "and more"]
    assert [name for name, _ in SEEN] == ["on_chat_response", "saved", "on_chat_response"]
    assert SEEN[1][1].status == "completed"


async def test_clear_during_stream(make_room: MakeRoom) -> None:
    room = make_room()
    async with worker():
        callback = Speaking()
        chatting = asyncio.create_task(room.handle.chat("stream 300 words at 60/s", callback))
        await callback.begun()
        await db(clear_instance, room.key)
        await chatting
        assert await room.transcript() == []
        await room.handle.chat("say: after")
    assert len(await room.transcript()) == 2


async def test_a_queued_turn_that_is_cleared_is_skipped(make_room: MakeRoom) -> None:
    room = make_room()
    admission = await room.admit("say: one")
    await db(clear_instance, room.key)
    await run_until_idle()
    assert status_of(await room.turn(admission.turn.pk)) == "skipped"
    assert await db(Turn.objects.filter(started_at__isnull=False).count) == 0
