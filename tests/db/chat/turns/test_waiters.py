"""Callers in other processes that wait for a step of a turn: notified, without a look at the rows in between."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import pytest

from chat.core.loop.hooks import ChatResponse
from chat.instances import waiting
from chat.models import Turn, TurnOptions
from chat.testing import worker
from chat.think import Think
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from chat.turns.state.deferred_input import change_options
from sessions_app.core.messages.shapes import Part
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of

RESPONDED: list[str] = []


class Responding(Think):
    """Takes its time after an answer."""

    def get_model(self) -> Any:
        return MODELS["current"]

    async def on_chat_response(self, response: ChatResponse) -> None:
        await asyncio.sleep(0.05)
        RESPONDED.append(response.request_id)


@pytest.fixture(autouse=True)
def _only_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_SILENCE_SECONDS", 3600.0)
    monkeypatch.setattr(waiting, "LONGEST_SILENCE_SECONDS", 3600.0)
    RESPONDED.clear()


async def test_the_end_of_the_response_hook_is_notified(make_room: MakeRoom) -> None:
    room = make_room("responding")
    async with worker(), asyncio.timeout(30):
        result = await room.handle.chat("say: Hello.")
    assert [result.request_id] == RESPONDED


async def test_a_turn_that_waits_for_its_words_and_its_caller_notify_each_other(make_room: MakeRoom) -> None:
    room = make_room("plain")
    async with worker(), asyncio.timeout(30):
        saved = await room.handle.save_messages(lambda _now: [{"role": "user", "parts": [_text("say: Yes.")]}])
    assert saved.status == "completed"
    assert await room.texts() == [("user", "say: Yes."), ("assistant", "Yes.")]


async def test_a_conversation_that_becomes_stable_is_notified(make_room: MakeRoom) -> None:
    room = make_room("plain")
    admission = await room.admit("say: Hello.")
    waiter = asyncio.create_task(room.handle.wait_until_stable())
    async with worker(), asyncio.timeout(30):
        assert await waiter
    assert status_of(await room.turn(admission.turn.pk)) == "completed"


async def test_a_caller_of_a_queued_turn_learns_that_it_was_stopped(make_room: MakeRoom) -> None:
    room = make_room("plain")
    saving = asyncio.create_task(room.handle.save_messages(lambda _now: []))
    async with asyncio.timeout(30):
        await until(lambda: db(Turn.objects.exists))
        assert await room.handle.abort_all_requests()
        assert (await saving).status == "aborted"


async def test_a_sync_callback_does_not_hold_up_the_event_loop(make_room: MakeRoom) -> None:
    room = make_room("plain")
    threads: list[str] = []
    freed = threading.Event()

    class Slow:
        def on_event(self, _text: str) -> None:
            threads.append(threading.current_thread().name)
            assert freed.wait(20)  # set on the loop below: it goes on meanwhile

    async with worker(), asyncio.timeout(30):
        chatting = asyncio.create_task(room.handle.chat("say: Hello.", Slow()))
        await until(_is_set(threads))
        freed.set()
        await chatting
    assert all(name.startswith("think-hook") for name in threads)


async def test_writers_of_a_turns_options_do_not_undo_each_other(make_room: MakeRoom) -> None:
    room = make_room("plain")
    request = TurnRequest(intake=Program(messages=()), request_id="r", awaits_input=True)
    turn_id = (await db(admit, room.key, request)).turn.pk

    def write(number: int) -> None:
        for step in range(5):
            mark = cast("TurnOptions", {f"{number}.{step}": True})
            assert change_options(turn_id, partial(_with, mark))

    await asyncio.gather(*(db(write, number) for number in range(4)))
    options = (await room.turn(turn_id)).options
    assert {f"{number}.{step}" for number in range(4) for step in range(5)} <= set(options)


def _with(mark: TurnOptions, present: TurnOptions) -> TurnOptions:
    return {**present, **mark}


def _is_set(noted: list[str]) -> Callable[[], Awaitable[bool]]:
    async def is_set() -> bool:
        return bool(noted)

    return is_set


def _text(text: str) -> Part:
    return {"type": "text", "text": text}
