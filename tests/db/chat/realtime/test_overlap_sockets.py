"""Overlapping messages on the wire: what the sender and another tab are sent, for each word of concurrency."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.testing import worker
from chat.turns.admission.stop import clear_instance
from tests.db.chat.conftest import text_message
from tests.db.chat.socket_requests import submit
from tests.db.chat.sockets import frames_until, opening_sockets
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from tests.db.chat.turns.agents.gated import gate, reached
from tests.db.chat.turns.agents.steering import WORK, at_work, working
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)

Connect = Callable[[str], Awaitable[Any]]
SUPERSEDING = ["latest", "merge", "debounce"]


@pytest.fixture(autouse=True)
def _yes() -> None:
    SEEN.clear()
    MODELS["current"] = ScriptedModel("say: yes")


@pytest.fixture
async def connect_agent(alice: User) -> AsyncIterator[Connect]:
    async with opening_sockets() as open_socket:
        yield lambda agent: open_socket(alice, f"{agent}/one")


async def dones(socket: Any, count: int) -> list[tuple[str, str]]:
    """Id and outcome of the next terminal frames, in their order."""
    return [
        (frame["id"], frame["outcome"]) for frame in [(await frames_until(socket, "done"))[-1] for _ in range(count)]
    ]


async def accepted(count: int) -> None:
    async with asyncio.timeout(10):
        while True:
            if await Turn.objects.acount() == count:
                return
            await asyncio.sleep(0.02)


async def test_only_the_sender_learns_of_a_drop(connect_agent: Connect) -> None:
    first, other = await connect_agent("drop"), await connect_agent("drop")
    async with worker(), gate() as opened:
        await submit(first, "r1", "u1")
        await reached()
        for socket in (first, other):
            await frames_until(socket, "cf_agent_chat_messages")
        await submit(first, "r2", "u2")
        shown, done = await frames_until(first, "done")
        assert shown["type"] == "cf_agent_chat_messages"
        assert [message["id"] for message in shown["messages"]] == ["u1"]
        assert done == {
            "type": "cf_agent_use_chat_response",
            "id": "r2",
            "body": "",
            "done": True,
            "outcome": "skipped",
            "messageIds": ["u2"],
        }
        assert await other.receive_nothing(timeout=0.3)
        await submit(other, "r3", "u3")
        assert (await frames_until(other, "done"))[-1]["id"] == "r3"
        opened.set()
        for socket in (first, other):
            assert await dones(socket, 1) == [("r1", "completed")]
    assert await Turn.objects.acount() == 1


async def test_the_same_request_may_be_sent_again_when_there_is_room(connect_agent: Connect) -> None:
    socket = await connect_agent("drop")
    async with worker(), gate() as opened:
        await submit(socket, "r1", "u1")
        await reached()
        for _ in range(2):
            await submit(socket, "r2", "u2")
            assert await dones(socket, 1) == [("r2", "skipped")]
        opened.set()
        assert await dones(socket, 1) == [("r1", "completed")]
        await submit(socket, "r2", "u2")
        assert await dones(socket, 1) == [("r2", "completed")]


@pytest.mark.parametrize("agent", SUPERSEDING)
async def test_the_superseded_is_ended_at_once_and_its_message_stays(connect_agent: Connect, agent: str) -> None:
    first, other = await connect_agent(agent), await connect_agent(agent)
    async with worker(), gate() as opened:
        await submit(first, "r1", "u1")
        await reached()
        await frames_until(other, "cf_agent_chat_messages")
        await submit(first, "r2", "u2")
        [shown] = await frames_until(other, "cf_agent_chat_messages")
        assert [message["id"] for message in shown["messages"]] == ["u1", "u2"]
        await submit(first, "r3", "u3")
        *own, shown, done = await frames_until(first, "done")
        assert {frame["type"] for frame in own} == {"cf_agent_chat_messages"}  # nothing else was said to the sender
        assert [message["id"] for message in shown["messages"]] == ["u1", "u2", "u3"]
        assert done == {
            "type": "cf_agent_use_chat_response",
            "id": "r2",
            "body": "",
            "done": True,
            "outcome": "skipped",
            "messageIds": ["u2"],
        }
        assert await dones(other, 1) == [("r2", "skipped")]
        opened.set()
        for socket in (first, other):
            assert await dones(socket, 2) == [("r1", "completed"), ("r3", "completed")]
            assert await socket.receive_nothing(timeout=0.3)
    roles = [message["role"] for message in await AgentHandle(await key()).messages()]
    assert roles == ["user", "assistant", "user", "user", "assistant"]


async def key() -> InstanceKey:
    turn = await Turn.objects.select_related("instance").afirst()
    assert turn is not None
    instance = turn.instance
    return InstanceKey(owner_id=instance.owner_id, agent=instance.agent, name=instance.name)


async def test_queue_answers_everything_in_order(connect_agent: Connect) -> None:
    first, other = await connect_agent("gated"), await connect_agent("gated")
    async with worker(), gate() as opened:
        await submit(first, "r1", "u1")
        await reached()
        await submit(other, "r2", "u2")
        await submit(first, "r3", "u3")
        await accepted(3)
        opened.set()
        for socket in (first, other):
            assert [outcome for _, outcome in await dones(socket, 3)] == ["completed"] * 3


@pytest.mark.parametrize("agent", ["drop", *SUPERSEDING])
async def test_regenerations_are_not_concerned(connect_agent: Connect, agent: str) -> None:
    socket = await connect_agent(agent)
    async with worker():
        await submit(socket, "r1", "u1")
        assert await dones(socket, 1) == [("r1", "completed")]
        async with gate() as opened:
            await submit(socket, "r2", "u2")
            await reached()
            await submit(socket, "r3", "u1", trigger="regenerate-message")
            await accepted(3)
            opened.set()
            assert await dones(socket, 2) == [("r2", "completed"), ("r3", "completed")]


async def test_a_clear_ends_what_waits_for_quiet(connect_agent: Connect) -> None:
    first, other = await connect_agent("debounce"), await connect_agent("debounce")
    await submit(first, "r1", "u1")
    await submit(first, "r2", "u2")  # no one works here: both wait
    await accepted(2)
    assert await dones(first, 1) == [("r1", "skipped")]
    await db(clear_instance, await key())
    assert await dones(first, 1) == [("r2", "skipped")]
    frames = await frames_until(other, "cf_agent_chat_clear")
    assert frames[-1]["type"] == "cf_agent_chat_clear"


async def test_a_submission_is_shown_when_its_turn_starts(connect_agent: Connect) -> None:
    """Not before: until then it may be taken back. Its messages come before the first chunk of the answer."""
    socket = await connect_agent("gated")
    async with worker(), gate() as opened:
        await submit(socket, "r1", "u1")
        await reached()
        handle = AgentHandle(await key())
        await handle.submit_messages([text_message("s1", "user"), text_message("s2", "user")])
        before = await frames_until(socket, "cf_agent_chat_messages")
        assert [message["id"] for message in before[-1]["messages"]] == ["u1"]
        opened.set()
        await frames_until(socket, "done")
        found = await frames_until(socket, "done")
    first_chunk = next(number for number, frame in enumerate(found) if "seq" in frame)
    transcripts = [frame for frame in found[:first_chunk] if frame["type"] == "cf_agent_chat_messages"]
    # The answer may be there by then, too.
    asked = [message["id"] for message in transcripts[-1]["messages"] if message["role"] == "user"]
    assert asked[-2:] == ["s1", "s2"]
    assert found[-1]["messageIds"] == ["s1", "s2"]


async def test_added_messages_are_sent_but_not_into_a_stream(connect_agent: Connect) -> None:
    socket = await connect_agent("gated")
    async with worker(), gate() as opened:
        await submit(socket, "r1", "u1")
        await frames_until(socket, "cf_agent_chat_messages")
        await reached()
        handle = AgentHandle(await key())
        await handle.add_messages({**text_message("early", "assistant")})
        assert await socket.receive_nothing(timeout=0.5)  # a list would take the answer that streams from the page
        opened.set()
        during = await frames_until(socket, "done")
        assert [frame["type"] for frame in during].count("cf_agent_chat_messages") == 1  # the one with the answer
        await handle.add_messages({**text_message("note", "assistant")})
        [shown] = await frames_until(socket, "cf_agent_chat_messages")
    ids = [message["id"] for message in shown["messages"]]
    assert (ids[:2], ids[-1]) == (["u1", "early"], "note")


async def test_a_message_that_steers_joins_the_answer_of_another_tab(connect_agent: Connect) -> None:
    """The frame says what it does; its request ends with the answer that took it in."""
    MODELS["current"] = ScriptedModel(WORK)
    first, other = await connect_agent("worker"), await connect_agent("worker")
    async with worker(), at_work() as opened:
        await submit(first, "r1", "u1", text=WORK)
        await working()
        await submit(other, "r2", "u2", text="say: Changed course.", thinkDelivery="steer")
        await accepted(2)
        opened.set()
        for socket in (first, other):
            assert sorted(await dones(socket, 2)) == [("r1", "completed"), ("r2", "skipped")]
    turns = {turn.request_id: turn async for turn in Turn.objects.all()}
    assert (turns["r2"].delivery, turns["r2"].answered_by_id) == ("steer", turns["r1"].pk)
