"""For people who wait or read later: what a turn does, how long it thought, where a text was cut, names of tools."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chat.core.context.prompt import EDITED_TEXT, to_model_messages
from chat.core.loop.turn_state import EventTranslator, TurnState
from chat.core.model.language_model import (
    AssistantMessage,
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningContent,
    ReasoningDelta,
    TextDelta,
    ToolCallContent,
    ToolCallEnd,
    ToolCallStart,
    ToolMessage,
    Usage,
)
from chat.core.wire import chunks
from chat.core.wire.accumulator import fold
from chat.core.wire.chunks import Chunk
from chat.errors import NetworkLost
from sessions_app.core.messages.oversized import sanitise
from sessions_app.core.messages.shapes import Message, Part
from tests.unit.chat.core.loop_world import NOW, Crash, Model, World, says, two_rounds
from tools_app.core.call_check import CheckedCall

SECOND = timedelta(seconds=1)


class Clock:
    """A second later each time that it is asked."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += SECOND
        return self.now


def translated(*events: ModelEvent, state: TurnState | None = None) -> list[Chunk]:
    state = state or TurnState("a1")
    translate = EventTranslator(
        state,
        lambda _name, _arguments: CheckedCall(input={}),
        repair=str,
        send_reasoning=True,
        titles={"pay": "Payment"},
        clock=Clock(),
    )

    def fold_all(made: Iterator[Chunk]) -> list[Chunk]:
        found = []
        for chunk in made:
            state.apply(chunk)
            found.append(chunk)
        return found

    return [chunk for event in events for chunk in fold_all(translate(event))] + fold_all(translate.close())


def reasoning_of(made: list[Chunk]) -> Part:
    return next(part for part in fold(made)["parts"] if part["type"] == "reasoning")


# How long it thought


@pytest.mark.parametrize("after", [[], [TextDelta(text="So")], [ToolCallStart(call_id="c", tool_name="pay")]])
def test_the_end_of_reasoning_carries_its_time(after: list[ModelEvent]) -> None:
    made = translated(ReasoningDelta(text="Hm"), ReasoningDelta(text="m"), *after)
    part = reasoning_of(made)
    assert (part["text"], part["state"], part["providerMetadata"]) == ("Hmm", "done", {"think": {"durationMs": 1000}})


def test_it_stands_beside_what_the_provider_gave() -> None:
    """Other clients replace a part's metadata by those of its end, so the end has all of them."""
    signed = {"openai": {"itemId": "rs_1"}}
    made = translated(ReasoningDelta(text="Hm"), ReasoningDelta(text="", provider_metadata=signed))
    both = {**signed, "think": {"durationMs": 1000}}
    assert made[-1]["providerMetadata"] == both == reasoning_of(made)["providerMetadata"]


def test_reasoning_that_began_before_a_crash_has_no_time() -> None:
    state = TurnState("a1")
    for chunk in (chunks.reasoning_start("p0"), chunks.reasoning_delta("p0", "Hm")):
        state.apply(chunk)
    assert translated(TextDelta(text="So"), state=state)[0] == chunks.reasoning_end("p0")


def test_a_clock_that_is_set_back_gives_no_negative_time() -> None:
    clock = iter([NOW, NOW - SECOND])
    state = TurnState("a1")
    translate = EventTranslator(
        state, lambda *_: CheckedCall(input={}), repair=str, send_reasoning=True, titles={}, clock=lambda: next(clock)
    )
    for chunk in translate(ReasoningDelta(text="Hm")):
        state.apply(chunk)
    assert next(translate.close())["providerMetadata"] == {"think": {"durationMs": 0}}


def test_our_time_is_not_sent_to_a_provider() -> None:
    def sent(metadata: dict[str, Any]) -> list[ReasoningContent]:
        parts: list[Part] = [
            {"type": "reasoning", "text": "Hm", "state": "done", "providerMetadata": metadata},
            {"type": "text", "text": "So"},
        ]
        (_, message, _) = to_model_messages([{"id": "a", "role": "assistant", "parts": parts}])
        assert isinstance(message, AssistantMessage)
        return [content for content in message.content if isinstance(content, ReasoningContent)]

    time = {"think": {"durationMs": 5}}
    assert sent(time) == []  # as reasoning without the provider's signature
    assert [content.provider_metadata for content in sent({**time, "p": {"s": 1}})] == [{"p": {"s": 1}}]


def test_blank_reasoning_is_dropped_though_it_has_a_time() -> None:
    blank: Part = {"type": "reasoning", "text": " ", "state": "done", "providerMetadata": {"think": {"durationMs": 5}}}
    text: Part = {"type": "text", "text": "So"}
    message: Message = {"id": "a", "role": "assistant", "parts": [blank, text]}
    assert sanitise(message)["parts"] == [text]
    redacted: Part = {**blank, "providerMetadata": {"think": {"durationMs": 5}, "p": {"redacted": "x"}}}
    assert sanitise({**message, "parts": [redacted]})["parts"] == [redacted]


# Where a text was cut


def seams(message: Message) -> list[Part]:
    return [part for part in message["parts"] if part["type"] == "data-think-resumed"]


async def test_a_text_that_was_cut_has_a_seam() -> None:
    answers = script([[TextDelta(text="Smile 😀"), NetworkLost()], [TextDelta(text=" and go on"), _finish()]])
    world = World(Model(lambda _r: next(answers)))
    message = await world.run()
    (seam,) = seams(message)
    assert seam == {
        "type": "data-think-resumed",
        "id": "p0:8",
        "data": {"at": "2026-01-01T12:00:00.000+00:00", "offset": 8},
    }
    texts = [part["text"] for part in message["parts"] if part["type"] == "text"]
    assert texts == ["Smile 😀 and go on"]
    assert texts[0].encode("utf-16-le")[: 2 * seam["data"]["offset"]].decode("utf-16-le") == "Smile 😀"
    assert message == fold(world.log)


async def test_each_cut_has_a_seam_and_the_same_place_has_one() -> None:
    thought: list[ModelEvent | Exception] = [ReasoningDelta(text="Hm"), NetworkLost()]
    cuts: list[list[ModelEvent | Exception]] = [
        [TextDelta(text="One"), NetworkLost()],
        thought,
        [TextDelta(text=" two"), NetworkLost()],
        [TextDelta(text=" three"), _finish()],
    ]
    answers = iter(cuts)
    message = await World(Model(lambda _r: next(answers))).run()
    assert [seam["data"]["offset"] for seam in seams(message)] == [3, 7]


async def test_an_answer_that_was_not_cut_has_none() -> None:
    assert seams(await World(Model(says("Hel", "lo"))).run()) == []
    assert seams(await World(Model(two_rounds)).run()) == []


@pytest.mark.parametrize("point", range(1, 50))
async def test_after_a_crash_a_seam_is_where_the_text_was(point: int) -> None:
    world = World(Model(two_rounds))
    with pytest.raises(Crash):
        await world.run(crash_after=point)
    before = fold(world.log)
    message = await world.run()
    found = seams(message)
    cut = [part["text"] for part in before["parts"] if part["type"] == "text" and part.get("state") == "streaming"]
    # A text that was open, and that went on in place; where calls had begun behind it, they are what was cut.
    assert [seam["data"]["offset"] for seam in found] in ([], [len(text) for text in cut if text])
    if found:
        text = next(p["text"] for p in message["parts"] if p["type"] == "text" and p["text"].startswith(cut[0]))
        assert text[: found[0]["data"]["offset"]] == cut[0]


async def test_a_seam_is_not_sent_to_the_model() -> None:
    answers = script([[TextDelta(text="One"), NetworkLost()], [TextDelta(text=" two"), _finish()]])
    message = await World(Model(lambda _r: next(answers))).run()
    (_, said, _) = to_model_messages([message])
    assert isinstance(said, AssistantMessage)
    assert [getattr(content, "text", None) for content in said.content] == ["One two"]


# What a turn does


async def test_each_step_reports_the_model_and_its_calls_once() -> None:
    world = World(Model(two_rounds))
    await world.run()
    reports = [chunk for chunk in world.log if chunk["type"] == "data-think-status"]
    assert all(chunk["transient"] for chunk in reports)
    since = "2026-01-01T12:00:00.000+00:00"
    first, calls, second = (chunk["data"] for chunk in reports)
    assert first == {"kind": "model", "name": "test/model", "step": 0, "since": since}
    assert second == {**first, "step": 1}
    assert (calls["kind"], calls["since"]) == ("tool", since)
    assert [(call["name"], call["title"]) for call in calls["calls"]] == [("add", ""), ("add", "")]
    assert [call["callId"] for call in calls["calls"]] == world.tools.runs


# Names of tools


def test_a_call_has_the_tools_name_for_people() -> None:
    made = translated(
        ToolCallStart(call_id="c", tool_name="pay"),
        ToolCallEnd(call_id="c", tool_name="pay", arguments="{}"),
        ToolCallStart(call_id="d", tool_name="plain"),
        ToolCallEnd(call_id="d", tool_name="plain", arguments="{}"),
    )
    parts = fold(made)["parts"]
    assert [part.get("title") for part in parts] == ["Payment", None]
    assert [chunk.get("title") for chunk in made] == ["Payment", "Payment", None, None]


# What the model learns of changed arguments


def edited(state: str, **result: Any) -> list[Any]:
    part: Any = {
        "type": "tool-pay",
        "toolCallId": "c",
        "state": state,
        "input": {"amount": 4},
        "approval": {"id": "p", "approved": True, "edited": True, "originalInput": {"amount": 5}},
        **result,
    }
    _, said, found, *_ = to_model_messages([{"id": "a", "role": "assistant", "parts": [part]}])
    assert isinstance(said, AssistantMessage)
    assert isinstance(found, ToolMessage)
    (call,) = said.content
    assert isinstance(call, ToolCallContent)
    assert call.input == {"amount": 5}  # as it said itself
    return [found.output, found.is_error]


def test_the_model_learns_that_the_arguments_were_changed() -> None:
    note = f'{EDITED_TEXT} {{"amount":4}}'
    assert edited("output-available", output="paid") == [f"{note}\npaid", False]
    assert edited("output-available", output={"paid": 4}) == [{"note": note, "output": {"paid": 4}}, False]
    assert edited("output-error", errorText="no funds") == [f"{note}\nno funds", True]


def script(answers: list[list[ModelEvent | Exception]]) -> Iterator[list[ModelEvent | Exception]]:
    return iter(answers)


def _finish() -> Finish:
    return Finish(reason=FinishReason.STOP, usage=Usage())
