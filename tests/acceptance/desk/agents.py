"""Agents for acceptance tests, served through `THINK_APPS`.

The calls of `Desk` are answered by browsers and by people; `Board` has a state, methods for clients and sub-agents;
`Crier` says what later packages will say.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, Literal

from django.core.cache import cache

from chat.agent.callables import StreamResult, client_callable
from chat.client import ChatClient
from chat.core.wire import extension_frames as side
from chat.core.wire import frames
from chat.errors import CallRefused
from chat.think import (
    USE_LOOP,
    ChatOptions,
    ClientConnection,
    Command,
    Media,
    RecoveryContext,
    SessionSetup,
    StoredSkills,
    Think,
    Tool,
    ToolContext,
    ToolOutput,
    action,
    client_tool,
    tool,
)
from chat.tools.todo import todo_tools
from tests.acceptance.desk import (
    coding,
    delegating,
    growing,
    mending,
    offered,
    recovering,
    ruled,
    surveying,
    working,
)
from tests.acceptance.desk.servers import MCP
from thinkproject.kernel.jsonvalue import JSONObject, dump, load


@tool(title="Payment", needs_approval=True, approval_text="Pay {amount}?", editable=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


async def _is_much(arguments: JSONObject, _context: ToolContext) -> bool:
    return bool(arguments["amount"] > 10)


@tool(needs_approval=_is_much)
async def spend(amount: int) -> str:
    """Spend an amount; much of it only with consent."""
    await asyncio.sleep(0.2)  # a tool that takes a moment
    return f"spent {amount}"


@tool
async def linger(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)  # a tool that takes as long as it is asked to
    return f"lingered {seconds:g}"


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63fccfc0500f000485018084"
    "a98c210000000049454e44ae426082"
)


@tool
async def survey(seconds: float, context: ToolContext) -> ToolOutput:
    """Tell how far it has come, and return a picture."""
    context.progress(title="Half of it", metadata={"pages": 3})
    await asyncio.sleep(seconds)  # a tool that takes as long as it is asked to
    return ToolOutput(value="seen", title="All of it", metadata={"pages": 6}, media=[Media(data=PIXEL, name="map.png")])


@tool(needs_approval=True)
def sign(path: str, context: ToolContext) -> str:
    """Write a line to a file: how often this ran is seen there."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{context.idempotency_key}\n")
    return "signed"


@tool
async def ask_remote(url: str, token: str, question: str) -> str:
    """Ask an assistant on another server, as its client."""
    async with ChatClient(url, agent="assistant", name="asked-from-afar", token=token) as chat:
        turn = await chat.send(question)
        answer = await turn.final()
    return "".join(part["text"] for part in answer["parts"] if part["type"] == "text")


class Desk(Think):
    """Has tools of every kind."""

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give one of ours, some that people approve, and one that a browser runs."""
        return [linger, pay, spend, sign, survey, ask_remote, client_tool("locate", "Ask the browser where it is.")]


@tool(
    needs_approval=True,
    title="Refund an order",
    approval_text="Refund {amount:.2f} euros for order {order_number}?",
    editable=("amount", "reason", "notify", "note", "parts"),
)
def refund(
    order_number: str,
    amount: float,
    reason: Literal["late", "broken"] = "late",
    notify: bool = True,
    note: str | None = None,
    parts: list[str] | None = None,
) -> str:
    """FOR MODELS ONLY: give money back."""
    return f"refunded {amount:g} for {order_number}, {reason}, {notify}, {note}, {parts}"


class Clerk(Think):
    """Gives money back, after asking."""

    title = "Returns clerk"
    icon = "cart"
    suggestions = ("Refund my last order", "What is your returns policy?")

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give the one whose arguments a person may change."""
        return [refund]


@tool(reruns=False)
async def ask_person(context: ToolContext) -> str:
    """Wait for a person, for an hour; count how often it went on."""
    end = await context.wait("window", label="the deployment window", seconds=3600)
    counted = f"resumed.{context.turn_id}"
    await asyncio.to_thread(cache.add, counted, 0, timeout=3600)
    await asyncio.to_thread(cache.incr, counted)
    return str(end.answer)


def _happened(path: str, context: ToolContext) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{context.idempotency_key}\n")


@action(key="path", pause=True, summary="Sign {path}?", risk="high")
def seal(path: str, context: ToolContext) -> str:
    """Write a line to a file, once a person agrees."""
    _happened(path, context)
    return "sealed"


@action
def burn(path: str, context: ToolContext) -> str:
    """Write a line to a file; the process dies before anybody can know that it did, the first time."""
    _happened(path, context)
    if len(Path(path).read_text(encoding="utf-8").splitlines()) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "burned"


class Notary(Think):
    """Has actions."""

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [seal, burn]


@tool
def jot(path: str, context: ToolContext) -> str:
    """Write a line to a file."""
    _happened(path, context)
    return "jotted"


@tool
def hold(path: str, context: ToolContext) -> str:
    """Write a line to a file, and wait until there is another file beside it."""
    _happened(path, context)
    deadline = time.monotonic() + 50
    while not Path(f"{path}.go").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return "held"


class Scrivener(Think):
    """Has code over tools of which people approve one."""

    code_tool = True

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [jot, sign, hold]


class Commissioner(Think):
    """Has a scrivener work for it."""

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [self.agent_tool(Scrivener)]


class Waiter(Think):
    """Parks its turns, and leaves a note where it learns of a crash."""

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give the one that waits."""
        return [ask_person]

    def on_chat_recovery(self, context: RecoveryContext) -> None:
        """Note it where tests look."""
        cache.set(f"recovered.{self.key.name}", context.attempt, timeout=3600)


class FragileWaiter(Waiter):
    """Gives up whatever a crash cuts."""

    chat_recovery = False


class Notebook(Desk):
    """Keeps several histories."""

    keeps_sessions = True


class Keeper(Think):
    """Remembers in every way, summarises what becomes long, and has its conversations named."""

    title_model = ""
    commands = (
        Command("files", "call tool bash {}\nsay: Found {results} in $1.", "List the files of a folder"),
        Command("look", "Look !`ls $1`\ncall tool bash {}\nsay: Found {results}.", "Look into a folder first"),
    )
    user_shell = "bash"

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        """Declare a block of each kind."""
        return (
            session.with_context("soul", provider="You keep things.")
            .with_memory(description="What you know about this person.", max_tokens=200)
            .with_context("notes", description="What matters in this conversation.")
            .with_context("guides", description="How to do things.", provider=StoredSkills())
            .compact_after(2_000)
        )

    def get_tools(self) -> list[Tool]:
        """Keep a to-do list."""
        return [*todo_tools]


class Shelves(Keeper):
    """Remembers, in several histories."""

    keeps_sessions = True


class Teller(Keeper):
    """Has summaries for people written beside its turns."""

    summary_model = ""


class Note(Think):
    """A sub-agent of boards and of other notes."""

    sub_agents = ("note",)

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    @client_callable
    async def path(self) -> list[str]:
        """Tell the names from the root to this one."""
        return [key.name for key in (*self.key.ancestors, self.key)]


class Board(Think):
    """Has a state that viewers cannot set, methods for clients, and notes."""

    initial_state = {"items": []}
    sub_agents = (Note,)

    @classmethod
    def resolve_name(cls, name: str, owner_id: int) -> str:
        """Follow where `point` has this name point to."""
        return str(cache.get(f"board.{owner_id}.{name}", name))

    def on_before_sub_agent(self, agent: str, name: str) -> bool:
        """Keep one name closed."""
        return name != "closed"

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def is_read_only(self, connection: ClientConnection) -> bool:
        """Let viewers only look."""
        return connection.query.get("mode") == "view"

    def validate_state_change(self, state: Any, source: str) -> None:
        """Refuse what is no board."""
        if not isinstance(state, dict) or "items" not in state:
            raise ValueError("a board has items")

    @client_callable
    async def add(self, item: str) -> int:
        """Add an item; returns how many there are."""
        state = await self.get_state()
        items = [*state["items"], item]
        await self.set_state({"items": items})
        return len(items)

    @client_callable
    async def count(self, to: int, pause: float = 0.0, fail_at: int = -1) -> AsyncIterator[int]:
        """Count from nothing."""
        for number in range(to):
            if number == fail_at:
                raise CallRefused(f"stuck at {number}")
            yield number
            await asyncio.sleep(pause)  # a stream that is as slow as it is asked to be

    @client_callable
    async def total(self, to: int) -> AsyncIterator[int | StreamResult]:
        """Count, and end with the sum."""
        for number in range(to):
            yield number
        yield StreamResult(sum(range(to)))

    @client_callable
    async def rest(self, seconds: float) -> str:
        """Take a while."""
        await asyncio.sleep(seconds)  # a call that takes as long as it is asked to
        return "rested"

    @client_callable
    def point(self, name: str, target: str) -> None:
        """Have another instance answer under a name, from the next connection on."""
        cache.set(f"board.{self.key.owner_id}.{name}", target, 600)

    def hidden(self) -> str:
        """No one outside may call this."""
        return "hidden"


class NewestFirst(Desk):
    """Answers only the newest of the messages that wait."""

    message_concurrency = "latest"


class OneAtATime(Desk):
    """Takes no message while it answers."""

    message_concurrency = "drop"


class Led(Desk):
    """Takes what is sent meanwhile into its answer."""

    message_concurrency = "steer"


class Together(Desk):
    """Answers the messages that wait as one."""

    message_concurrency = "merge"


class Patient(Desk):
    """Answers the newest message once it has been quiet for a moment."""

    message_concurrency = {"strategy": "debounce", "debounceMs": 400}


class GivesUp(Desk):
    """Does not go on with an answer whose worker died."""

    chat_recovery = False


_SPOKEN = ({"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "found it"})
_PROGRESS = {"type": "data-agent-progress", "id": "p1", "transient": True, "data": {"fraction": 0.5, "message": "half"}}
_MILESTONE = {"type": "data-agent-milestone", "data": {"name": "read", "sequence": 0, "at": 1}}


def _runs() -> list[str]:
    """Frames of five runs, one for each way to end."""
    sent = [side.agent_tool_event(_started("r1", 0), sequence=0, parent_tool_call_id="c7", replay=True)]
    for number, chunk in enumerate((*_SPOKEN, _PROGRESS, _MILESTONE)):
        event = side.RunChunk(run_id="r1", body=dump(chunk), unstored_id="u1" if chunk is _PROGRESS else None)
        sent.append(side.agent_tool_event(event, sequence=number + 1, parent_tool_call_id="c7"))
    sent.append(sent[1])  # a chunk that comes twice is shown once
    ends: list[side.RunEvent] = [
        side.RunFinished(run_id="r1", summary="Found."),
        side.RunFailed(run_id="r2", error="lost the way"),
        side.RunAborted(run_id="r3", reason="enough"),
        side.RunInterrupted(run_id="r4", error="gone", reason="no-progress", child_still_running=True),
    ]
    sent += [side.agent_tool_event(_started(f"r{n}", n), sequence=0) for n in (2, 3, 4, 5)]
    return sent + [side.agent_tool_event(end, sequence=9) for end in ends]


def _started(run_id: str, order: int) -> side.RunStarted:
    return side.RunStarted(
        run_id=run_id, agent_type="researcher", order=order, input_preview={"of": "it"}, display={"name": "R"}
    )


class Crier(Desk):
    """Says what later packages will say, when it is asked to; answers with what the request's body had."""

    async def on_message(self, connection: ClientConnection, message: str) -> None:
        """Send the frames that the client asks for."""
        sent = {
            "mcp": [side.mcp_servers(side.McpState.model_validate(MCP))],
            "runs": _runs(),
            "session": [
                side.session_phase(side.SessionPhase(phase="compacting", token_estimate=9000, token_threshold=8000)),
                side.session_error("The summary failed."),
            ],
            "recovering": [frames.recovering(True, "r1")],
            "recovered": [frames.recovering(False, "r1")],
        }
        for text in sent[load(message)["what"]]:
            await connection.send(text)

    async def on_chat_message(self, options: ChatOptions) -> Any:
        """Tell the body, a part of data and metadata; without a body ask the model."""
        return self._echo(options.body) if options.body else USE_LOOP

    async def _echo(self, body: JSONObject) -> AsyncGenerator[JSONObject, None]:
        yield {"type": "message-metadata", "messageMetadata": {"mood": "calm"}}
        yield {"type": "data-place", "id": "d1", "data": {"city": "Ghent"}}
        yield {"type": "text-start", "id": "t"}
        yield {"type": "text-delta", "id": "t", "delta": dump(body)}
        yield {"type": "text-end", "id": "t"}

    @client_callable
    async def rest(self, seconds: float) -> str:
        """Answer late."""
        await asyncio.sleep(seconds)  # a call that takes as long as it is asked to
        return "rested"


__all__ = ["coding", "delegating", "growing", "mending", "offered", "recovering", "ruled", "surveying", "working"]
