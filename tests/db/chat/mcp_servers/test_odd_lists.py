"""Servers that list what does not follow the protocol: a wrong item is skipped and named, and all others are there."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from chat.think import McpServerSpec
from tests.db.chat.mcp_servers.serving import RAW
from thinkproject.kernel.aio import db
from tools_app.core.mcp.servers import McpState
from tools_app.errors import McpUnavailable
from tools_app.mcp.pool import McpPool, Target
from tools_app.mcp.rows import Place, add_server
from tools_app.models.mcp import McpServer

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}

pytestmark = pytest.mark.django_db(transaction=True)


def add(folder: Path, **results: Any) -> Target:
    """A server of the site that answers with these results."""
    file = folder / "results.json"
    file.write_text(json.dumps({name.replace("_", "/", 1): result for name, result in results.items()}))
    spec = McpServerSpec(name="raw", command=[sys.executable, str(RAW), str(file)])
    return Target(add_server(spec, Place(is_site=True), allows_programs=True)[0])


ODD_SCHEMAS: list[Any] = [{"type": "string"}, {"$ref": "#/$defs/x"}, [], None, 7, {"anyOf": [{"type": 7}]}]
ODD_SCHEMAS += [{"type": "object", "properties": []}, {"type": "object", "required": "x"}]
ODD: list[Any] = [
    *({"name": f"odd{number}", "inputSchema": schema} for number, schema in enumerate(ODD_SCHEMAS)),
    {"name": "without"},
    {"name": None, "inputSchema": OBJECT},
    {"inputSchema": OBJECT},
    *("odd", None, []),
]
USABLE: list[dict[str, Any]] = [
    {"inputSchema": {}},
    {"inputSchema": {"properties": {"text": {"type": "string"}}}},
    {"inputSchema": {"anyOf": [{"type": "object"}, {"properties": {"text": {"type": "string"}}}]}},
    {"inputSchema": {"$ref": "#/$defs/input", "$defs": {"input": {"type": "object"}}}},
    {"inputSchema": {"type": ["object", "null"]}},
    {"inputSchema": {"type": None, "default": {}, "examples": [{}]}},
    {"outputSchema": {"type": "array"}},
    {"outputSchema": []},
    {"annotations": []},
    {"annotations": {"readOnlyHint": "yes"}},
    {"description": 7},
    {"title": ["x"]},
    {"icons": "x"},
    {"_meta": []},
]


@pytest.mark.parametrize("some", [ODD[:1], ODD[2:3], ODD], ids=["one", "an array", "all"])
async def test_odd_tools_take_no_other_with_them_and_are_named_with_their_reasons(
    some: list[Any], connections: McpPool, tmp_path: Path
) -> None:
    plain = [{"name": name, "inputSchema": OBJECT} for name in ("before", "after")]
    target = await db(add, tmp_path, tools_list={"tools": [plain[0], *some, plain[1]]})
    found = await connections.refresh(target)
    assert [tool["name"] for tool in found["tools"]] == ["before", "after"]
    names = [odd.get("name") or "" if isinstance(odd, dict) else "" for odd in some]
    assert sorted(each["name"] for each in found["skipped"]) == sorted(names)
    assert all(each["reason"] for each in found["skipped"])
    server = await db(McpServer.objects.get)
    assert (server.state, server.catalogue) == (McpState.READY, found)


async def test_tools_of_which_a_part_can_be_left_out_can_be_used(connections: McpPool, tmp_path: Path) -> None:
    tools = [{"name": f"usable{number}", "inputSchema": OBJECT, **more} for number, more in enumerate(USABLE)]
    target = await db(add, tmp_path, tools_list={"tools": tools})
    found = await connections.refresh(target)
    assert [tool["name"] for tool in found["tools"]] == [tool["name"] for tool in tools]
    assert {tool["inputSchema"]["type"] for tool in found["tools"]} == {"object"}
    assert found["skipped"] == []
    for tool in tools:

        async def call(client: Any, name: str = tool["name"]) -> Any:
            return await client.call_tool(name, {})

        result = await connections.request(target, call, refreshes=False)
        assert result.content[0].text == f"called {tool['name']}"


async def test_odd_prompts_and_resources_are_named_too(connections: McpPool, tmp_path: Path) -> None:
    initialized = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "raw", "version": "1"},
    }
    file = tmp_path / "results.json"
    target = await db(add, tmp_path)
    lists = {
        "initialize": initialized,
        "tools/list": {"tools": [{"name": "find", "inputSchema": OBJECT}]},
        "prompts/list": {"prompts": [{"name": "hello"}, {"name": "odd", "arguments": 7}]},
        "resources/list": {"resources": [{"uri": "a:b", "name": "ab"}, {"uri": "c:d", "name": ["x"]}, 7]},
        "resources/templates/list": {"resourceTemplates": [{"name": "none"}]},
    }
    file.write_text(json.dumps(lists))
    found = await connections.refresh(target)
    assert [found[kind][0]["name"] for kind in ("tools", "prompts", "resources")] == ["find", "hello", "ab"]
    assert {each["reason"] for each in found["skipped"]} == {"it does not follow the protocol"}
    assert len(found["skipped"]) == 4


@pytest.mark.parametrize("result", [{"tools": 7}, {}, {"tools": [], "nextCursor": 7}], ids=repr)
async def test_a_server_whose_list_is_none_has_failed_and_says_why(
    result: Any, connections: McpPool, tmp_path: Path
) -> None:
    target = await db(add, tmp_path, tools_list=result)
    async with asyncio.timeout(20):
        with pytest.raises(McpUnavailable, match="does not follow the protocol"):
            await connections.refresh(target)
    server = await db(McpServer.objects.get)
    assert server.state == McpState.FAILED
    assert "does not follow the protocol" in server.error


OFFERS: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}
REFUSED = {"error": {"code": -32603, "message": "connect ECONNREFUSED 127.0.0.1:5432"}}


@pytest.mark.parametrize("answer", [REFUSED, {"resources": 7}, {}], ids=["an error", "no list", "nothing"])
async def test_a_list_that_fails_takes_no_tools_with_it_and_is_named(
    answer: Any, connections: McpPool, tmp_path: Path
) -> None:
    tools = {"tools": [{"name": "query", "inputSchema": OBJECT}]}
    target = await db(add, tmp_path, initialize=OFFERS, tools_list=tools, resources_list=answer)
    found = await connections.refresh(target)
    assert [tool["name"] for tool in found["tools"]] == ["query"]
    (skipped,) = found["skipped"]
    assert skipped["name"] == "resources"
    assert skipped["reason"] in {REFUSED["error"]["message"], "it does not follow the protocol"}
    assert (await db(McpServer.objects.get)).state == McpState.READY


async def test_a_cursor_that_comes_again_ends_the_list(connections: McpPool, tmp_path: Path) -> None:
    page = {"tools": [{"name": "find", "inputSchema": OBJECT}], "nextCursor": "again"}
    other = {"tools": [{"name": "keep", "inputSchema": OBJECT}], "nextCursor": "again"}
    target = await db(add, tmp_path, tools_list=page, **{"tools_list again": other})
    found = await connections.refresh(target)
    assert [tool["name"] for tool in found["tools"]] == ["find", "keep"]
    assert found["skipped"] == []


async def test_a_list_of_many_small_pages_is_read_whole(connections: McpPool, tmp_path: Path) -> None:
    pages = {
        f"tools_list {number}": {
            "tools": [{"name": f"tool{number}", "inputSchema": OBJECT}],
            **({} if number == 79 else {"nextCursor": str(number + 1)}),
        }
        for number in range(1, 80)
    }
    first = {"tools": [{"name": "tool0", "inputSchema": OBJECT}], "nextCursor": "1"}
    target = await db(add, tmp_path, tools_list=first, **pages)
    found = await connections.refresh(target)
    assert [tool["name"] for tool in found["tools"]] == [f"tool{number}" for number in range(80)]
