"""Variants of tools: another name, a choice of them, an approval, a limit. Pure; what is given stays as it is.

Each takes one tool, and gives one, or takes whatever `get_tools()` may return, and gives a `Toolset`. Schema, title and
everything else that a wrapper does not name are kept, so wrappers can be put into one another.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import overload

from tools_app.core.output_limits import OutputLimit
from tools_app.core.tool import AnyRule, ApprovalRule, RuleFunction, Tool, with_name
from tools_app.core.tool_names import check_patterns, selects
from tools_app.core.toolset import Toolset, ToolSource, named_tools
from tools_app.errors import ToolDeclarationInvalid


@overload
def with_prefix(tools: Tool, prefix: str) -> Tool: ...
@overload
def with_prefix(tools: ToolSource, prefix: str) -> Toolset: ...
def with_prefix(tools: Tool | ToolSource, prefix: str) -> Tool | Toolset:
    """Put a prefix before each name (`"git_"`). Errors: `ToolDeclarationInvalid` for what is no name then."""
    return _each(tools, lambda item: with_name(item, f"{prefix}{item.name}"))


def renamed(tools: ToolSource, names: Mapping[str, str]) -> Toolset:
    """Give tools other names, by their present ones; the others keep theirs.

    Errors: `ToolDeclarationInvalid` for a tool that is not there, and for a name that two tools would have.
    """
    given = named_tools(tools)
    unknown = sorted(set(names) - {item.name for item in given})
    if unknown:
        raise ToolDeclarationInvalid(f"There is no tool {unknown[0]!r} to rename.")
    made = [with_name(item, names.get(item.name, item.name)) for item in given]
    _require_distinct(made)
    return Toolset(made)


def filtered(tools: ToolSource, *patterns: str) -> Toolset:
    """Keep the tools whose names the patterns choose: `filtered(tools, "read*", "!read_secret")`.

    The last pattern that matches decides. A first one with `!` starts from all tools. Errors: `ToolDeclarationInvalid`.
    """
    checked = check_patterns(patterns)
    return Toolset([item for item in named_tools(tools) if selects(checked, item.name, item.source)])


@overload
def with_approval(tools: Tool, rule: ApprovalRule = True, *, lowers: bool = False) -> Tool: ...
@overload
def with_approval(tools: ToolSource, rule: ApprovalRule = True, *, lowers: bool = False) -> Toolset: ...
def with_approval(tools: Tool | ToolSource, rule: ApprovalRule = True, *, lowers: bool = False) -> Tool | Toolset:
    """Have a person approve calls, besides those that the tool itself has approved.

    A function is asked in addition to the tool's own rule. `lowers`: the rule takes the place of the tool's own, also
    where that asked for more. Errors: `ToolDeclarationInvalid` for `False` without `lowers` on a tool that asks, and
    for a rule on a tool of a client, which no rule is asked about.
    """
    return _each(tools, lambda item: replace(item, needs_approval=_rule(item, rule, lowers=lowers)))


@overload
def with_timeout(tools: Tool, seconds: float) -> Tool: ...
@overload
def with_timeout(tools: ToolSource, seconds: float) -> Toolset: ...
def with_timeout(tools: Tool | ToolSource, seconds: float) -> Tool | Toolset:
    """Bound the time of a call. Errors: `ToolDeclarationInvalid` unless `seconds` is positive."""
    if not seconds > 0:
        raise ToolDeclarationInvalid(f"The timeout of a tool must be positive, not {seconds!r}")
    return _each(tools, lambda item: replace(item, timeout_seconds=seconds))


@overload
def with_output_limit(tools: Tool, limit: OutputLimit) -> Tool: ...
@overload
def with_output_limit(tools: ToolSource, limit: OutputLimit) -> Toolset: ...
def with_output_limit(tools: Tool | ToolSource, limit: OutputLimit) -> Tool | Toolset:
    """Bound what a model is sent of an output, in place of the settings; `OutputLimit()` sets no bound."""
    return _each(tools, lambda item: replace(item, output_limit=limit))


def _each(tools: Tool | ToolSource, change: Callable[[Tool], Tool]) -> Tool | Toolset:
    if isinstance(tools, Tool):
        return change(tools)
    made = [change(item) for item in named_tools(tools)]
    _require_distinct(made)
    return Toolset(made)


def _require_distinct(tools: list[Tool]) -> None:
    seen: set[str] = set()
    for item in tools:
        if item.name in seen:
            raise ToolDeclarationInvalid(f"Two tools would be called {item.name!r}.")
        seen.add(item.name)


def _rule(item: Tool, rule: ApprovalRule, *, lowers: bool) -> ApprovalRule:
    own = item.needs_approval
    if item.is_client and rule is not False:
        raise ToolDeclarationInvalid(f"Tool {item.name!r} is run by a client, which asks its own user.")
    if lowers:
        return rule
    if rule is False and own is not False:
        raise ToolDeclarationInvalid(
            f"Tool {item.name!r} has calls approved; with_approval(…, False, lowers=True) is how to give that up."
        )
    if own is True or rule is True:
        return True
    functions = (*_functions(own), *_functions(rule))
    return functions[0] if len(functions) == 1 else AnyRule(functions) if functions else False


def _functions(rule: ApprovalRule) -> tuple[RuleFunction, ...]:
    if isinstance(rule, AnyRule):
        return rule.rules
    return () if isinstance(rule, bool) else (rule,)
