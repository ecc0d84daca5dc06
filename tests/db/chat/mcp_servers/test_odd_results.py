"""Results of servers in turns: whatever the server said reaches the model, code and people, and nothing twice."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from chat.think import McpServerSpec
from tests.db.chat.mcp_servers.agents import DECLARED, Declaring
from tests.db.chat.mcp_servers.conftest import only_server
from tests.db.chat.mcp_servers.serving import RAW
from tests.db.chat.turns.conftest import Room
from tools_app.core.mcp.catalogue import tool_name
from tools_app.mcp.pool import McpPool

pytestmark = pytest.mark.django_db(transaction=True)
MakeRoom = Callable[..., Room]
TEXT = {"type": "text", "text": "line 1 of the file"}
BOTH = {"text": "line 1 of the file", "structuredContent": {"fileName": "a.txt"}}
UNREAD = "[content of the type {!r} cannot be read]"
FIND = {"name": "find", "inputSchema": {"type": "object"}}


class CodingOverServers(Declaring):
    """Runs code over the tools of its servers."""

    code_tool: ClassVar[bool] = True


async def asked(room: Room, folder: Path, result: Any, line: str, *, schema: Any = None) -> Any:
    """Have a server answer a call with a result; the part of the call in `line`, where `NAME` is the tool's name."""
    file = folder / "results.json"
    tool = FIND if schema is None else {**FIND, "outputSchema": schema}
    file.write_text(json.dumps({"tools/list": {"tools": [tool]}, "tools/call": result}))
    DECLARED.append(McpServerSpec(name="raw", command=[sys.executable, str(RAW), str(file)]))
    await room.say("say: hi")
    await room.say(line.replace("NAME", tool_name((await only_server()).pk, "find")) + "\nsay: done")
    (part,) = [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]
    return part.get("output", part.get("errorText"))


async def test_text_and_value_reach_the_model_and_stay(
    make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path
) -> None:
    room = make_connected_room("declaring")
    result = {"content": [TEXT], "structuredContent": {"fileName": "a.txt"}}
    assert await asked(room, tmp_path, result, "call tool NAME {}") == BOTH
    (sent,) = [each for each in room.model.requests[-1]["messages"] if each["role"] == "tool"]
    assert json.loads(sent["content"]) == BOTH
    await room.say("say: more")
    (sent,) = [each for each in room.model.requests[-1]["messages"] if each["role"] == "tool"]
    assert json.loads(sent["content"]) == BOTH


async def test_code_gets_the_text_and_the_value(
    make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path
) -> None:
    room = make_connected_room("coding-over-servers")
    result = {"content": [TEXT], "structuredContent": {"fileName": "a.txt"}}
    code = "const found = await tools.NAME({}); return [found.text, found.structuredContent.fileName]"
    output = await asked(room, tmp_path, result, f"call tool execute {json.dumps({'code': code})} id=code")
    assert output["value"] == ["line 1 of the file", "a.txt"]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": "plain words"}, "plain words"),
        ({"content": TEXT}, "line 1 of the file"),
        (
            {"content": [TEXT, {"type": "hologram"}, {"type": "image"}, None]},
            "\n\n".join(["line 1 of the file", *map(UNREAD.format, ("hologram", "image", "None"))]),
        ),
    ],
    ids=["no content", "a text", "one block", "odd blocks"],
)
async def test_an_odd_part_of_a_result_takes_no_other_with_it(
    make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path, result: Any, expected: Any
) -> None:
    assert await asked(make_connected_room("declaring"), tmp_path, result, "call tool NAME {}") == expected


@pytest.mark.parametrize("schema", [{"type": "object", "required": ["b"]}, {"$ref": "#/nowhere"}], ids=str)
@pytest.mark.parametrize("result", [{"content": [TEXT], "structuredContent": {"a": 1}}, {"content": [TEXT]}], ids=str)
async def test_a_result_that_does_not_fit_the_servers_own_schema_reaches_the_model(
    make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path, result: Any, schema: Any
) -> None:
    output = await asked(make_connected_room("declaring"), tmp_path, result, "call tool NAME {}", schema=schema)
    assert "line 1 of the file" in str(output)
    assert ("'a': 1" in str(output)) == ("structuredContent" in result)
