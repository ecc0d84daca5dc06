"""The hooks of a turn: their order, what they may change, and what a failing one does."""

from typing import Any, cast

import pytest

from chat.core.loop.hooks import ResponseStatus
from chat.core.model.language_model import ModelMessage
from chat.llm.scripted import ScriptedModel
from chat.streams.reader import read
from chat.turns.admission.intake import Continue, Submit
from chat.turns.execution.prompting import Prompt
from sessions_app.core.messages.shapes import Message, Part
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, SEEN, Plain
from tests.sent_notes import without_notes
from thinkproject.kernel.jsonvalue import JSONObject, load

from .conftest import MakeRoom, Room, status_of, text_of

ADD = 'call tool add {"a": 2, "b": 3}\nsay: {result}'


def names() -> list[str]:
    return [name for name, _ in SEEN if name != "on_chunk"]


def seen(name: str) -> list[Any]:
    return [value for found, value in SEEN if found == name]


def sent(room: Room, number: int = -1) -> JSONObject:
    """A request that the model got."""
    return cast("JSONObject", without_notes(room.model.requests[number]))


def system_of(request: JSONObject) -> str | None:
    return next((m["content"] for m in request["messages"] if m["role"] in {"system", "developer"}), None)


async def answer(room: Room) -> Message:
    return (await room.transcript())[-1]


async def call_part(room: Room) -> Part:
    return next(part for part in (await answer(room))["parts"] if "toolCallId" in part)


async def test_hooks_run_in_their_order(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    turn = await room.say(ADD)
    assert names() == [
        "before_turn",
        "before_step",
        "before_tool_call",
        "after_tool_call",
        "on_step_finish",
        "before_step",
        "on_step_finish",
        "on_chat_response",
    ]
    order = [value if name == "on_chunk" else name for name, value in SEEN]
    assert order.index("before_step") < order.index("tool-input-available") < order.index("before_tool_call")
    assert order.index("after_tool_call") < order.index("tool-output-available") < order.index("on_step_finish")
    chunks = [load(record.text)["type"] for record in await read(turn.pk, 0)]
    assert set(seen("on_chunk")) == set(chunks)


async def test_before_turn_sees_what_is_about_to_happen(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    turn = await room.say("say: hi", body={"colour": "red"})
    [context] = seen("before_turn")
    assert (context.system, context.continuation, context.attempt) == ("You are a helpful assistant.", False, 1)
    assert (context.request_id, context.turn_id, context.body) == (turn.request_id, turn.pk, {"colour": "red"})
    assert set(context.tools) == {"add", "fail", "sleep", "count"}
    assert context.model.name == "scripted/model"
    assert len(context.messages) == 1


async def test_a_continuation_is_marked(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    await room.say("stream 6 words\nerror in stream after 3 code context_length_exceeded")
    await room.say(Continue())
    assert [context.continuation for context in seen("before_turn")] == [False, True]
    assert [response.continuation for response in seen("on_chat_response")] == [False, True]
    assert sent(room)["messages"][-1]["role"] == "user"
    _user, first, second = await room.transcript()
    assert len((text_of(first) + text_of(second)).split()) == 6
    assert first["id"] != second["id"]


@pytest.mark.parametrize(("name", "value", "steps"), [("max_steps", 3, 3), ("get_max_steps", lambda _agent: 2, 2)])
async def test_a_class_says_how_many_steps_a_turn_has(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, name: str, value: Any, steps: int
) -> None:
    monkeypatch.setattr(Plain, name, value)
    room = make_room()
    turn = await room.say("\n".join(f'call tool add {{"a": {n}, "b": 1}}\nsay: {{result}}' for n in range(5)))
    assert turn.step_count == steps + 1  # the last one has no calls
    assert [each.get("tool_choice") for each in room.model.requests] == [None] * steps + ["none"]


async def test_before_turn_overrides(make_room: MakeRoom) -> None:
    room = make_room("overrider")
    turn = await room.say(ADD)
    request = sent(room)
    assert system_of(request) == "Overridden."
    assert [tool["name"] for tool in request["tools"]] == ["add"]
    assert turn.step_count == 2
    assert [each.get("tool_choice") for each in room.model.requests] == [None, "none"]


async def test_before_turn_adds_a_tool_and_picks_a_model(make_room: MakeRoom) -> None:
    room = make_room("extra")
    MODELS["other"] = other = ScriptedModel("reason: hm\ncall tool extra {}\nsay: {result}", name="scripted/other")
    await room.say("one")
    turn = await room.say("two")
    assert room.model.requests == []
    assert "extra" not in seen("before_turn")[0].tools
    assert [tool["name"] for tool in other.requests[0]["tools"]] == ["add", "fail", "sleep", "count", "extra"]
    assert len([m for m in other.requests[2]["messages"] if m["role"] == "user"]) == 1
    assert turn.step_count == 2
    assert text_of(await answer(room)) == "extra"
    assert not [part for part in (await answer(room))["parts"] if part["type"] == "reasoning"]


async def test_before_step_changes_one_step(make_room: MakeRoom) -> None:
    room = make_room("stepper")
    await room.say(ADD)
    assert [system_of(request) for request in room.model.requests] == ["You are a helpful assistant.", "Second."]
    assert [len(request["tools"]) for request in room.model.requests] == [4, 0]
    first, second = seen("before_step")
    assert (first.step_number, second.step_number) == (0, 1)
    assert [record.finish_reason for record in second.steps] == ["tool-calls"]


async def test_a_step_is_reported_whole(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    await room.say("reason: let me add\n" + ADD)
    first, second = seen("on_step_finish")
    assert (first.step_number, first.reasoning, first.finish_reason) == (0, "let me add", "tool-calls")
    assert [call["input"] for call in first.tool_calls] == [{"a": 2, "b": 3}]
    assert [result["output"] for result in first.tool_results] == [5]
    assert (second.step_number, second.text, second.finish_reason) == (1, "5", "stop")
    assert second.usage.output_tokens > 0
    assert second.model_name


@pytest.mark.parametrize(
    ("number", "state", "output", "calls", "success"),
    [
        (7, "output-available", 7, [(7, 0)], True),  # no opinion
        (1, "output-available", 20, [(10, 10)], True),  # allowed with another input
        (2, "output-available", "not today", [], True),  # blocked
        (3, "output-available", 99, [], True),  # substituted
        (4, "output-error", "the gate broke", [], False),  # raised
    ],
)
async def test_before_tool_call_decides(
    make_room: MakeRoom, number: int, state: str, output: object, calls: list[tuple[int, int]], success: bool
) -> None:
    room = make_room("gate")
    turn = await room.say(f'call tool add {{"a": {number}, "b": 0}}\nsay: done')
    part = await call_part(room)
    assert (part["state"], part.get("output", part.get("errorText"))) == (state, output)
    assert calls == CALLS
    [outcome] = seen("after_tool_call")
    assert (outcome.input, outcome.success, outcome.output) == ({"a": number, "b": 0}, success, output)
    assert part["input"] == {"a": number, "b": 0}
    assert status_of(turn) == "completed"


async def test_a_substitute_that_is_no_json_is_a_failed_call(make_room: MakeRoom) -> None:
    room = make_room("odd")
    turn = await room.say(ADD)
    part = await call_part(room)
    assert part["state"] == "output-error"
    assert "which JSON cannot carry" in part["errorText"]
    assert (status_of(turn), CALLS) == ("completed", [])


async def test_assemble_context_chooses_what_the_model_sees(make_room: MakeRoom) -> None:
    room = make_room("narrow")
    await room.say("say: one")
    await room.say("say: two")
    assert [m["content"] for m in sent(room)["messages"] if m["role"] == "user"] == ["say: two"]
    assert len(await room.transcript()) == 4


async def test_each_of_several_agents_sees_what_is_for_it(make_room: MakeRoom) -> None:
    room = make_room("team")

    async def asked(addressee: str, text: str) -> list[str]:
        parts: list[Any] = [{"type": "text", "text": text}]
        await room.say(Submit(message={"role": "user", "parts": parts, "metadata": {"addressee": addressee}}))
        return [message["content"] for message in sent(room)["messages"] if message["role"] != "system"]

    assert await asked("researcher", "say: found") == ["say: found"]
    assert await asked("planner", "say: planned") == ["say: planned"]
    assert await asked("writer", "say: written") == ["say: found", "found", "say: written"]
    assert await asked("planner", "say: done") == ["say: planned", "planned", "say: done"]
    assert len(await room.transcript()) == 8  # people see everything


async def test_an_agent_may_answer_by_itself(make_room: MakeRoom) -> None:
    room = make_room("own")
    turn = await room.say("anything")
    assert text_of(await answer(room)) == "own answer"
    assert room.model.requests == []
    (options,) = seen("on_chat_message")
    assert [message.content[0].text for message in options.messages] == ["anything"]
    chunks = [load(record.text) for record in await read(turn.pk, 0)]
    assert chunks[0] == {"type": "start", "messageId": turn.assistant_id}
    assert chunks[-1]["type"] == "finish"
    assert status_of(turn) == "completed"


async def test_an_agent_may_answer_nothing(make_room: MakeRoom) -> None:
    room = make_room("silent")
    turn = await room.say("anything")
    assert status_of(turn) == "completed"
    assert [role for role, _ in await room.texts()] == ["user"]


async def test_reasoning_can_be_kept_back(make_room: MakeRoom) -> None:
    room = make_room("mute")
    turn = await room.say("reason: secret\nsay: public")
    assert [part["type"] for part in (await answer(room))["parts"]] == ["step-start", "text"]
    assert "secret" not in "".join(record.text for record in await read(turn.pk, 0))


async def test_a_tool_reports_how_far_it_is(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say("call tool count {}\nsay: {result}")
    outputs = [load(r.text) for r in await read(turn.pk, 0) if '"tool-output-available"' in r.text]
    assert [(chunk["output"], chunk.get("preliminary", False)) for chunk in outputs] == [
        (1, True),
        (2, True),
        (3, True),
        (3, False),
    ]
    part = await call_part(room)
    assert (part["output"], "preliminary" in part) == (3, False)


async def test_hooks_that_observe_and_raise_change_nothing(make_room: MakeRoom) -> None:
    transcripts = []
    for agent in ("plain", "noisy"):
        room = make_room(agent)
        assert status_of(await room.say(ADD)) == "completed"
        transcripts.append([text_of(message) for message in await room.transcript()])
    assert transcripts[0] == transcripts[1] == [ADD, "5"]


async def test_a_deciding_hook_that_raises_ends_the_turn(make_room: MakeRoom) -> None:
    room = make_room("strict")
    turn = await room.say("say: hi")
    assert (status_of(turn), turn.error_text, turn.error_code) == (
        "error",
        "The agent's own code failed.",
        "agent_code_failed",
    )


async def test_an_error_hook_gets_the_context_and_rewords_it(make_room: MakeRoom) -> None:
    room = make_room("recorder")
    turn = await room.say("say: some text\nerror in stream after 1 code context_length_exceeded")
    [(error, context)] = seen("on_chat_error")
    assert turn.error_text == f"reworded: {error}"
    assert (context.stage, context.messages_persisted, context.code) == ("stream", True, "context_overflow")
    [response] = seen("on_chat_response")
    assert (response.status, response.error) == (ResponseStatus.ERROR, turn.error_text)
    assert text_of(response.message) == text_of(await answer(room)) != ""


async def test_three_lines_are_an_agent(make_room: MakeRoom) -> None:
    room = make_room("tiny")
    assert status_of(await room.say("say: hi")) == "completed"
    assert (await room.texts())[-1] == ("assistant", "hi")


async def test_waiting_for_a_turn_inside_a_turn_of_the_same_conversation_is_refused(make_room: MakeRoom) -> None:
    room = make_room("nester")
    turn = await room.say("say: outer")
    assert (status_of(turn), turn.error_code) == ("error", "nested_turn")
    assert [text for _, text in await room.texts()] == ["say: outer"]


@pytest.mark.parametrize(("agent", "conversions"), [("plain", 1), ("recorder", 2)])
async def test_a_history_is_converted_for_the_hooks_only_where_there_are_some(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, agent: str, conversions: int
) -> None:
    """Converting a long conversation takes milliseconds that pass before its model is asked."""
    room = make_room(agent)
    await room.say("say: one")
    convert, converted = Prompt._convert, []

    def counted(self: Prompt, messages: list[Message]) -> tuple[ModelMessage, ...]:
        converted.append(len(messages))
        return convert(self, messages)

    monkeypatch.setattr(Prompt, "_convert", counted)
    await room.say("say: two")
    assert converted == [3] * conversions


async def test_a_hook_of_an_approved_call_reads_what_led_to_it(make_room: MakeRoom) -> None:
    """Also of an agent that looks at nothing else."""
    desk = Desk(make_room("teller"))
    await desk.room.say('call tool pay {"amount": 5}\nsay: {result}.')
    [call] = await desk.calls()
    await desk.reply(call, is_approved=True)
    [outcome] = [seen for kind, seen in SEEN if kind == "after_tool_call"]
    assert (outcome.output, type(outcome.messages[0]).__name__) == ("paid 5", "UserMessage")
