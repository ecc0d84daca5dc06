"""Whether a JSON value is what a JSON Schema says: the part of the language that tools and structured answers use.

Types, properties, items, enumerations, ranges, lengths, patterns, combinations and references inside the schema. Other
words of the language (`format`, `if`, …) are hints for the model and are not checked. Patterns run as they are: schemas
of strangers do not belong here.
"""

import math
import re
from collections.abc import Iterator
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

MAX_DEPTH: Final = 64
_TYPES: Final = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: _is_number(v) and float(v).is_integer(),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def problems(value: JSONValue, schema: JSONValue) -> list[str]:
    """Say what is wrong, one line a place ("items.0.name: is missing"); nothing when the value fits."""
    return list(_Check(schema if isinstance(schema, dict) else {}).run(value, schema, (), 0))


class _Check:
    """One check; knows the whole schema, for its references."""

    def __init__(self, root: JSONObject) -> None:
        self._root = root

    def run(self, value: JSONValue, schema: JSONValue, path: tuple[str, ...], depth: int) -> Iterator[str]:
        if schema is False or depth > MAX_DEPTH:
            yield _at(path, "is not allowed here" if schema is False else "is nested too deeply")
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return
        if "$ref" in schema:
            yield from self.run(value, self._resolve(str(schema["$ref"])), path, depth + 1)
        if not _has_type(value, schema.get("type")):
            yield _at(path, f"must be of type {dump(schema['type'])}")
            return
        yield from (_at(path, text) for text in _plain_problems(value, schema))
        yield from self._combined(value, schema, path, depth + 1)
        if isinstance(value, dict):
            yield from self._object(value, schema, path, depth + 1)
        elif isinstance(value, list):
            yield from self._array(value, schema, path, depth + 1)

    def _resolve(self, reference: str) -> JSONValue:
        """The schema that `#/$defs/Name` names; one that allows nothing when there is none."""
        found: JSONValue = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                return False
            found = found[key]
        return found

    def _fits(self, value: JSONValue, schema: JSONValue, depth: int) -> bool:
        return next(self.run(value, schema, (), depth), None) is None

    def _combined(self, value: JSONValue, schema: JSONObject, path: tuple[str, ...], depth: int) -> Iterator[str]:
        for part in schema.get("allOf") or []:
            yield from self.run(value, part, path, depth)
        if "anyOf" in schema and not any(self._fits(value, part, depth) for part in schema["anyOf"]):
            yield _at(path, "fits none of the allowed forms")
        if "oneOf" in schema and sum(self._fits(value, part, depth) for part in schema["oneOf"]) != 1:
            yield _at(path, "must fit exactly one of the allowed forms")
        if "not" in schema and self._fits(value, schema["not"], depth):
            yield _at(path, "has a form that is not allowed")

    def _object(self, value: JSONObject, schema: JSONObject, path: tuple[str, ...], depth: int) -> Iterator[str]:
        known = schema.get("properties") or {}
        for name in schema.get("required") or []:
            if name not in value:
                yield _at((*path, str(name)), "is missing")
        patterns = schema.get("patternProperties") or {}
        for name, item in value.items():
            matching = [part for pattern, part in patterns.items() if _matches(pattern, name)]
            if name in known:
                matching.append(known[name])
            elif not matching:
                matching.append(schema.get("additionalProperties", True))
            for part in matching:
                yield from self.run(item, part, (*path, name), depth)

    def _array(self, value: list[JSONValue], schema: JSONObject, path: tuple[str, ...], depth: int) -> Iterator[str]:
        first = schema.get("prefixItems") or []
        for index, item in enumerate(value):
            part = first[index] if index < len(first) else schema.get("items", True)
            yield from self.run(item, part, (*path, str(index)), depth)


def _at(path: tuple[str, ...], text: str) -> str:
    return f"{'.'.join(path) or 'the value'}: {text}"


def _is_number(value: JSONValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_type(value: JSONValue, wanted: JSONValue) -> bool:
    if wanted is None:
        return True
    names = wanted if isinstance(wanted, list) else [wanted]
    return any(name not in _TYPES or _TYPES[name](value) for name in names)


def _matches(pattern: str, text: str) -> bool:
    """Whether the text has the pattern; one that Python's expressions do not know is not checked."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _same(first: JSONValue, second: JSONValue) -> bool:
    """Equality of JSON, where true is not 1."""
    return isinstance(first, bool) == isinstance(second, bool) and first == second


def _plain_problems(value: JSONValue, schema: JSONObject) -> Iterator[str]:
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        yield f"must be one of {dump(schema['enum'])}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"must be {dump(schema['const'])}"
    if _is_number(value):
        yield from _number_problems(value, schema)
    elif isinstance(value, str):
        yield from _size_problems(len(value), schema, "minLength", "maxLength", "characters")
        if "pattern" in schema and not _matches(schema["pattern"], value):
            yield f"must match {schema['pattern']!r}"
    elif isinstance(value, list):
        yield from _size_problems(len(value), schema, "minItems", "maxItems", "items")
        texts = [dump(item) for item in value]
        if schema.get("uniqueItems") and len(set(texts)) < len(texts):
            yield "must not hold the same item twice"
    elif isinstance(value, dict):
        yield from _size_problems(len(value), schema, "minProperties", "maxProperties", "properties")


def _number_problems(value: float, schema: JSONObject) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"must be at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"must be at most {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"must be more than {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield f"must be less than {schema['exclusiveMaximum']}"
    step = schema.get("multipleOf")
    if step and not math.isclose(value / step, round(value / step), abs_tol=1e-9):
        yield f"must be a multiple of {step}"


def _size_problems(size: int, schema: JSONObject, least: str, most: str, what: str) -> Iterator[str]:
    if least in schema and size < schema[least]:
        yield f"must have at least {schema[least]} {what}"
    if most in schema and size > schema[most]:
        yield f"must have at most {schema[most]} {what}"
