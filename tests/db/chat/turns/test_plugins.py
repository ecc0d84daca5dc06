"""Plugins of the site: their order, what the next hook sees, and what a failing one does."""

from typing import Any

import pytest

from chat.think import (
    Allow,
    Block,
    ChatResponse,
    Plugin,
    StepRecord,
    Think,
    ToolCallContext,
    ToolOutcome,
    TurnConfig,
    TurnContext,
)
from chat.user_code.checks import check_plugins
from chat.user_code.plugins import both
from tests.db.chat.turns.agents.everyday import CALLS

from .conftest import MakeRoom, status_of, text_of

ADD = 'call tool add {"a": 2, "b": 3}\nsay: {result}'
NOTES: list[tuple[str, Any]] = []


class First(Plugin):
    """Changes what the next one sees."""

    def before_turn(self, agent: Think, context: TurnContext) -> TurnConfig:
        NOTES.append((f"{agent.key.agent} first", context.system))
        return TurnConfig(system="Be short.", max_steps=5)

    async def before_tool_call(self, agent: Think, context: ToolCallContext) -> Allow:
        return Allow(input={**context.input, "b": 30})

    def on_step_finish(self, agent: Think, record: StepRecord) -> None:
        NOTES.append(("step", "first"))
        raise RuntimeError("observing")


class Second(Plugin):
    """Sees it."""

    def before_turn(self, agent: Think, context: TurnContext) -> TurnConfig:
        NOTES.append(("second", context.system))
        return TurnConfig(system=f"{context.system} Be kind.")

    def before_tool_call(self, agent: Think, context: ToolCallContext) -> None:
        NOTES.append(("call", dict(context.input)))

    def after_tool_call(self, agent: Think, outcome: ToolOutcome) -> None:
        NOTES.append(("outcome", outcome.success))

    def on_step_finish(self, agent: Think, record: StepRecord) -> None:
        NOTES.append(("step", "second"))

    def on_chat_response(self, agent: Think, response: ChatResponse) -> None:
        NOTES.append(("response", str(response.status)))


class Refusing(Plugin):
    """Lets no tool run."""

    def before_tool_call(self, agent: Think, context: ToolCallContext) -> Block:
        return Block(reason="not here")


class Broken(Plugin):
    """Decides nothing."""

    def before_turn(self, agent: Think, context: TurnContext) -> None:
        raise RuntimeError("secret path")


class Wrong(Plugin):
    """Takes no agent."""

    def before_turn(self, context: TurnContext) -> None:  # type: ignore[override]
        """Take one argument."""


refusing = Refusing()


@pytest.fixture(autouse=True)
def no_notes() -> None:
    NOTES.clear()


def plugins(settings: Any, *names: str) -> None:
    settings.THINK_PLUGINS = [f"{__name__}.{name}" for name in names]


async def test_plugins_run_in_order_before_the_class_and_see_what_the_last_one_said(
    make_room: MakeRoom, settings: Any
) -> None:
    plugins(settings, "First", "Second")
    room = make_room("plain")
    turn = await room.say(ADD)
    assert status_of(turn) == "completed"
    assert [name for name, _ in NOTES[:3]] == ["plain first", "second", "call"]
    assert NOTES[1:3] == [("second", "Be short."), ("call", {"a": 2, "b": 30})]
    assert NOTES[3:] == [
        ("outcome", True),
        ("step", "first"),
        ("step", "second"),
        ("step", "first"),
        ("step", "second"),
        ("response", "completed"),
    ]
    system = next(m["content"] for m in room.model.requests[0]["messages"] if m["role"] in {"system", "developer"})
    assert system.startswith("Be short. Be kind.")
    assert "32" in text_of((await room.transcript())[-1])


async def test_a_block_ends_the_round(make_room: MakeRoom, settings: Any) -> None:
    plugins(settings, "refusing", "Second")
    room = make_room("plain")
    await room.say(ADD)
    assert "call" not in dict(NOTES)
    assert "not here" in text_of((await room.transcript())[-1])
    assert not CALLS


async def test_a_plugin_that_fails_is_treated_as_a_hook_of_the_class(make_room: MakeRoom, settings: Any) -> None:
    plugins(settings, "Broken")
    room = make_room("plain")
    turn = await room.say("say: Hello.")
    assert status_of(turn) == "error"
    assert "secret" not in turn.error_text


def test_what_cannot_be_a_plugin_is_reported(settings: Any) -> None:
    settings.THINK_PLUGINS = [f"{__name__}.{name}" for name in ("First", "Nothing", "NOTES", "Wrong")]
    found = [(message.id, message.msg.partition(f"{__name__}.")[2]) for message in check_plugins()]
    assert [code for code, _ in found] == ["chat.E011"] * 3
    assert found[0][1].startswith("Nothing cannot be used")
    assert "subclass of chat.think.Plugin" in found[1][1]
    assert found[2][1].startswith("Wrong: before_turn() is called with 2 arguments")


def test_what_two_hooks_say_adds_up() -> None:
    first, second = TurnConfig(max_steps=3, active_tools=["a"]), TurnConfig(active_tools=["b"], system="x")
    assert both(first, second) == TurnConfig(max_steps=3, active_tools=["b"], system="x")
    assert both(Allow(input={"a": 1}), Allow()) == Allow(input={"a": 1})
    assert both(None, first) is both(first, None) is first
