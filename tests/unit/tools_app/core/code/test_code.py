"""Code as models write it, and the types that they read."""

from dataclasses import replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from tools_app.code_tool.console import MAX_CONSOLE_CHARS, failure_text, short_console
from tools_app.core.code.catalogue import HOW_TO_FIND, LISTED_CHARS, Catalogue
from tools_app.core.code.names import identifier, identifiers
from tools_app.core.code.normalise import normalise
from tools_app.core.code.schema_types import declaration, type_of
from tools_app.core.code.signatures import signature
from tools_app.core.code.truncation import MARK, MAX_CHARS, truncated
from tools_app.core.tool import tool
from tools_app.errors import CodeInvalid, ToolNotFound

FORMS = [
    ("", "async () => {}"),
    ("   \n", "async () => {}"),
    ("// only a comment", "async () => {}"),
    ("async () => { return 1 }", "async () => { return 1 }"),
    ("() => 1;", "() => 1"),
    ("(async () => 1)", "(async () => 1)"),
    ("async function () { return 1 }", None),
    ("```js\n() => 1\n```", "() => 1"),
    ("```typescript\n() => 1 as number\n```\n", "() => 1 as number"),
    ("```\n() => 1\n```", "() => 1"),
    ("export default async () => 1", "async () => 1"),
    ("export default 1 + 1", "async () => { return (1 + 1\n);\n}"),
    ("async function main() { return 1 }", "async () => { async function main() { return 1 }\nreturn main();\n}"),
    ("const x = 1;\nx + 1", "async () => { const x = 1;\nreturn (x + 1\n);\n}"),
    ("const x = 1;\nreturn x", "async () => { const x = 1;\nreturn x\n}"),
    ("await tools.a({})", "async () => { return (await tools.a({})\n);\n}"),
    ("(async () => 1)()", "async () => { return ((async () => 1)()\n);\n}"),
    ("const x = ;", "async () => { const x = ;\n}"),
    ("for (const x of []) {}", "async () => { for (const x of []) {}\n}"),
    ('"größer" // end', 'async () => { return ("größer"\n);\n}'),
]


@pytest.mark.parametrize(("code", "expected"), FORMS)
def test_every_form_becomes_a_function(code: str, expected: str | None) -> None:
    if expected is not None:
        assert normalise(code) == expected
    assert normalise(code).rstrip().endswith(("}", ")", "1", "number"))


def test_a_default_function_is_called() -> None:
    made = normalise("const one = 1;\nexport default async function main() { return one }")
    assert made == "async () => { const one = 1;\nreturn (async function main() { return one })();\n}"


def test_a_fence_within_the_code_stays() -> None:
    assert "```" in normalise("return `\n```js\nx\n```\n`")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("my-tool.v 2", "my_tool_v_2"),
        ("2fa", "_2fa"),
        ("delete", "delete_"),
        ("größe", "gre"),
        ("!", "_"),
        ("ok", "ok"),
    ],
)
def test_names_become_identifiers(name: str, expected: str) -> None:
    assert identifier(name) == expected


def test_names_that_meet_are_refused() -> None:
    with pytest.raises(CodeInvalid, match="'a-b' and 'a_b'"):
        identifiers(["a-b", "a_b"])


SCHEMAS: list[tuple[Any, str]] = [
    (True, "unknown"),
    (False, "never"),
    ({}, "unknown"),
    ({"type": "integer"}, "number"),
    ({"type": ["string", "null"]}, "string | null"),
    ({"type": "string", "nullable": True}, "string | null"),
    ({"const": "x"}, '"x"'),
    ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
    ({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "integer"}]}, "string | number"),
    ({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}]}, 'string & ("a" | "b")'),
    ({"type": "array", "items": {"type": "string"}}, "string[]"),
    ({"type": "array", "items": {"type": ["string", "null"]}}, "Array<string | null>"),
    ({"type": "array"}, "unknown[]"),
    ({"prefixItems": [{"type": "string"}], "items": False}, "[string]"),
    ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}}, "[string, ...number[]]"),
    ({"type": "object"}, "Record<string, unknown>"),
    ({"type": "object", "additionalProperties": {"type": "number"}}, "Record<string, number>"),
    ({"type": "object", "additionalProperties": False}, "{}"),
    ({"type": "object", "properties": {"a-b": {"type": "string"}}, "required": ["a-b"]}, '{\n  "a-b": string;\n}'),
    ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "string"}}}, "string"),
    ({"$ref": "#/$defs/none"}, "unknown"),
    ({"$ref": "https://example.com/x"}, "unknown"),
    ({"$ref": "#"}, "unknown"),
]


@pytest.mark.parametrize(("schema", "expected"), SCHEMAS)
def test_schemas_become_types(schema: Any, expected: str) -> None:
    assert type_of(schema) == expected


def test_a_circle_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    assert type_of({"$ref": "#/$defs/node", "$defs": {"node": node}}) == "{\n  next?: unknown;\n}"


def test_a_type_that_would_be_endless_is_unknown() -> None:
    wide: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        wide = {"type": "object", "properties": {str(i): wide for i in range(3)}}
    assert type_of(wide) == "unknown" or len(type_of(wide)) < 20_001


class Place(BaseModel):
    city: str
    parts: list[tuple[int, str]] = []


@tool
def find_place(
    place: Place, kind: Literal["a", "b"] = "a", limit: Annotated[int, Field(description="At most.")] = 5
) -> str:
    """Find a place.

    Nothing ends this: */ not even that.
    """
    return ""


@tool
def send_mail(to: str) -> str:
    """Send a letter."""
    return to


def test_a_tool_is_declared_with_its_words() -> None:
    text = declaration(find_place.name, find_place.description, find_place.input_schema)
    assert text.startswith("/**\n * Find a place.\n")
    assert "*/ not" not in text
    assert "/** At most. */\n  limit?: number;" in text
    assert 'kind?: "a" | "b";' in text
    assert "parts?: Array<[number, string]>;" in text


def test_functions_are_found_by_their_words() -> None:
    catalogue = Catalogue([find_place, send_mail])
    assert [each["name"] for each in catalogue.search("letter mail")] == ["tools.send_mail"]
    assert "to: string" in catalogue.describe("send_mail")
    assert catalogue.tool("tools.find_place") is find_place
    with pytest.raises(CodeInvalid):
        catalogue.describe("tools.other")
    with pytest.raises(ToolNotFound, match="send_mail"):
        catalogue.tool("tools.other")


def test_functions_are_listed_shortly() -> None:
    text = Catalogue([find_place, send_mail]).listed()
    assert "find_place({place, kind?: 'a' | 'b', limit?: number}) // Find a place.\n" in text
    assert text.endswith("send_mail({to}) // Send a letter.")
    assert "codemode.describe" in text
    assert "At most." not in text


@pytest.mark.parametrize("count", [0, 1, 5, 12, 18, 60, 100, 1000])
def test_the_list_of_functions_has_a_bound_and_grows_shorter_for_each(count: int) -> None:
    many = Catalogue([replace(find_place, name=f"find_{number}") for number in range(count)])
    text = many.listed().removeprefix(HOW_TO_FIND)
    assert len(text) < LISTED_CHARS + 100
    assert (f"find_{count - 1}" in text or f"{count} functions" in text) if count else "none" in text
    assert all(many.describe(f"tools.find_{number}").startswith("/**") for number in range(count))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": {}}, "f()"),
        ({"type": "object"}, "f({…})"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, "f({a})"),
        ({"type": "object", "properties": {"a": {"type": ["integer", "null"]}}}, "f({a?: number})"),
        ({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}, "f({a?: string[]})"),
        ({"type": "object", "properties": {"a": True, "b": {"enum": ["x" * 40]}}}, "f({a?, b?})"),
        (
            {"$defs": {"n": {"type": "number"}}, "properties": {"a": {"$ref": "#/$defs/n"}}, "required": "a"},
            "f({a?: number})",
        ),
        ({"properties": ["odd"]}, "f()"),
    ],
)
def test_a_signature_has_the_fields(schema: Any, expected: str) -> None:
    assert signature("f", schema, with_types=True) == expected


def test_a_wrong_call_reads_the_declaration() -> None:
    catalogue = Catalogue([find_place, send_mail])
    assert catalogue.explained("tools.send_mail", "No.").startswith(
        "No.\nDeclared as:\n/** Send a letter. */\nsend_mail("
    )
    assert catalogue.explained("tools.other", "No.") == "No."
    with pytest.raises(CodeInvalid, match=r"Did you mean tools\.send_mail"):
        catalogue.describe("tools.sendmail")


def test_a_long_result_is_cut_with_a_mark() -> None:
    assert truncated("x" * MAX_CHARS) == "x" * MAX_CHARS
    text = truncated("The beginning. " + "x" * 40_000 + " The end.")
    assert text.startswith("The beginning. xxx")
    assert text.endswith("xxx The end.")
    assert f"x\n\n{MARK}\nThe result has about 10006 tokens; 6000 are shown." in text
    assert len(text) == MAX_CHARS
    assert truncated(text) == text


def test_the_error_of_code_and_the_end_of_its_console_stay() -> None:
    console = [{"level": "log", "text": f"line {number}"} for number in range(3_000)]
    console.append({"level": "error", "text": "FAILED test_total"})
    shown = short_console(console)
    assert shown[0] == {"level": "log", "text": "line 0"}
    assert shown[-1] == {"level": "error", "text": "FAILED test_total"}
    assert [line["text"] for line in shown if "more lines" in line["text"]] == [
        f"({3_001 - len(shown) + 1} more lines)"
    ]
    words = failure_text("Error: exit 1", console)
    assert words.startswith("Code execution failed: Error: exit 1")
    assert words.endswith("\n[error] FAILED test_total")
    [one] = short_console([{"level": "log", "text": "x" * 50_000 + " exit 1"}])
    assert one["text"].endswith("x exit 1")
    assert len(one["text"]) <= MAX_CONSOLE_CHARS
