"""The answers of a developer's methods and the values of their classes: the wrong neighbours of each are explained."""

import inspect
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, get_origin

import pytest

from chat.agent.base import Agent
from chat.agent.contracts import ANSWERS, VALUES, answer_problem, value_problems
from chat.agent.think import USE_LOOP, Think
from chat.checks import _HOOKS as HOOKS
from chat.core.context.session_setup import SessionSetup
from chat.core.loop.hooks import Allow, Block, RecoveryDecision, StepConfig, TurnConfig
from chat.llm.scripted import ScriptedModel
from chat.threads.agent import ThreadsAgent
from thinkproject.kernel.retry import RetryPolicy
from tools_app.core.guard.rules import InjectionGuard, Relaxed
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.core.tool import tool

SECRET = "secret-8f2c"


@tool
def now() -> str:
    """Give the time."""
    return "now"


async def late() -> str:
    return SECRET


async def chunks() -> AsyncIterator[dict[str, Any]]:
    yield {"type": "start"}


@contextmanager
def neighbours() -> Iterator[dict[str, Any]]:
    """The wrong values that a slip leads to, by a name. Made anew each time: coroutines and generators are used up."""
    listed, single = late(), late()
    yield {
        "nothing": None,
        "text": SECRET,
        "empty text": "",
        "zero": 0,
        "negative": -1,
        "fraction": 1.5,
        "not a number": float("nan"),
        "true": True,
        "false": False,
        "empty list": [],
        "list of nothing": [None],
        "list of texts": [SECRET],
        "list of functions": [late],
        "list of coroutines": [listed],
        "one tool": now,
        "dict": {"system": SECRET},
        "empty dict": {},
        "object": object(),
        "class": TurnConfig,
        "coroutine": single,
        "generator": (each for each in [SECRET]),
        "function": late,
    }
    listed.close()
    single.close()


FINE: dict[str, set[str]] = {
    "get_model": {"text", "empty text", "list of texts"},
    "get_system_prompt": {"text", "empty text"},
    "get_tools": {"empty list", "empty dict", "generator"},
    "get_max_steps": set(),
    "get_message_metadata": {"nothing", "dict", "empty dict"},
    "get_workspace": {"nothing", "false"},
    "configure_session": {"nothing"},
    "assemble_context": {"nothing", "empty list", "generator"},
    "on_chat_message": {"nothing"},
    "before_turn": {"nothing"},
    "before_step": {"nothing"},
    "before_tool_call": {"nothing"},
    "on_chat_error": {"nothing", "text", "empty text"},
    "on_chat_recovery": {"nothing"},
    "should_keep_recovering": {"nothing", "true", "false"},
    "get_mcp_servers": {"empty list", "generator"},
    "get_extensions": {"empty list", "generator"},
    "get_skills": {
        *("empty list", "list of nothing", "list of texts", "list of functions", "list of coroutines", "generator"),
    },
    "get_scheduled_tasks": {
        *("empty list", "list of nothing", "list of texts", "list of functions", "list of coroutines"),
        *("dict", "empty dict"),  # what is in them is read one by one: the rest goes on
    },
    "authorize_turn": {"nothing", "true", "false", "empty list", "list of texts", "generator"},
    "authorize_action": {"nothing", "true", "false", "text", "empty text"},
    "on_before_sub_agent": {"nothing", "true", "false"},
    "is_read_only": {"true", "false"},
    "validate_state_change": {"nothing"},
    "resolve_name": {"text", "empty text"},
}
"""Of each method the neighbours that are no slip."""

RIGHT: dict[str, list[Any]] = {
    "get_model": [ScriptedModel(), "default", ["openai/gpt-5", ScriptedModel()]],
    "get_tools": [[now], (now,), {"clock": now}, {now.name: now}.values()],
    "get_max_steps": [1, 100],
    "configure_session": [SessionSetup()],
    "assemble_context": [[{"id": "m", "role": "user", "parts": []}]],
    "on_chat_message": [USE_LOOP, chunks()],
    "before_turn": [TurnConfig()],
    "before_step": [StepConfig()],
    "before_tool_call": [Allow(), Block(reason="no")],
    "on_chat_error": [ValueError("reworded")],
    "on_chat_recovery": [RecoveryDecision()],
    "get_mcp_servers": [McpServerSpec(name="one", url="https://example.com"), [McpServerSpec(name="one", url="x")]],
    "get_extensions": [[{"manifest": {}, "source": ""}]],
}


class Desk(Think, abstract=True):
    """The class whose methods these are."""


def test_every_method_that_is_called_has_a_contract_or_is_not_asked() -> None:
    not_asked = {
        *("on_start", "on_connect", "on_message", "on_close", "on_state_changed"),
        *("on_fiber_complete", "on_fibers_recovered", "on_fiber_recovered", "on_agent_tool_finish"),
        *("after_tool_call", "on_chunk", "on_step_finish", "on_chat_response"),
        *("on_recovery_exhausted", "on_model_switch"),
    }
    assert set(FINE) == set(ANSWERS)
    assert (set(ANSWERS) - {"resolve_name"}) | not_asked == set(HOOKS)
    hooks = {name for name in dir(Think) if re.match(r"(get|on|before|after|is|should|validate|authorize)_", name)}
    own = {
        name
        for name in hooks
        if inspect.isfunction(getattr(Think, name)) and not inspect.iscoroutinefunction(getattr(Think, name))
    }
    assert own <= set(HOOKS)


@pytest.mark.parametrize("method", sorted(ANSWERS))
def test_wrong_neighbours_are_explained_in_one_sentence(method: str) -> None:
    with neighbours() as values:
        problems = {name: answer_problem(Desk, method, value) for name, value in values.items()}
    for name, problem in problems.items():
        if name in FINE[method]:
            assert problem == "", (name, problem)
            continue
        assert problem.startswith(f"Desk.{method}() returned "), (name, problem)
        assert f"; it must return {ANSWERS[method].wanted}." in problem
        assert ("missing?" in problem) == (name == "nothing")
        assert SECRET not in problem
        assert " at 0x" not in problem


@pytest.mark.parametrize("method", sorted(RIGHT))
def test_right_answers_are_taken(method: str) -> None:
    assert [answer_problem(Desk, method, value) for value in RIGHT[method]] == [""] * len(RIGHT[method])


def test_what_came_is_named() -> None:
    with neighbours() as values:
        came = {
            name: answer_problem(Desk, "get_tools", value).partition(" returned ")[2].partition(";")[0]
            for name, value in values.items()
        }
    assert came["nothing"] == "None"
    assert came["one tool"] == "a Tool"
    assert came["list of functions"] == "a list of 1 with the function late"
    assert came["list of coroutines"] == "a list of 1 with a coroutine that was not awaited"
    assert came["dict"] == "a dict of 1"
    assert came["class"] == "the class TurnConfig"
    assert answer_problem(Desk, "get_max_steps", 0) == (
        "Desk.get_max_steps() returned 0; it must return a whole number from 1."
    )


OF_THEIR_OWN = {
    *("title", "description", "icon", "suggestions", "models", "config_model", "config_access"),
    *("message_concurrency", "context_policy", "compaction_policy", "enabled_tools", "code_tool", "mcp_server"),
    "is_abstract",
}
"""Attributes whose values have checks of their own."""

FINE_VALUES: dict[str, set[str]] = {
    "initial_state": {
        *("nothing", "text", "empty text", "zero", "negative", "fraction", "true", "false", "empty list"),
        *("list of nothing", "list of texts", "dict", "empty dict"),
    },
    "sub_agents": {"empty list", "list of texts", "generator"},
    "agents": {"empty list", "list of texts", "generator"},
    "thread_agent": {"text"},
    "max_concurrent_agent_tools": {"nothing"},
    "interrupted_text": {"text"},
    "step_limit_text": {"text"},
    "max_persisted_messages": {"nothing"},
    "auto_compaction": {"nothing", "true", "false"},
    "compaction_model": {"nothing", "text", "empty text", "list of texts"},
    "permissions": {"empty list", "generator"},
    "review_model": {"nothing", "text", "empty text", "list of texts"},
    "title_model": {"nothing", "text", "empty text", "list of texts"},
    "summary_model": {"nothing", "text", "empty text", "list of texts"},
    "stall_timeout_seconds": {"nothing", "zero", "fraction"},
    "approval_seconds": {"nothing", "zero", "fraction"},
    "wait_for_mcp_connections": {"true", "false", "zero", "fraction"},
    "max_recoveries": {"nothing", "zero"},
    "max_declared_tools": {"nothing", "zero"},
    "searched_tools": {"empty list", "list of texts", "generator"},
    "commands": {"empty list", "generator"},
    "instruction_files": {"empty list", "list of texts", "generator"},
    "user_shell": {"text", "empty text"},
    "no_progress_seconds": {"nothing", "fraction"},
    "max_recovery_work": {"nothing", "zero"},
    "max_memory_losses": {"nothing", "zero"},
}
"""Of each attribute the neighbours that are no slip; of a switch true and false."""

RIGHT_VALUES: dict[str, Any] = {
    "sub_agents": [(Desk, "researcher")],
    "thread_agent": [Desk, "coder"],
    "workspace_in_prompt": ["top"],
    "retry_policy": [RetryPolicy(attempts=1)],
    "injection_guard": [InjectionGuard(), Relaxed(reason="Reads our own wiki only.")],
    "chat_recovery": ["paused"],
    "max_steps": [1],
    "max_concurrent_agent_tools": [3],
}


def test_every_attribute_of_a_class_is_checked() -> None:
    declared = {
        name
        for cls in (*Think.__mro__, ThreadsAgent)
        for name, kind in vars(cls).get("__annotations__", {}).items()
        if get_origin(kind) is ClassVar or str(kind).startswith("ClassVar")
    }
    assert {"max_steps", "title", "fibers"} <= declared
    assert declared - OF_THEIR_OWN | {"initial_state"} == set(VALUES)


def made(name: str, value: Any) -> type[Agent]:
    """A class with this value."""
    return type("Desk", (Think,), {name: value}, abstract=True)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_wrong_values_are_explained_and_right_ones_taken(name: str) -> None:
    switch = {"true", "false"} if isinstance(getattr(Think, name, None), bool) else set()
    with neighbours() as values:
        found = {kind: value_problems(made(name, value)) for kind, value in values.items()}
    for kind, problems in found.items():
        if kind in FINE_VALUES.get(name, switch):
            assert problems == [], (kind, problems)
        else:
            assert len(problems) == 1, (kind, problems)
            assert problems[0].startswith(f"{name} must be {VALUES[name].wanted}, not ")
    for value in RIGHT_VALUES.get(name, ()):
        assert value_problems(made(name, value)) == []
