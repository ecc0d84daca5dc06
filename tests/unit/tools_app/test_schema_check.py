"""Values against schemas: what fits, and what is said about what does not."""

import pytest

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.schema_check import problems

PERSON: JSONObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2, "uniqueItems": True},
        "friend": {"$ref": "#"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def test_what_fits_has_no_problems() -> None:
    value = {"name": "Ann", "age": 30, "tags": ["a", "b"], "friend": {"name": "Bo"}}
    assert problems(value, PERSON) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], ['the value: must be of type "object"']),
        ({}, ["name: is missing"]),
        ({"name": ""}, ["name: must have at least 1 characters"]),
        ({"name": "Ann", "age": -1}, ["age: must be at least 0"]),
        ({"name": "Ann", "age": 151}, ["age: must be at most 150"]),
        ({"name": "Ann", "age": 1.5}, ['age: must be of type "integer"']),
        ({"name": "Ann", "age": True}, ['age: must be of type "integer"']),
        ({"name": "Ann", "tags": ["c"]}, ['tags.0: must be one of ["a","b"]']),
        ({"name": "Ann", "tags": ["a", "a"]}, ["tags: must not hold the same item twice"]),
        ({"name": "Ann", "tags": ["a", "b", "a"]}, ["tags: must have at most 2 items"]),
        ({"name": "Ann", "other": 1}, ["other: is not allowed here"]),
        ({"name": "Ann", "friend": {"name": 1}}, ['friend.name: must be of type "string"']),
    ],
)
def test_each_problem_names_its_place(value: JSONValue, said: list[str]) -> None:
    assert set(said) <= set(problems(value, PERSON))


@pytest.mark.parametrize(
    ("value", "schema", "fits"),
    [
        (1, {"type": ["string", "integer"]}, True),
        (None, {"type": ["string", "integer"]}, False),
        (1, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, True),
        (1, {"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
        (1, {"oneOf": [{"type": "number"}, {"type": "integer"}]}, False),
        (1, {"oneOf": [{"type": "string"}, {"type": "integer"}]}, True),
        (1, {"allOf": [{"minimum": 0}, {"maximum": 0}]}, False),
        (1, {"not": {"type": "integer"}}, False),
        (1, {"const": True}, False),
        (1, {"const": 1.0}, True),
        (2, {"exclusiveMinimum": 2}, False),
        (2, {"exclusiveMaximum": 2}, False),
        (0.3, {"multipleOf": 0.1}, True),
        (0.35, {"multipleOf": 0.1}, False),
        ("abc", {"pattern": "^b"}, False),
        ("abc", {"pattern": r"\p{L}("}, True),
        ("abcd", {"maxLength": 3}, False),
        ([1, "x"], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, True),
        (["x", 1], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, False),
        ([], {"minItems": 1}, False),
        ({"x_1": "s"}, {"patternProperties": {"^x_": {"type": "integer"}}}, False),
        ({"y": "s"}, {"patternProperties": {"^x_": {}}, "additionalProperties": {"type": "integer"}}, False),
        ({"a": 1}, {"minProperties": 2}, False),
        ({"a": {"n": 1}}, {"$defs": {"A": {"required": ["n"]}}, "properties": {"a": {"$ref": "#/$defs/A"}}}, True),
        ({"a": 1}, {"properties": {"a": {"$ref": "#/$defs/Gone"}}}, False),
        ("anything", {"type": "a word of tomorrow"}, True),
        ("anything", True, True),
        ("anything", False, False),
    ],
)
def test_the_words_of_the_language(value: JSONValue, schema: JSONValue, fits: bool) -> None:
    assert (problems(value, schema) == []) is fits


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert problems(1, {"$ref": "#"}) == ["the value: is nested too deeply"]
