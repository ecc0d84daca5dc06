"""The code examples of the Think documentation on files and code, translated; each under its heading's name.

Of the headings under Tools these are those on the workspace, on the order of tools, on code, and on storage of one's
own. The others are in `test_hook_examples.py` (custom tools, overrides for a turn), `test_client_tool_examples.py`
(approval), `test_browser_examples.py`, `test_extension_examples.py`, and `../mcp/test_mcp_examples.py`.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from django.core.files.storage import default_storage

from chat.instance.instance import make_agent
from chat.llm.scripted import ScriptedModel
from chat.testing import worker
from chat.think import (
    McpServerSpec,
    Origin,
    Relaxed,
    SessionSetup,
    StoredText,
    Think,
    Tool,
    TurnContext,
    tool,
)
from chat.tools.code import create_execute_tool
from chat.tools.files import (
    Entry,
    EntryKind,
    StorageWorkspace,
    create_delete_tool,
    create_edit_tool,
    create_find_tool,
    create_grep_tool,
    create_list_tool,
    create_read_tool,
    create_workspace_tools,
    create_write_tool,
)
from tests.db.chat.mcp_servers.serving import ODD
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from thinkproject.kernel.aio import db
from tools_app.core.files.failures import failed
from tools_app.core.mcp.catalogue import tool_name
from tools_app.mcp.pool import pool
from tools_app.models import FileBackup, McpServer, WorkspaceEntry
from tools_app.sandbox.deno import DenoSandbox
from tools_app.workspace.turn_files import prune_backups

from .conftest import MakeRoom
from .working import call, offered, one_after_another, outputs, parts_of_calls

pytestmark = pytest.mark.django_db(transaction=True)

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
SANDBOXES: dict[str, DenoSandbox] = {}


class Documented(Think, abstract=True):
    """What the examples share: the model of the test."""

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]


# Built-in workspace tools


class BuiltInDoc(Documented):
    """Nothing has to be configured."""


async def test_built_in_workspace_tools(make_room: MakeRoom) -> None:
    room = make_room("built-in-doc")
    done = await outputs(
        room,
        call("write", path="/a/new/folder/plan.md", content="first\nsecond  line"),
        call("edit", path="/a/new/folder/plan.md", old_string="second line", new_string="last line"),
        call("read", path="/a/new/folder/plan.md"),
        call("list", path="/a/new"),
        call("find", pattern="/a/**/*.md"),
        call("grep", query="^last", fixedString=False),
        call("delete", path="/a", recursive=True),
    )
    assert offered(room)[:7] == ["read", "write", "edit", "list", "find", "grep", "delete"]
    assert done[1] == {"path": "/a/new/folder/plan.md", "replaced": True, "fuzzyMatch": True, "lines": 2}
    assert done[2]["content"] == "1\tfirst\n2\tlast  line"  # the spaces of the file stay
    assert (done[3]["entries"], done[4]["files"]) == (["folder/"], ["/a/new/folder/plan.md"])
    assert done[5]["matches"] == ["/a/new/folder/plan.md:2: last  line"]
    assert done[6] == {"deleted": "/a"}


# Tool merge order


SET_EXTENSION: Final[dict[str, Any]] = {
    "manifest": {"name": "set", "version": "1.0.0"},
    "source": """({ tools: {
      context: { description: "The extension's", parameters: {}, execute: async () => "the extension's" },
      clock: { description: "The extension's", parameters: {}, execute: async () => "the extension's" },
      alarm: { description: "The extension's", parameters: {}, execute: async () => "the extension's" }
    } })""",
}
ODD_COMMAND: list[str] = []
OWN_NAMES: list[str] = []
"""Further names of tools that the agent gives itself."""


class MergeOrderDoc(Documented):
    """Has tools of every source, some of them under one name."""

    wait_for_mcp_connections = True
    injection_guard = Relaxed(reason="The server is this test's own.", trusts=[Origin.MCP])

    def get_tools(self) -> list[Tool]:
        @tool
        def read(title: str) -> str:
            """Read a book of the agent's own."""
            return f"my {title}"

        return [read, *(replace(read, name=name) for name in OWN_NAMES)]

    def get_extensions(self) -> list[dict[str, Any]]:
        return [SET_EXTENSION]

    def get_mcp_servers(self) -> list[McpServerSpec]:
        return [McpServerSpec(name="odd", command=ODD_COMMAND)]

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_context("memory", provider=StoredText())

    def before_turn(self, context: TurnContext) -> None:
        SEEN.append(("before_turn", context))


@pytest.fixture
async def odd_server(tmp_path: Path) -> AsyncIterator[None]:
    """A server of MCP with a tool "echo", for the agent of "Tool merge order"."""
    ODD_COMMAND[:] = [sys.executable, str(ODD), "stdio", str(tmp_path)]
    yield
    OWN_NAMES.clear()
    await pool().close()


@pytest.mark.usefixtures("shared_sandbox_closes", "odd_server")
async def test_tool_merge_order(make_room: MakeRoom) -> None:
    room = make_room("merge-order-doc")
    await room.say("say: hi")  # the name of the server's tool has its id
    echo = tool_name((await db(McpServer.objects.get)).pk, "echo")
    everywhere = ["set_clock", "set_context", "set_alarm", echo, "write", "locate", "fetch"]
    OWN_NAMES[:] = ["set_clock", "set_context", echo]
    await room.say("say: hi", client_tools=[{"name": name, "description": "Mine"} for name in everywhere])
    script = one_after_another(
        call("read", title="Emma"),
        call("set_clock", title="Emma"),
        call("set_alarm"),
        call("set_context", label="memory", content="Tea."),
        call(echo, text="hello"),
        call("fetch"),
    )

    def of_caller(name: str) -> Tool:
        return tool(name=name, description="The caller's")(lambda: f"the caller's {name}")

    names = [name for name in everywhere if name != "locate"]
    async with worker(), asyncio.timeout(60):
        await room.handle.chat(script, tools=[of_caller(name) for name in names])
    said = {part["type"].removeprefix("tool-"): part["output"] for part in await parts_of_calls(room)}
    assert said == {
        "read": "my Emma",  # get_tools() over the workspace
        "set_clock": "my Emma",  # an extension never takes the place of an earlier source
        "set_alarm": "the extension's",
        "set_context": "Written to memory. Usage: 2 tokens",  # the session over extensions and get_tools()
        echo: "hello",  # MCP over get_tools()
        "fetch": "the caller's fetch",  # the caller over the client; neither takes the place of the server's
    }
    [*_, context] = [seen for name, seen in SEEN if name == "before_turn"]
    sources = {name: found.source for name, found in context.tools.items()}
    assert [sources[name] for name in ("list", "read", "set_alarm", "set_context", echo, "locate", "fetch")] == [
        "workspace", "agent", "extensions", "session", "mcp", "client", "caller",
    ]  # fmt: skip
    assert sources["write"] == "workspace"
    order = list(dict.fromkeys(item["name"] for item in room.model.requests[-1]["tools"]))
    places = [order.index(name) for name in ("list", "set_alarm", "set_context", echo)]
    assert places == sorted(places)
    assert set(order[-2:]) == {"locate", "fetch"}  # what runs elsewhere is declared last


# R2 spillover


class SpilloverDoc(Documented):
    """Large files go to Django's storage without a line of code."""


async def test_r2_spillover(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 1_000
    room = make_room("spillover-doc")
    large = "x" * 1_500
    _, _, read = await outputs(
        room,
        call("write", path="/small.txt", content="small"),
        call("write", path="/large.txt", content=large),
        call("read", path="/large.txt"),
    )
    assert read["content"] == f"1\t{large}"
    rows = {entry.path: entry async for entry in WorkspaceEntry.objects.filter(kind="file")}
    assert rows["/small.txt"].storage_name == ""
    name = rows["/large.txt"].storage_name
    with default_storage.open(name) as stored:
        assert stored.read() == large.encode()
    await outputs(room, call("write", path="/large.txt", content="small again"))
    assert default_storage.exists(name)  # as long as an undo may want it
    await FileBackup.objects.aupdate(created_at=datetime(2020, 1, 1, tzinfo=UTC))
    await db(prune_backups)
    assert not default_storage.exists(name)


class BucketDoc(Documented):
    """Keeps all files in a storage, below a folder for each conversation."""

    def get_workspace(self) -> StorageWorkspace:
        return StorageWorkspace(default_storage, f"agent-files/{self.key.name}")


async def test_r2_spillover_with_a_storage_of_ones_own(make_room: MakeRoom) -> None:
    room = make_room("bucket-doc", "b1")
    await outputs(room, call("write", path="/report.txt", content="all here"))
    assert await StorageWorkspace(default_storage, "agent-files/b1").read_file("/report.txt") == "all here"
    assert not await WorkspaceEntry.objects.aexists()


# Code execution tool


@tool
async def forecast(city: str) -> dict[str, Any]:
    """The weather of tomorrow."""
    return {"city": city, "degrees": len(city)}


class CodeDoc(Documented):
    """Code that calls the file tools."""

    workspace_tools = False

    def get_tools(self) -> list[Tool]:
        return [create_execute_tool(create_workspace_tools(self.workspace), sandbox=SANDBOXES["current"])]


class StateDoc(Documented):
    """Code with tools of the domain, and `state.*` for the files."""

    def get_tools(self) -> list[Tool]:
        return [create_execute_tool([forecast], workspace=self.workspace, sandbox=SANDBOXES["current"])]


@pytest.fixture
async def examples_sandbox() -> AsyncIterator[DenoSandbox]:
    SANDBOXES["current"] = DenoSandbox(spare=False)
    yield SANDBOXES["current"]
    await SANDBOXES.pop("current").close()


async def test_code_execution_tool(make_room: MakeRoom, examples_sandbox: DenoSandbox) -> None:
    room = make_room("code-doc")
    code = """async () => {
        for (const n of [1, 2, 3]) await tools.write({ path: `/n/${n}.txt`, content: `number ${n}` });
        const found = await tools.find({ pattern: "/n/*.txt" });
        const texts = [];
        for (const path of found.files) texts.push((await tools.read({ path })).content);
        return texts;
    }"""
    (ran,) = await outputs(room, call("execute", code=code))
    assert ran["value"] == ["1\tnumber 1", "1\tnumber 2", "1\tnumber 3"]
    assert [made["name"] for made in ran["calls"]] == ["tools.write"] * 3 + ["tools.find"] + ["tools.read"] * 3
    assert offered(room) == ["execute"]
    assert await make_agent(room.key).instance.open_workspace().read_file("/n/2.txt") == "number 2"


async def test_code_execution_tool_with_a_state_backend(make_room: MakeRoom, examples_sandbox: DenoSandbox) -> None:
    room = make_room("state-doc")
    code = """async () => {
        const { degrees } = await tools.forecast({ city: "Porto" });
        await state.writeJson({ path: "/weather.json", value: { degrees } });
        return await state.queryJson({ path: "/weather.json", query: "degrees" });
    }"""
    ran, read = await outputs(room, call("execute", code=code), call("read", path="/weather.json"))
    assert ran["value"] == 5
    assert json.loads("".join(line.partition("\t")[2] for line in read["content"].splitlines())) == {"degrees": 5}


# Custom workspace backends


class MyStorage:
    """A storage with the operations that the tools need: a mapping."""

    def __init__(self) -> None:
        self.texts = {"/hello.txt": "hello"}

    async def stat(self, path: str) -> Entry | None:
        text = self.texts.get(path)
        return None if text is None else self._entry(path, text)

    async def read_file(self, path: str) -> str | None:
        return self.texts.get(path)

    async def read_bytes(self, path: str) -> bytes | None:
        text = self.texts.get(path)
        return None if text is None else text.encode()

    async def write_file(
        self, path: str, content: str | bytes, *, media_type: str = "", expected_version: str | None = None
    ) -> Entry:
        text = content if isinstance(content, str) else content.decode()
        self.texts[path] = text
        return self._entry(path, text)

    async def mkdir(self, path: str, *, recursive: bool = False) -> None:
        pass

    async def read_dir(self, path: str = "/", *, limit: int = 1000, offset: int = 0) -> list[Entry]:
        return (await self.glob("/*"))[offset : offset + limit]

    async def glob(self, pattern: str, *, limit: int | None = None, ignored: bool = True) -> list[Entry]:
        return [self._entry(path, text) for path, text in sorted(self.texts.items())][:limit]

    async def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        if self.texts.pop(path, None) is None and not force:
            raise failed("ENOENT", path)

    def _entry(self, path: str, text: str) -> Entry:
        return Entry(path=path, kind=EntryKind.FILE, size=len(text), created_at=NOW, modified_at=NOW)


MY_STORAGE: Final = MyStorage()


class BackendDoc(Documented):
    """Each tool made on its own, over a storage of one's own."""

    workspace_tools = False

    def get_tools(self) -> list[Tool]:
        return [
            create_read_tool(MY_STORAGE),
            create_write_tool(MY_STORAGE),
            create_edit_tool(MY_STORAGE),
            create_list_tool(MY_STORAGE),
            create_find_tool(MY_STORAGE),
            create_grep_tool(MY_STORAGE),
            create_delete_tool(MY_STORAGE),
        ]


async def test_custom_workspace_backends(make_room: MakeRoom) -> None:
    room = make_room("backend-doc")
    done = await outputs(
        room,
        call("read", path="/hello.txt"),
        call("write", path="/b.txt", content="one two"),
        call("edit", path="/b.txt", old_string="two", new_string="three"),
        call("list"),
        call("find", pattern="/*"),
        call("grep", query="three"),
        call("delete", path="/hello.txt"),
    )
    assert done[0]["content"] == "1\thello"
    assert MY_STORAGE.texts == {"/b.txt": "one three"}
    assert done[3]["entries"] == ["b.txt (9 B)", "hello.txt (5 B)"]
    assert done[4]["files"] == ["/b.txt", "/hello.txt"]
    assert done[5]["matches"] == ["/b.txt:1: one three"]


class OnlyReadDoc(Documented):
    """One tool over a storage of one's own, in place of the built-in one; the others stay."""

    def get_tools(self) -> list[Tool]:
        return [create_read_tool(MyStorage())]


async def test_custom_workspace_backends_for_one_tool(make_room: MakeRoom) -> None:
    room = make_room("only-read-doc")
    read, listed = await outputs(room, call("read", path="/hello.txt"), call("list"))
    assert read["content"] == "1\thello"
    assert listed["entries"] == []
