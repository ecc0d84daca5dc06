"""Sessions as an editor sees them: the agent's side of the protocol against the SDK's client, in one process."""

import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, RequestError, text_block
from acp._transport import memory_transport_pair
from acp.agent.connection import AgentSideConnection
from acp.client.connection import ClientSideConnection
from acp.helpers import embedded_text_resource, image_block, resource_block, resource_link_block
from acp.schema import AllowedOutcome, HttpMcpServer, McpServerStdio, RequestPermissionResponse, SseMcpServer
from django.contrib.auth.models import User

from chat.acp.agent import EditorAgent
from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle
from chat.llm.registry import replaced_models
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance
from chat.reads.snapshots import current_transcript
from chat.think import Permission, Think, Tool, tool
from fibers.execution.own_worker import working_for
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump
from tools_app.question_tool import ask_user

pytestmark = pytest.mark.django_db(transaction=True)


@tool
def todo_write(todos: list[dict[str, str]]) -> JSONObject:
    """Keep a list."""
    return {"todos": [*todos]}


class Drafter(Think):
    """Asks before each change of a file."""

    permissions = (Permission.ask("edit"),)

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [todo_write, ask_user]


class Client:
    """Notes updates, and chooses the option of each kind, or name, in turn."""

    def __init__(self, *choices: str) -> None:
        self.updates: list[JSONObject] = []
        self.asked: list[JSONObject] = []
        self.choices = list(choices)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append(tool_call.model_dump(mode="json", by_alias=True, exclude_none=True))
        wanted = self.choices.pop(0)
        chosen = next(option for option in options if wanted in (option.kind, option.name))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    def on_connect(self, conn: Any) -> None:
        """Need nothing of it."""

    def of(self, kind: str) -> list[JSONObject]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    @property
    def text(self) -> str:
        return "".join(update["content"]["text"] for update in self.of("agent_message_chunk"))


@contextlib.asynccontextmanager
async def connected(user: User, client: Client, agent: str = "drafter") -> AsyncIterator[Any]:
    ours, theirs = memory_transport_pair()
    key = InstanceKey(owner_id=user.pk, agent=agent, name="acp")
    editor: Any = client
    serving = AgentSideConnection(EditorAgent(key, "1"), ours)  # type: ignore[arg-type]  # optional methods are left out
    connection = ClientSideConnection(editor, theirs)
    with replaced_models(ScriptedModel()):
        async with working_for(user.pk):
            await connection.initialize(PROTOCOL_VERSION)
            yield connection
            await connection.close()
            await serving.close()


def calling(name: str, **given: Any) -> list[Any]:
    return [text_block(f"call tool {name} {dump(given)}")]


async def test_each_change_is_asked_for_with_its_diff_and_undone(alice: User, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two", encoding="utf-8")
    client = Client("allow_once", "reject_once")
    async with connected(alice, client) as connection:
        session_id = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        edit = calling("edit", path="/a.txt", old_string="two", new_string="three")
        assert (await connection.prompt(session_id=session_id, prompt=edit)).stop_reason == "end_turn"
        assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one three"
        diff = {"type": "diff", "path": str(tmp_path / "a.txt"), "oldText": "two", "newText": "three"}
        assert diff in client.asked[0]["content"]
        assert [update.get("status") for update in client.of("tool_call_update")][-1] == "completed"
        again = calling("write", path="/b.txt", content="x")
        assert (await connection.prompt(session_id=session_id, prompt=again)).stop_reason == "end_turn"
        assert client.of("tool_call_update")[-1]["status"] == "failed"
        assert not (tmp_path / "b.txt").exists()
        for command, content in (("/undo", "one three"), ("/undo", "one two"), ("/redo", "one three")):
            await connection.prompt(session_id=session_id, prompt=[text_block(command)])
            assert (tmp_path / "a.txt").read_text(encoding="utf-8") == content


async def test_questions_plans_and_failures(alice: User, tmp_path: Path) -> None:
    client = Client("Blue")
    async with connected(alice, client) as connection:
        session_id = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        questions = [{"question": "Which?", "header": "W", "options": [{"label": "Red"}, {"label": "Blue"}]}]
        await connection.prompt(session_id=session_id, prompt=calling("ask_user", questions=questions))
        assert "Blue" in client.text
        todos = [{"content": "A", "status": "in_progress"}, {"content": "B", "status": "cancelled"}]
        await connection.prompt(session_id=session_id, prompt=calling("todo_write", todos=todos))
        (plan,) = client.of("plan")
        assert plan["entries"] == [{"content": "A", "priority": "medium", "status": "in_progress"}]
        with pytest.raises(RequestError, match="key"):
            await connection.prompt(session_id=session_id, prompt=[text_block("error 401")])


async def test_what_a_prompt_has_becomes_a_message(alice: User, tmp_path: Path) -> None:
    pixel = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()
    prompt = [
        text_block("say: Seen."),
        resource_block(embedded_text_resource("file:///a.py", "x = 1")),
        resource_link_block("b.py", "file:///b.py"),
        image_block(pixel, "image/png"),
    ]
    client = Client()
    async with connected(alice, client) as connection:
        session_id = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        await connection.prompt(session_id=session_id, prompt=prompt)
        key = InstanceKey(owner_id=alice.pk, agent="drafter", name=session_id)
        message = (await db(current_transcript, key))[0]
        assert [part["type"] for part in message["parts"]] == ["text", "text", "text", "file"]
        assert message["parts"][1]["text"] == '<file uri="file:///a.py">\nx = 1\n</file>'
        client.updates.clear()
        await connection.load_session(cwd=str(tmp_path), session_id=session_id, mcp_servers=[])
        assert [each["content"]["type"] for each in client.of("user_message_chunk")] == ["text"] * 3 + ["resource_link"]


async def test_servers_of_the_editor_are_used_by_the_rules_of_the_product(alice: User, tmp_path: Path) -> None:
    program: Any = McpServerStdio(name="files", command="no-such-program", args=["-x"], env=[])
    remote: Any = HttpMcpServer(type="http", name="docs", url="https://docs.example.com/mcp", headers=[])
    events: Any = SseMcpServer(type="sse", name="old", url="https://old.example.com/sse", headers=[])
    private: Any = HttpMcpServer(type="http", name="inside", url="http://169.254.169.254/mcp", headers=[])
    async with connected(alice, Client()) as connection:
        session_id = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[program, remote])).session_id
        handle = AgentHandle(InstanceKey(owner_id=alice.pk, agent="drafter", name=session_id))
        assert {server.name for server in await handle.list_mcp_servers()} == {"files", "docs"}
        await connection.load_session(cwd=str(tmp_path), session_id=session_id, mcp_servers=[remote])
        assert len(await handle.list_mcp_servers()) == 2  # one of the name is there
        for refused in (events, private):
            with pytest.raises(RequestError, match="Invalid params"):
                await connection.new_session(cwd=str(tmp_path), mcp_servers=[refused])


async def test_only_ones_own_sessions_in_real_folders_are_opened(alice: User, bob: User, tmp_path: Path) -> None:
    async with connected(bob, Client()) as connection:
        theirs = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
    async with connected(alice, Client()) as connection:
        for session_id in (theirs, "nothing", "sub"):
            with pytest.raises(RequestError, match="not found"):
                await connection.load_session(cwd=str(tmp_path), session_id=session_id, mcp_servers=[])
        for cwd in ("relative", str(tmp_path / "nowhere")):
            with pytest.raises(RequestError, match="Invalid params"):
                await connection.new_session(cwd=cwd, mcp_servers=[])
        with pytest.raises(RequestError, match="not found"):
            await connection.prompt(session_id=theirs, prompt=[text_block("say: x")])
    assert await AgentInstance.objects.filter(owner=alice).acount() == 0
