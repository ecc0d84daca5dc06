"""A compaction that a worker makes, as open sockets and pages learn of it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.core.wire.extension_frames import SessionPhase
from chat.core.wire.server_frames import parse_server
from chat.instances.rows import find_instance
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance
from chat.realtime import monitor
from chat.turns.state.compaction_queue import request_compaction
from fibers.testing import run_until_idle
from sessions_app.compactions.services import compactions
from tests.db.chat.sockets import connection, cookie_of, frames_until
from tests.db.chat.turns.agents.compact_agents import ByModel
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _bells_alone(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 1_000.0)  # what no notification brings is not brought at all
    settings.THINK_TURNS_PER_MINUTE = 0


@pytest.fixture
async def long_room(make_room: MakeRoom) -> Room:
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    return room


@pytest.fixture
async def long_room_socket(long_room: Room) -> AsyncIterator[Any]:
    user = await db(lambda: User.objects.get(username="alice"))
    made = connection("/agents/by-model/room", cookie=await sync_to_async(cookie_of)(user))
    connected, _ = await made.connect(timeout=15)
    assert connected
    await frames_until(made, "cf_agent_mcp_servers")
    yield made
    await made.disconnect()


async def instance_of(room: Room) -> AgentInstance:
    instance = await db(find_instance, room.key)
    assert instance is not None
    return instance


async def compact(room: Room) -> None:
    instance = await instance_of(room)
    await db(lambda: request_compaction(instance, instructions="", user_id=room.key.owner_id))
    await run_until_idle(skip_delays=True)


async def test_a_compaction_in_a_worker_reaches_open_sockets(long_room: Room, long_room_socket: Any) -> None:
    await compact(long_room)
    begun = (await frames_until(long_room_socket, "cf_agent_session"))[-1]
    over = (await frames_until(long_room_socket, "cf_agent_session"))[-1]
    [made] = await db(compactions, str((await instance_of(long_room)).session_id))
    assert (begun["phase"], over["phase"]) == ("compacting", "idle")
    assert over["compacted"] == {"tokensBefore": made.tokens_before, "compactionId": made.id}
    assert (begun["tokenEstimate"], over["tokenEstimate"]) == (made.tokens_before, made.tokens_after)
    assert isinstance(parse_server(dump(over)), SessionPhase)


async def test_a_compaction_that_fails_in_a_worker_reaches_open_sockets(
    long_room: Room, long_room_socket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ByModel, "compaction_model", ScriptedModel("error 400"))
    await compact(long_room)
    frames = await frames_until(long_room_socket, "cf_agent_session_error")
    assert frames[-1]["error"]
    over = (await frames_until(long_room_socket, "cf_agent_session"))[-1]
    assert (over["phase"], "compacted" in over) == ("idle", False)
