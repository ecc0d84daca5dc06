"""The loop: rounds, results, limits; and the same loop over the journal after a crash at any point."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from chat.core.loop.loop import MAX_SEALS
from chat.core.loop.step_limit import STEP_LIMIT, STEP_LIMIT_TEXT
from chat.core.model.language_model import (
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolMessage,
)
from chat.errors import ModelRejected, NetworkLost
from sessions_app.core.messages.shapes import OURS
from tests.unit.chat.core.loop_world import Crash, Model, World, add_call, finish, said_before, says, texts, two_rounds


async def test_text_without_calls_ends_the_turn() -> None:
    world = World(Model(says("Hel", "lo")))
    message = await world.run()
    assert texts(message) == ["Hello"]
    assert [c["type"] for c in world.log] == [
        "start",
        "start-step",
        "data-think-status",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert world.log[0]["messageId"] == "a1"


async def test_calls_run_and_their_results_reach_the_model() -> None:
    world = World(Model(two_rounds))
    message = await world.run()
    assert texts(message) == ["Let me add.", "The sum is 10."]
    assert sorted(world.tools.runs) == ["c1", "c2"]
    assert world.loop.totals.steps == 2
    assert world.loop.totals.usage.input_tokens == 20
    assert [r.finish_reason for r in world.hooks.records] == ["tool-calls", "stop"]
    assert {r["output"] for r in world.hooks.records[0].tool_results} == {3, 7}


def always_calls(request: ModelRequest) -> list[ModelEvent | Exception]:
    """Calls a tool in every step, whatever it may."""
    made = sum(isinstance(message, ToolMessage) for message in request.messages)
    return [*add_call(f"c{made}", '{"a":1,"b":1}'), finish(FinishReason.TOOL_CALLS)]


def obeys(request: ModelRequest) -> list[ModelEvent | Exception]:
    """Calls a tool in every step in which it may."""
    if request.tool_choice != "none":
        return always_calls(request)
    return [*(TextDelta(text=c) for c in "Six."[len(said_before(request)) :]), finish()]


LIMIT_TEXT = STEP_LIMIT_TEXT.replace("{steps}", "3")


async def test_at_the_step_limit_the_model_answers_without_a_call() -> None:
    world = World(Model(obeys), max_steps=3)
    message = await world.run()
    assert [request.tool_choice for request in world.model.requests] == ["auto", "auto", "auto", "none"]
    assert texts(message) == ["Six.", LIMIT_TEXT]
    assert world.tools.runs == ["c0", "c1", "c2"]
    assert world.log[-1] == {"type": "finish", "finishReason": "stop", "messageMetadata": {OURS: {"ended": STEP_LIMIT}}}


async def test_a_model_that_calls_all_the_same_ends_with_a_sentence() -> None:
    world = World(Model(always_calls), max_steps=3)
    message = await world.run()
    assert (len(world.model.requests), world.tools.runs) == (4, ["c0", "c1", "c2"])
    assert texts(message) == [LIMIT_TEXT]
    assert "not available in this step" in str(message["parts"])


async def test_an_answer_within_its_limit_says_nothing_of_it() -> None:
    world = World(Model(two_rounds), max_steps=2)
    assert texts(await world.run()) == ["Let me add.", "The sum is 10."]
    assert (len(world.model.requests), world.loop.totals.ended) == (2, "")


@pytest.mark.parametrize("answer", [obeys, always_calls])
async def test_the_end_at_the_limit_is_the_same_after_a_crash_anywhere(
    answer: Callable[[ModelRequest], list[ModelEvent | Exception]],
) -> None:
    whole = World(Model(answer), max_steps=2)
    wanted = texts(await whole.run())
    for place in range(1, len(whole.log) + 1):
        for loses_last in (False, True):
            world = World(Model(answer), max_steps=2)
            world.journal.loses_last = loses_last
            with suppress(Crash):
                await world.run(crash_after=place)
            message = await world.run()
            assert ["".join(texts(message))] == ["".join(wanted)], place


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add", '{"a": 1,', "not valid JSON"),
        ("add", "[1]", "must be a JSON object"),
        ("add", '{"a": "x", "b": 1}', "Invalid input for tool 'add'"),
        ("nope", "{}", "There is no tool 'nope'"),
    ],
)
async def test_a_wrong_call_is_a_result_the_model_sees(name: str, arguments: str, expected: str) -> None:
    def answer(request: ModelRequest) -> list[ModelEvent | Exception]:
        if any(isinstance(m, ToolMessage) for m in request.messages):
            return [TextDelta(text="Sorry."), finish()]
        return [*add_call("c1", arguments, name), finish(FinishReason.TOOL_CALLS)]

    world = World(Model(answer))
    message = await world.run()
    result = next(m for m in world.model.requests[1].messages if isinstance(m, ToolMessage))
    assert result.is_error
    assert expected in str(result.output)
    assert world.tools.runs == []
    assert texts(message) == ["Sorry."]


async def test_every_request_answers_every_call_once() -> None:
    world = World(Model(two_rounds))
    await world.run()
    for request in world.model.requests:
        ids = [m.call_id for m in request.messages if isinstance(m, ToolMessage)]
        assert sorted(ids) == sorted(set(ids))
        assert request.messages[-1].__class__.__name__ != "AssistantMessage"


async def test_an_error_before_anything_is_shown_ends_the_turn() -> None:
    world = World(Model(lambda _r: [NetworkLost()]))
    with pytest.raises(NetworkLost):
        await world.run()
    assert [c["type"] for c in world.log] == ["start", "start-step", "data-think-status"]


async def test_a_lost_connection_after_text_goes_on_in_the_same_part() -> None:
    def answer(request: ModelRequest) -> list[ModelEvent | Exception]:
        said = said_before(request)
        return [TextDelta(text=" world"), finish()] if said else [TextDelta(text="Hello"), NetworkLost()]

    world = World(Model(answer))
    message = await world.run()
    assert texts(message) == ["Hello world"]
    assert [c["type"] for c in world.log].count("text-start") == 1
    assert [c["type"] for c in world.log].count("start-step") == 1


async def test_a_rejection_after_text_is_not_tried_again() -> None:
    world = World(Model(lambda _r: [TextDelta(text="Hello"), ModelRejected()]))
    with pytest.raises(ModelRejected):
        await world.run()
    assert len(world.model.requests) == 1


async def test_a_model_that_breaks_again_and_again_is_given_up() -> None:
    world = World(Model(lambda _r: [TextDelta(text="x"), NetworkLost()]))
    with pytest.raises(NetworkLost):
        await world.run()
    assert len(world.model.requests) == MAX_SEALS + 1


async def test_half_a_call_becomes_an_input_error() -> None:
    def answer(request: ModelRequest) -> list[ModelEvent | Exception]:
        if any(isinstance(m, ToolMessage) for m in request.messages):
            return [TextDelta(text="Done."), finish()]
        return [
            ToolCallStart(call_id="c1", tool_name="add"),
            ToolCallDelta(call_id="c1", text='{"a": 1'),
            NetworkLost(),
        ]

    world = World(Model(answer))
    message = await world.run()
    part = next(p for p in message["parts"] if p.get("toolCallId") == "c1")
    assert part["state"] == "output-error"
    assert world.tools.runs == []
    assert texts(message) == ["Done."]


async def test_a_step_that_broke_in_a_call_is_sent_once_and_as_broken() -> None:
    def answer(request: ModelRequest) -> list[ModelEvent | Exception]:
        results = [m for m in request.messages if isinstance(m, ToolMessage)]
        if len(results) == 2:
            return [TextDelta(text="Done."), finish()]
        if results:
            return [ToolCallStart(call_id="c2", tool_name="add"), NetworkLost()]
        return [*add_call("c1", '{"a":1,"b":2}'), finish(FinishReason.TOOL_CALLS)]

    world = World(Model(answer))
    await world.run()
    sent = [(record.step_number, record.finish_reason, bool(record.request)) for record in world.hooks.records]
    assert sent == [(0, "tool-calls", True), (1, "error", False), (2, "stop", True)]
    assert [len(context.steps) for context in world.hooks.contexts] == [0, 1, 2]
    assert [context.step_number for context in world.hooks.contexts] == [0, 1, 2]


async def test_a_call_that_goes_on_has_the_number_of_the_step_that_broke() -> None:
    cut: list[ModelEvent | Exception] = [TextDelta(text="Hel"), NetworkLost()]
    rest: list[ModelEvent | Exception] = [TextDelta(text="lo"), finish()]
    answers = iter([cut, rest])
    world = World(Model(lambda _r: next(answers)))
    await world.run()
    assert [context.step_number for context in world.hooks.contexts] == [0, 0]
    [record] = world.hooks.records
    assert (record.step_number, record.text) == (0, "Hello")


async def test_a_stream_without_an_end_counts_as_lost() -> None:
    world = World(Model(lambda _r: []))
    with pytest.raises(NetworkLost):
        await world.run()


def _outputs(world: World) -> list[Any]:
    return [c["output"] for c in world.log if c["type"] == "tool-output-available"]


async def _check_recovered(world: World) -> None:
    """The words are those of an undisturbed run; each effect that counts is there once; framing is not repeated."""
    message = await world.run()
    assert texts(message) == ["Let me add.", "The sum is 10."]
    assert sorted(_outputs(world)) == [3, 7]
    kinds = [c["type"] for c in world.log]
    assert kinds.count("start") == kinds.count("finish") == 1
    assert kinds.count("start-step") == kinds.count("finish-step")
    settled = [p for p in message["parts"] if "toolCallId" in p]
    assert all(p["state"] in {"output-available", "output-error"} for p in settled)


LENGTH = 50
"""Chunks of the undisturbed turn."""


async def test_the_undisturbed_turn_is_as_long_as_the_crash_test_assumes() -> None:
    world = World(Model(two_rounds))
    await _check_recovered(world)
    assert len(world.log) == LENGTH


@pytest.mark.parametrize("loses_last", [False, True])
@pytest.mark.parametrize("point", range(1, LENGTH))
async def test_a_crash_anywhere_ends_as_without_it(point: int, loses_last: bool) -> None:
    world = World(Model(two_rounds))
    world.journal.loses_last = loses_last
    with pytest.raises(Crash):
        await world.run(crash_after=point)
    await _check_recovered(world)


@pytest.mark.parametrize("point", range(1, LENGTH))
async def test_a_crash_anywhere_leaves_whole_steps_for_the_hooks(point: int) -> None:
    world = World(Model(two_rounds))
    with pytest.raises(Crash):
        await world.run(crash_after=point)
    await world.run()
    sent = {record.step_number: record for record in world.hooks.records}
    assert sorted(sent) == list(range(world.loop.totals.steps))
    outputs = [result["output"] for record in sent.values() for result in record.tool_results if not result["isError"]]
    assert sorted(outputs) == [3, 7]
    last = sent[max(sent)]
    assert (last.text, last.finish_reason, last.usage.input_tokens) == ("The sum is 10.", "stop", 10)
    assert last.request["messages"][0].startswith("UserMessage")


async def test_a_step_that_the_log_alone_has_is_not_asked_for_again() -> None:
    """The worker died between the end of the step and the transaction that records it: only what it used is lost."""
    world = World(Model(two_rounds))
    world.journal.loses_last = True
    with pytest.raises(Crash):
        await world.run(crash_after=LENGTH - 1)
    assert world.log[-1]["type"] == "finish-step"
    asked = len(world.model.requests)
    message = await world.run()
    assert len(world.model.requests) == asked
    assert texts(message) == ["Let me add.", "The sum is 10."]
    assert world.loop.totals.usage.input_tokens == 10 * (asked - 1)
    assert world.loop.totals.steps == asked


@pytest.mark.parametrize(("first", "second"), [(5, 9), (8, 20), (20, 21), (22, 30), (3, 33), (24, 40)])
async def test_two_crashes_end_as_without_them(first: int, second: int) -> None:
    world = World(Model(two_rounds))
    for point in (first, second):
        with pytest.raises(Crash):
            await world.run(crash_after=point)
    await _check_recovered(world)
