"""Schemas of OpenAPI 3.0 to 3.2 and Swagger 2 as JSON Schema that models are given. Pure.

What a reference names is put beside the others in `$defs`, once, so that recursive schemas stay finite.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.openapi.references import References
from tools_app.errors import ToolDeclarationInvalid

MAX_DEPTH: Final = 48
MAX_DEFINITIONS: Final = 200
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_ONE: Final = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames"})
_OMITTED: Final = frozenset(
    {
        *("xml", "externalDocs", "discriminator", "example", "examples", "nullable", "readOnly", "writeOnly"),
        *("deprecated", "$id", "$schema", "$anchor", "$dynamicAnchor", "allowEmptyValue", "collectionFormat"),
    }
)


class SchemaReader:
    """Reads the schemas of one operation. `definitions`: what references named, by their names in `$defs`."""

    def __init__(self, references: References) -> None:
        self.definitions: JSONObject = {}
        self._references = references
        self._names: dict[str, str] = {}

    def read(self, schema: Any, depth: int = 0) -> Any:
        """A schema as JSON Schema. Errors: `ToolDeclarationInvalid`."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise ToolDeclarationInvalid("A schema of the document is no object.")
        if depth > MAX_DEPTH:
            raise ToolDeclarationInvalid(f"A schema of the document is nested deeper than {MAX_DEPTH} levels.")
        if schema.get("type") == "file" or schema.get("format") == "binary":
            raise ToolDeclarationInvalid("It takes a file, which a model cannot write.")
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema, depth)
        found = {key: self._part(key, value, depth) for key, value in schema.items() if not _is_omitted(key)}
        _without_read_only(found, schema)
        _bounds(found)
        return _nullable(found) if schema.get("nullable") is True else found

    def _part(self, key: str, value: Any, depth: int) -> Any:
        if key in _NAMED and isinstance(value, Mapping):
            return {str(name): self.read(each, depth + 1) for name, each in value.items()}
        if key in _LISTS and isinstance(value, list):
            return [self.read(each, depth + 1) for each in value]
        if key in _ONE and isinstance(value, Mapping | bool):
            return self.read(value, depth + 1)
        return value

    def _reference(self, schema: Mapping[str, Any], depth: int) -> JSONObject:
        pointer = schema["$ref"]
        name = self._names.get(pointer)
        if name is None:
            name = self._names[pointer] = self._new_name(pointer)
            self.definitions[name] = {}  # it may name itself
            self.definitions[name] = self.read(self._references.find(pointer), depth + 1)
        found: JSONObject = {"$ref": f"#/$defs/{name}"}
        if isinstance(schema.get("description"), str):
            found["description"] = schema["description"]
        return _nullable(found) if schema.get("nullable") is True else found

    def _new_name(self, pointer: str) -> str:
        if len(self._names) >= MAX_DEFINITIONS:
            raise ToolDeclarationInvalid(f"Its input has more than {MAX_DEFINITIONS} schemas.")
        first = re.sub(r"[^A-Za-z0-9_]+", "_", pointer.rpartition("/")[2])[:60] or "schema"
        name, number = first, 1
        while name in self._names.values():
            number += 1
            name = f"{first}_{number}"
        return name


def _is_omitted(key: str) -> bool:
    return key in _OMITTED or key.startswith("x-")


def _without_read_only(found: JSONObject, schema: Mapping[str, Any]) -> None:
    """Take out properties that only answers have."""
    properties = found.get("properties")
    if not isinstance(properties, dict):
        return
    for name, given in schema["properties"].items():
        if isinstance(given, Mapping) and given.get("readOnly") is True:
            del properties[name]
    if isinstance(found.get("required"), list):
        found["required"] = [
            name for name in found["required"] if name in properties or name not in schema["properties"]
        ]


def _bounds(found: JSONObject) -> None:
    """Exclusive bounds as numbers; OpenAPI 3.0 says yes or no beside the bound."""
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(found.get(exclusive), bool) and found.pop(exclusive) and plain in found:
            found[exclusive] = found.pop(plain)


def _nullable(found: JSONObject) -> JSONObject:
    kind = found.get("type")
    if isinstance(kind, str) and not ({"allOf", "anyOf", "oneOf"} & found.keys()):
        more = (
            {"enum": [*found["enum"], None]}
            if isinstance(found.get("enum"), list) and None not in found["enum"]
            else {}
        )
        return {**found, "type": [kind, "null"], **more}
    return {"anyOf": [found, {"type": "null"}]}
