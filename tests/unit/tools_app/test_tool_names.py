"""Names of tools: patterns, repair of their case, and the answer to a name that is none."""

import pytest

from tools_app.core.call_check import check_call
from tools_app.core.source import OF_OTHERS, Source
from tools_app.core.tool import tool
from tools_app.core.tool_names import check_patterns, excludes, grants, near, repaired, selects, unknown_tool_text
from tools_app.core.toolset import Toolset
from tools_app.errors import ToolDeclarationInvalid

KNOWN = ("read", "read_secret", "bash", "grep", "Grep2")


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        ((), ()),
        (("*",), KNOWN),
        (("read",), ("read",)),
        (("read*",), ("read", "read_secret")),
        (("read*", "!read_secret"), ("read",)),
        (("!read_secret", "read*"), KNOWN),
        (("!bash",), ("read", "read_secret", "grep", "Grep2")),
        (("!*", "bash"), ("bash",)),
        (("*", "!*e*", "grep"), ("bash", "grep")),
        (("?rep*",), ("grep", "Grep2")),
        (("[Gg]rep",), ("grep",)),
        (("READ",), ()),
        (("other",), ()),
    ],
)
def test_the_last_pattern_that_matches_decides(patterns: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert tuple(name for name in KNOWN if selects(patterns, name)) == kept


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (("mcp:*",), {Source.MCP}),
        (("*", "!mcp:*"), set(Source) - {Source.MCP}),
        (("!extensions:look",), set(Source) - {Source.EXTENSIONS}),
        (("look", "!agent:l?ok"), set(Source) - {Source.AGENT}),
        (("mcp:other",), set()),
    ],
)
def test_a_pattern_may_name_a_source(patterns: tuple[str, ...], kept: set[Source]) -> None:
    assert {source for source in Source if selects(patterns, "look", source)} == kept
    assert {source for source in Source if excludes(patterns, "look", source)} == {
        source for source in Source if any(each.startswith("!") for each in patterns) and source not in kept
    }


OWN = set(Source) - OF_OTHERS


@pytest.mark.parametrize(
    ("patterns", "granted"),
    [
        (("look",), OWN),
        (("*",), OWN),
        (("!other",), OWN),
        (("*", "extensions:lo*"), OWN | {Source.EXTENSIONS}),
        (("mcp:*", "!look"), set()),
        (("mcp:*", "!agent:look"), {Source.MCP}),
        (("client:*", "caller:*", "!client:look"), {Source.CALLER}),
        ((), set()),
    ],
)
def test_what_grants_something_speaks_of_the_class_s_own_tools_unless_it_names_a_source(
    patterns: tuple[str, ...], granted: set[Source]
) -> None:
    assert {source for source in Source if grants(patterns, "look", source)} == granted


@pytest.mark.parametrize("given", ["mpc:*", "mcp:", ":read", "!nothing:read", "MCP:*"])
def test_a_source_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(ToolDeclarationInvalid, match=r"no pattern 'source:name'.*workspace, .*, caller"):
        check_patterns([given])


@pytest.mark.parametrize("given", ["read*", b"read", 3, ["read", 3], [""], ["!"]])
def test_what_is_no_list_of_patterns_is_refused(given: object) -> None:
    with pytest.raises(ToolDeclarationInvalid, match="Patterns of tools"):
        check_patterns(given)


def test_a_name_is_excluded_by_a_negation_alone() -> None:
    assert excludes(("!read_output",), "read_output")
    assert not excludes(("bash",), "read_output")
    assert not excludes(("!*", "read_output"), "read_output")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Read", "read"),
        ("BASH", "bash"),
        (" grep ", "grep"),
        ("grep2", "Grep2"),
        ("read", "read"),
        ("rad", "rad"),
        ("functions.read", "read"),
        ("functions.read:0", "read"),
        ("default_api.read", "read"),
        ("read<|channel|>commentary", "read"),
        ("functions.rad", "functions.rad"),
    ],
)
def test_the_case_of_a_name_is_repaired(written: str, meant: str) -> None:
    assert repaired(written, KNOWN) == meant


def test_a_name_that_could_be_two_tools_is_not_repaired() -> None:
    assert repaired("READ", ("read", "Read")) == "READ"
    assert repaired("Read", ("read", "Read")) == "Read"


@pytest.mark.parametrize(
    ("written", "first"), [("raed", "read"), ("read_file", "read"), ("secret", "read_secret"), ("Bash2", "bash")]
)
def test_near_names_are_found(written: str, first: str) -> None:
    assert near(written, KNOWN)[0] == first


def test_an_unknown_tool_is_answered_with_what_there_is() -> None:
    assert unknown_tool_text("raed", KNOWN).startswith("There is no tool 'raed'. Did you mean 'read'")
    assert "Available tools: 'read', 'read_secret', 'bash'" in unknown_tool_text("zzz", KNOWN)
    assert "Did you mean" not in unknown_tool_text("zzz", KNOWN)
    assert unknown_tool_text("x", ()) == "There is no tool 'x', and no tools are available. Answer without calling one."
    many = unknown_tool_text("zzz", [f"tool{number}" for number in range(50)])
    assert many.endswith("'tool39' and 10 more.")


def test_a_call_of_an_unknown_tool_is_a_result() -> None:
    @tool
    def read(path: str) -> str:
        """Read."""
        return path

    checked = check_call(Toolset([read]), "raed", '{"path": "x"}')
    assert checked.is_unknown
    assert checked.input == {"path": "x"}
    assert checked.error == "There is no tool 'raed'. Did you mean 'read'? Available tools: 'read'."
