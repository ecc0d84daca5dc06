"""The statements of one turn in a web process, besides those of its admission: from the frame to its end."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from chat.models import AgentInstance, Turn
from chat.realtime import commands
from chat.streams.logs.log import get_log
from chat.streams.records import Append
from chat.turns.admission.admit import admit
from fibers.models import Fiber
from sessions_app.messages.services import Leaf, place_messages, put_assistant
from tests.db.chat.conftest import text_message
from tests.db.chat.sockets import chunks_until, connection, cookie_of, frames_until
from tests.db.chat.streams.support import eventually
from tests.db.statements import statements
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


def kinds(found: list[str]) -> list[str]:
    """The purpose of each, by what only it reads."""
    purposes = {
        "WITH RECURSIVE path": "window",
        "think_chat_turnseen": "snapshot",
        "WITH newest": "cold log",
        "t.finished_at IS NOT NULL": "is it over",
        "SELECT s.id, s.change_seq": "version",
        "think_chat_turn": "stopped turns",
    }
    return [next((purpose for part, purpose in purposes.items() if part in sql), sql) for sql in found]


def end(turn: Turn) -> None:
    """Store the answer and the end."""
    question = turn.input_ids[0]
    place_messages(turn.session_id, [question], after=Leaf.ACTIVE)
    put_assistant(turn.session_id, text_message(turn.assistant_id, "assistant"), after=question, turn_id=turn.pk)
    now = timezone.now()
    Turn.objects.filter(pk=turn.pk).update(started_at=now, finished_at=now)
    Fiber.objects.filter(pk=turn.fiber_id).update(status="completed", finished_at=now)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Admissions run in a thread of their own, so that what they send is not counted."""

    async def run(function: Any, *arguments: Any, **named: Any) -> Any:
        if function is admit:
            return await sync_to_async(function)(*arguments, **named)
        return await db(function, *arguments, **named)

    monkeypatch.setattr(commands, "db", run)


@pytest.mark.usefixtures("apart")
async def test_a_turn_costs_few_statements_besides_its_admission(
    alice: User, make_instance: Callable[..., AgentInstance], settings: Any
) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 60.0
    await sync_to_async(make_instance)(alice, "talk")
    socket = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    await socket.connect(timeout=15)
    await frames_until(socket, "cf_agent_mcp_servers")
    log = get_log()
    with statements(bridge_only=True) as found:
        body = json.dumps({"messages": [text_message("q1", "user")]})
        request = {"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}}
        await socket.send_to(json.dumps(request))
        await eventually(lambda: len(found) >= 3)
        await asyncio.sleep(0.3)  # a turn that was accepted just now has not begun: neither its row nor its log is read
        # The first transcript may still be under way to the client, so it is sent one with its question.
        assert kinds(found) == ["version", "window", "stopped turns"]
        found.clear()
        turn = await Turn.objects.aget()
        texts = [f'{{"type":"start","messageId":"{turn.assistant_id}"}}', '{"type":"start-step"}', '{"type":"finish"}']
        opened = await log.open(turn.pk, fence=1, floor=0)
        for number, text in enumerate(texts):
            await log.append([Append(stream=turn.pk, fence=1, epoch=opened.epoch, first=number, texts=[text])])
        assert [frame["body"] for frame in await chunks_until(socket, texts[-1])] == texts
        assert kinds(found) == []  # what streams is not in the database
        await sync_to_async(end)(turn)
        await log.close(turn.pk)
        await frames_until(socket, "done")
        await asyncio.sleep(0.3)  # what is read too much may be read after the last frame: nothing follows it
        assert kinds(found) == ["is it over", "cold log", "snapshot", "window"]
    await socket.disconnect()
