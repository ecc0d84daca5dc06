"""Structured answers and the choice of a tool: what hooks may say, and what an answer has to be."""

from contextlib import suppress
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from chat.core.model.language_model import AssistantMessage, ModelEvent, ModelRequest, ModelSettings, TextDelta
from chat.core.model.output_schema import Output, output_of
from chat.core.model.tool_choice import read_tool_choice
from chat.errors import OutputInvalid, TurnConfigInvalid

from .loop_world import Crash, Model, World, finish, texts


class Result(BaseModel):
    severity: Literal["low", "high"]


SCHEMA = {"type": "object", "properties": {"severity": {"enum": ["low", "high"]}}, "required": ["severity"]}


@pytest.mark.parametrize("shape", [Result, SCHEMA, Output(schema=Result), Output(schema=SCHEMA, by_tool=True)])
def test_an_answer_of_the_form_is_read(shape: Any) -> None:
    output = output_of(shape)
    assert output is not None
    assert output.json_schema["required"] == ["severity"]
    assert output.read(' {"severity": "high"}\n') == {"severity": "high"}
    assert output.read('```json\n{"severity": "low"}\n```') == {"severity": "low"}


@pytest.mark.parametrize("shape", [Result, SCHEMA])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "gave nothing"),
        ("It is bad.", "gave no JSON"),
        ('{"severity": "hi', "gave no JSON"),
        ('{"severity": "odd"}', "severity: "),
        ("{}", "severity"),
        ("3", "the value: "),
    ],
)
def test_what_is_wrong_with_an_answer_is_reported(shape: Any, text: str, said: str) -> None:
    output = output_of(shape)
    assert output is not None
    with pytest.raises(OutputInvalid, match=said):
        output.read(text)


def test_no_output_is_none_and_anything_else_is_refused() -> None:
    assert output_of(None) is None
    for odd in ("json", str, [1]):
        with pytest.raises(TurnConfigInvalid, match="pydantic model"):
            output_of(odd)


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("add", "add"),
        ({"type": "tool", "toolName": "add"}, "add"),
    ],
)
def test_a_tool_choice_is_a_word_or_a_tool(choice: Any, read: str) -> None:
    assert read_tool_choice(choice, ["add"]) == read


@pytest.mark.parametrize("choice", ["other", {"type": "tool"}, {"toolName": "add"}, {"type": "auto"}, 3])
def test_another_tool_choice_is_refused_and_names_what_there_is(choice: Any) -> None:
    with pytest.raises(TurnConfigInvalid, match="'add'"):
        read_tool_choice(choice, ["add"])


def test_no_call_can_be_demanded_without_tools() -> None:
    assert read_tool_choice("none", []) == "none"
    with pytest.raises(TurnConfigInvalid, match="Tools: none"):
        read_tool_choice("required", [])


def wavering(request: ModelRequest) -> list[ModelEvent | Exception]:
    """Prose, then another form, then the one that was asked for."""
    said = [part for message in request.messages if isinstance(message, AssistantMessage) for part in message.content]
    if request.continues:
        return [finish()]  # a crash has cut it behind its last word
    assert ("Answer again" in repr(request.messages[-1])) == bool(said)
    text = ("It is bad.", '{"severity": "odd"}', '{"severity": "low"}')[min(len(said), 2)]
    return [TextDelta(text=text), finish()]


def asking(tries: int) -> World:
    """A world whose turn asks for a form, as the product sends it."""
    world = World(Model(wavering))
    world.output = Output(schema=Result, tries=tries)
    world.settings = ModelSettings(response_schema=world.output.json_schema)
    return world


async def test_an_answer_of_another_form_is_asked_for_again() -> None:
    world = asking(2)
    message = await world.run()
    assert world.loop.totals.output == {"severity": "low"}
    assert len(world.model.requests) == 3
    assert texts(message) == ["It is bad.", '{"severity": "odd"}', '{"severity": "low"}']


@pytest.mark.parametrize("tries", [0, 1])
async def test_after_its_tries_an_answer_of_another_form_fails(tries: int) -> None:
    world = asking(tries)
    with pytest.raises(OutputInvalid):
        await world.run()
    assert len(world.model.requests) == tries + 1


async def test_a_crash_between_tries_asks_no_further_time() -> None:
    undisturbed = asking(2)
    await undisturbed.run()
    for place in range(1, len(undisturbed.log)):
        world = asking(2)
        with suppress(Crash):
            await world.run(crash_after=place)
        await world.run()
        assert world.loop.totals.output == {"severity": "low"}
        assert len(world.model.requests) <= 4  # the one that was cut, and three answers


def test_tries_are_a_whole_number() -> None:
    for odd in (-1, True, "two"):
        with pytest.raises(TurnConfigInvalid, match="tries"):
            output_of(Output(schema=Result, tries=odd))  # type: ignore[arg-type]  # a developer's value
