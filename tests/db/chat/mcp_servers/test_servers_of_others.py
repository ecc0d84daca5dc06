"""Servers that others wrote, started as programs and used by turns."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat.think import McpServerSpec
from tests.db.chat.mcp_servers.agents import DECLARED
from tests.db.chat.mcp_servers.conftest import only_server, tools_offered
from tests.db.chat.turns.conftest import Room
from tests.mcp.others import of_npm, of_pypi
from tools_app.mcp.pool import McpPool

pytestmark = pytest.mark.django_db(transaction=True)
MakeRoom = Callable[..., Room]


async def outputs(room: Room, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Have the model make calls of the one server one after another; their outputs, or the texts of their errors."""
    server = await only_server()
    lines = [f"call tool tool_{server.pk}_{name} {json.dumps(arguments)}" for name, arguments in calls]
    turn = await room.say("\nsay: .\n".join([*lines, "say: Done."]).replace("say: .\nsay: Done.", "say: Done."))
    assert turn.error_text == ""
    parts = [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]
    return [part.get("output", part.get("errorText")) for part in parts]


async def connected(room: Room, name: str, command: list[str]) -> None:
    """Declare a server, and have the first turn read what it offers."""
    DECLARED.append(McpServerSpec(name=name, command=command, is_trusted=True))
    await room.say("say: hi")
    assert (await only_server()).state == "ready"


async def test_time(make_connected_room: MakeRoom, connections: McpPool) -> None:
    room = make_connected_room("declaring")
    await connected(room, "time", of_pypi("time"))
    asked = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    (found,) = await outputs(room, ("convert_time", asked))
    assert "Asia/Tokyo" in json.dumps(found)
    assert connections.attempts == 1  # the connection that read the catalogue was used again


@pytest.mark.long
async def test_git(make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: ASYNC221 - nothing else runs
    (tmp_path / "new.txt").write_text("new")
    room = make_connected_room("declaring")
    await connected(room, "git", of_pypi("git", "--repository", str(tmp_path)))
    found = await outputs(
        room,
        ("git_status", {"repo_path": str(tmp_path)}),
        ("git_add", {"repo_path": str(tmp_path), "files": ["new.txt"]}),
        ("git_status", {"repo_path": str(tmp_path)}),
        ("git_log", {"repo_path": "/elsewhere"}),
    )
    assert "Untracked" in found[0]
    assert "new file:   new.txt" in found[2]
    assert "/elsewhere" in found[3]


@pytest.mark.long
async def test_fetch(make_connected_room: MakeRoom, connections: McpPool) -> None:
    room = make_connected_room("declaring")
    await connected(room, "fetch", of_pypi("fetch", "--ignore-robots-txt"))
    (found,) = await outputs(room, ("fetch", {"url": "http://127.0.0.1:9/nothing"}))
    assert "127.0.0.1:9" in found  # it says that it cannot reach that; the call fails, and the turn goes on
    assert "get_mcp_prompt" in tools_offered(room)


async def test_filesystem(make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path) -> None:
    room = make_connected_room("declaring")
    await connected(room, "files", of_npm("filesystem", str(tmp_path)))
    target = str(tmp_path / "note.txt")
    found = await outputs(
        room,
        ("write_file", {"path": target, "content": "kept"}),
        ("read_text_file", {"path": target}),
        ("read_text_file", {"path": "/etc/passwd"}),
    )
    assert (tmp_path / "note.txt").read_text() == "kept"
    assert "kept" in json.dumps(found[1])
    assert "denied" in json.dumps(found[2])


@pytest.mark.long
async def test_memory(make_connected_room: MakeRoom, connections: McpPool, tmp_path: Path) -> None:
    room = make_connected_room("declaring")
    DECLARED.append(
        McpServerSpec(name="memory", command=of_npm("memory"), env={"MEMORY_FILE_PATH": str(tmp_path / "graph")})
    )
    await room.say("say: hi")
    entity = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    found = await outputs(room, ("create_entities", {"entities": [entity]}), ("search_nodes", {"query": "program"}))
    assert "Ada" in json.dumps(found[1])
    assert "Ada" in (tmp_path / "graph").read_text()


async def test_everything(make_connected_room: MakeRoom, connections: McpPool) -> None:
    room = make_connected_room("declaring")
    await connected(room, "everything", of_npm("everything"))
    server = await only_server()
    assert {"list_mcp_resources", "read_mcp_resource", "get_mcp_prompt"} <= set(tools_offered(room))
    found = await outputs(
        room,
        ("echo", {"message": "hello"}),
        ("get-sum", {"a": 2, "b": 3}),
        ("get-tiny-image", {}),
        ("get-sum", {"a": "two", "b": 3}),
    )
    assert "hello" in found[0]
    assert "5" in found[1]
    assert "The input does not fit get-sum" in found[3]
    parts = [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]
    (picture,) = parts[2]["toolMetadata"]["think"]["attachments"]
    assert picture["mediaType"] == "image/png"
    uri = (server.catalogue or {})["resources"][0]["uri"]
    await room.say(f"call tool read_mcp_resource {json.dumps({'server': server.pk, 'uri': uri})}\nsay: {{result}}")
    part = next(part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part)
    assert uri in part["output"]
