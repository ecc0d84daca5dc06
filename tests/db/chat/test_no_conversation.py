"""Agents that do not chat, and turns that fail before they say anything: no frame too many."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.agent import declared
from chat.agent.base import Agent
from chat.llm.scripted import ScriptedModel
from chat.testing import worker
from chat.think import TurnContext
from tests.db.chat.conftest import text_message
from tests.db.chat.sockets import connection, cookie_of, frames_until
from tests.db.chat.turns.agents.everyday import MODELS, Plain

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _counter_and_refuser() -> Iterator[None]:
    MODELS["current"] = ScriptedModel("say: yes")

    class LoneCounter(Agent):
        """Has a state and no conversation."""

        initial_state = {"count": 0}

    class Refuser(Plain):
        """Fails before each turn."""

        def before_turn(self, context: TurnContext) -> None:
            raise RuntimeError("not today")

    yield
    declared.unregister(LoneCounter)
    declared.unregister(Refuser)


@pytest.fixture
async def opened(alice: User) -> AsyncIterator[Any]:
    sockets: list[Any] = []
    cookie = await sync_to_async(cookie_of)(alice)

    async def go(agent: str) -> tuple[Any, list[dict[str, Any]]]:
        made = connection(f"/agents/{agent}/one", cookie=cookie)
        await made.connect(timeout=15)
        sockets.append(made)
        return made, await frames_until(made, "cf_agent_mcp_servers")

    yield go
    for made in sockets:
        await made.disconnect()


async def submit(socket: Any) -> None:
    body = json.dumps({"messages": [text_message("u1", "user")], "trigger": "submit-message"})
    request = {"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}}
    await socket.send_to(json.dumps(request))


async def test_an_agent_that_does_not_chat_sends_no_transcript(opened: Any) -> None:
    socket, frames = await opened("lone-counter")
    assert [frame["type"] for frame in frames] == ["cf_agent_identity", "cf_agent_state", "cf_agent_mcp_servers"]
    await submit(socket)
    (refusal,) = await frames_until(socket, "done")
    assert (refusal["id"], refusal["error"]) == ("r1", True)
    assert await socket.receive_nothing(timeout=0.3)


async def test_a_probe_of_an_agent_that_does_not_chat_is_answered(opened: Any) -> None:
    socket, _ = await opened("lone-counter")
    await socket.send_to(json.dumps({"type": "cf_agent_stream_resume_request", "probeId": "p1"}))
    (answer,) = await frames_until(socket, "cf_agent_stream_resume_none")
    assert (answer["reason"], answer["probeId"]) == ("idle", "p1")


async def test_a_turn_that_fails_before_its_stream_ends_with_one_frame(opened: Any) -> None:
    socket, _ = await opened("refuser")
    async with worker():
        await submit(socket)
        frames = await frames_until(socket, "done")
    responses = [frame for frame in frames if frame["type"] == "cf_agent_use_chat_response"]
    assert [(frame["id"], frame["error"], frame["done"]) for frame in responses] == [("r1", True, True)]
    assert responses[0]["body"]
