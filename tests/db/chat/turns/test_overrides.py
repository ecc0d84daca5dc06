"""What hooks may change of a turn and of a step, as the model's provider sees it."""

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from chat.core.context.prompt import GO_ON_TEXT
from chat.llm.scripted import ScriptedModel
from chat.streams.reader import read
from chat.think import (
    Allow,
    AssistantMessage,
    ModelMessage,
    ModelSettings,
    Output,
    StepConfig,
    StepContext,
    TextContent,
    TurnConfig,
    UserMessage,
)
from fibers.testing import crash_after
from tests.db.chat.turns.agents.answering import Desk, pay
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, extra
from tests.db.chat.turns.agents.hook_agents import HOOKS, no_hooks, seen
from thinkproject.kernel.jsonvalue import JSONObject, load

from .conftest import MakeRoom, Room, status_of, text_of
from .slips import NEUTRAL, sentences

__all__ = ["no_hooks"]  # a fixture

ADD = 'call tool add {"a": 2, "b": 3}\nsay: {result}'


class Result(BaseModel):
    severity: Literal["low", "high"]


SCHEMA: JSONObject = {
    "type": "object",
    "properties": {"severity": {"enum": ["low", "high"]}},
    "required": ["severity"],
}


def turns_with(**config: Any) -> None:
    """Have `before_turn` return this."""
    HOOKS["before_turn"] = lambda context: TurnConfig(**config)


def step(number: int, **config: Any) -> None:
    """Have `before_step` return this for one step."""

    def before_step(context: StepContext) -> StepConfig | None:
        return StepConfig(**config) if context.step_number == number else None

    HOOKS["before_step"] = before_step


def names(request: JSONObject) -> list[str]:
    return [tool["name"] for tool in request["tools"]]


async def said(room: Room) -> str:
    return text_of((await room.transcript())[-1])


# Tools


async def test_an_empty_list_of_active_tools_leaves_none(flexible_room: Room) -> None:
    turns_with(active_tools=[])
    turn = await flexible_room.say(ADD)
    assert names(flexible_room.model.requests[0]) == []
    assert (CALLS, status_of(turn)) == ([], "completed")


async def test_tools_of_the_turn_come_on_top_and_may_be_limited(flexible_room: Room) -> None:
    turns_with(tools={"renamed": extra}, active_tools=["add", "renamed"])
    await flexible_room.say("call tool renamed {}\nsay: {result}")
    assert names(flexible_room.model.requests[0]) == ["add", "renamed"]
    assert await said(flexible_room) == "extra"


async def test_a_tool_that_a_step_does_not_offer_cannot_be_called_in_it(flexible_room: Room) -> None:
    step(0, active_tools=["count"])
    await flexible_room.say(ADD)
    assert CALLS == []
    assert await said(flexible_room) == "Error: Tool 'add' is not available in this step."


FORCED: JSONObject = {"type": "function", "function": {"name": "tell"}}


@pytest.mark.parametrize(
    ("choice", "sent", "called"),
    [
        ("required", "required", 1),
        ("none", "none", 0),
        ("auto", "auto", 0),
        ("tell", FORCED, 1),
        ({"type": "tool", "toolName": "tell"}, FORCED, 1),
    ],
)
async def test_the_tool_choice_is_sent_and_honoured(
    flexible_room: Room, choice: Any, sent: object, called: int
) -> None:
    turns_with(tool_choice=choice, max_steps=1)
    await flexible_room.say("say: I would rather talk.")
    assert flexible_room.model.requests[0].get("tool_choice", "auto") == sent
    assert len(seen("before_tool_call")) == called


async def test_a_step_may_demand_a_tool(flexible_room: Room) -> None:
    step(0, tool_choice="tell")
    await flexible_room.say("say: I would rather talk.")
    assert [request.get("tool_choice") for request in flexible_room.model.requests] == [FORCED, None]
    assert [record.finish_reason for record in seen("on_step_finish")] == ["tool-calls", "stop"]


async def test_a_step_without_the_tool_of_the_turn_is_free_again(flexible_room: Room) -> None:
    turns_with(tool_choice="tell")
    step(1, active_tools=["add"])
    await flexible_room.say("say: done")
    assert [request.get("tool_choice") for request in flexible_room.model.requests] == [FORCED, None]


# Models, prompts, settings


async def test_instructions_are_the_system_prompt(flexible_room: Room) -> None:
    turns_with(instructions="Be short.")
    await flexible_room.say("echo system")
    assert await said(flexible_room) == "Be short."


async def test_settings_reach_the_provider(flexible_room: Room) -> None:
    settings = ModelSettings(
        max_output_tokens=9, temperature=0.1, top_p=0.2, top_k=3, presence_penalty=0.4, frequency_penalty=0.5,
        stop_sequences=("END",), seed=7, provider_options={"scripted": {"tier": "a", "mode": "b"}},
    )  # fmt: skip
    turns_with(settings=settings, provider_options={"scripted": {"mode": "c"}, "other": {"x": 1}})
    step(1, provider_options={"scripted": {"tier": "d"}})
    await flexible_room.say(ADD)
    first, second = flexible_room.model.requests
    wanted: JSONObject = {
        "max_tokens": 9,
        "temperature": 0.1,
        "top_p": 0.2,
        "top_k": 3,
        "presence_penalty": 0.4,
        "seed": 7,
    }
    wanted |= {"frequency_penalty": 0.5, "stop": ["END"], "tier": "a", "mode": "c"}
    assert wanted.items() <= first.items()
    assert (second["tier"], second["mode"]) == ("d", "c")
    assert "x" not in first


async def test_retries_are_limited(flexible_room: Room) -> None:
    turns_with(settings=ModelSettings(max_retries=0))
    turn = await flexible_room.say("error 503")
    assert (status_of(turn), turn.error_code, len(flexible_room.model.requests)) == ("error", "overloaded", 1)


async def test_a_step_may_name_another_model_and_other_messages(flexible_room: Room) -> None:
    MODELS["other"] = other = ScriptedModel("say: from the other", name="scripted/other")
    HOOKS["before_step"] = lambda context: (
        StepConfig(model=other, messages=list(context.messages[-1:])) if context.step_number else None
    )
    await flexible_room.say(ADD)
    assert [message["role"] for message in other.requests[0]["messages"]] == ["system", "tool"]
    assert [record.response["model"] for record in seen("on_step_finish")] == ["model", "model"]
    assert await said(flexible_room) == "from the other"


async def test_a_model_is_named_by_a_string_too(flexible_room: Room) -> None:
    step(0, model="nobody/knows")
    turn = await flexible_room.say("say: hi")
    assert turn.error_code == "model_not_configured"


@pytest.mark.parametrize("hook", ["before_turn", "before_step"])
async def test_messages_of_a_hook_that_end_with_the_assistant_get_a_line_to_go_on(
    flexible_room: Room, hook: str
) -> None:
    said_before: list[ModelMessage] = [
        UserMessage(content=(TextContent(text="say: one two"),)),
        AssistantMessage(content=(TextContent(text="one "),)),
    ]
    HOOKS[hook] = lambda context: (TurnConfig if hook == "before_turn" else StepConfig)(messages=said_before)
    await flexible_room.say("anything")
    [request] = flexible_room.model.requests
    assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant", "user"]
    assert request["messages"][-1]["content"] == GO_ON_TEXT
    assert await said(flexible_room) == "two"
    assert [text for role, text in await flexible_room.texts() if role == "user"] == ["anything"]


async def test_a_turn_that_takes_too_long_ends_with_a_reason(flexible_room: Room) -> None:
    turns_with(timeout_seconds=0.3)
    turn = await flexible_room.say("stream 400 words at 100/s")
    assert (status_of(turn), turn.error_code) == ("error", "turn_timeout")
    assert turn.error_text == "The turn took longer than 0.3 s."
    assert 0 < len((await said(flexible_room)).split()) < 400


# Steps


async def test_a_condition_stops_the_turn_and_gets_its_steps(flexible_room: Room) -> None:
    counted: list[int] = []

    def after_one(steps: Any) -> bool:
        counted.append(len(steps))
        return bool(steps[-1].tool_results[0]["output"] == 5)

    turns_with(stop_when=after_one)
    turn = await flexible_room.say(ADD)
    assert (status_of(turn), turn.step_count, counted) == ("completed", 1, [1])
    assert CALLS == [(2, 3)]


async def test_conditions_come_besides_the_step_limit(flexible_room: Room) -> None:
    turns_with(stop_when=[lambda steps: False, lambda steps: len(steps) >= 5], max_steps=2)
    script = "\n".join(f'call tool add {{"a": {n}, "b": 1}}\nwait 0 s' for n in range(9))
    MODELS["current"] = ScriptedModel(script)
    assert (await flexible_room.say("go")).step_count == 3  # the last one without a call


async def test_a_condition_that_raises_ends_the_turn(flexible_room: Room) -> None:
    def broken(steps: Any) -> bool:
        raise RuntimeError("no idea when to stop")

    turns_with(stop_when=[broken])
    turn = await flexible_room.say(ADD)
    assert (turn.error_text, turn.error_code) == ("The agent's own code failed.", "agent_code_failed")


async def test_what_hooks_share_reaches_tools_and_later_steps(flexible_room: Room) -> None:
    turns_with(shared={"tenant": 1})
    step(1, shared={"tenant": 2})
    await flexible_room.say("call tool tell {}\nwait 0 s\ncall tool tell {}\nsay: {result}")
    assert [context.shared for context in seen("before_step")] == [{"tenant": 1}, {"tenant": 1}, {"tenant": 2}]
    assert [outcome.output for outcome in seen("after_tool_call")] == ["{'tenant': 1}", "{'tenant': 2}"]


async def test_a_step_hook_gets_request_and_response(flexible_room: Room) -> None:
    await flexible_room.say(f"reason: hm\n{ADD}\nusage 100 20 cached 50 reasoning 5")
    _, last = seen("on_step_finish")
    assert last.response["id"]
    assert [message["role"] for message in last.request["messages"]] == ["system", "user", "assistant", "tool"]
    assert (last.usage.input_tokens, last.usage.cached_tokens, last.usage.reasoning_tokens) == (100, 50, 5)
    assert (last.files, last.sources, last.warnings) == ((), (), ())


# Tool calls


async def test_a_call_hook_gets_the_messages_before_it(flexible_room: Room) -> None:
    await flexible_room.say('call tool add {"a": 1, "b": 1}\nwait 0 s\n' + ADD)
    first, second = seen("before_tool_call")
    assert (first.step_number, second.step_number) == (0, 1)
    assert [type(message).__name__ for message in first.messages] == ["UserMessage"]
    assert len(second.messages) == 3
    assert [outcome.messages for outcome in seen("after_tool_call")] == [first.messages, second.messages]


async def test_a_tool_that_yields_keeps_its_preliminary_results(make_room: MakeRoom) -> None:
    HOOKS["before_tool_call"] = lambda context: Allow(input={})
    room = make_room("counting")
    turn = await room.say("call tool count {}\nsay: {result}")
    outputs = [load(r.text) for r in await read(turn.pk, 0) if '"tool-output-available"' in r.text]
    assert [chunk["output"] for chunk in outputs] == [1, 2, 3, 3]
    [outcome] = seen("after_tool_call")
    assert (outcome.success, outcome.output, outcome.error) == (True, 3, None)


async def test_a_failed_call_reports_its_error(flexible_room: Room) -> None:
    await flexible_room.say("call tool fail {}\nsay: done")
    [outcome] = seen("after_tool_call")
    assert (outcome.success, outcome.error, outcome.output) == (False, "the tool broke", "the tool broke")


@pytest.mark.parametrize("answer", [True, "block", {"action": "block"}])
async def test_what_is_no_decision_fails_the_call(
    flexible_room: Room, caplog: pytest.LogCaptureFixture, answer: object
) -> None:
    HOOKS["before_tool_call"] = lambda context: answer
    turn = await flexible_room.say(ADD)
    [outcome] = seen("after_tool_call")
    assert outcome.error == NEUTRAL
    assert "; it must return Allow, Block, Substitute or None." in sentences(caplog)[0]
    assert (CALLS, status_of(turn)) == ([], "completed")


# Structured output


@pytest.mark.parametrize("shape", [Result, SCHEMA, Output(schema=Result), Output(schema=SCHEMA, by_tool=True)])
async def test_a_structured_answer_is_asked_for_and_read(flexible_room: Room, shape: Any) -> None:
    turns_with(output=shape, active_tools=[])
    turn = await flexible_room.say('say: {"severity": "high"}')
    assert status_of(turn) == "completed"
    assert json.loads(await said(flexible_room)) == {"severity": "high"}
    [record] = seen("on_step_finish")
    [response] = seen("on_chat_response")
    assert record.output == response.output == {"severity": "high"}
    [request] = flexible_room.model.requests
    by_tool = isinstance(shape, Output) and shape.by_tool
    assert ("response_format" in request, names(request)) == (not by_tool, ["final_answer"] if by_tool else [])


@pytest.mark.parametrize("by_tool", [False, True])
async def test_tools_run_before_the_structured_answer(flexible_room: Room, by_tool: bool) -> None:
    turns_with(output=Output(schema=Result, by_tool=by_tool))
    turn = await flexible_room.say('call tool add {"a": 2, "b": 3}\nsay: {"severity": "low"}')
    assert (status_of(turn), CALLS) == ("completed", [(2, 3)])
    first, second = seen("on_step_finish")
    assert (first.output, second.output) == (None, {"severity": "low"})
    assert [call["toolName"] for record in (first, second) for call in record.tool_calls] == ["add"]


async def test_an_answer_of_another_form_fails_the_turn_and_is_kept(flexible_room: Room) -> None:
    turns_with(output=Result)
    turn = await flexible_room.say('say: {"severity": "odd"}')
    assert (status_of(turn), turn.error_code) == ("error", "output_invalid")
    assert "severity: Input should be 'low' or 'high'" in turn.error_text
    assert await said(flexible_room) == '{"severity": "odd"}'
    [(_, context)] = seen("on_chat_error")
    assert (context.stage, context.code) == ("stream", "output_invalid")
    [response] = seen("on_chat_response")
    assert (response.status.value, response.output) == ("error", None)


async def test_a_structured_answer_is_asked_for_at_the_step_limit(flexible_room: Room) -> None:
    turns_with(output=Result, max_steps=1)
    await flexible_room.say('call tool add {"a": 2, "b": 3}\nsay: {"severity": "high"}')
    assert await said(flexible_room) == '{"severity": "high"}'
    [response] = seen("on_chat_response")
    assert response.output == {"severity": "high"}


async def test_a_structured_answer_that_was_cut_goes_on(flexible_room: Room) -> None:
    turns_with(output=Result)
    await flexible_room.say('say: {"severity": "high"}\ndrop after 1')
    [response] = seen("on_chat_response")
    assert response.output == {"severity": "high"}
    assert len(flexible_room.model.requests) == 2


async def test_a_recovered_turn_reads_its_answer_again(flexible_room: Room) -> None:
    turns_with(output=Result)
    with crash_after("model:0"):
        await flexible_room.say('say: {"severity": "high"}')
    [response] = seen("on_chat_response")
    assert response.output == {"severity": "high"}
    assert len(flexible_room.model.requests) == 1


async def test_a_turn_that_waits_for_a_person_answers_when_it_goes_on(flexible_room: Room) -> None:
    turns_with(output=Result, tools=[pay])
    turn = await flexible_room.say('call tool pay {"amount": 5}\nsay: {"severity": "high"}')
    assert status_of(turn) == "completed"
    desk = Desk(flexible_room)
    [call] = await desk.calls()
    assert seen("before_tool_call") == []
    await desk.reply(call, is_approved=True)
    assert [response.output for response in seen("on_chat_response")] == [None, {"severity": "high"}]
    [context] = seen("before_tool_call")
    assert (context.tool_name, context.input) == ("pay", {"amount": 5})
    assert [type(message).__name__ for message in context.messages][:2] == ["UserMessage", "AssistantMessage"]
    assert CALLS == [(5, 0)]


# What does not fit


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"tool_choice": "nobody"}, "tool_choice must be"),
        ({"tool_choice": "required", "active_tools": []}, "tool_choice must be"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice must be"),
        ({"output": "json"}, "output must be"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"max_steps": "two"}, "max_steps must be"),
        ({"timeout_seconds": -1}, "timeout_seconds must be"),
        ({"stall_timeout_seconds": "soon"}, "stall_timeout_seconds must be"),
        ({"system": "a", "instructions": "b"}, "not as both"),
        ({"active_tools": "add"}, "active_tools must be a list"),
        ({"tools": [len]}, "The tools of before_turn"),
    ],
)
async def test_a_config_that_does_not_fit_ends_the_turn_with_a_reason(
    flexible_room: Room, caplog: pytest.LogCaptureFixture, config: Any, said: str
) -> None:
    turns_with(**config)
    turn = await flexible_room.say("say: hi")
    assert (status_of(turn), turn.error_code, turn.fiber.attempt) == ("error", "turn_config_invalid", 1)
    assert turn.error_text == NEUTRAL
    [sentence] = sentences(caplog)
    assert sentence.startswith("Flexible: ")
    assert said in sentence
    assert flexible_room.model.requests == []
