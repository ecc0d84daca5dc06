"""The answers that a developer's methods may give, and the values that attributes of their classes may have.

One table of each. `call_hook` holds each answer of an overridden method against the first, so that a slip ends at the
first attempt with one sentence about it; the system checks hold the classes against the second.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from chat.agent.base import Agent
from chat.agent.think import USE_LOOP, Think
from chat.agent.values.messages import AgentReference
from chat.core.commands import Command
from chat.core.context.session_setup import SessionSetup
from chat.core.loop.hooks import Allow, Block, RecoveryDecision, StepConfig, Substitute, TurnConfig
from thinkproject.kernel.described import described
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.retry import RetryPolicy
from tools_app.core.guard.rules import InjectionGuard
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.core.permissions.rules import Permission
from tools_app.core.tool import Tool

APPROVED_BY: Final = ("approver", "requester", "another")


@dataclass(frozen=True, slots=True)
class Contract:
    """`wanted`: in words, after "must be" or "must return". `fits`: whether a value is that. `item`: one of a list."""

    wanted: str
    fits: Callable[[Any], bool]
    item: Callable[[Any], bool] | None = None


def answer_problem(agent_class: type[Any], method: str, answer: Any) -> str:
    """The sentence about an answer that does not fit; empty for one that does, or of a method that is asked nothing."""
    contract = ANSWERS.get(method)
    if contract is None or contract.fits(answer):
        return ""
    hint = " Is a `return` missing?" if answer is None else ""
    came = described(answer)
    if contract.item is not None and isinstance(answer, list | tuple) and answer:
        came += f" with {described(next(item for item in answer if not contract.item(item)))}"
    return f"{agent_class.__name__}.{method}() returned {came}; it must return {contract.wanted}.{hint}"


def value_problems(agent_class: type[Agent]) -> list[str]:
    """A sentence for each attribute whose value does not fit."""
    found = []
    for name, contract in VALUES.items():
        if hasattr(agent_class, name):
            value = getattr(agent_class, name)
            if not contract.fits(value):
                found.append(f"{name} must be {contract.wanted}, not {value!r}.")
    return found


def _is_none(value: Any) -> bool:
    return value is None


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _one_of(*kinds: Any) -> Callable[[Any], bool]:
    return lambda value: value is None or isinstance(value, kinds)


def _is_model(value: Any) -> bool:
    if isinstance(value, str):
        return True
    return hasattr(value, "stream") and hasattr(value, "name") and not isinstance(value, type)


def _is_model_choice(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(_is_model(one) for one in value)
    return _is_model(value)


def _is_list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether it is an iterable of these. One that can be read once only, such as a generator, is not looked into."""

    def check(value: Any) -> bool:
        is_many = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | type)
        return is_many and (not isinstance(value, Collection) or all(fits(item) for item in value))

    return check


def _kind(*kinds: type[Any]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _is_tools(value: Any) -> bool:
    return _is_list_of(_kind(Tool))(list(value.values()) if isinstance(value, Mapping) else value)


def _is_nothing_else(_value: Any) -> bool:
    return False


def _list(wanted: str, item: Callable[[Any], bool], *, or_else: Callable[[Any], bool] = _is_nothing_else) -> Contract:
    is_list = _is_list_of(item)
    return Contract(wanted, lambda value: or_else(value) or is_list(value), item)


def _none_or(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _is_json_object(value: Any) -> bool:
    try:
        dump(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(value, dict)


def _is_json(value: Any) -> bool:
    return _is_json_object({"value": value})


def _is_workspace(value: Any) -> bool:
    return value is None or value is False or (hasattr(value, "read_dir") and not isinstance(value, type))


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "role" in value and isinstance(value.get("parts"), list)


def _is_stream(value: Any) -> bool:
    is_made = hasattr(value, "__aiter__") or hasattr(value, "to_ui_message_stream")
    return value is None or value is USE_LOOP or (is_made and not isinstance(value, type))


def _is_extension(value: Any) -> bool:
    return isinstance(value, Mapping) and "manifest" in value and "source" in value


def _is_grant(value: Any) -> bool:
    return value is None or isinstance(value, bool) or _is_list_of(_is_text)(value)


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _number(least: float, *, above: bool = False) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (value > least if above else value >= least)  # not-a-number is neither

    return check


_MODEL: Final = '"default", "provider/model", a model object, or a list of these'
_OBSERVES: Final = Contract("nothing: it raises to refuse", _is_none)

ANSWERS: Final[Mapping[str, Contract]] = {
    "get_model": Contract(_MODEL, _is_model_choice),
    "get_system_prompt": Contract('a text, "" for none', _is_text),
    "get_tools": Contract(
        "a list of tools made by @tool, or a mapping of names to them, [] for none", _is_tools, _kind(Tool)
    ),
    "get_max_steps": Contract("a whole number from 1", _whole(1)),
    "get_message_metadata": Contract("a JSON object (a dict) or None", _none_or(_is_json_object)),
    "get_workspace": Contract("a Workspace, None for the instance's own, or False for none", _is_workspace),
    "configure_session": Contract("the session that it was given", _one_of(SessionSetup)),
    "assemble_context": _list("a list of messages, or None to keep them all", _is_message, or_else=_is_none),
    "on_chat_message": Contract("USE_LOOP, an async iterable of chunks (dicts), or None", _is_stream),
    "before_turn": Contract("a TurnConfig or None", _one_of(TurnConfig)),
    "before_step": Contract("a StepConfig or None", _one_of(StepConfig)),
    "before_tool_call": Contract("Allow, Block, Substitute or None", _one_of(Allow, Block, Substitute)),
    "on_chat_error": Contract("a text, an exception or None", _one_of(str, Exception)),
    "on_chat_recovery": Contract("a RecoveryDecision or None", _one_of(RecoveryDecision)),
    "should_keep_recovering": Contract("True, False or None", _one_of(bool)),
    "get_mcp_servers": _list(
        "a list of McpServerSpec, [] for none", _kind(McpServerSpec), or_else=_kind(McpServerSpec)
    ),
    "get_extensions": _list('a list of {"manifest": …, "source": …}, [] for none', _is_extension),
    "get_skills": _list("a list of sources of skills, [] for none", lambda _one: True),  # each fails by itself
    "get_scheduled_tasks": Contract("a mapping of names to tasks, {} for none", _kind(Mapping, list, tuple)),
    "authorize_turn": Contract("a list of permissions, True, False or None", _is_grant),
    "authorize_action": Contract("True, False, a reason for the model, or None", _one_of(bool, str)),
    "on_before_sub_agent": Contract("True, False or None", _one_of(bool)),
    "is_read_only": Contract("True or False", _is_bool),
    "validate_state_change": _OBSERVES,
    "resolve_name": Contract("a name: a text", _is_text),
}
"""By method. A method that is not in it may return anything: its answer is not looked at."""

_SWITCH: Final = Contract("True or False", _is_bool)
_SECONDS: Final = Contract("None or a number of seconds from 0", _none_or(_number(0)))
_COUNT: Final = Contract("None or a whole number from 0", _none_or(_whole(0)))
_WORDS: Final = Contract("a text", lambda value: isinstance(value, str) and bool(value.strip()))
_OTHER_MODEL: Final = Contract(f"None, {_MODEL}", _none_or(_is_model_choice))

VALUES: Final[Mapping[str, Contract]] = {
    "listed": _SWITCH,
    "initial_state": Contract("JSON", _is_json),
    "sub_agents": Contract(
        "a list of agents: classes or their route names",
        _is_list_of(lambda one: isinstance(one, str) or (isinstance(one, type) and issubclass(one, Agent))),
    ),
    "thread_agent": Contract(
        "a ThreadAgent: a class, or its route name",
        lambda one: (isinstance(one, str) and bool(one)) or (isinstance(one, type) and issubclass(one, Think)),
    ),
    "agents": Contract(
        "a list of agents: classes, their route names, or AgentReferences",
        _is_list_of(
            lambda one: isinstance(one, str | AgentReference) or (isinstance(one, type) and issubclass(one, Agent))
        ),
    ),
    "fibers": _SWITCH,
    "retry_policy": Contract("a RetryPolicy", _kind(RetryPolicy)),
    "max_concurrent_agent_tools": Contract("None or a positive whole number", _none_or(_whole(1))),
    "max_declared_tools": _COUNT,
    "searched_tools": Contract(
        "a list of names and patterns of tools",
        _is_list_of(lambda one: isinstance(one, str)),
    ),
    "max_steps": Contract("a positive whole number", _whole(1)),
    "send_reasoning": _SWITCH,
    "interrupted_text": _WORDS,
    "step_limit_text": _WORDS,
    "answers_at_step_limit": _SWITCH,
    "asks_about_loops": _SWITCH,
    "keeps_sessions": _SWITCH,
    "max_persisted_messages": Contract("None or a positive whole number", _none_or(_whole(1))),
    "auto_compaction": Contract("True, False or None", _one_of(bool)),
    "compaction_model": _OTHER_MODEL,
    "stall_timeout_seconds": _SECONDS,
    "approval_seconds": _SECONDS,
    "approved_by": Contract("approver, requester or another", lambda value: value in APPROVED_BY),
    "workspace_tools": _SWITCH,
    "workspace_in_prompt": Contract('True, False or "top"', lambda value: isinstance(value, bool) or value == "top"),
    "instruction_files": _list("a list of paths", _is_text),
    "title_model": _OTHER_MODEL,
    "summary_model": _OTHER_MODEL,
    "injection_guard": Contract("an InjectionGuard or Relaxed(reason=…)", _kind(InjectionGuard)),
    "permissions": _list("a list of Permission.allow(…), .ask(…), .deny(…)", _kind(Permission)),
    "review_model": _OTHER_MODEL,
    "commands": _list("a list of Command, each with a name of its own", _kind(Command)),
    "user_shell": Contract("the name of a tool, or an empty text", lambda value: isinstance(value, str)),
    "extensions": _SWITCH,
    "schedule_tools": _SWITCH,
    "wait_for_mcp_connections": Contract(
        "True, False or a number of seconds from 0", lambda value: isinstance(value, bool) or _number(0)(value)
    ),
    "people_add_mcp_servers": _SWITCH,
    "allows_recursion": _SWITCH,
    "tells_time": _SWITCH,
    "reads_instructions": _SWITCH,
    "reads_projects": _SWITCH,
    "max_recoveries": _COUNT,
    "no_progress_seconds": Contract("None or a positive number of seconds", _none_or(_number(0, above=True))),
    "max_recovery_work": _COUNT,
    "max_memory_losses": _COUNT,
    "chat_recovery": Contract('True, False or "paused"', lambda value: isinstance(value, bool) or value == "paused"),
}
"""By attribute. Those with checks of their own are not in it: looks, `models`, patterns of tools, policies."""
