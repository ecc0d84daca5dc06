"""What the Think documentation says under "Quick start" and "Package exports", translated.

The page of "Client" runs with the published hooks in `tests/clients`.
"""

import importlib
import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.instance.instance import make_agent
from chat.llm.registry import replaced_models
from chat.testing import worker
from chat.think import Think
from chat.tools.browser import create_browser_tools
from chat.tools.code import create_execute_tool, create_process_tool
from chat.tools.files import MemoryWorkspace, create_workspace_tools
from tests.db.chat.sockets import frames_until, opening_sockets
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.extending import MATH, MATH_MANIFEST
from thinkproject.kernel.aio import db
from tools_app.core.tool import Tool

from .conftest import MakeRoom
from .working import call, offered, outputs

pytestmark = pytest.mark.django_db(transaction=True)

FILE_TOOLS = ["read", "write", "edit", "list", "find", "grep", "delete"]


# Quick start


class QuickStartDoc(Think):
    def get_model(self) -> str:
        return "default"


def asked(request_id: str, text: str) -> str:
    """The frame with which a page sends a message."""
    message = {"id": f"of-{request_id}", "role": "user", "parts": [{"type": "text", "text": text}]}
    body = json.dumps({"messages": [message], "clientTools": [{"name": "locate", "description": "Where I am"}]})
    return json.dumps({"type": "cf_agent_use_chat_request", "id": request_id, "init": {"method": "POST", "body": body}})


async def test_quick_start(make_room: MakeRoom) -> None:
    """Three lines, and the frames of a page: protocol, storage, loop, client tools and files are there."""
    room = make_room("quick-start-doc")
    alice = await db(User.objects.get)
    with replaced_models(room.model):
        async with opening_sockets() as open_socket, worker():
            page = await open_socket(alice, "quick-start-doc/room")
            script = f"{call('write', path='/a.md', content='tea')}\nsay: It is written."
            await page.send_to(asked("r1", script))
            frames = [frame for frame in await frames_until(page, "done") if "seq" in frame]
            chunks = [json.loads(frame["body"]) for frame in frames if frame["body"]]
            assert "".join(each["delta"] for each in chunks if each["type"] == "text-delta") == "It is written."
    assert [role for role, _ in await room.texts()] == ["user", "assistant"]
    assert (await room.texts())[-1][1] == "It is written."
    assert await room.handle.workspace.read_file("/a.md") == "tea"
    assert [*offered(room)[:7], offered(room)[-1]] == [*FILE_TOOLS, "locate"]


# Package exports


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("chat.think", ["Think", "SessionSetup", "Workspace"]),
        ("chat.tools.files", ["create_workspace_tools", "Workspace"]),
        ("chat.tools.code", ["create_execute_tool", "create_process_tool"]),
        ("chat.tools.browser", ["create_browser_tools"]),
    ],
)
def test_package_exports(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    assert set(names) <= set(found.__all__)
    assert all(getattr(found, name) is not None for name in names)


def test_package_exports_that_make_tools() -> None:
    made: dict[str, list[Tool]] = {
        "workspace": list(create_workspace_tools(MemoryWorkspace())),
        "execute": [create_execute_tool([])],
        "browser": list(create_browser_tools(["example.com"])),
        "sandbox": [create_process_tool(MemoryWorkspace())],
    }
    names = {kind: [tool.name for tool in tools] for kind, tools in made.items()}
    assert names["workspace"][:7] == FILE_TOOLS
    assert (names["execute"], names["browser"][:2]) == (["execute"], ["browser_search", "browser_execute"])
    assert names["sandbox"] == ["run_command"]  # upstream's is a placeholder without tools


class ExtensibleDoc(Think):
    """`createExtensionTools()` is a flag, and `ExtensionManager` the methods of every agent and handle."""

    workspace_tools = False
    extensions = True

    def get_model(self) -> Any:
        return MODELS["current"]


@pytest.mark.usefixtures("shared_sandbox_closes")
async def test_package_exports_for_extensions(make_room: MakeRoom) -> None:
    room = make_room("extensible-doc")
    agent = make_agent(room.key)
    assert isinstance(agent, ExtensibleDoc)
    await agent.load_extension(MATH_MANIFEST, MATH)
    assert [each["name"] for each in await room.handle.list_extensions()] == ["math"]
    assert await outputs(room, call("math_add", a=2, b=3)) == [{"result": 5}]
    assert {"load_extension", "list_extensions", "math_add"} <= set(offered(room))
    assert await agent.unload_extension("math") is True
    assert await agent.list_extensions() == []
