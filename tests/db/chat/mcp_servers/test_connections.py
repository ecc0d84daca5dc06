"""Connections of a process: one for any number of calls, closed when unused, so many at most; and waiting for them."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat.think import McpServerSpec
from tests.db.chat.mcp_servers.agents import DECLARED
from tests.db.chat.mcp_servers.conftest import count, only_server, tools_offered, until
from tests.db.chat.mcp_servers.serving import ODD
from tests.db.chat.turns.conftest import Room, status_of
from thinkproject.kernel.aio import db
from tools_app.core.mcp.catalogue import tool_name
from tools_app.errors import McpUnavailable
from tools_app.mcp import pool as pools
from tools_app.mcp.pool import McpPool, Target
from tools_app.mcp.rows import Place, add_server
from tools_app.models.mcp import McpServer

pytestmark = pytest.mark.django_db(transaction=True)
MakeRoom = Callable[..., Room]


class Servers:
    """Odd servers of the site, each with a folder in which it notes what happens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def make(self, name: str) -> Target:
        """A server that is known and was never connected to."""
        marks = self.marks(name)
        marks.mkdir()
        spec = McpServerSpec(name=name, command=[sys.executable, str(ODD), "stdio", str(marks)])

        def add() -> McpServer:
            return add_server(spec, Place(is_site=True), allows_programs=True)[0]

        return Target(await db(add))

    def marks(self, name: str) -> Path:
        return self._folder / name

    def running(self) -> set[str]:
        """Names of those whose program runs."""
        return {marks.name for marks in self._folder.iterdir() if marks.is_dir() and self._runs(marks)}

    def _runs(self, marks: Path) -> bool:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue  # it has just ended
                if str(marks) in words:
                    return True
        return False


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    return Servers(tmp_path)


async def say(connections: McpPool, target: Target) -> str:
    """Have a server say something; the words, or those of the error."""
    try:
        result: Any = await connections.request(
            target, lambda client: client.call_tool("echo", {"text": target.server.name}), refreshes=False
        )
    except McpUnavailable as error:
        return error.message
    return str(result.content[0].text)


async def test_any_number_of_calls_at_once_make_one_connection(connections: McpPool, servers: Servers) -> None:
    target = await servers.make("one")
    said = await asyncio.gather(*(say(connections, target) for _ in range(20)))
    assert said == ["one"] * 20
    assert connections.attempts == 1
    assert count(servers.marks("one"), "started") == 1
    assert count(servers.marks("one"), "echo") == 20


async def test_calls_that_wait_for_one_attempt_all_hear_that_it_failed(connections: McpPool) -> None:
    spec = McpServerSpec(name="dead", command=["/bin/sh", "-c", "exit 3"])
    target = Target((await db(add_server, spec, Place(is_site=True), allows_programs=True))[0])
    said = await asyncio.gather(*(say(connections, target) for _ in range(20)))
    assert connections.attempts == 1
    assert not any(words == "dead" for words in said)


async def test_an_unused_connection_is_closed_and_made_again_when_it_is_needed(
    connections: McpPool, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.2)
    target = await servers.make("one")
    assert await say(connections, target) == "one"
    await until(lambda: not servers.running())
    assert await say(connections, target) == "one"
    assert count(servers.marks("one"), "started") == 2


async def test_a_connection_that_is_in_use_is_not_closed(
    connections: McpPool, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.05)
    target = await servers.make("one")
    slow = asyncio.create_task(
        connections.request(target, lambda client: client.call_tool("slow", {}), refreshes=False)
    )
    await until(lambda: count(servers.marks("one"), "slow") == 1)
    for _ in range(2):
        assert await say(connections, target) == "one"
        await asyncio.sleep(0.1)  # longer than an unused connection stays
    assert not slow.done()
    assert connections.attempts == 1
    slow.cancel()
    await asyncio.wait({slow})


async def test_the_one_that_was_idle_for_longest_makes_room(
    connections: McpPool, servers: Servers, settings: Any
) -> None:
    settings.THINK_MCP_CONNECTIONS = 2
    one, two, three = [await servers.make(name) for name in ("one", "two", "three")]
    for target in (one, two, one, three):
        assert await say(connections, target) == target.server.name
    await until(lambda: servers.running() == {"one", "three"})
    assert await say(connections, two) == "two"
    await until(lambda: servers.running() == {"two", "three"})


async def test_there_are_no_more_than_so_many_also_when_all_begin_at_once(
    connections: McpPool, servers: Servers, settings: Any
) -> None:
    settings.THINK_MCP_CONNECTIONS = 2
    targets = [await servers.make(f"s{number}") for number in range(4)]
    said = await asyncio.gather(*(say(connections, target) for target in targets))
    names = {target.server.name for target in targets}
    assert set(said) <= names | {"There are too many connections to MCP servers at present."}
    assert len(names & set(said)) >= 2
    await until(lambda: len(servers.running()) <= 2)
    for target in targets:  # nothing is left behind: each is served afterwards
        assert await say(connections, target) == target.server.name


async def test_a_call_is_refused_where_every_connection_is_in_use(
    connections: McpPool, servers: Servers, settings: Any
) -> None:
    settings.THINK_MCP_CONNECTIONS = 1
    busy, other = await servers.make("busy"), await servers.make("other")
    slow = asyncio.create_task(connections.request(busy, lambda client: client.call_tool("slow", {}), refreshes=False))
    await until(lambda: count(servers.marks("busy"), "slow") == 1)
    assert "too many connections" in await say(connections, other)
    slow.cancel()
    await asyncio.wait({slow})
    assert await say(connections, other) == "other"


async def test_a_turn_waits_for_servers_as_long_as_its_class_says_and_no_longer(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    script = f"while ! test -e {gate}; do sleep 0.05; done; exec {' '.join(odd)}"
    DECLARED.append(McpServerSpec(name="late", command=["/bin/sh", "-c", script]))
    room = make_connected_room("hurried")
    turn = await room.say("say: hi")
    assert status_of(turn) == "completed"
    server = await only_server()
    assert server.catalogue is None  # the time was over before
    assert tool_name(server.pk, "echo") not in tools_offered(room)
    gate.touch()

    async def is_ready() -> bool:
        return (await only_server()).state == "ready"

    await until(is_ready)  # it was read on beside the turn
    await room.say("say: hi")
    assert tool_name(server.pk, "echo") in tools_offered(room)
    assert count(tmp_path, "started") == 1
