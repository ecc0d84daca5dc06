"""System checks of what developers wrote: hooks that cannot be called, values that cannot be served."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chat.agent import declared
from chat.checks import check_camel_case, check_hooks, check_values
from chat.think import Think

Make = Callable[..., type[Think]]


@pytest.fixture
def make_agent_class() -> Iterator[Make]:
    made: list[type[Think]] = []

    def make(**body: Any) -> type[Think]:
        made.append(type("CheckedAgent", (Think,), body))
        return made[-1]

    yield make
    for agent_class in made:
        declared.unregister(agent_class)


def said(found: list[Any]) -> list[str]:
    return [message.msg.partition(": ")[2] for message in found if "CheckedAgent" in message.msg]


def test_hooks_as_documented_are_fine(make_agent_class: Make) -> None:
    async def own_answer(self: Any, options: Any) -> Any:
        yield {}

    make_agent_class(
        before_turn=lambda self, ctx: None,
        on_chat_error=lambda self, error, context=None: None,
        on_chunk=lambda self, *args: None,
        get_model=staticmethod(lambda: "default"),
        on_chat_message=own_answer,
    )
    assert said(check_hooks()) == []


@pytest.mark.parametrize(
    ("name", "method", "problem"),
    [
        ("before_turn", lambda self: None, "before_turn() is called with one argument after self"),
        ("before_step", lambda self, ctx, *, more: None, "before_step() is called with one argument after self"),
        ("on_chat_error", lambda self, error: None, "on_chat_error() is called with two arguments after self"),
        ("get_model", lambda: "default", "get_model() is called with no argument after self"),
        ("get_tools", [], "get_tools must be a method"),
    ],
)
def test_hooks_that_cannot_be_called_are_errors(make_agent_class: Make, name: str, method: Any, problem: str) -> None:
    make_agent_class(**{name: method})
    [found] = said(check_hooks())
    assert found.startswith(problem)


def test_a_hook_that_yields_is_an_error(make_agent_class: Make) -> None:
    async def before_turn(self: Any, context: Any) -> Any:
        yield None

    make_agent_class(before_turn=before_turn)
    assert said(check_hooks()) == ["before_turn() yields; it must return what it has to say."]


def test_values_and_names_of_another_language_are_reported(make_agent_class: Make) -> None:
    make_agent_class(max_steps=0, beforeTurn=lambda self, ctx: None)
    assert said(check_values()) == ["max_steps must be a positive whole number, not 0."]
    assert any("beforeTurn" in message.msg for message in check_camel_case())
