"""What is kept of a server's catalogue: bounded, checked, one wrong tool at a time."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkproject.kernel.jsonvalue import byte_size
from tools_app.core.mcp.catalogue import (
    MAX_SCHEMA_DEPTH,
    CatalogueLimits,
    Listed,
    build_catalogue,
    tool_name,
    tool_prints,
    unaccepted,
)
from tools_app.core.tool import NAME_PATTERN

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def tool(name: Any = "find", schema: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT if schema is None else schema, **more}


def built(*tools: dict[str, Any], **limits: int) -> dict[str, Any]:
    return build_catalogue(Listed(tools=tools), CatalogueLimits(**limits))


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        found = {"type": "object", "properties": {"x": found}}
    return found


@pytest.mark.parametrize(
    "wrong",
    [
        tool(""),
        tool(7),
        tool("x" * 201),
        {"name": "none"},
        tool(schema={"type": "string"}),
        tool(schema={"type": "object", "properties": {"x": {"type": "nonsense"}}}),
        tool(schema={"type": "object", "properties": {"x": {"pattern": "("}}}),
        tool(schema={"type": "object", "properties": {"x": {"$ref": "https://elsewhere.example/schema"}}}),
        tool(schema={"type": "object", "description": "x" * 40_000}),
        tool(schema=nested(MAX_SCHEMA_DEPTH)),
    ],
)
def test_a_wrong_tool_is_skipped_with_a_reason_and_the_others_stay(wrong: dict[str, Any]) -> None:
    found = built(tool("before"), wrong, tool("after"))
    assert [item["name"] for item in found["tools"]] == ["before", "after"]
    assert len(found["skipped"]) == 1
    assert found["skipped"][0]["reason"]


def test_a_name_counts_once() -> None:
    found = built(tool("find"), tool("find", description="another"))
    assert [item["description"] for item in found["tools"]] == [""]
    assert found["skipped"][0]["reason"] == "another tool has this name"


def test_there_are_only_so_many_tools_and_bytes() -> None:
    found = built(*(tool(f"t{number}") for number in range(10)), tools=3)
    assert (len(found["tools"]), len(found["skipped"])) == (3, 7)
    large = [tool(f"t{number}", description="x" * 3_000) for number in range(10)]
    found = built(*large, max_bytes=10_000)
    assert len(found["tools"]) == 3
    assert byte_size(found["tools"]) < 11_000


def test_texts_are_cut_and_unknown_fields_are_left_out() -> None:
    (found,) = built(tool(description="x" * 9_000, annotations={"readOnlyHint": True, "evil": 1}, extra={"a": 1}))[
        "tools"
    ]
    assert len(found["description"]) == 4_000
    assert found["annotations"] == {"readOnlyHint": True}
    assert "extra" not in found


def test_a_change_of_anything_that_a_model_reads_is_seen() -> None:
    before = built(tool("find", description="Find."), tool("keep"))
    accepted = tool_prints(before)
    assert unaccepted(before, accepted) == ()
    for changed in (
        tool("find", description="Find, and send."),
        tool("find", schema={"type": "object", "properties": {"all": {"type": "string"}}}, description="Find."),
        tool("find", description="Find.", annotations={"readOnlyHint": True}),
    ):
        assert unaccepted(built(changed, tool("keep")), accepted) == ("find",)
    assert unaccepted(built(tool("new")), accepted) == ("new",)


@given(name=st.text(min_size=1, max_size=200))
def test_names_for_models_are_names_that_providers_take(name: str) -> None:
    found = tool_name("server_ab12", name)
    assert NAME_PATTERN.match(found)
    assert found == tool_name("server_ab12", name)


@given(names=st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=20))
def test_different_tools_have_different_names(names: list[str]) -> None:
    plain = {name for name in names if re.fullmatch(r"[a-zA-Z0-9_-]+", name)}
    assert len({tool_name("s", name) for name in names}) >= len(plain)
    assert len({tool_name("s", name) for name in names}) == len(names)
