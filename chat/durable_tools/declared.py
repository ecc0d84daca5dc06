"""The durable tools that this process asks for, and those that it runs: registries, filled where modules are imported.

A tool's **executor** is the name of an environment: a worker, a program, a browser. Without one any worker that has the
tool's function runs it. The two sides share a name and nothing else.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from chat.core.durable_names import TOOL_CALL
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall
from tools_app.errors import ToolDeclarationInvalid

EXECUTOR_PATTERN: Final = re.compile(r"^[a-z0-9][a-z0-9_-]{0,49}$")

OnExecuting: TypeAlias = Callable[[ToolCall, ToolContext], Awaitable[None] | None]
"""Called when a call was claimed, before its function. What it raises fails the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """A tool as its executor has it."""

    tool: Tool
    executor: str = ""
    on_executing: OnExecuting | None = None


asked_for: set[str] = set()
"""The members of the family that this process asks for."""

_implementations: dict[str, Implementation] = {}
_problems: list[str] = []


def member_of(tool_name: str, executor: str) -> str:
    """The part of a call's name after the family's: `search`, or `lab/search` of the executor `lab`.

    Errors: `ToolDeclarationInvalid` for a name that no executor may have.
    """
    if executor and not EXECUTOR_PATTERN.match(executor):
        raise ToolDeclarationInvalid(
            f"{executor!r} is no name of an executor: at most 50 small letters, digits, '-' and '_'."
        )
    return f"{executor}/{tool_name}" if executor else tool_name


def fiber_name(member: str) -> str:
    """The name of the fibers of a member."""
    return f"{TOOL_CALL}:{member}"


def queue_of_call(name: str) -> str:
    """The queue of a call's messages: one for each executor, that of all workers where there is none."""
    executor, _, tool_name = name.partition(":")[2].rpartition("/")
    return f"{TOOL_CALL}.{executor}" if tool_name and executor else ""


def members() -> list[str]:
    """The members that this process runs."""
    return list(_implementations)


def implementation_of(name: str) -> Implementation:
    """The implementation of the fibers of this name. Errors: `KeyError` where this process has none."""
    return _implementations[name.partition(":")[2]]


def create_tool_execution_effect(
    tools: Iterable[Tool],
    implementations: Mapping[str, Callable[..., Any]] | None = None,
    *,
    executor: str = "",
    on_executing: OnExecuting | None = None,
) -> list[Tool]:
    """Have this process run the calls of these tools, and return them. For the module `executors.py` of an app.

    Shape: tools with functions of their own; or declarations alone, and `implementations` with the function of each by
    the tool's name. `executor`: the environment that this process is part of; its calls come by the queue
    `chat.tool.<executor>`. `on_executing` is called for each call that was claimed. Of any number of processes that
    have a tool one runs each call; it runs again where that process was lost, under the same `idempotency_key`.
    Errors: none for a missing, surplus or wrong implementation: that is the system check `chat.E010`.
    """
    declared = list(tools)
    given = dict(implementations or {})
    made: list[Tool] = []
    for tool in declared:
        function = given.pop(tool.name, None)
        found = _with(tool, function)
        if isinstance(found, str):
            _problems.append(found)
            continue
        made.append(found)
        member = member_of(tool.name, executor)
        _implementations[member] = Implementation(tool=found, executor=executor, on_executing=on_executing)
    _problems.extend(f"There is an implementation of {name!r}, and no such tool beside it." for name in given)
    return made


def _with(tool: Tool, function: Callable[..., Any] | None) -> Tool | str:
    """The tool with this function, or the sentence about what is wrong with both."""
    if function is None:
        return f"The tool {tool.name!r} has no implementation." if tool.function is None else tool
    wanted = set(tool.input_schema.get("properties", {}))
    parameters = inspect.signature(function).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    context = next((name for name, each in parameters.items() if each.annotation in (ToolContext, "ToolContext")), None)
    names = {name for name, each in parameters.items() if each.kind is not inspect.Parameter.VAR_KEYWORD} - {context}
    required = {name for name in names if parameters[name].default is inspect.Parameter.empty}
    if names - wanted or (wanted - names and inspect.Parameter.VAR_KEYWORD not in kinds):
        return (
            f"The implementation of {tool.name!r} takes {', '.join(sorted(required)) or 'nothing'}, its input has "
            f"{', '.join(sorted(wanted)) or 'nothing'}."
        )
    if tool.arguments is not None:
        return replace(tool, function=function, context_parameter=context)
    return replace(tool, function=_spread(function, context), context_parameter="context")


def _spread(function: Callable[..., Any], context_name: str | None) -> Callable[..., Any]:
    """A function that takes the input of a declared tool as its keywords."""

    async def run(context: ToolContext, **given: Any) -> Any:
        named = {} if context_name is None else {context_name: context}
        outcome = function(**given["input"], **named)
        return await outcome if inspect.isawaitable(outcome) else outcome

    return run


def problems() -> list[str]:
    """Sentences about declarations that no call can run with."""
    return list(_problems)


def forget(*names: str) -> None:
    """Take members and problems out again. For tests."""
    for name in names:
        _implementations.pop(name, None)
    asked_for.difference_update(names)
    _problems.clear()
