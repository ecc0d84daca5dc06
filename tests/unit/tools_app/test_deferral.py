"""Many tools behind two: what is declared, what is found by which words, and what a call through another one is."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tools_app.core.deferral import CALL, DECLARED_CHARS, MAX_NAMES, SEARCH, Deferral, defer
from tools_app.core.source import Source
from tools_app.core.tool import Tool, tool
from tools_app.core.toolset import Toolset

OF_OTHERS = ("mcp:*", "extensions:*")
ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}


@tool
def near_one(text: str) -> str:
    """A tool of one's own."""
    return text


def far(name: str, description: str = "Ship an order.", source: Source = Source.MCP) -> Tool:
    async def ship(input: dict[str, Any]) -> Any:  # noqa: A002 - the name that `Tool.parse` gives
        return input

    return Tool(name=name, description=description, input_schema=ORDER, function=ship, source=source)


def many(count: int, *more: Tool) -> Toolset:
    return Toolset([near_one, *(far(f"far_{number}") for number in range(count)), *more])


def divided(count: int = 30, *more: Tool, most: int | None = 20) -> Deferral:
    return defer(many(count, *more), OF_OTHERS, most)


async def search(deferral: Deferral, **given: Any) -> Any:
    function: Any = deferral.finders[0].function
    return await function(input=given)


@pytest.mark.parametrize(
    ("count", "most", "is_divided"), [(0, 20, False), (20, 20, False), (21, 20, True), (300, None, False), (1, 0, True)]
)
def test_many_tools_are_found_and_few_declared(count: int, most: int | None, is_divided: bool) -> None:
    deferral = divided(count, most=most)
    assert bool(deferral.finders) is is_divided
    assert [each.name for each in deferral.declared][:1] == ["near_one"]
    assert len(deferral.found) == (count if is_divided else 0)
    assert {each.name for each in many(count)} <= {each.name for each in deferral.all}


def test_extensions_count_and_tools_of_ones_own_do_not() -> None:
    assert divided(20, far("math_add", source=Source.EXTENSIONS)).finders
    assert not divided(20, far("own", source=Source.AGENT), far("of_client", source=Source.CLIENT)).finders


def test_a_tool_that_is_chosen_is_declared_and_can_be_called() -> None:
    deferral = defer(many(30), OF_OTHERS, 20, keep=("far_7",))
    assert "far_7" in deferral.declared
    assert "far_7" not in deferral.found
    assert deferral.unwrap(CALL, '{"name": "far_7", "arguments": {}}')


def test_a_name_of_ones_own_is_kept() -> None:
    assert not divided(30, replace(near_one, name=CALL)).finders
    assert divided(30, replace(near_one, name=CALL)).unwrap(CALL, '{"name": "far_1"}') is None


def test_the_two_tools_are_the_same_whatever_is_found() -> None:
    few, more = divided(30), divided(300, far("other"))
    for one, other in zip(few.finders, more.finders, strict=True):
        assert (one.name, one.description, one.input_schema) == (other.name, other.description, other.input_schema)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"name": "far_7", "arguments": {"order": 1}}',
        '{"name": "FAR_7", "arguments": {"order": 1}}',
        '{"name": "far_7", "arguments": "{\\"order\\": 1}"}',
        '{"name": "far_7", "order": 1}',
    ],
)
def test_a_call_through_another_tool_is_one_of_the_tool(arguments: str) -> None:
    deferral = divided()
    wrapped = deferral.unwrap(CALL, arguments)
    assert wrapped is not None
    assert (wrapped.name, json.loads(wrapped.arguments), wrapped.by) == ("far_7", {"order": 1}, CALL)
    checked = deferral.check(wrapped.name, wrapped.arguments)
    assert (checked.error, checked.input) == (None, {"order": 1})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "takes"),
        ("{", "takes"),
        ("[]", "takes"),
        ('{"name": 7}', "takes"),
        ('{"name": "for_7", "arguments": {}}', "Did you mean 'far_7'"),
        ('{"name": "call_tool", "arguments": {"name": "far_7"}}', "no tool 'call_tool'"),
        ('{"name": "nothing like it"}', "search_tools finds"),
    ],
)
def test_a_call_of_no_tool_says_what_to_do(arguments: str, words: str) -> None:
    deferral = divided()
    wrapped = deferral.unwrap(CALL, arguments)
    assert wrapped is not None
    assert (wrapped.name, wrapped.by) == (CALL, "")
    assert words in str(deferral.check(wrapped.name, wrapped.arguments).error)


@pytest.mark.parametrize("inner", ['{"order": "one"}', "{}", "[1]", '"text"', "null", "7"])
def test_an_input_that_does_not_fit_reads_the_schema(inner: str) -> None:
    deferral = divided()
    wrapped = deferral.unwrap(CALL, f'{{"name": "far_7", "arguments": {inner}}}')
    assert wrapped is not None
    error = deferral.check(wrapped.name, wrapped.arguments).error
    assert error is not None
    assert error.endswith(f"Its input schema: {json.dumps(ORDER, separators=(',', ':'))}")


def test_other_calls_are_as_they_were() -> None:
    deferral = divided()
    assert deferral.unwrap("far_7", "{}") is None
    assert deferral.unwrap(SEARCH, '{"query": "x"}') is None
    assert divided(3).unwrap(CALL, '{"name": "far_1"}') is None
    assert deferral.check("far_7", '{"order": 1}').error is None  # by its own name as well
    assert deferral.check("near_one", '{"text": "a"}').error is None
    assert deferral.check("no_such", "{}").is_unknown


async def test_tools_are_found_by_words_with_their_schemas() -> None:
    deferral = divided(25, far("gh_create_issue", "Open a ticket."), replace(far("gh_x", ""), title="Pay (Bank)"))
    found = await search(deferral, query="create an issue")
    assert found["tools"][0] == {"name": "gh_create_issue", "description": "Open a ticket.", "inputSchema": ORDER}
    assert [each["name"] for each in (await search(deferral, query="bank"))["tools"]] == ["gh_x"]
    ships = await search(deferral, query="ship", limit=3)
    assert len(ships["tools"]) == 3
    assert len(ships["more"]) == 22


async def test_a_search_without_a_hit_names_tools_and_its_answer_has_a_bound() -> None:
    nothing = await search(divided(300), query="zebra")
    assert (nothing["tools"], len(nothing["names"])) == ([], MAX_NAMES)
    wide = await search(divided(30, *(far(f"wide_{n}", "wide " * 1_000) for n in range(9))), query="wide", limit=20)
    assert 0 < len(wide["tools"]) < 9
    assert len(json.dumps(wide["tools"])) < DECLARED_CHARS + 1_000
    assert len(wide["tools"]) + len(wide["more"]) == 9
    huge = await search(divided(30, far("huge", "huge " * 10_000)), query="huge", limit="many")
    assert [each["name"] for each in huge["tools"]] == ["huge"]
