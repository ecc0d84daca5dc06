"""The hooks of a turn run in the documented order, whichever way the turn came in."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from chat.core.model.language_model import Finish, FinishReason, ModelEvent, ModelRequest
from chat.instance.instance import make_agent
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.testing import worker
from chat.think import Think
from chat.turns.admission.intake import ClientArray, Continue, Edit, Regenerate
from chat.turns.admission.stop import cancel_turn
from fibers.testing import crash_after
from sessions_app.core.messages.shapes import Message, NewMessage
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, SEEN
from tests.db.chat.turns.agents.hook_agents import no_hooks, order, seen
from thinkproject.kernel.aio import db

from .conftest import Room, status_of

__all__ = ["no_hooks"]  # a fixture

ADD = 'call tool add {"a": 2, "b": 3} id=one\nsay: {result}'
ATTEMPT = ["configure_session", "before_turn"]
FIRST_STEP = ["before_step", "on_chunk", "before_tool_call", "after_tool_call", "on_chunk", "on_step_finish"]
LAST_STEP = ["before_step", "on_chunk", "on_step_finish"]
ORDER = [*ATTEMPT, "on_chunk", *FIRST_STEP, "on_chunk", *LAST_STEP, "on_chunk", "on_chat_response"]


async def socket_submit(room: Room) -> None:
    message: Message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": ADD}]}
    await room.say(ClientArray(messages=[message]))


async def socket_regenerate(room: Room) -> None:
    await _prepare(room, ADD)
    await room.say(ClientArray(messages=await _shown(room, "user"), is_regenerate=True))


async def socket_edit(room: Room) -> None:
    await _prepare(room, "say: before")
    [message] = await _shown(room, "user")
    await room.say(ClientArray(messages=[{**message, "parts": [{"type": "text", "text": ADD}]}]))


async def api_submit(room: Room) -> None:
    await room.say(ADD)


async def api_regenerate(room: Room) -> None:
    await _prepare(room, ADD)
    [message] = await _shown(room, "user")
    await room.say(Regenerate(message_id=message["id"]))


async def api_edit(room: Room) -> None:
    await _prepare(room, "say: before")
    [message] = await _shown(room, "user")
    edited: NewMessage = {"role": "user", "parts": [{"type": "text", "text": ADD}]}
    await room.say(Edit(message_id=message["id"], message=edited))


async def handle_chat(room: Room) -> None:
    async with worker():
        await room.handle.chat(ADD)


async def save_messages(room: Room) -> None:
    async with worker():
        agent = make_agent(room.key)
        assert isinstance(agent, Think)
        await agent.save_messages(ADD)
        await _until(lambda: seen("on_chat_response"))


async def continuation(room: Room) -> None:
    await _prepare(room, "say: Half")
    MODELS["current"] = ScriptedModel(f"say: Half\n{ADD}")
    await room.say(Continue())


async def recovery(room: Room) -> None:
    with crash_after("begin"):
        await room.say(ADD)


async def _prepare(room: Room, text: str) -> None:
    await room.say(text)
    SEEN.clear()


async def _shown(room: Room, role: str) -> list[Message]:
    return [message for message in await room.transcript() if message["role"] == role]


PATHS = [
    socket_submit,
    socket_regenerate,
    socket_edit,
    api_submit,
    api_regenerate,
    api_edit,
    handle_chat,
    save_messages,
    continuation,
    recovery,
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
async def test_hooks_run_in_their_order_for_every_entry_path(flexible_room: Room, path: object) -> None:
    assert callable(path)
    await path(flexible_room)
    ran = order()
    if path is recovery:
        assert ran.pop(0) == "on_chat_recovery"
    assert ran == ORDER
    assert [context.continuation for context in seen("before_turn")] == [path is continuation]
    assert [response.continuation for response in seen("on_chat_response")] == [path is continuation]
    assert [record.step_number for record in seen("on_step_finish")] == [0, 1]


@pytest.mark.parametrize(
    ("key", "second"),
    [
        ("model:0", [*FIRST_STEP[2:], "on_chunk", *LAST_STEP]),
        ("call:one", ["on_chunk", "on_step_finish", "on_chunk", *LAST_STEP]),
        ("ending", []),
    ],
)
async def test_a_step_is_finished_once_whichever_attempt_does_it(
    flexible_room: Room, key: str, second: list[str]
) -> None:
    with crash_after(key):
        turn = await flexible_room.say(ADD)
    assert status_of(turn) == "completed"
    ran = order()
    ran = ran[ran.index("on_chat_recovery") + 1 :]
    assert ran[:2] == ATTEMPT
    wanted = second[1:] if second[:1] == ["on_chunk"] else second
    assert [name for name in ran[2:] if name != "on_chunk"] == [
        *(name for name in wanted if name != "on_chunk"),
        "on_chat_response",
    ]
    finished = seen("on_step_finish")
    assert [record.step_number for record in finished] == [0, 1]
    assert [result["output"] for result in finished[0].tool_results] == [5]
    assert finished[0].usage.output_tokens > 0
    assert CALLS == [(2, 3)]


async def test_a_later_attempt_knows_the_steps_of_the_earlier_one(flexible_room: Room) -> None:
    with crash_after("model:1"):
        await flexible_room.say(f'call tool add {{"a": 1, "b": 1}}\nwait 0 s\n{ADD}')
    *_, last = seen("before_step")
    first, second = last.steps
    assert (last.step_number, first.step_number, second.finish_reason) == (2, 0, "tool-calls")
    assert [[result["output"] for result in step.tool_results] for step in last.steps] == [[2], [5]]
    roles = [[message["role"] for message in step.request["messages"]] for step in last.steps]
    assert roles == [["system", "user"], ["system", "user", "assistant", "tool"]]
    *_, outcome = seen("after_tool_call")  # of the call that the earlier attempt did not run
    assert [type(message).__name__ for message in outcome.messages] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
    ]
    assert outcome.step_number == 1


class Wordless(ScriptedModel):
    """Answers, and says nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        yield Finish(reason=FinishReason.STOP)


@pytest.mark.parametrize(
    ("model", "status", "parts"),
    [
        (ScriptedModel("say: hi"), "completed", 1),
        (Wordless(), "completed", 0),
        (ScriptedModel("error 400"), "error", 0),
        (ScriptedModel("say: one two\nerror in stream after 1 code context_length_exceeded"), "error", 1),
    ],
    ids=["an answer", "no words", "an error before any part", "an error after some"],
)
async def test_the_response_hook_runs_however_the_turn_ends(
    flexible_room: Room, model: ScriptedModel, status: str, parts: int
) -> None:
    MODELS["current"] = model
    turn = await flexible_room.say("hello")
    assert status_of(turn) == status
    [response] = seen("on_chat_response")
    assert (response.status.value, response.error) == (status, turn.error_text or None)
    assert len([part for part in response.message["parts"] if part["type"] == "text"]) == parts
    assert order()[-1] == "on_chat_response"


async def test_a_stopped_turn_is_reported_as_such(flexible_room: Room) -> None:
    async with worker():
        admission = await flexible_room.admit("stream 400 words at 100/s")
        await _until(lambda: any(context.chunk["type"] == "text-delta" for context in seen("on_chunk")))
        assert await db(cancel_turn, admission.turn.pk)
        await _until(lambda: seen("on_chat_response"))
    turn: Turn = await flexible_room.turn(admission.turn.pk)
    assert status_of(turn) == "aborted"
    [response] = seen("on_chat_response")
    assert response.status.value == "aborted"
    assert response.message["parts"]


async def _until(is_so: Callable[[], object]) -> None:
    for _ in range(3000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came about")
