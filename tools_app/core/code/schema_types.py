"""TypeScript types from JSON Schemas, for models that write calls: readable first, exact where a type can be."""

import json
import re
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.code.names import identifier

MAX_DEPTH: Final = 12
MAX_TYPE_CHARS: Final = 20_000
MAX_PARTS: Final = 2000
UNKNOWN: Final = "unknown"
SIMPLE: Final = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
NAME: Final = re.compile(r"^[A-Za-z_$][A-Za-z0-9_$]*$")


def type_of(schema: JSONValue) -> str:
    """The type of the values that fit a schema; `unknown` for what cannot be said, and where it refers to itself."""
    text = _Types(schema).of(schema, depth=0, seen=frozenset(), indent="")
    return text if len(text) <= MAX_TYPE_CHARS else UNKNOWN


def declaration(name: str, description: str, input_schema: JSONObject, output_schema: JSONObject | None = None) -> str:
    """One member of a namespace: a function with its description as JSDoc."""
    properties = input_schema.get("properties")
    if not properties and input_schema.get("additionalProperties") is not True and "$ref" not in input_schema:
        parameters = "input?: {}"
    else:
        mark = "" if input_schema.get("required") else "?"
        parameters = f"input{mark}: {type_of({**input_schema, 'description': ''})}"
    result = UNKNOWN if output_schema is None else type_of(output_schema)
    return f"{_comment(description, '')}{identifier(name)}({parameters}): Promise<{result}>;"


def namespace(name: str, members: list[str]) -> str:
    """A namespace of declared functions."""
    inner = "\n".join(f"  {line}" if line else line for member in members for line in member.split("\n"))
    return f"declare const {name}: {{\n{inner}\n}};"


class _Types:
    """Converts the parts of one schema, which `$ref` looks up in it."""

    def __init__(self, root: JSONValue) -> None:
        self._root = root
        self._parts_left = MAX_PARTS

    def of(self, schema: JSONValue, *, depth: int, seen: frozenset[str], indent: str) -> str:
        self._parts_left -= 1
        if not isinstance(schema, dict) or depth > MAX_DEPTH or self._parts_left < 0:
            return "never" if schema is False else UNKNOWN
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in seen:
                return UNKNOWN
            return self.of(self._look_up(reference), depth=depth + 1, seen=seen | {reference}, indent=indent)
        text = self._without_null(schema, depth, seen, indent)
        return _union([text, "null"]) if schema.get("nullable") is True else text

    def _without_null(self, schema: JSONObject, depth: int, seen: frozenset[str], indent: str) -> str:
        if "const" in schema:
            return _literal(schema["const"])
        if isinstance(schema.get("enum"), list):
            return _union([_literal(value) for value in schema["enum"]]) or "never"
        for keyword, join in (("anyOf", _union), ("oneOf", _union), ("allOf", _intersection)):
            if isinstance(schema.get(keyword), list) and schema[keyword]:
                parts = [self.of(part, depth=depth + 1, seen=seen, indent=indent) for part in schema[keyword]]
                own = [self._object(schema, depth, seen, indent)] if schema.get("properties") else []
                return _intersection([*own, join(parts)])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union([self._without_null({**schema, "type": one}, depth, seen, indent) for one in kind])
        if kind == "array" or (kind is None and ("items" in schema or "prefixItems" in schema)):
            return self._array(schema, depth, seen, indent)
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, depth, seen, indent)
        return SIMPLE.get(str(kind), UNKNOWN)

    def _array(self, schema: JSONObject, depth: int, seen: frozenset[str], indent: str) -> str:
        first, rest = schema.get("prefixItems"), schema.get("items")
        if isinstance(rest, list):  # of older drafts
            first, rest = rest, schema.get("additionalItems", True)
        if not isinstance(first, list):
            return _array_of(self.of(True if rest is None else rest, depth=depth + 1, seen=seen, indent=indent))
        parts = [self.of(part, depth=depth + 1, seen=seen, indent=indent) for part in first]
        if rest is not False and schema.get("maxItems") != len(first):
            more = self.of(True if rest is None else rest, depth=depth + 1, seen=seen, indent=indent)
            parts.append(f"...{_array_of(more)}")
        return f"[{', '.join(parts)}]"

    def _object(self, schema: JSONObject, depth: int, seen: frozenset[str], indent: str) -> str:
        properties, further = schema.get("properties"), schema.get("additionalProperties")
        fields = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        needed = set(required) if isinstance(required, list) else set()
        below = indent + "  "
        lines = []
        for key, value in fields.items():
            text = self.of(value, depth=depth + 1, seen=seen, indent=below)
            shown = key if NAME.match(key) else json.dumps(key)
            mark = "" if key in needed else "?"
            about = value.get("description", "") if isinstance(value, dict) else ""
            lines.append(f"{_comment(str(about), below)}{below}{shown}{mark}: {text};")
        if isinstance(further, dict) or (not fields and further is not False):
            allowed = further if isinstance(further, dict) else True
            text = self.of(allowed, depth=depth + 1, seen=seen, indent=below)
            if not fields:
                return f"Record<string, {text}>"
            lines.append(f"{below}[key: string]: {text if text == UNKNOWN else UNKNOWN};")
        return "{\n" + "\n".join(lines) + f"\n{indent}}}" if lines else "{}"

    def _look_up(self, reference: str) -> JSONValue:
        if not reference.startswith("#"):
            return True
        found = self._root
        for step in reference[1:].strip("/").split("/") if reference != "#" else []:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                return True
            found = found[key]
        return found


def _literal(value: JSONValue) -> str:
    return (
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, str | int | float | bool) or value is None
        else UNKNOWN
    )


def _union(parts: list[str]) -> str:
    return " | ".join(dict.fromkeys(part for part in parts if part))


def _intersection(parts: list[str]) -> str:
    distinct = list(dict.fromkeys(part for part in parts if part))
    return " & ".join(f"({part})" if " | " in part and len(distinct) > 1 else part for part in distinct)


def _array_of(text: str) -> str:
    return f"Array<{text}>" if re.search(r"[|&{ ]", text) else f"{text}[]"


def _comment(text: str, indent: str) -> str:
    """A JSDoc comment, which nothing in the text can end."""
    lines = [line.rstrip() for line in text.strip().replace("*/", "*\\/").splitlines()]
    if not lines:
        return ""
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"
