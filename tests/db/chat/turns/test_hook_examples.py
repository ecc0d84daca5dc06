"""The code examples of the Think documentation on tools and hooks, translated; each under its heading's name."""

import json
import logging
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from chat.agent.callables import client_callable
from chat.instance.instance import make_agent
from chat.llm.scripted import ScriptedModel
from chat.testing import worker
from chat.think import (
    Block,
    ChatErrorContext,
    ChatResponse,
    ChunkContext,
    ResponseStatus,
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
    tool,
)
from chat.turns.admission.intake import Continue
from sessions_app.core.messages.shapes import Message
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from thinkproject.kernel.jsonvalue import JSONObject

from .conftest import MakeRoom, Room, status_of, text_of

logger = logging.getLogger(__name__)


@tool
async def read(path: str) -> str:
    """Read a file."""
    return f"the text of {path}"


@tool
async def write(path: str, text: str) -> str:
    """Write a file."""
    return f"wrote {len(text)} characters to {path}"


@tool
async def delete(path: str) -> JSONObject:
    """Delete a file."""
    SEEN.append(("deleted", path))
    return {"deleted": path}


@tool(name="getWeather")
async def get_weather(city: str) -> JSONObject:
    """Get the current weather for a city.

    Args:
        city: City name
    """
    SEEN.append(("fetched", city))
    return {"city": city, "sky": "clear"}


class Documented(Think, abstract=True):
    """What the examples share: the model of the test and a few tools."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> Any:
        return [read, write, delete, get_weather]


def names(request: JSONObject) -> list[str]:
    return [found["name"] for found in request["tools"]]


def system_of(request: JSONObject) -> str:
    [found] = [message["content"] for message in request["messages"] if message["role"] == "system"]
    return str(found)


def seen(name: str) -> list[Any]:
    return [value for found, value in SEEN if found == name]


async def answer(room: Room) -> str:
    return text_of((await room.transcript())[-1])


# Dynamic configuration


class TieredDoc(Documented):
    async def get_model(self) -> Any:
        config: Any = await self.get_config()
        tier = (config or {}).get("model_tier", "fast")
        return {"fast": MODELS["current"], "capable": MODELS["capable"]}[tier]

    @client_callable
    async def update_config(self, config: dict[str, str]) -> None:
        await self.configure(config)


async def test_dynamic_configuration(make_room: MakeRoom) -> None:
    room = make_room("tiered-doc")
    MODELS["capable"] = capable = ScriptedModel("say: from the capable one")
    await room.say("say: from the fast one")
    agent = make_agent(room.key)
    assert isinstance(agent, TieredDoc)
    await agent.update_config({"model_tier": "capable", "theme": "dark"})
    await room.say("say: from the fast one")
    assert [text for role, text in await room.texts() if role == "assistant"] == [
        "from the fast one",
        "from the capable one",
    ]
    assert (len(room.model.requests), len(capable.requests)) == (1, 1)


# Custom tools


class CustomToolsDoc(Documented):
    def get_tools(self) -> dict[str, Tool]:
        return {"getWeather": get_weather}


async def test_custom_tools(make_room: MakeRoom) -> None:
    room = make_room("custom-tools-doc")
    await room.say('call tool getWeather {"city": "Oslo"}\nsay: {result}')
    [offered] = room.model.requests[0]["tools"]
    assert offered["name"] == "getWeather"
    assert offered["parameters"]["properties"]["city"]["description"] == "City name"
    assert json.loads(await answer(room)) == {"city": "Oslo", "sky": "clear"}


# Per-turn tool overrides


class PerTurnToolsDoc(Documented):
    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(
            active_tools=["read", "write", "getWeather", "emergency"], tools=[self.create_emergency_tool()]
        )

    def create_emergency_tool(self) -> Tool:
        def emergency() -> str:
            """Call for help."""
            return f"help is on its way to {self.key.name}"

        return tool(emergency)


async def test_per_turn_tool_overrides(make_room: MakeRoom) -> None:
    room = make_room("per-turn-tools-doc")
    await room.say("call tool emergency {}\nsay: {result}")
    assert names(room.model.requests[0]) == ["read", "write", "getWeather", "emergency"]
    assert await answer(room) == "help is on its way to room"


# Execution order


class OrderDoc(Documented):
    def before_turn(self, context: TurnContext) -> None:
        SEEN.append(("before_turn", None))

    def before_step(self, context: StepContext) -> None:
        SEEN.append(("before_step", None))

    def on_chunk(self, context: ChunkContext) -> None:
        SEEN.append(("on_chunk", None))

    def before_tool_call(self, context: ToolCallContext) -> None:
        SEEN.append(("before_tool_call", None))

    def after_tool_call(self, outcome: ToolOutcome) -> None:
        SEEN.append(("after_tool_call", None))

    def on_step_finish(self, record: StepRecord) -> None:
        SEEN.append(("on_step_finish", None))

    def on_chat_response(self, response: ChatResponse) -> None:
        SEEN.append(("on_chat_response", None))


async def test_execution_order(make_room: MakeRoom) -> None:
    room = make_room("order-doc")
    await room.say('call tool read {"path": "a"}\nwait 0 s\ncall tool read {"path": "b"}\nsay: done')
    step = ["before_step", "before_tool_call", "after_tool_call", "on_step_finish"]
    ran = [name for name, _ in SEEN]
    assert [name for name in ran if name != "on_chunk"] == [
        "before_turn", *step, *step, "before_step", "on_step_finish", "on_chat_response",
    ]  # fmt: skip
    for at, name in enumerate(ran):
        if name in {"before_tool_call", "on_step_finish"}:
            assert ran[at - 1] == "on_chunk"


# beforeTurn, examples


class CheapModelDoc(Documented):
    def before_turn(self, context: TurnContext) -> TurnConfig | None:
        return TurnConfig(model=MODELS["cheap"]) if context.continuation else None


async def test_before_turn_switches_to_a_cheaper_model_for_continuation_turns(make_room: MakeRoom) -> None:
    room = make_room("cheap-model-doc")
    MODELS["cheap"] = cheap = ScriptedModel("say: dear and cheap")
    await room.say("say: dear")
    await room.say(Continue())
    assert (len(room.model.requests), len(cheap.requests)) == (1, 1)
    assert await answer(room) == " and cheap"


class RestrictDoc(Documented):
    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(active_tools=["read", "write", "getWeather"])


async def test_before_turn_restricts_which_tools_the_model_can_call(make_room: MakeRoom) -> None:
    room = make_room("restrict-doc")
    await room.say('call tool delete {"path": "a"}\nsay: {result}')
    assert names(room.model.requests[0]) == ["read", "write", "getWeather"]
    assert seen("deleted") == []
    assert "There is no tool 'delete'" in await answer(room)


class SelectedFileDoc(Documented):
    def before_turn(self, context: TurnContext) -> TurnConfig | None:
        if context.body.get("selectedFile"):
            return TurnConfig(system=f"{context.system}\n\nUser is editing: {context.body['selectedFile']}")
        return None


async def test_before_turn_adds_context_from_the_client_body(make_room: MakeRoom) -> None:
    room = make_room("selected-file-doc")
    await room.say("say: hi", body={"selectedFile": "main.py"})
    await room.say("say: hi")
    first, second = room.model.requests
    assert system_of(first) == "You are a helpful assistant.\n\nUser is editing: main.py"
    assert system_of(second) == "You are a helpful assistant."


class QuietContinuationDoc(Documented):
    def before_turn(self, context: TurnContext) -> TurnConfig | None:
        return TurnConfig(send_reasoning=False) if context.continuation else None


async def test_before_turn_hides_reasoning_for_continuation_turns(make_room: MakeRoom) -> None:
    room = make_room("quiet-continuation-doc")
    MODELS["current"] = ScriptedModel("reason: hm\nsay: One")
    await room.say("go")
    MODELS["current"] = ScriptedModel("say: One\nreason: hm again\nsay: and two")
    await room.say(Continue())
    _, first, second = await room.transcript()
    kinds = [[part["type"] for part in message["parts"]] for message in (first, second)]
    assert ["reasoning" in found for found in kinds] == [True, False]


class ResultSchema(BaseModel):
    severity: Literal["low", "high"]


class StructuredDoc(Documented):
    def before_turn(self, context: TurnContext) -> TurnConfig | None:
        if context.body.get("mode") == "structured-answer":
            return TurnConfig(output=ResultSchema, active_tools=[])
        return None

    def on_chat_response(self, response: ChatResponse) -> None:
        if response.output is not None:
            SEEN.append(("result", ResultSchema.model_validate(response.output)))


async def test_before_turn_forces_structured_output_for_a_turn(make_room: MakeRoom) -> None:
    room = make_room("structured-doc")
    await room.say('say: {"severity": "high"}', body={"mode": "structured-answer"})
    await room.say("say: as you like")
    structured, plain = room.model.requests
    schema = structured["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["severity"]["enum"] == ["low", "high"]
    assert names(structured) == []
    assert "response_format" not in plain
    assert seen("result") == [ResultSchema(severity="high")]


# beforeStep


class BeforeStepDoc(Documented):
    def before_step(self, context: StepContext) -> StepConfig | None:
        return StepConfig(active_tools=[]) if context.step_number > 0 else None


async def test_before_step(make_room: MakeRoom) -> None:
    room = make_room("before-step-doc")
    await room.say('call tool read {"path": "a"}\nsay: {result}')
    assert [len(names(request)) for request in room.model.requests] == [4, 0]
    assert await answer(room) == "the text of a"


# beforeToolCall


class BeforeToolCallDoc(Documented):
    is_read_only_mode = True
    weather_cache = {'{"city": "Oslo"}': {"city": "Oslo", "sky": "cached"}}

    def before_tool_call(self, context: ToolCallContext) -> Block | Substitute | None:
        if context.tool_name == "delete" and self.is_read_only_mode:
            return Block(reason="delete is disabled in read-only mode")
        if context.tool_name == "getWeather":
            cached = self.weather_cache.get(json.dumps(context.input))
            if cached is not None:
                return Substitute(output=cached)
        return None


@pytest.mark.parametrize(
    ("call", "output", "ran"),
    [
        ('delete {"path": "a"}', "delete is disabled in read-only mode", []),
        ('getWeather {"city": "Oslo"}', '{"city":"Oslo","sky":"cached"}', []),
        ('getWeather {"city": "Bergen"}', '{"city":"Bergen","sky":"clear"}', [("fetched", "Bergen")]),
    ],
)
async def test_before_tool_call(make_room: MakeRoom, call: str, output: str, ran: list[Any]) -> None:
    room = make_room("before-tool-call-doc")
    await room.say(f"call tool {call}\nsay: {{result}}")
    assert await answer(room) == output
    assert ran == SEEN


# afterToolCall


class AfterToolCallDoc(Documented):
    def after_tool_call(self, outcome: ToolOutcome) -> None:
        if not outcome.success:
            return
        SEEN.append(("data point", (outcome.tool_name, len(json.dumps(outcome.output)))))


async def test_after_tool_call(make_room: MakeRoom) -> None:
    room = make_room("after-tool-call-doc")
    await room.say('call tool read {"path": "a"}\ncall tool read {"wrong": 1}\nsay: done')
    assert [("data point", ("read", len('"the text of a"')))] == SEEN


# onStepFinish


class OnStepFinishDoc(Documented):
    def on_step_finish(self, record: StepRecord) -> None:
        usage = record.usage
        logger.info(
            "step %s (%s): %sin/%sout",
            record.step_number,
            record.finish_reason,
            usage.input_tokens,
            usage.output_tokens,
        )


async def test_on_step_finish(make_room: MakeRoom, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=__name__)
    room = make_room("on-step-finish-doc")
    await room.say('call tool read {"path": "a"}\nusage 10 2\nsay: done\nusage 20 3')
    sent = [record.getMessage() for record in caplog.records if record.name == __name__]
    assert sent == ["step 0 (tool-calls): 10in/2out", "step 1 (stop): 20in/3out"]


# onChunk


class OnChunkDoc(Documented):
    def on_chunk(self, context: ChunkContext) -> None:
        if context.chunk["type"] == "text-delta":
            SEEN.append(("token", context.chunk["delta"]))


async def test_on_chunk(make_room: MakeRoom) -> None:
    room = make_room("on-chunk-doc")
    await room.say("say: one two three")
    assert seen("token") == ["one ", "two ", "three"]


# onChatResponse


class OnChatResponseDoc(Documented):
    def on_chat_response(self, response: ChatResponse) -> None:
        if response.status is ResponseStatus.COMPLETED:
            logger.info("turn %s: %s parts", response.request_id, len(response.message["parts"]))


async def test_on_chat_response(make_room: MakeRoom, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=__name__)
    room = make_room("on-chat-response-doc")
    turn = await room.say("say: hi")
    await room.say("error 400")
    sent = [record.getMessage() for record in caplog.records if record.name == __name__]
    assert sent == [f"turn {turn.request_id}: 2 parts"]


# onChatError


class OnChatErrorDoc(Documented):
    def on_chat_error(self, error: Exception, context: ChatErrorContext) -> Exception:
        logger.error("chat turn failed: %s", error)
        return RuntimeError("Something went wrong. Please try again.")


async def test_on_chat_error(make_room: MakeRoom, caplog: pytest.LogCaptureFixture) -> None:
    room = make_room("on-chat-error-doc")
    turn = await room.say("error 400")
    assert (status_of(turn), turn.error_text) == ("error", "Something went wrong. Please try again.")
    [sent] = [record.getMessage() for record in caplog.records if record.name == __name__]
    assert sent.startswith("chat turn failed: scripted (HTTP 400)")


# Chaining from onChatResponse


class ChainingDoc(Documented):
    async def on_chat_response(self, response: ChatResponse) -> None:
        if response.status is ResponseStatus.COMPLETED and self.needs_follow_up(response.message):
            await self.save_messages("say: In short, nothing.")

    def needs_follow_up(self, message: Message) -> bool:
        return "found" in text_of(message)


async def test_chaining_from_on_chat_response(make_room: MakeRoom) -> None:
    room = make_room("chaining-doc")
    async with worker():
        await room.handle.chat("say: I found nothing.")
    assert await room.texts() == [
        ("user", "say: I found nothing."),
        ("assistant", "I found nothing."),
        ("user", "say: In short, nothing."),
        ("assistant", "In short, nothing."),
    ]
