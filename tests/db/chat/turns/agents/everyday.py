"""Agents that the tests of turns talk to. Importing this module serves them."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from chat.llm.scripted import ScriptedModel
from chat.think import (
    Allow,
    Block,
    ChatErrorContext,
    ChatOptions,
    ChatResponse,
    ChunkContext,
    OutputLimit,
    RecoveryContext,
    RecoveryDecision,
    SessionSetup,
    StepConfig,
    StepContext,
    StepRecord,
    Substitute,
    Think,
    Tool,
    ToolCallContext,
    ToolOutcome,
    TurnConfig,
    TurnContext,
    addressee_of,
    tool,
    view_of,
)
from fibers.models import Fiber
from thinkproject.kernel.aio import db

MODELS: dict[str, ScriptedModel] = {}
"""The model that agents get: set by `make_room`."""

PROMPTS: dict[str, str] = {"current": ""}
"""What agents with a kept prompt render."""

CALLS: list[tuple[int, int]] = []
SEEN: list[tuple[str, Any]] = []
"""What hooks saw, in order."""


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    CALLS.append((a, b))
    return a + b


@tool
def fail() -> str:
    """Fail."""
    raise RuntimeError("the tool broke")


@tool(timeout_seconds=0.05)
async def sleep() -> str:
    """Sleep too long."""
    await asyncio.sleep(5)  # longer than it may take
    return "awake"


@tool
async def count() -> Any:
    """Count to three, telling how far it is."""
    for number in (1, 2, 3):
        yield number


@tool
def extra() -> str:
    """Exist for one turn."""
    return "extra"


class Plain(Think):
    """Answers with the model of the test."""

    workspace_tools = False

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [add, fail, sleep, count]


class Remembering(Plain):
    """Remembers its user in all conversations."""

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_context("soul", provider="Be kind.").with_memory()


class NoModel(Think):
    """Forgot its model."""


class Recorder(Plain):
    """Writes down what its hooks see; async and sync ones mixed."""

    def before_turn(self, context: TurnContext) -> None:
        SEEN.append(("before_turn", context))

    async def before_step(self, context: StepContext) -> None:
        SEEN.append(("before_step", context))

    def on_chunk(self, context: ChunkContext) -> None:
        SEEN.append(("on_chunk", context.chunk["type"]))

    async def before_tool_call(self, context: ToolCallContext) -> None:
        SEEN.append(("before_tool_call", context))

    def after_tool_call(self, outcome: ToolOutcome) -> None:
        SEEN.append(("after_tool_call", outcome))

    def on_step_finish(self, record: StepRecord) -> None:
        SEEN.append(("on_step_finish", record))

    async def on_chat_response(self, response: ChatResponse) -> None:
        await asyncio.sleep(0.01)
        SEEN.append(("on_chat_response", response))

    def on_chat_error(self, error: Exception, context: ChatErrorContext) -> str:
        SEEN.append(("on_chat_error", (error, context)))
        return f"reworded: {error}"


class Chainer(Plain):
    """Says something more after the first answer."""

    async def on_chat_response(self, response: ChatResponse) -> None:
        SEEN.append(("on_chat_response", response))
        if len([kind for kind, _ in SEEN if kind == "on_chat_response"]) == 1:
            SEEN.append(("saved", await self.save_messages("say: and more")))


class Gate(Plain):
    """Decides on each call by its first number."""

    def before_tool_call(self, context: ToolCallContext) -> Allow | Block | Substitute | None:
        match context.input["a"]:
            case 1:
                return Allow(input={"a": 10, "b": 10})
            case 2:
                return Block(reason="not today")
            case 3:
                return Substitute(output=99)
            case 4:
                raise RuntimeError("the gate broke")
            case 5:
                return Allow(input={"a": "wrong"})
        return None

    def after_tool_call(self, outcome: ToolOutcome) -> None:
        SEEN.append(("after_tool_call", outcome))


class Overrider(Plain):
    """Changes its turn."""

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(system="Overridden.", active_tools=["add"], max_steps=1)


class Own(Think):
    """Answers by itself."""

    async def on_chat_message(self, options: ChatOptions) -> Any:
        SEEN.append(("on_chat_message", options))
        return self._chunks(options)

    async def _chunks(self, options: ChatOptions) -> Any:
        yield {"type": "text-start", "id": "t"}
        for word in ("own ", "answer"):
            yield {"type": "text-delta", "id": "t", "delta": word}
        yield {"type": "text-end", "id": "t"}

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]


class Silent(Own):
    """Answers nothing."""

    async def on_chat_message(self, options: ChatOptions) -> None:
        return None


class Configured(Plain):
    """Reads its configuration while its session is configured."""

    async def configure_session(self, session: Any) -> Any:
        SEEN.append(("config", await self.get_config()))
        return session


class Careful(Plain):
    """Does not go on by itself after a crash."""

    def on_chat_recovery(self, context: RecoveryContext) -> RecoveryDecision:
        SEEN.append(("on_chat_recovery", context))
        return RecoveryDecision(continue_turn=False)


class Narrow(Plain):
    """Shows the model only the last message."""

    def assemble_context(self, messages: list[Any]) -> list[Any]:
        return messages[-1:]


class Team(Plain):
    """A researcher, a writer who reads what the researcher found, and a planner, in one conversation."""

    def assemble_context(self, messages: list[Any]) -> list[Any]:
        name = addressee_of(messages)
        return view_of(messages, name, sees=["researcher"] if name == "writer" else [])


class Cached(Plain):
    """Keeps its prompt with the session; renders what `PROMPTS` says."""

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_cached_prompt()

    def get_system_prompt(self) -> str:
        SEEN.append(("rendered", PROMPTS["current"]))
        return PROMPTS["current"]


class Refreshing(Cached):
    """Renders its kept prompt anew in each turn."""

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_cached_prompt().refresh_system_prompt()


class Forgetful(Plain):
    """Shows the last four messages."""

    max_persisted_messages = 4


class Noisy(Plain):
    """Raises in everything that only observes."""

    def on_start(self) -> None:
        raise RuntimeError("on_start")

    async def on_chunk(self, context: ChunkContext) -> None:
        raise RuntimeError("on_chunk")

    def after_tool_call(self, outcome: ToolOutcome) -> None:
        raise RuntimeError("after_tool_call")

    async def on_step_finish(self, record: StepRecord) -> None:
        raise RuntimeError("on_step_finish")


class Strict(Plain):
    """Raises before its turn."""

    def before_turn(self, context: TurnContext) -> None:
        raise RuntimeError("not this turn")


class Stepper(Plain):
    """Changes its second step."""

    def before_step(self, context: StepContext) -> StepConfig | None:
        SEEN.append(("before_step", context))
        return StepConfig(system="Second.", active_tools=[]) if context.step_number else None


class Thrifty(Plain):
    """Does not go on after a crash and keeps nothing but settled calls."""

    def on_chat_recovery(self, context: RecoveryContext) -> RecoveryDecision:
        return RecoveryDecision(persist=False, continue_turn=False)


class Mute(Plain):
    """Keeps its reasoning to itself."""

    send_reasoning = False


class Extra(Plain):
    """Adds a tool for its turn and picks another model."""

    def before_turn(self, context: TurnContext) -> TurnConfig:
        SEEN.append(("before_turn", context))
        return TurnConfig(model=MODELS["other"], tools=[extra], send_reasoning=False, messages=context.messages[-1:])


class Odd(Plain):
    """Substitutes what is no JSON."""

    def before_tool_call(self, context: ToolCallContext) -> Substitute:
        return Substitute(output=object())


@tool(output_limit=OutputLimit())  # none: the row alone limits it
def big() -> str:
    """Give two million characters."""
    return "y" * 2_000_000


class Huge(Plain):
    """Has a tool whose output is larger than a row."""

    def get_tools(self) -> list[Tool]:
        return [big]


class Impatient(Plain):
    """Gives a silent model up after a moment."""

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(stall_timeout_seconds=0.2)


class Watcher(Plain):
    """Looks at its own turn from its response hook."""

    async def on_chat_response(self, response: ChatResponse) -> None:
        SEEN.append(("stored", [message["role"] for message in await self.instance.sessions.shown()]))
        SEEN.append(("busy", await db(Fiber.objects.live_in(f"instance:{self.key.instance_id}").exists)))


class Tiny(Think):  # three lines, as the README says
    def get_model(self) -> ScriptedModel:
        return MODELS["current"]


class Hasty(Plain):
    """Goes on once after a crash without progress, and has words of its own for the end."""

    max_recoveries = 1
    interrupted_text = "The line broke twice. Ask again."


class Resigned(Plain):
    """Never goes on by itself after a crash."""

    chat_recovery = False


class Nester(Plain):
    """Waits for a turn of its own conversation from inside one."""

    async def before_turn(self, context: TurnContext) -> None:
        await self.save_messages("say: inner")


class Titled(Plain):
    """Has titles written by the model that answers."""

    title_model = ""


class Summarised(Plain):
    """Has summaries for people written by the model that answers."""

    summary_model = ""


class Tone(BaseModel):
    """How to speak."""

    model_config = ConfigDict(extra="forbid")

    colour: str
    level: int = Field(default=1, ge=1, le=5)


class Typed(Plain):
    """Has a configuration of a class, which its owner may change."""

    config_model = Tone
    config_access = "write"

    async def configure_session(self, session: Any) -> Any:
        SEEN.append(("config", await self.get_config()))
        return session
