"""Variants of tools: another name, a choice, an approval, limits."""

from typing import Any

import pytest

from tools_app.core.output_limits import OutputLimit
from tools_app.core.tool import AnyRule, Tool, ToolContext, client_tool, tool
from tools_app.core.toolset import Toolset
from tools_app.core.wrappers import filtered, renamed, with_approval, with_output_limit, with_prefix, with_timeout
from tools_app.errors import ToolDeclarationInvalid


@tool(title="Read a file")
def read(path: str) -> str:
    """Read a file."""
    return path


@tool
def read_secret(path: str) -> str:
    """Read a secret."""
    return path


@tool(needs_approval=True)
def bash(script: str) -> str:
    """Run a script."""
    return script


def is_long(given: dict[str, Any], _context: ToolContext) -> bool:
    return len(given["path"]) > 3


def is_root(given: dict[str, Any], _context: ToolContext) -> bool:
    return bool(given["path"] == "/")


ALL = [read, read_secret, bash]


def names(tools: Toolset) -> list[str]:
    return [item.name for item in tools]


def test_a_prefix_keeps_schema_title_and_function() -> None:
    made = with_prefix(read, "git_")
    assert (made.name, made.title, made.input_schema) == ("git_read", "Read a file", read.input_schema)
    assert made("x") == "x"
    assert read.name == "read"
    assert names(with_prefix(ALL, "git_")) == ["git_read", "git_read_secret", "git_bash"]
    assert names(with_prefix({"look": read}, "git_")) == ["git_look"]


@pytest.mark.parametrize("prefix", ["git ", "x" * 64])
def test_a_prefix_that_makes_no_name_is_refused(prefix: str) -> None:
    with pytest.raises(ToolDeclarationInvalid, match="not a tool name"):
        with_prefix(ALL, prefix)


def test_tools_are_renamed_by_name() -> None:
    assert names(renamed(ALL, {"bash": "shell"})) == ["read", "read_secret", "shell"]
    assert names(renamed(ALL, {"read": "bash", "bash": "read"})) == ["bash", "read_secret", "read"]


@pytest.mark.parametrize(("changes", "text"), [({"none": "x"}, "no tool 'none'"), ({"read": "bash"}, "Two tools")])
def test_a_rename_that_loses_a_tool_is_refused(changes: dict[str, str], text: str) -> None:
    with pytest.raises(ToolDeclarationInvalid, match=text):
        renamed(ALL, changes)


def test_patterns_choose_tools() -> None:
    assert names(filtered(ALL, "read*", "!read_secret")) == ["read"]
    assert names(filtered(ALL, "!bash")) == ["read", "read_secret"]
    assert names(filtered(ALL)) == []


def test_approval_can_only_be_raised() -> None:
    assert with_approval(read).needs_approval is True
    assert with_approval(bash, is_long).needs_approval is True
    assert with_approval(read, is_long).needs_approval is is_long
    both = with_approval(with_approval(read, is_long), is_root)
    assert both.needs_approval == AnyRule((is_long, is_root))
    assert with_approval(both, is_long).needs_approval == AnyRule((is_long, is_root, is_long))


def test_approval_is_given_up_by_saying_so_alone() -> None:
    with pytest.raises(ToolDeclarationInvalid, match="lowers=True"):
        with_approval(bash, False)
    assert with_approval(read, False).needs_approval is False
    assert with_approval(bash, False, lowers=True).needs_approval is False
    assert with_approval(bash, is_long, lowers=True).needs_approval is is_long


def test_a_tool_of_a_client_takes_no_rule() -> None:
    with pytest.raises(ToolDeclarationInvalid, match="run by a client"):
        with_approval([client_tool("where")])


def test_limits_are_set_and_checked() -> None:
    limit = OutputLimit(lines=3)
    assert with_timeout(read, 2.5).timeout_seconds == 2.5
    assert with_output_limit(read, limit).output_limit == limit
    with pytest.raises(ToolDeclarationInvalid, match="positive"):
        with_timeout(ALL, 0)


def test_wrappers_compose_in_any_order() -> None:
    limit = OutputLimit(max_bytes=1_000)

    def one(tools: Any) -> Toolset:
        return with_prefix(with_timeout(with_approval(filtered(tools, "read"), is_root), 3), "a_")

    def other(tools: Any) -> Toolset:
        return filtered(with_approval(with_timeout(with_prefix(tools, "a_"), 3), is_root), "a_read")

    first, second = (list(with_output_limit(made(ALL), limit)) for made in (one, other))
    assert first == second
    made: Tool = first[0]
    assert (made.name, made.timeout_seconds, made.needs_approval, made.output_limit) == ("a_read", 3, is_root, limit)
