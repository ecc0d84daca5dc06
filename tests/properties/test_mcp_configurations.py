"""Laws of pasted configurations: extras of editors change no value, and what is filled in is never read again."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tools_app.core.mcp.configurations import read_configuration
from tools_app.core.mcp.lenient_json import load_lenient, without_extras
from tools_app.errors import McpServerInvalid

BOOLEANS = st.booleans()
TEXTS = st.text() | st.sampled_from(["//", "/*", "*/", ",]", ", }", '"', "\\", 'a\\"//b', "${A}", "${", "}"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
EXTRAS = st.sampled_from(["", " ", "\n", '// a " , } ]\n', "/* , } \n ] // */", "\t\r\n"])


def decorated(value: Any, data: Any) -> str:
    """The value as an editor may keep it, with comments between all parts and commas behind last items."""

    def extra() -> str:
        return str(data.draw(EXTRAS))

    def last(items: list[str]) -> str:
        return "," + extra() if items and data.draw(BOOLEANS) else ""

    if isinstance(value, dict):
        parts = [f"{extra()}{json.dumps(key)}{extra()}:{decorated(item, data)}" for key, item in value.items()]
        return f"{extra()}{{{','.join(parts)}{last(parts)}{extra()}}}{extra()}"
    if isinstance(value, list):
        parts = [decorated(item, data) for item in value]
        return f"{extra()}[{','.join(parts)}{last(parts)}{extra()}]{extra()}"
    return extra() + json.dumps(value, ensure_ascii=data.draw(BOOLEANS)) + extra()


@settings(max_examples=examples(300))
@given(value=VALUES, data=st.data())
def test_comments_and_last_commas_change_no_value(value: Any, data: st.DataObject) -> None:
    text = decorated(value, data)
    assert load_lenient(text) == value
    assert len(without_extras(text)) == len(text)


@settings(max_examples=examples(300))
@given(value=VALUES, indent=st.sampled_from([None, 2]))
def test_plain_json_stays_as_it_is(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert without_extras(text) == text


@settings(max_examples=examples(500))
@given(text=st.text() | st.text(alphabet='{}[]",:/*\\\n a1$'))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        found = read_configuration(text)
    except McpServerInvalid:
        return
    for server in found.servers:
        found.variables_of(server)


@pytest.mark.parametrize("text", ["[1,,]", "[,]", "{,}", '{"a":1,,}', "/* never closed", "[1 /* x", '"never closed'])
def test_what_no_editor_takes_is_refused(text: str) -> None:
    with pytest.raises(McpServerInvalid):
        load_lenient(text)


@settings(max_examples=examples(300))
@given(value=TEXTS.filter(bool), other=TEXTS.filter(bool))
def test_a_value_is_put_in_once_and_never_read_again(value: str, other: str) -> None:
    entry = {"command": "x", "args": ["<${A}|${input:b}>"], "env": {"A_B": "${A}"}}
    found = read_configuration(json.dumps({"servers": {"a": entry}}))
    spec = found.spec_of(found.servers[0], {"A": value, "input:b": other})
    assert spec.command == ("x", f"<{value}|{other}>")
    assert spec.env == {"A_B": value}


@settings(max_examples=examples(200))
@given(default=st.text(alphabet=st.characters(exclude_characters="{}")), value=TEXTS)
def test_a_default_is_taken_exactly_where_no_value_is_given(default: str, value: str) -> None:
    found = read_configuration(json.dumps({"servers": {"a": {"command": "x", "args": [f"${{A:-{default}}}"]}}}))
    (variable,) = found.variables_of(found.servers[0])
    assert variable.default == default
    assert found.spec_of(found.servers[0], {"A": value}).command == ("x", value or default)
