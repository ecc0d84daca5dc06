"""A developer's slip ends the turn at the first attempt: a sentence in the log, and nothing of his for the person."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chat.agent import declared
from chat.agent.contracts import ANSWERS
from chat.core.loop.hooks import TurnConfig
from chat.streams.reader import read
from chat.think import Think
from tests.db.chat.turns.agents.everyday import MODELS, Plain
from tools_app.core.tool import tool

from .conftest import MakeRoom, status_of, text_of
from .slips import NEUTRAL, sentences

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "canary-5e1b"
FAILED = "The agent's own code failed."


@tool
def one_tool() -> str:
    """Be one tool."""
    return "one"


class Slipping(Plain):
    """A test says which of its methods slips."""

    workspace_tools = True


def with_method(name: str, method: Any) -> type[Think]:
    """The class, with this method."""
    made: type[Think] = type(
        "Slipping", (Plain,), {name: method, "workspace_tools": True, "__module__": Slipping.__module__}
    )
    return made


@pytest.fixture(autouse=True)
def _served_again() -> Iterator[None]:
    yield
    declared.classes["slipping"] = Slipping


async def late() -> str:
    return SECRET


WRONG: dict[str, list[Callable[[], Any]]] = {
    "get_model": [lambda: None, lambda: 7, list, lambda: {"model": SECRET}, lambda: ScriptedClass],
    "get_system_prompt": [lambda: None, lambda: [SECRET], lambda: 3, lambda: {"system": SECRET}],
    "get_tools": [
        lambda: None,
        lambda: one_tool,
        lambda: SECRET,
        lambda: [one_tool.function],
        lambda: [None],
        lambda: [late()],
        lambda: (each for each in [late]),
    ],
    "get_max_steps": [lambda: None, lambda: 0, lambda: -3, lambda: "ten", lambda: 2.5, lambda: True],
    "assemble_context": [lambda: SECRET, lambda: [SECRET], lambda: {"role": "user"}],
    "configure_session": [lambda: SECRET, lambda: {"memory": SECRET}],
    "get_workspace": [lambda: SECRET, lambda: True],
    "on_chat_message": [lambda: SECRET, lambda: [{"type": SECRET}]],
    "before_turn": [lambda: {"system": SECRET}, lambda: TurnConfig, lambda: SECRET, lambda: True],
    "before_step": [lambda: {"system": SECRET}, lambda: TurnConfig()],
    "get_message_metadata": [lambda: SECRET, lambda: {"value": object()}, lambda: [SECRET]],
    "get_skills": [lambda: None, lambda: SECRET],
    "get_extensions": [lambda: None, lambda: [SECRET], lambda: {"manifest": {}}],
    "get_mcp_servers": [lambda: None, lambda: [SECRET]],
}
"""What the methods of a turn give by mistake."""


class ScriptedClass:
    """A model's class, where an object is wanted."""


CASES = [(name, number) for name, values in WRONG.items() for number in range(len(values))]


async def outcome(make_room: MakeRoom) -> tuple[Any, str]:
    """The turn, and everything that a client could read of it."""
    room = make_room("slipping")
    MODELS["current"] = room.model
    turn = await room.say("say: hello")
    seen = json.dumps([record.text for record in await read(turn.pk, 0)]) + json.dumps(await room.transcript())
    return turn, seen + turn.error_text


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("name", "number"), CASES)
async def test_a_wrong_answer_ends_the_turn_at_once_and_is_explained(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture, name: str, number: int, is_async: bool
) -> None:
    def slips(_self: Any, *_given: Any) -> Any:
        return WRONG[name][number]()

    async def slips_async(_self: Any, *_given: Any) -> Any:
        return WRONG[name][number]()

    with_method(name, slips_async if is_async else slips)
    turn, seen = await outcome(make_room)
    assert (status_of(turn), turn.error_code, turn.error_text) == ("error", "turn_config_invalid", NEUTRAL)
    assert turn.fiber.attempt == 1
    assert SECRET not in seen
    assert " at 0x" not in seen
    [sentence] = sentences(caplog)
    assert sentence.startswith(f"Slipping.{name}()")
    assert SECRET not in sentence
    assert ANSWERS[name].wanted in sentence or "made by @tool" in sentence


@pytest.mark.parametrize("name", sorted(set(WRONG)))
async def test_what_a_method_raises_is_in_the_log_alone(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    def slips(_self: Any, *_given: Any) -> Any:
        raise RuntimeError(SECRET)

    with_method(name, slips)
    turn, seen = await outcome(make_room)
    assert (status_of(turn), turn.error_text, turn.fiber.attempt) == ("error", FAILED, 1)
    assert SECRET not in seen
    [record] = [each for each in caplog.records if each.getMessage() == "agent code failed"]
    assert (vars(record)["agent_class"], vars(record)["method"]) == ("Slipping", name)


async def test_what_is_no_method_is_named(make_room: MakeRoom, caplog: pytest.LogCaptureFixture) -> None:
    with_method("get_tools", [one_tool])
    turn, _seen = await outcome(make_room)
    assert (status_of(turn), turn.error_text) == ("error", NEUTRAL)
    assert sentences(caplog) == ["Slipping.get_tools is a list of 1; it must be a method."]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"max_steps": 0}, "Slipping: before_turn: max_steps must be a positive whole number, not 0."),
        ({"tools": [late]}, "the function late"),
        ({"tool_choice": SECRET}, "tool_choice must be"),
        ({"stop_when": lambda _steps: late()}, "stop_when returned a coroutine"),
    ],
)
async def test_a_config_that_does_not_fit_is_explained(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture, config: Any, says: str
) -> None:
    with_method("before_turn", lambda _self, _context: TurnConfig(**config))
    room = make_room("slipping")
    turn = await room.say('call tool add {"a": 1, "b": 2}\nsay: done')
    assert (status_of(turn), turn.error_text, turn.fiber.attempt) == ("error", NEUTRAL, 1)
    assert any(says in sentence for sentence in sentences(caplog)), sentences(caplog)


@pytest.mark.parametrize("answer", [["reworded"], 3, {"error": SECRET}])
async def test_an_error_hook_that_slips_hides_nothing_and_shows_nothing(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    room = make_room("slipping")
    made = with_method("on_chat_error", lambda _self, _error, _context: answer)
    setattr(made, "get_tools", lambda _self: None)  # noqa: B010 - of this class alone: the slip whose text it rewords
    turn = await room.say("say: hello")
    assert turn.error_text == NEUTRAL
    assert [each.partition(" returned ")[0] for each in sentences(caplog)] == [
        "Slipping.get_tools()",
        "Slipping.on_chat_error()",
    ]


async def test_the_error_hook_gets_the_sentence(make_room: MakeRoom) -> None:
    given: list[str] = []
    room = make_room("slipping")
    made = with_method("on_chat_error", lambda _self, error, _context: given.append(str(error)))
    setattr(made, "get_max_steps", lambda _self: 0)  # noqa: B010 - as above
    await room.say("say: hello")
    assert given == ["Slipping.get_max_steps() returned 0; it must return a whole number from 1."]


class Classical(Plain):
    """Has tools in its class body."""

    desk = "the front desk"

    @tool
    def where(self) -> str:
        """Say where it is."""
        return self.desk

    @tool(name="where_async")
    async def where_soon(self, loud: bool) -> str:
        """Say where it is, soon."""
        return self.desk.upper() if loud else self.desk

    def get_tools(self) -> Any:
        return [self.where, self.where_soon]


async def test_tools_of_a_class_body_are_bound(make_room: MakeRoom) -> None:
    room = make_room("classical")
    await room.say('call tool where {}\ncall tool where_async {"loud": true}\nsay: {results}')
    answer = text_of((await room.transcript())[-1])
    assert "the front desk" in answer
    assert "THE FRONT DESK" in answer


async def test_a_tool_of_a_class_body_without_its_object_is_explained(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture
) -> None:
    with_method("get_tools", lambda _self: [Classical.where])
    turn, _seen = await outcome(make_room)
    assert turn.error_text == NEUTRAL
    assert "give it as self.where" in sentences(caplog)[0]
