"""What turns make of servers that are wrong, slow, that ask, change, or die."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chat.models import Turn
from chat.testing import worker
from chat.think import McpServerSpec
from fibers.testing import run_until_idle
from tests.db.chat.mcp_servers.agents import DECLARED
from tests.db.chat.mcp_servers.conftest import count, only_server, tools_offered, until
from tests.db.chat.turns.conftest import Room, status_of
from tests.mcp.others import of_npm
from thinkproject.kernel.aio import db
from tools_app.core.mcp.catalogue import tool_name
from tools_app.mcp import rows
from tools_app.mcp.pool import McpPool, Target, pool
from tools_app.mcp.tools import mcp_tools
from tools_app.models import McpServer, ToolCallRecord
from tools_app.models.guard import Guard

pytestmark = pytest.mark.django_db(transaction=True)
MakeRoom = Callable[..., Room]


async def line(name: str, **arguments: Any) -> str:
    """The script of a call of the one server, which is then repeated."""
    server = await only_server()
    return f"call tool {tool_name(server.pk, name)} {json.dumps(arguments)}\nsay: {{result}}"


async def parts(room: Room) -> list[Any]:
    return [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]


async def result(room: Room, name: str, **arguments: Any) -> Any:
    """Have the model make one call; its output, or the text of its error."""
    await room.say(await line(name, **arguments))
    (part,) = await parts(room)
    return part.get("output", part.get("errorText"))


async def connected(room: Room, command: list[str], **more: Any) -> McpServer:
    """Add a server by code, which connects at once within a turn and otherwise by a worker."""
    DECLARED.append(McpServerSpec(name="odd", command=command, **more))
    await room.say("say: hi")
    return await only_server()


async def test_one_wrong_tool_is_left_out_visibly_and_the_others_are_offered(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    room = make_connected_room("declaring")
    with caplog.at_level(logging.INFO, logger="tools_app.mcp"):
        server = await connected(room, odd)
    names = tools_offered(room)
    assert tool_name(server.pk, "echo") in names
    assert tool_name(server.pk, "bad") not in names
    (view,) = await room.handle.list_mcp_servers()
    assert view.state == "ready"
    assert [item["name"] for item in view.skipped] == ["bad"]
    assert "no JSON Schema" in view.skipped[0]["reason"]
    assert sum(getattr(record, "action", "") == "mcp_tools_skipped" for record in caplog.records) == 1
    assert await result(room, "echo", text="hello") == "hello"


async def test_what_a_server_says_of_its_tools_counts_only_when_it_is_trusted(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str]
) -> None:
    room = make_connected_room("declaring")
    server = await connected(room, odd)
    (echo,) = [tool for tool in mcp_tools([Target(server)]) if tool.name.endswith("_echo")]
    assert (echo.read_only, echo.open_world, echo.reruns, echo.origin) == (False, True, False, "mcp")
    server.is_trusted = True
    (echo,) = [tool for tool in mcp_tools([Target(server)]) if tool.name.endswith("_echo")]
    assert (echo.read_only, echo.open_world, echo.reruns, echo.origin) == (True, False, True, "mcp")


async def test_a_program_gets_no_more_of_our_environment_than_it_needs(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    room = make_connected_room("declaring")
    await connected(room, odd, env={"GIVEN": "yes"})
    names = set(str(await result(room, "environment")).split())
    assert "GIVEN" in names
    assert names <= {"GIVEN", "HOME", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}


async def test_a_question_of_a_server_parks_the_turn_until_a_person_answers(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], tmp_path: Path
) -> None:
    room = make_connected_room("declaring")
    await connected(room, odd)
    turn = await room.say(await line("name"))
    assert status_of(turn) == "running"
    (question,) = await room.handle.pending_approvals()
    assert question.sentence == "What is your {name}?"
    assert question.title == "odd asks"
    await connections.close()  # no connection is held meanwhile
    assert await room.handle.approve_execution(question.id, edited_input={"name": "Ada"})
    await run_until_idle(skip_delays=True)
    (part,) = await parts(room)
    assert part["output"] == "accept {'name': 'Ada'}"
    rows_ = await db(lambda: list(ToolCallRecord.objects.values_list("tool_name", "status").order_by("pk")))
    assert ("mcp_question", "succeeded") in rows_


async def test_a_question_that_is_denied_is_declined(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str]
) -> None:
    room = make_connected_room("declaring")
    await connected(room, odd)
    await room.say(await line("name"))
    (question,) = await room.handle.pending_approvals()
    await room.handle.reject_execution(question.id, "no")
    await run_until_idle(skip_delays=True)
    (part,) = await parts(room)
    assert part["output"].startswith("decline")


async def test_an_older_server_asks_a_person_and_the_model(make_connected_room: MakeRoom, connections: McpPool) -> None:
    room = make_connected_room("declaring")
    await connected(room, of_npm("everything"), is_trusted=True)
    await room.say(await line("trigger-elicitation-request"))
    (question,) = await room.handle.pending_approvals()
    await room.handle.approve_execution(question.id, edited_input={"name": "Ada", "check": True})
    await run_until_idle(skip_delays=True)
    (part,) = await parts(room)
    assert "Ada" in json.dumps(part["output"])
    before = len(room.model.requests)
    await room.say(await line("trigger-sampling-request", prompt="say: sampled words", maxTokens=50))
    (question,) = await room.handle.pending_approvals()
    assert "wants to ask the model" in question.sentence
    assert "sampled words" in json.dumps(question.input)
    asked = len(room.model.requests)
    await room.handle.approve_execution(question.id)
    await run_until_idle(skip_delays=True)
    (part,) = await parts(room)
    assert part.get("errorText", "") == ""
    assert "sampled words" in json.dumps(part["output"])
    assert asked == before + 1  # before the person allowed it, the server had asked nothing
    assert len(room.model.requests) == asked + 2  # the server's question, and the rest of the turn


async def test_an_older_server_asks_while_its_catalogue_is_read(
    make_connected_room: MakeRoom, connections: McpPool
) -> None:
    room = make_connected_room("declaring")
    server = await connected(room, of_npm("everything"), is_trusted=True)
    reached, gate = asyncio.Event(), asyncio.Event()

    async def read(_client: Any) -> None:
        reached.set()
        await gate.wait()

    reading = asyncio.create_task(pool().request(Target(server, room.key.owner_id), read))
    await asyncio.wait_for(reached.wait(), 20)
    await room.say(await line("trigger-elicitation-request"))
    (question,) = await room.handle.pending_approvals()
    await room.handle.approve_execution(question.id, edited_input={"name": "Ada", "check": True})
    await run_until_idle(skip_delays=True)
    assert not reading.done()
    gate.set()
    await reading
    (part,) = await parts(room)
    assert "Ada" in json.dumps(part.get("output", part.get("errorText")))


async def test_a_stopped_turn_cancels_the_call_at_the_server(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], tmp_path: Path
) -> None:
    room = make_connected_room("declaring")
    await connected(room, odd)
    async with worker():
        admission = await room.admit(await line("slow"), request_id="req")
        await until(lambda: count(tmp_path, "slow") == 1)
        await room.handle.cancel_chat("req")
        await until(lambda: count(tmp_path, "cancelled") == 1)
    assert status_of(await room.turn(admission.turn.pk)) == "aborted"
    assert await result(room, "echo", text="still there") == "still there"


async def test_progress_is_shown_on_the_call(make_connected_room: MakeRoom, connections: McpPool) -> None:
    room = make_connected_room("declaring")
    await connected(room, of_npm("everything"), is_trusted=True)
    await room.say(await line("trigger-long-running-operation", duration=1, steps=2))
    (part,) = await parts(room)
    assert part["toolMetadata"]["think"]["metadata"]["progress"] == 2
    assert part["toolMetadata"]["think"]["metadata"]["total"] == 2


async def test_a_new_tool_is_offered_once_a_person_has_accepted_it(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str]
) -> None:
    room = make_connected_room("declaring")
    server = await connected(room, odd)
    assert await result(room, "grow") == "grown"

    async def has_grown() -> bool:
        return any(tool["name"] == "grown" for tool in ((await only_server()).catalogue or {})["tools"])

    await until(has_grown)
    await room.say("say: hi")
    grown = tool_name(server.pk, "grown")
    assert grown not in tools_offered(room)
    (view,) = await room.handle.list_mcp_servers()
    assert view.unaccepted == ("grown",)
    fresh = await only_server()
    await db(rows.accept_tools, fresh, fresh.fingerprint)
    await room.say("say: hi")
    assert grown in tools_offered(room)


async def test_descriptions_that_no_person_has_looked_at_set_the_guard(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str]
) -> None:
    room = make_connected_room("wary")
    server = await connected(room, odd)
    await room.say(await line("echo", text="hello"))
    (question,) = await room.handle.pending_approvals()
    assert question.tool == tool_name(server.pk, "echo")
    fresh = await only_server()
    await db(rows.accept_tools, fresh, fresh.fingerprint)
    (view,) = await room.handle.list_mcp_servers()
    assert view.is_reviewed
    other = Room(replace(room.key, name="other"), model=room.model)
    await other.say("say: hi")  # the same server in another conversation
    assert tools_offered(other)
    assert await db(Guard.objects.count) == 1


async def test_a_server_that_dies_fails_its_call_alone_and_is_started_again(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], tmp_path: Path
) -> None:
    room = make_connected_room("declaring")
    await connected(room, odd)
    turn = await room.say(await line("die"))
    assert status_of(turn) == "completed"
    (part,) = await parts(room)
    assert part["state"] == "output-error"
    assert await result(room, "echo", text="again") == "again"
    assert count(tmp_path, "started") == 2
    assert count(tmp_path, "die") == 1  # a call that may have run is not made again


async def test_a_server_that_is_killed_under_a_call_fails_it_and_serves_the_next_one(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], tmp_path: Path
) -> None:
    room = make_connected_room("declaring")
    await connected(room, odd)
    async with worker():
        admission = await room.admit(await line("slow"))
        await until(lambda: count(tmp_path, "slow") == 1)
        os.kill(await asyncio.to_thread(_pid_of, str(tmp_path)), signal.SIGKILL)

        async def has_ended() -> bool:
            turn: Turn = await room.turn(admission.turn.pk)
            return turn.finished_at is not None

        await until(has_ended)
    (part,) = await parts(room)
    assert part["state"] == "output-error"
    assert await result(room, "echo", text="again") == "again"


def _pid_of(mark: str) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if mark in words and "stdio" in words and not words[0].endswith("setpriv"):
                return int(entry.name)
    raise AssertionError("the server does not run")


async def test_after_a_restart_tools_are_offered_without_connecting(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], tmp_path: Path
) -> None:
    room = make_connected_room("declaring")
    server = await connected(room, odd)
    await connections.close()
    before = pool().attempts
    await room.say("say: hi")
    assert tool_name(server.pk, "echo") in tools_offered(room)
    assert pool().attempts == before
    assert count(tmp_path, "started") == 1
    assert await result(room, "echo", text="back") == "back"
    assert count(tmp_path, "started") == 2


async def test_thirty_seven_dead_servers_cost_one_attempt_and_one_line_each(
    make_connected_room: MakeRoom, connections: McpPool, caplog: pytest.LogCaptureFixture
) -> None:
    DECLARED.extend(
        McpServerSpec(name=f"dead {number}", command=["/bin/sh", "-c", f"exit {number}"]) for number in range(37)
    )
    room = make_connected_room("declaring")
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            turn = await room.say("say: hi")
            assert status_of(turn) == "completed"
    lines = [record for record in caplog.records if record.name.startswith(("tools_app.mcp", "mcp"))]
    assert connections.attempts == 37
    assert len(lines) == 37
    states = await db(lambda: set(McpServer.objects.values_list("state", "failures")))
    assert states == {("failed", 1)}


@pytest.mark.long
async def test_a_dead_server_is_tried_again_when_a_person_asks_for_it(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    script = f"test -e {gate} && exec {' '.join(odd)}"
    room = make_connected_room("declaring")
    server = await connected(room, ["/bin/sh", "-c", script])
    assert server.state == "failed"
    gate.touch()
    await room.say("say: hi")
    assert (await only_server()).state == "failed"  # it is left alone for a while
    await db(rows.begin_again, await only_server())
    await connections.close()  # another process has no memory of the failure
    await room.say("say: hi")
    assert (await only_server()).state == "ready"


@pytest.mark.long
async def test_a_worker_that_dies_ends_its_programs(odd: list[str], tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'thinkproject.settings_test'\n"
        "import django\n"
        "django.setup()\n"
        "from tools_app.core.mcp.servers import McpServerSpec\n"
        "from tools_app.mcp.connection import McpConnection\n"
        "from tools_app.mcp.transports import Way\n"
        "async def main():\n"
        "    spec = McpServerSpec(name='x', command=sys.argv[1:])\n"
        "    await McpConnection(Way(spec), on_list_changed=lambda: None).open()\n"
        "    print('open', flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, *odd, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"open\n"
    pid = await asyncio.to_thread(_pid_of, str(tmp_path))
    process.kill()
    await process.wait()
    await until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.long
async def test_a_call_of_another_process_counts_once_the_row_says_so(
    make_connected_room: MakeRoom, connections: McpPool, odd: list[str], tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    room = make_connected_room("declaring")
    server = await connected(room, ["/bin/sh", "-c", f"test -e {gate} && exec {' '.join(odd)}"])
    gate.touch()
    other = McpPool()  # as a second worker process would have
    await db(rows.begin_again, await only_server())
    await other.refresh(Target(await only_server(), room.key.owner_id), insists=True)
    await other.close()
    assert await result(room, "echo", text="here too") == "here too"
    assert (await only_server()).pk == server.pk
