"""Code that asks a person, frame by frame: the client that decides gets the rest of the same answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.llm.scripted import ScriptedModel
from fibers.testing import worker
from tests.db.chat.sockets import opening_sockets
from tests.db.chat.turns.agents.coding import Coder, sandbox_closed, script
from tests.db.chat.turns.agents.everyday import MODELS

pytestmark = pytest.mark.django_db(transaction=True)


async def frame_with(socket: Any, text: str) -> dict[str, Any]:
    """Read up to the frame that has this text."""
    async with asyncio.timeout(20):
        while True:
            frame: dict[str, Any] = json.loads(await socket.receive_from(timeout=20))
            if text in json.dumps(frame):
                return frame


@pytest.fixture
async def coder_socket(alice: User) -> AsyncIterator[Any]:
    MODELS["current"] = ScriptedModel()
    async with sandbox_closed(), opening_sockets() as open_socket:
        yield await open_socket(alice, f"{Coder.route_name()}/room")


async def test_a_decision_by_a_frame_lets_the_answer_go_on(coder_socket: Any) -> None:
    text = script("await tools.send({to: 'Ann', text: 'love'})")
    message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": text}]}
    body = json.dumps({"messages": [message], "trigger": "submit-message"})
    request = {"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}}
    decision = {"type": "cf_agent_tool_approval", "toolCallId": "one:1", "approved": True, "autoContinue": True}
    async with worker():
        await coder_socket.send_to(json.dumps(request))
        waiting = await frame_with(coder_socket, "Send it to Ann?")
        assert waiting["id"] == "r1"
        await coder_socket.send_to(json.dumps(decision))
        assert (await frame_with(coder_socket, "love went to Ann"))["id"] == "r1"
