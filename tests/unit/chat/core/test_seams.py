"""A text, a thought and a structured answer that were cut: how they go on, and what the log says of it."""

from collections.abc import Iterator

import pytest

from chat.core.context.prompt import GO_ON_TEXT
from chat.core.loop.turn_state import TurnState
from chat.core.model.language_model import (
    AssistantMessage,
    ModelEvent,
    ModelRequest,
    ModelSettings,
    ReasoningDelta,
    TextContent,
    TextDelta,
)
from chat.core.wire import chunks
from chat.core.wire.accumulator import Accumulator, fold
from chat.errors import NetworkLost
from chat.llm.testing import user
from sessions_app.core.messages.shapes import Message
from tests.unit.chat.core.loop_world import NOW, Model, World, add_call, finish, texts

Answer = list[ModelEvent | Exception]


def says_in_turn(*answers: Answer) -> Model:
    rest: Iterator[Answer] = iter(answers)
    return Model(lambda _request: next(rest))


def cut(*pieces: str) -> Answer:
    return [*(TextDelta(text=piece) for piece in pieces), NetworkLost()]


def whole(*pieces: str) -> Answer:
    return [*(TextDelta(text=piece) for piece in pieces), finish()]


def seams(message: Message) -> list[object]:
    return [part["data"] for part in message["parts"] if part["type"] == "data-think-resumed"]


def sent(request: ModelRequest) -> list[object]:
    """What the model is given of its own answer, and the word that was cut."""
    said = [m.content[0] for m in request.messages if isinstance(m, AssistantMessage)]
    return [*(item.text for item in said if isinstance(item, TextContent)), request.cut_word]


async def test_a_model_goes_on_behind_the_last_whole_word() -> None:
    world = World(says_in_turn(cut("40\n", "41\n4"), whole("4", "2\n43")))
    message = await world.run()
    assert texts(message) == ["40\n41\n42\n43"]
    assert sent(world.model.requests[1]) == ["40\n41\n", "4"]
    assert world.model.requests[1].messages[-1] == user(GO_ON_TEXT)
    assert [c["delta"] for c in world.log if c["type"] == "text-delta"] == ["40\n", "41\n4", "2\n43"]
    assert message == fold(world.log)


@pytest.mark.parametrize("answer", [("42", "\n43"), ("41\n42\n43",), ("40\n", "41", "\n4", "2\n43")])
async def test_a_line_or_all_that_is_said_again_is_stored_once(answer: tuple[str, ...]) -> None:
    world = World(says_in_turn(cut("40\n", "41\n4"), whole(*answer)))
    assert texts(await world.run()) == ["40\n41\n42\n43"]


async def test_another_word_takes_the_place_of_the_one_that_was_cut() -> None:
    world = World(says_in_turn(cut("It is a qui"), whole("sl", "ow one.")))
    message = await world.run()
    assert texts(message) == ["It is a slow one."]
    assert [c["type"] for c in world.log if not c.get("transient")] == [
        *("start", "start-step", "text-start", "text-delta"),
        *("data-think-resumed", "data-think-resumed", "text-delta", "text-delta", "text-end", "finish-step", "finish"),
    ]
    [seam] = seams(message)
    assert isinstance(seam, dict)
    assert (seam["offset"], seam["replaced"]) == (8, "qui")
    assert message == fold(world.log)


@pytest.mark.parametrize("split", range(12))
def test_what_is_taken_back_is_taken_back_once_wherever_the_fold_is_split(split: int) -> None:
    state = TurnState("a")
    log = [chunks.start("a"), chunks.start_step(), chunks.text_start("p0"), chunks.text_delta("p0", "It is a qui")]
    for chunk in log:
        state.apply(chunk)
    marks = [state.seam_mark(NOW), state.seam_mark(NOW, replaced="qui")]
    log += [mark for mark in marks if mark is not None]
    log += [chunks.text_delta("p0", "quick"), chunks.text_end("p0")]
    first = fold(log[:split])
    assert fold(log[split:], first)["parts"] == fold(log)["parts"]
    assert Accumulator(fold(log)).message == fold(log)
    assert texts(fold(log)) == ["It is a quick"]


async def test_a_second_break_while_it_repeats_itself_loses_nothing() -> None:
    answers = [cut("One two three four fi"), cut("One two th"), cut("four"), whole("five six")]
    world = World(says_in_turn(*answers))
    message = await world.run()
    assert texts(message) == ["One two three four five six"]
    assert len(seams(message)) == 1


async def test_an_answer_that_was_whole_may_have_no_more() -> None:
    world = World(says_in_turn(cut("All of it."), [finish()]))
    assert texts(await world.run()) == ["All of it."]


async def test_calls_may_follow_the_cut_text() -> None:
    answers = [
        cut("Let me ad"),
        [TextDelta(text="Let me add"), *add_call("c", '{"a": 1, "b": 2}'), finish()],
        whole("3"),
    ]
    message = await World(says_in_turn(*answers)).run()
    assert texts(message) == ["Let me add", "3"]


@pytest.mark.parametrize(
    ("again", "thoughts"),
    [
        (["I should a", "dd them."], ["I should add them."]),
        (["No: ", "I look it up."], ["I should", "No: I look it up."]),
    ],
)
async def test_a_thought_that_was_cut_goes_on_or_stays_as_it_was(again: list[str], thoughts: list[str]) -> None:
    thinks: Answer = [ReasoningDelta(text="I "), ReasoningDelta(text="should"), NetworkLost()]
    world = World(says_in_turn(thinks, [*(ReasoningDelta(text=t) for t in again), *whole("3")]))
    message = await world.run()
    parts = [part for part in message["parts"] if part["type"] == "reasoning"]
    assert [part["text"] for part in parts] == thoughts
    assert {part["state"] for part in parts} == {"done"}
    assert message == fold(world.log)


@pytest.mark.parametrize("again", ['{"name": "Alice"}', '{"who": "Bob"}'])
@pytest.mark.parametrize("length", range(1, 17))
async def test_json_of_a_schema_begins_anew_and_stays_json(length: int, again: str) -> None:
    world = World(says_in_turn(cut('{"name": "Alice"}'[:length]), whole(*again)))
    world.settings = ModelSettings(response_schema={"type": "object"})
    assert texts(await world.run()) == [again]
    assert sent(world.model.requests[1]) == [None]
    assert world.model.requests[1].messages == world.model.requests[0].messages
