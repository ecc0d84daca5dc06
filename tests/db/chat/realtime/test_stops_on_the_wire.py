"""A client that stops an answer is sent it as stored at its end, once, whichever of the two is first."""

import asyncio
import json
import threading
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.llm.scripted import ScriptedModel
from chat.realtime import commands
from chat.turns.admission.stop import cancel_turn
from fibers.testing import worker
from tests.db.chat.socket_requests import UPDATED, ask, send
from tests.db.chat.sockets import frames_until, opening_sockets
from tests.db.chat.turns.agents.everyday import MODELS, Plain

pytestmark = pytest.mark.django_db(transaction=True)


async def begin(socket: Any) -> None:
    """Ask for a long answer, and see it begin."""
    message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "stream 500 words at 50/s"}]}
    body = json.dumps({"messages": [message], "trigger": "submit-message"})
    await send(socket, "cf_agent_use_chat_request", id="r1", init={"method": "POST", "body": body})
    while "text-delta" not in str((await frames_until(socket, "cf_agent_use_chat_response"))[-1]["body"]):
        pass


async def updates_after(socket: Any) -> list[dict[str, Any]]:
    """The messages that are sent once more, up to the answer of a further command."""
    await send(socket, "cf_agent_stream_resume_request", probeId="last")
    found = await frames_until(socket, "cf_agent_stream_resume_none")
    return [frame for frame in found if frame["type"] == UPDATED]


async def test_the_end_may_be_sent_before_the_stop_has_returned(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker that stops may be faster than the thread that has had it stop."""
    MODELS["current"] = ScriptedModel()
    may_return = threading.Event()

    def cancel_and_wait(turn_id: str) -> bool:
        is_stopped = cancel_turn(turn_id)
        assert may_return.wait(20)
        return is_stopped

    monkeypatch.setattr(commands, "cancel_turn", cancel_and_wait)
    async with opening_sockets() as open_socket, worker(), asyncio.timeout(40):
        tab = await open_socket(alice, f"{Plain.route_name()}/room")
        await begin(tab)
        await send(tab, "cf_agent_chat_request_cancel", id="r1")
        try:
            ended = (await frames_until(tab, "done"))[-1]
            assert ended["outcome"] == "aborted"
        finally:
            may_return.set()
        updated = (await frames_until(tab, UPDATED))[-1]
        assert updated["message"]["role"] == "assistant"
        assert await updates_after(tab) == []


async def test_an_answer_that_was_over_is_sent_once(alice: User) -> None:
    MODELS["current"] = ScriptedModel()
    async with opening_sockets() as open_socket:
        tab = await open_socket(alice, f"{Plain.route_name()}/room")
        await ask(tab, "say: All of it.")
        await send(tab, "cf_agent_chat_request_cancel", id="r1")
        [updated] = await updates_after(tab)
        assert updated["message"]["parts"][-1]["text"] == "All of it."


async def test_a_tab_that_did_not_see_the_answer_end_may_stop_it(alice: User) -> None:
    MODELS["current"] = ScriptedModel()
    async with opening_sockets() as open_socket:
        await ask(await open_socket(alice, f"{Plain.route_name()}/room"), "say: All of it.")
        tab = await open_socket(alice, f"{Plain.route_name()}/room")
        await send(tab, "cf_agent_chat_request_cancel", id="r1")
        assert len(await updates_after(tab)) == 1
