"""Agents like those of the recordings, and a model that says what the recorded one said, when it may."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field

from chat.agent.callables import client_callable
from chat.core.context.sent_note import NOTE
from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextContent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UserMessage,
)
from chat.core.wire.chunks import Chunk
from chat.errors import CallRefused, ModelRejected
from chat.think import Think, Tool, tool
from tests.wire.recordings import Event
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load

Said = tuple[int, ModelEvent]  # the recorded chunk, and what the model said for it


@dataclass
class Step:
    """One call of the model: what it says, or how it fails then."""

    request_id: str
    said: list[Said] = field(default_factory=list)
    failure: str | None = None
    reason: FinishReason = FinishReason.STOP


def steps(events: Iterable[Event]) -> list[Step]:
    """What the recorded model was asked and said, in order."""
    chunks: dict[str, dict[int, Chunk]] = {}
    failures: dict[str, str] = {}
    for event in events:
        frame = event.frame
        if event.direction == "in" and "$body" in frame:
            chunks.setdefault(frame["id"], {})[frame["seq"]] = frame["$body"]
        elif event.direction == "in" and frame["type"] == "cf_agent_use_chat_response" and frame.get("error"):
            failures[frame["id"]] = frame["body"]
    found: list[Step] = []
    for request_id, by_offset in chunks.items():
        mine = _steps_of(request_id, [by_offset[seq] for seq in sorted(by_offset)])
        mine[-1].failure = failures.get(request_id)
        found += mine
    return found


def _steps_of(request_id: str, chunks: list[Chunk]) -> list[Step]:
    found: list[Step] = []
    raw: dict[str, str] = {}
    for seq, chunk in enumerate(chunks):
        if chunk["type"] == "start-step" or (chunk["type"] == "start" and len(chunks) == 1):
            found.append(Step(request_id))
        for event in _events_of(chunk, raw):
            found[-1].said.append((seq, event))
            if isinstance(event, ToolCallEnd):
                found[-1].reason = FinishReason.TOOL_CALLS
    return found


def _events_of(chunk: Chunk, raw: dict[str, str]) -> list[ModelEvent]:
    match chunk["type"]:
        case "text-delta":
            return [TextDelta(text=chunk["delta"])]
        case "reasoning-delta":
            return [ReasoningDelta(text=chunk["delta"])]
        case "tool-input-start":
            raw[chunk["toolCallId"]] = ""
            return [ToolCallStart(call_id=chunk["toolCallId"], tool_name=chunk["toolName"])]
        case "tool-input-delta":
            raw[chunk["toolCallId"]] += chunk["inputTextDelta"]
            return [ToolCallDelta(call_id=chunk["toolCallId"], text=chunk["inputTextDelta"])]
        case "tool-input-available":
            call_id = chunk["toolCallId"]
            return [ToolCallEnd(call_id=call_id, tool_name=chunk["toolName"], arguments=raw[call_id])]
        case _:
            return []


class RecordedModel:
    """Says it again, chunk by chunk, as far as `allow` lets it."""

    name = "recorded/model"
    accepts_images = False
    accepts_documents = False

    def __init__(self, script: list[Step]) -> None:
        self._script = iter(script)
        self._ends = {step.request_id: 1 + max((seq for seq, _ in step.said), default=0) for step in script}
        self._allowed: dict[str, int] = {}
        self._changed = asyncio.Condition()

    async def allow(self, request_id: str, seq: int) -> bool:
        """Let it say one chunk more, up to this recorded one. False when it might already."""
        allowed = self._allowed.get(request_id, -1)
        if allowed >= min(seq, self._ends.get(request_id, seq)):
            return False
        self._allowed[request_id] = allowed + 1
        async with self._changed:
            self._changed.notify_all()
        return True

    def describe(self, request: ModelRequest) -> JSONObject:
        """Nothing that matters."""
        return {"messages": []}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Say the next step. Errors: the recorded failure, in its words."""
        step = next(self._script, Step(""))
        for seq, event in step.said:
            await self._wait(step, seq)
            self._compare_history(event, request)
            yield event
        if step.request_id:
            await self._wait(step, 1 + max((seq for seq, _ in step.said), default=0))
        if step.failure is not None:
            raise ModelRejected(step.failure)
        yield Finish(reason=step.reason)

    async def _wait(self, step: Step, seq: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._allowed.get(step.request_id, -1) >= seq)

    def _compare_history(self, event: ModelEvent, request: ModelRequest) -> None:
        """Where the recorded model sent what it was asked, ours must have been asked the same."""
        if isinstance(event, TextDelta) and event.text.startswith('{"count":'):
            asked = load(event.text)
            roles = ["system" for _ in [request.system] if request.system]
            roles += ["user" if isinstance(message, UserMessage) else "assistant" for message in request.messages]
            users = [_text(message) for message in request.messages if isinstance(message, UserMessage)]
            assert (roles, users) == (asked["roles"], asked["users"])


def _text(message: UserMessage) -> str:
    return NOTE.sub("", "".join(content.text for content in message.content if isinstance(content, TextContent)))


MODELS: dict[str, RecordedModel] = {}
"""The model of the recording that is played."""


class ChatAgent(Think):
    """Talks."""

    def get_model(self) -> RecordedModel:
        return MODELS["current"]


@tool
async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@tool
async def explode(msg: str) -> str:
    """Fail."""
    raise RuntimeError(f"boom: {msg}")


@tool(name="deleteThing", needs_approval=True)
def delete_thing(path: str) -> dict[str, str]:
    """Delete something, with consent."""
    return {"deleted": path}


class ToolAgent(ChatAgent):
    """Has tools of its own; those of a browser come with its requests."""

    def get_tools(self) -> list[Tool]:
        return [add, explode, delete_thing]


class StateAgent(ChatAgent):
    """Has a state and methods."""

    initial_state = {"counter": 0}

    @client_callable
    async def increment(self, by: int) -> int:
        """Count on."""
        state = await self.get_state()
        assert isinstance(state, dict)
        counter: int = state["counter"] + by
        await self.set_state({"counter": counter})
        return counter

    @client_callable
    async def echo(self, *args: JSONValue) -> JSONValue:
        """Give back what came."""
        return {"args": list(args)}

    @client_callable
    async def nothing(self) -> None:
        """Give nothing."""

    @client_callable
    async def fail(self, why: str) -> None:
        """Fail."""
        raise CallRefused(f"rpc failed: {why}")

    async def secret(self) -> str:
        """Not for clients."""
        return "secret"
