"""`agent_acp` with the client of the published SDK: it edits a folder, asks, is stopped, is killed and goes on."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import AllowedOutcome, ClientCapabilities, DeniedOutcome, RequestPermissionResponse

from tests.acceptance.product import ROOT, Product

COMMAND = ["manage.py", "agent_acp", "--user", "alice"]
SECONDS = 60


class Editor:
    """Notes what the agent sends, and answers its questions with the next of `answers`; without one it waits."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.answers: list[str] = []
        self._news = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self._note(self.updates, update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> RequestPermissionResponse:
        offered = {option.kind: option.option_id for option in options}
        self._note(self.asked, tool_call)
        self.asked[-1]["offered"] = list(offered)
        if not self.answers:
            await asyncio.get_running_loop().create_future()
        wanted = self.answers.pop(0)
        if wanted == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=offered[wanted]))

    def on_connect(self, conn: Any) -> None:
        """Need nothing of it."""

    def _note(self, where: list[dict[str, Any]], what: Any) -> None:
        where.append(what.model_dump(mode="json", by_alias=True, exclude_none=True))
        self._news.set()

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():
                self._news.clear()
                await self._news.wait()

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.of_kind(kind))


@contextlib.asynccontextmanager
async def editing(product: Product, agent: str = "assistant") -> AsyncIterator[tuple[Editor, Any, Any]]:
    editor: Any = Editor()
    async with acp.spawn_agent_process(editor, sys.executable, *COMMAND, agent, env=product.environ, cwd=ROOT) as (
        connection,
        process,
    ):
        started: Any = await connection.initialize(acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
        assert started.protocol_version == 1
        assert started.agent_capabilities.load_session
        yield editor, connection, process


def changes_of(editor: Editor) -> list[dict[str, Any]]:
    """The calls that were begun, and what became of them."""
    return editor.of_kind("tool_call") + editor.of_kind("tool_call_update")


def call(tool: str, **given: str) -> list[Any]:
    return [acp.text_block(f"call tool {tool} {json.dumps(given)}")]


async def say(connection: Any, session_id: str, blocks: Any) -> str:
    async with asyncio.timeout(SECONDS):
        return str((await connection.prompt(session_id=session_id, prompt=blocks)).stop_reason)


@pytest.mark.smoke
async def test_an_answer_goes_on_after_a_kill_and_a_call_is_stopped(shared_product: Product, tmp_path: Path) -> None:
    words = 120
    async with editing(shared_product) as (editor, connection, process):
        session_id = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        writing = asyncio.create_task(say(connection, session_id, [acp.text_block(f"stream {words} words at 20/s")]))
        await editor.until(lambda: len(editor.said().split()) > 5)
        process.kill()
        writing.cancel()

    async with editing(shared_product) as (editor, connection, _):
        await connection.load_session(cwd=str(tmp_path), session_id=session_id, mcp_servers=[])
        await editor.until(lambda: len(editor.said().split()) >= words)
        assert len(editor.said().split()) == words  # none lost, none twice
        editor.updates.clear()
        slow = asyncio.create_task(
            say(connection, session_id, call("bash", script="echo begun > /begun.txt; sleep 20; echo > /ended.txt"))
        )
        await editor.until(lambda: "in_progress" in [each.get("status") for each in changes_of(editor)])
        await connection.cancel(session_id=session_id)
        assert await slow == "cancelled"
        assert not (tmp_path / "ended.txt").exists()
        assert "completed" not in [each.get("status") for each in changes_of(editor)]
        assert await say(connection, session_id, [acp.text_block("say: Still here.")]) == "end_turn"
        assert editor.said().endswith("Still here.")


@pytest.mark.smoke
async def test_an_editor_edits_is_asked_cancels_and_loads_after_a_kill(shared_product: Product, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("An old text.\n", encoding="utf-8")
    async with editing(shared_product) as (editor, connection, process):
        session_id = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        await editor.until(lambda: editor.of_kind("available_commands_update"))
        edit = call("edit", path="/README.md", old_string="old", new_string="new")
        assert await say(connection, session_id, edit) == "end_turn"
        assert (tmp_path / "README.md").read_text(encoding="utf-8") == "An new text.\n"
        (begun,) = editor.of_kind("tool_call")
        changes = editor.of_kind("tool_call_update")
        diff = next(each for update in changes for each in update.get("content", ()) if each["type"] == "diff")
        assert (diff["path"], diff["oldText"], diff["newText"]) == (str(tmp_path / "README.md"), "old", "new")
        assert (begun["kind"], changes[-1]["status"]) == ("edit", "completed")

        await say(connection, session_id, [acp.text_block("/undo")])
        assert (tmp_path / "README.md").read_text(encoding="utf-8") == "An old text.\n"

        editor.updates.clear()
        writing = asyncio.create_task(say(connection, session_id, [acp.text_block("stream 1000 words at 20/s")]))
        await editor.until(lambda: len(editor.said().split()) > 5)
        await connection.cancel(session_id=session_id)
        assert await writing == "cancelled"
        assert len(editor.said().split()) < 500

        secret = tmp_path / ".env"
        editor.answers = ["reject_once"]
        assert await say(connection, session_id, call("write", path="/.env", content="A=1")) == "end_turn"
        assert not secret.exists()
        assert editor.of_kind("tool_call_update")[-1]["status"] == "failed"
        left = asyncio.create_task(say(connection, session_id, call("write", path="/.env", content="A=2")))
        await editor.until(lambda: len(editor.asked) == 2)
        assert editor.asked[1]["offered"] == ["allow_once", "allow_always", "reject_once"]
        process.kill()
        left.cancel()

    async with editing(shared_product) as (editor, connection, _):
        editor.answers = ["allow_always"]
        listed = await connection.list_sessions(cwd=str(tmp_path))
        assert [each.session_id for each in listed.sessions] == [session_id]
        await connection.load_session(cwd=str(tmp_path), session_id=session_id, mcp_servers=[])
        assert "stream 1000 words" in editor.said("user_message_chunk")
        assert editor.said().split()[:5]
        await editor.until(lambda: "completed" in [each.get("status") for each in editor.of_kind("tool_call_update")])
        assert secret.read_text(encoding="utf-8") == "A=2"
        assert len(editor.asked) == 1
        assert await say(connection, session_id, call("write", path="/.env", content="A=3")) == "end_turn"
        assert len(editor.asked) == 1  # by the rule
        assert secret.read_text(encoding="utf-8") == "A=3"
