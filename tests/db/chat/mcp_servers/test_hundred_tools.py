"""A hundred tools of a server on loopback: searched and called, with all that holds for the tool that is called."""

import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from chat.agent.base import InstanceKey
from chat.core.model.language_model import ModelEvent, ModelRequest
from chat.instance.instance import make_agent
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance
from chat.reads.preview import preview
from chat.think import McpServerSpec
from fibers.testing import run_until_idle
from tests.db.chat.mcp_servers.agents import DECLARED
from tests.db.chat.mcp_servers.conftest import count, only_server, tools_offered, until
from tests.db.chat.mcp_servers.serving import ODD, running
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.conftest import Room, status_of, text_of
from tests.mcp.guarded import free_port
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump
from tools_app.core.deferral import CALL, SEARCH
from tools_app.core.mcp.catalogue import tool_name
from tools_app.mcp import rows
from tools_app.mcp.pool import McpPool
from tools_app.models import ToolCallRecord

pytestmark = pytest.mark.django_db(transaction=True)
MakeRoom = Callable[..., Room]


class Whole(ScriptedModel):
    """Keeps its requests as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.whole: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.whole.append(request)
        async for event in super().stream(request):
            yield event


@pytest.fixture
async def depots(settings: Any, connections: McpPool, tmp_path: Path) -> AsyncIterator[Path]:
    """A server with a hundred tools, which notes their calls in a folder."""
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    settings.THINK_MCP_TOOLS_PER_SERVER = 200
    port = free_port()
    DECLARED.append(McpServerSpec(name="depots", url=f"http://127.0.0.1:{port}/mcp"))
    with running([sys.executable, str(ODD), "http", str(port), str(tmp_path)], port, ODD_MANY="100"):
        yield tmp_path
        await connections.close()


async def named(name: str) -> str:
    return tool_name((await only_server()).pk, name)


async def through(name: str, arguments: Any) -> str:
    """The line of a script that calls a tool of the server."""
    return f"call tool {CALL} {json.dumps({'name': await named(name), 'arguments': arguments})}"


async def calls_in(room: Room) -> list[Any]:
    return [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]


async def test_the_model_searches_and_calls_and_people_see_the_tool(
    make_connected_room: MakeRoom, depots: Path
) -> None:
    room = make_connected_room("declaring")
    await room.say("say: hi")
    assert tools_offered(room) == [SEARCH, CALL]
    line = await through("refund_41", {"order": 7})
    turn = await room.say(f'call tool {SEARCH} {{"query": "refund depot 41"}}\n{line}\nsay: it is {{result}}')
    assert status_of(turn) == "completed"
    searched, called = await calls_in(room)
    assert searched["output"]["tools"][0]["name"] == await named("refund_41")
    assert searched["output"]["tools"][0]["inputSchema"]["required"] == ["order"]
    assert (called["type"], called["input"], called["output"]) == (
        f"tool-{await named('refund_41')}",
        {"order": 7},
        "refund_41",
    )
    assert called["title"] == "refund_41 (depots)"
    assert count(depots, "refund_41") == 1
    names = await db(lambda: list(ToolCallRecord.objects.order_by("pk").values_list("tool_name", flat=True)))
    assert names == [SEARCH, await named("refund_41")]
    assert text_of((await room.transcript())[-1]) == "it is refund_41"


async def test_the_model_is_sent_its_call_as_it_made_it(make_connected_room: MakeRoom, depots: Path) -> None:
    room = make_connected_room("declaring")
    await room.say("say: hi")
    await room.say(f"{await through('pack_2', {'order': 7})}\nsay: done")
    await room.say("say: again")
    sent = [call for message in room.model.requests[-1]["messages"] for call in message.get("tool_calls") or ()]
    assert [call["function"]["name"] for call in sent] == [CALL]
    assert json.loads(sent[0]["function"]["arguments"]) == {"name": await named("pack_2"), "arguments": {"order": 7}}


async def test_the_beginning_of_the_prompt_stays_when_a_tool_comes(make_connected_room: MakeRoom, depots: Path) -> None:
    room = make_connected_room("declaring")
    model = room.model = MODELS["current"] = Whole()
    await room.say("say: hi")
    before = model.whole[-1]
    await room.say(f"{await through('grow', {})}\nsay: done")

    async def has_grown() -> bool:
        return any(tool["name"] == "grown" for tool in ((await only_server()).catalogue or {})["tools"])

    await until(has_grown)
    fresh = await only_server()
    await db(rows.accept_tools, fresh, fresh.fingerprint)
    await room.say(f'call tool {SEARCH} {{"query": "grown"}}\n{await through("grown", {})}\nsay: {{result}}')
    after = model.whole[-1]
    assert [dump(asdict(tool)) for tool in after.tools] == [dump(asdict(tool)) for tool in before.tools]
    assert (after.system, after.messages[: len(before.messages)]) == (before.system, before.messages)
    assert [part["type"] for part in await calls_in(room)] == [f"tool-{SEARCH}", f"tool-{await named('grown')}"]


async def test_the_guard_asks_about_the_tool_that_is_called(make_connected_room: MakeRoom, depots: Path) -> None:
    room = make_connected_room("wary")
    await room.say("say: hi")
    turn = await room.say(f"{await through('ship_5', {'order': 7})}\nsay: {{result}}")
    (question,) = await room.handle.pending_approvals()
    assert (question.tool, question.input) == (await named("ship_5"), {"order": 7})
    assert (status_of(turn), count(depots, "ship_5")) == ("completed", 0)
    assert await room.handle.approve_execution(question.id)
    await run_until_idle(skip_delays=True)
    assert count(depots, "ship_5") == 1
    assert text_of((await room.transcript())[-1]) == "ship_5"


async def test_an_input_that_does_not_fit_reaches_no_server(make_connected_room: MakeRoom, depots: Path) -> None:
    room = make_connected_room("declaring")
    await room.say("say: hi")
    await room.say(f"{await through('weigh_4', {'order': 'seven'})}\nsay: {{result}}")
    (part,) = await calls_in(room)
    assert (part["state"], count(depots, "weigh_4")) == ("output-error", 0)
    assert "order" in part["errorText"]
    assert "Its input schema" in part["errorText"]


async def test_a_hundred_tools_cost_what_three_do(make_connected_room: MakeRoom, depots: Path) -> None:
    room = make_connected_room("declaring")
    await room.say("say: hi")
    row = await db(AgentInstance.objects.get)
    key = InstanceKey(owner_id=room.key.owner_id, agent="declaring", name="room", instance_id=row.pk)
    shown = await preview(key, str(row.session_id), make_agent)
    assert [tool.name for tool in shown.tools] == [SEARCH, CALL]
    assert sum(tool.tokens for tool in shown.tools) < 250


async def test_each_call_is_one_of_its_own_tool(make_connected_room: MakeRoom, depots: Path) -> None:
    room = make_connected_room("declaring")
    await room.say("say: hi")
    for name in ("ship_0", "pack_7"):
        await room.say(f"{await through(name, {'order': 1})}\nsay: {{result}}")
        assert [part["type"] for part in await calls_in(room)] == [f"tool-{await named(name)}"]
    assert (count(depots, "ship_0"), count(depots, "pack_7")) == (1, 1)
