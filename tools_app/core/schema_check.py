"""Whether a JSON value fits a JSON Schema.

Safe for schemas of strangers: a pattern may cost a bounded number of steps, and a reference to another document is an
error and never a request.
"""

from typing import Final

import jsonschema_rs

from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.errors import SchemaInvalid

MAX_PROBLEMS: Final = 20
MAX_PROBLEM_LENGTH: Final = 300
PATTERN_STEPS: Final = 20_000
"""Steps that a pattern with look-around or back-references may take; others take linear time."""
PATTERN_BYTES: Final = 1_000_000
"""Memory that a compiled pattern may take."""


def problems(value: JSONValue, schema: JSONValue) -> list[str]:
    """Validate a value; one line per problem ("items.0: 1 is not of type …"), at most 20, empty if valid.

    Errors: `SchemaInvalid`.
    """
    return _problems(value, _validator(schema))


class SchemaCheck:
    """One schema for many values: made ready, which takes up to half a millisecond, with the first of them."""

    def __init__(self, schema: JSONValue) -> None:
        self._schema = schema
        self._validator: jsonschema_rs.Validator | None = None

    def problems(self, value: JSONValue) -> list[str]:
        """As the function of this name. Errors: `SchemaInvalid`."""
        if self._validator is None:
            self._validator = _validator(self._schema)
        return _problems(value, self._validator)


def _problems(value: JSONValue, validator: jsonschema_rs.Validator) -> list[str]:
    found: list[str] = []
    for error in validator.iter_errors(value):
        place = ".".join(str(step) for step in error.instance_path) or "the value"
        found.append(f"{place}: {error.message[:MAX_PROBLEM_LENGTH]}")
        if len(found) == MAX_PROBLEMS:
            break
    return found


def check_schema(schema: JSONValue) -> None:
    """Refuse an invalid JSON Schema. Errors: `SchemaInvalid`."""
    _validator(schema)


def _validator(schema: JSONValue) -> jsonschema_rs.Validator:
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=PATTERN_STEPS, size_limit=PATTERN_BYTES)
    try:
        return jsonschema_rs.validator_for(schema, pattern_options=patterns, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise SchemaInvalid(f"This is no JSON Schema: {str(error)[:MAX_PROBLEM_LENGTH]}") from error
