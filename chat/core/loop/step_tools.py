"""The tools that a step of the loop offers to the model, and the check of calls of those that it does not offer."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

from chat.core.loop.hooks import StepConfig
from chat.core.loop.plan import TurnPlan
from chat.core.loop.turn_state import Unwrap
from chat.core.model.language_model import ToolSpec
from chat.core.model.tool_choice import read_tool_choice
from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from chat.errors import TurnConfigInvalid
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.call_check import CheckedCall
from tools_app.core.tool_calls import ToolCall
from tools_app.core.tool_names import OF, check_patterns, excludes, selects
from tools_app.errors import ToolDeclarationInvalid

Check: TypeAlias = Callable[[str, str], CheckedCall]


def offered_tools(plan: TurnPlan, config: StepConfig, message: Message) -> tuple[ToolSpec, ...]:
    """The tools that a step declares.

    The reader is there once something was cut, the finders where there is something to find, unless a pattern takes
    them away by name. A tool that the step's choice names is declared.
    """
    patterns = None if config.active_tools is None else _patterns(config.active_tools)
    tools, reader = plan.tools, plan.reader
    found = _left(plan.found, patterns)
    if patterns is not None:
        tools = _left(tools, patterns)
    tools = (*tools, *(tool for tool in found if tool.name == config.tool_choice))
    if found:
        tools = (*tools, *(tool for tool in plan.finders if not excludes(patterns or (), tool.name)))
    if reader is None or (patterns is not None and excludes(patterns, reader.name)):
        return tools
    return (*tools, reader) if plan.needs_reader(message) else tools


def choice_of(plan: TurnPlan, config: StepConfig, tools: tuple[ToolSpec, ...]) -> str:
    """The choice among the tools of a step: what its hook says, else the turn's as far as the step has the tool."""
    choice, names = plan.tool_choice, [tool.name for tool in tools]
    if config.tool_choice is not None:
        return read_tool_choice(config.tool_choice, names)
    if choice in {"auto", "none", *names}:
        return choice
    return "required" if choice == "required" and tools else "auto"


def _patterns(given: object) -> tuple[str, ...]:
    try:
        patterns = check_patterns(given)
    except ToolDeclarationInvalid as error:
        raise TurnConfigInvalid(f"active_tools of a step: {error.message}") from error
    if any(OF in pattern for pattern in patterns):
        raise TurnConfigInvalid("active_tools of a step name tools, and no sources: before_turn's may name these.")
    return patterns


def _left(tools: tuple[ToolSpec, ...], patterns: tuple[str, ...] | None) -> tuple[ToolSpec, ...]:
    return tools if patterns is None else tuple(tool for tool in tools if selects(patterns, tool.name))


def hidden_tools(plan: TurnPlan, config: StepConfig, offered: tuple[ToolSpec, ...], choice: str) -> frozenset[str]:
    """Names of the turn's tools that are not there for a step, which offers these by this choice."""
    known = {tool.name for tool in (*plan.tools, *plan.found, *plan.finders, *([plan.reader] if plan.reader else []))}
    if choice == "none":
        return frozenset(known)
    patterns = None if config.active_tools is None else _patterns(config.active_tools)
    return frozenset(known - {tool.name for tool in (*offered, *_left(plan.found, patterns))})


def through_offered(unwrap: Unwrap, hidden: frozenset[str]) -> Unwrap:
    """The calls through another tool, in a step where that tool may not be there."""
    return lambda name, arguments: None if name in hidden else unwrap(name, arguments)


def only_offered(check: Check, hidden: frozenset[str]) -> Check:
    """The check of calls, for a step that offers fewer tools than the turn has: the others are not there for it."""
    if not hidden:
        return check

    def checked(name: str, arguments: str) -> CheckedCall:
        found = check(name, arguments)
        if name not in hidden:
            return found
        return CheckedCall(input=found.input, error=f"Tool {name!r} is not available in this step.")

    return checked


def named_calls(titles: Mapping[str, str], calls: Iterable[ToolCall]) -> JSONObject:
    """The calls that run, as people who wait are shown them. `titles`: names of tools for people."""
    named = [
        {"callId": each.call_id, "name": each.tool_name, "title": titles.get(each.tool_name, "")} for each in calls
    ]
    return {"calls": named}


def activity(kind: str, facts: JSONObject, since: datetime) -> Chunk:
    """A report of what the turn does from this moment on, for people who wait."""
    return chunks.status(kind, {**facts, "since": since.isoformat(timespec="milliseconds")})
