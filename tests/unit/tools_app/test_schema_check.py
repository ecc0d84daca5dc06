"""Values against schemas: what fits, and what is said about what does not."""

import pytest

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.schema_check import SchemaCheck, check_schema, problems
from tools_app.errors import SchemaInvalid

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
        ([], ['the value: [] is not of type "object"']),
        ({}, ['the value: "name" is a required property']),
        ({"name": ""}, ['name: "" is shorter than 1 character']),
        ({"name": "Ann", "age": -1}, ["age: -1 is less than the minimum of 0"]),
        ({"name": "Ann", "age": 151}, ["age: 151 is greater than the maximum of 150"]),
        ({"name": "Ann", "age": 1.5}, ['age: 1.5 is not of type "integer"']),
        ({"name": "Ann", "age": True}, ['age: true is not of type "integer"']),
        ({"name": "Ann", "tags": ["c"]}, ['tags.0: "c" is not one of "a" or "b"']),
        ({"name": "Ann", "tags": ["a", "a"]}, ['tags: ["a","a"] has non-unique elements']),
        ({"name": "Ann", "tags": ["a", "b", "a"]}, ['tags: ["a","b","a"] has more than 2 items']),
        ({"name": "Ann", "other": 1}, ["the value: Additional properties are not allowed ('other' was unexpected)"]),
        ({"name": "Ann", "friend": {"name": 1}}, ['friend.name: 1 is not of type "string"']),
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
        ("abcd", {"maxLength": 3}, False),
        ([1, "x"], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, True),
        (["x", 1], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, False),
        ([], {"minItems": 1}, False),
        ({"x_1": "s"}, {"patternProperties": {"^x_": {"type": "integer"}}}, False),
        ({"y": "s"}, {"patternProperties": {"^x_": {}}, "additionalProperties": {"type": "integer"}}, False),
        ({"a": 1}, {"minProperties": 2}, False),
        ({"a": {"n": 1}}, {"$defs": {"A": {"required": ["n"]}}, "properties": {"a": {"$ref": "#/$defs/A"}}}, True),
        ("2026-13-99", {"format": "date"}, True),
        ({"a": 1}, {"if": {"required": ["a"]}, "then": {"required": ["b"]}}, False),
        ("anything", True, True),
        ("anything", False, False),
    ],
)
def test_the_words_of_the_language(value: JSONValue, schema: JSONValue, fits: bool) -> None:
    assert (problems(value, schema) == []) is fits


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": r"\p{L}("},
        {"type": "a word of tomorrow"},
        {"properties": {"a": {"$ref": "#/$defs/Gone"}}},
        {"$ref": "https://example.com/schema.json"},
        "no schema",
    ],
)
def test_what_is_no_schema_is_refused(schema: JSONValue) -> None:
    with pytest.raises(SchemaInvalid):
        check_schema(schema)


@pytest.mark.parametrize(("pattern", "text"), [("^(a+)+$", "a" * 50_000 + "!"), (r"^(?=(a|aa)+$)\1x", "a" * 500 + "!")])
def test_a_pattern_takes_a_bounded_number_of_steps(pattern: str, text: str) -> None:
    """Both would take longer than the age of the universe in an engine that goes back without a limit."""
    assert len(problems(text, {"pattern": pattern})) == 1


def test_a_large_value_is_shortened_in_its_description() -> None:
    [said] = problems("x" * 10_000, {"type": "integer"})
    assert len(said) < 400


def test_only_the_first_problems_are_listed() -> None:
    assert len(problems([1] * 1_000, {"items": {"type": "string"}})) == 20


def test_a_schema_for_many_values_says_the_same_of_each() -> None:
    schema: JSONObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    check = SchemaCheck(schema)
    for value in ({"n": 1}, {"n": "1"}, {}, {"n": 2}):
        assert check.problems(value) == problems(value, schema)
    with pytest.raises(SchemaInvalid):
        SchemaCheck({"type": "nothing"}).problems({})
