"""Agents that read what strangers wrote, tools that do something, and a server that must not hear of it.

Importing this module serves them.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from aiohttp import web

from chat.conversations.guarding import decide_guard, guard_state
from chat.instances.rows import find_instance
from chat.models import AgentInstance
from chat.think import (
    AgentHandle,
    Origin,
    Relaxed,
    SessionSetup,
    Think,
    Tool,
    ToolContext,
    action,
    client_tool,
    tool,
    with_approval,
)
from chat.tools.web import create_fetch_tools
from sessions_app.core.messages.shapes import Part
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from tools_app.calls.services import Actor
from tools_app.core.guard.reach import written_as
from tools_app.core.guard.rules import GuardDecision

LOOPBACK = ("127.0.0.0/8",)
DONE: list[str] = []
"""What the tools did, in order."""

MAIL: dict[str, str] = {}
"""Texts that `mail` and `lookup` return, by name."""

NOTES: list[str] = []
"""What a server says of its tools."""


@tool(title="Send mail")
async def transmit(to: str, text: str = "") -> str:
    """Send a mail."""
    DONE.append(f"transmit {to} {text}".strip())
    return "sent"


@action(key="order")
async def refund(order: str) -> str:
    """Pay an order back."""
    DONE.append(f"refund {order}")
    return "refunded"


@tool(read_only=True, open_world=True)
async def ask(query: str) -> str:
    """Ask a search engine."""
    DONE.append(f"ask {query}")
    return "nothing found"


@tool(read_only=True)
async def clock() -> str:
    """Look at the clock."""
    return "noon"


@tool(origin=Origin.WEB, read_only=True)
async def mail(name: str) -> str:
    """Read a mail."""
    return MAIL[name]


@tool(origin=Origin.MCP, read_only=True)
async def lookup(name: str) -> str:
    """Ask the server of the library."""
    return MAIL[name]


@tool(read_only=True)
async def ledger(context: ToolContext, name: str) -> str:
    """Look into the ledger, which quotes letters."""
    context.note_origin(Origin.WEB, f"letter {name}")
    return MAIL[name]


@tool(read_only=True)
async def beacon(context: ToolContext, host: str, reads: bool = False) -> str:
    """Reach the network in another way than by calls of tools."""
    if reads:
        context.note_origin(Origin.WEB, "a page")
    await context.check_egress(host)
    DONE.append(f"beacon {host}")
    return "reached"


class GuardedClerk(Think):
    """Reads mail, pages and files, and can do several things."""

    code_tool: ClassVar[bool | Sequence[str]] = True
    helper: ClassVar[str] = "errand-runner"

    def get_model(self) -> Any:
        return MODELS["current"]

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_memory()

    def get_tools(self) -> list[Tool]:
        @tool
        async def delegate(text: str) -> str:
            """Have another agent do something."""
            answer = await AgentHandle(self.key).sub_agent(self.helper, "helper").chat(text)
            return "".join(part.get("text", "") for part in (answer.message or {"parts": []})["parts"])

        lowered = with_approval(tool(name="shout", needs_approval=True)(_shout), False, lowers=True)
        mine = [transmit, refund, ask, clock, mail, lookup, ledger, beacon, lowered, delegate, client_tool("beep")]
        return [*mine, *fetchers(self)]


SERVERS: list[str] = []
"""Addresses that the agents may fetch from."""


def fetchers(agent: Think) -> Sequence[Tool]:
    """The fetch tool of an agent, while there is a server."""
    return create_fetch_tools(SERVERS, workspace=agent.workspace, allow_private=LOOPBACK) if SERVERS else ()


async def _shout(text: str) -> str:
    """Say it aloud."""
    DONE.append(f"shout {text}")
    return "shouted"


class CarelessClerk(GuardedClerk):
    """Does what it reads."""

    injection_guard = Relaxed(reason="The corpus has to do harm somewhere.")
    helper: ClassVar[str] = "careless-runner"


class ShowingClerk(GuardedClerk):
    """Shows its model which files there are."""

    workspace_in_prompt = True


class InstructedClerk(GuardedClerk):
    """Does as a file says."""

    instruction_files = ("AGENTS.md",)


class SearchingClerk(GuardedClerk):
    """Finds what was said in other conversations."""

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_memory().with_session_search()


class TrustingClerk(GuardedClerk):
    """Trusts the web and its fetcher, and nothing else."""

    injection_guard = Relaxed(reason="Reads our own wiki only.", trusts=[Origin.WEB], allows=["ask"])


class ErrandRunner(Think):
    """Runs errands for others."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [transmit, mail, *fetchers(self)]


class CarelessRunner(ErrandRunner):
    """Does what it reads."""

    injection_guard = Relaxed(reason="The corpus has to do harm somewhere.")


@dataclass
class Web:
    """A server of pages. `log`: the paths that it was asked for."""

    pages: dict[str, tuple[str, str]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    port: int = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def put(self, path: str, text: str, media_type: str = "text/plain") -> str:
        self.pages[path] = (text, media_type)
        return self.url(path)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.log.append(request.path_qs)
        text, media_type = self.pages.get(request.path, ("not here", "text/plain"))
        return web.Response(text=text, content_type=media_type)


@asynccontextmanager
async def served_web() -> AsyncIterator[Web]:
    """A server on this machine that the agents may fetch from."""
    made = Web()
    runner = web.ServerRunner(web.Server(made.answer), shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    SERVERS[:] = [made.url("")]
    try:
        yield made
    finally:
        SERVERS.clear()
        await runner.cleanup()


class Guarded(Desk):
    """A room with the guard of its conversation."""

    async def instance(self) -> AgentInstance:
        found = await db(find_instance, self.room.key)
        assert found is not None
        return found

    async def state(self) -> Any:
        return await db(guard_state, await self.instance())

    async def decide(self, decision: GuardDecision, seen: int | None = None) -> None:
        state = await self.state()
        actor = Actor(user_id=self.room.key.owner_id, via="api")
        instance = await self.instance()
        await db(lambda: decide_guard(instance, decision, seen=state.count if seen is None else seen, actor=actor))

    async def upload(self, path: str, text: str) -> None:
        """Write a file as a person does who has it from elsewhere."""
        with written_as(Origin.FILE):
            await self.room.handle.workspace.write_file(path, text)

    async def open(self) -> list[Part]:
        """The calls of the last answer that wait for a decision."""
        message = (await self.room.transcript())[-1]
        return [part for part in message["parts"] if part.get("state") == "approval-requested"]


def calls(*made: tuple[str, Any]) -> str:
    """A script in which the model makes these calls in one step."""
    return "\n".join(f"call tool {name} {json.dumps(arguments)}" for name, arguments in made)


@pytest.fixture
async def open_web() -> AsyncIterator[Web]:
    async with served_web() as made:
        yield made
