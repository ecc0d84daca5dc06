"""The surface of an extension as its source describes itself: tools with their schemas, and hooks."""

from dataclasses import dataclass
from typing import Any, Final, cast

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size
from thinkproject.kernel.phrases import Phrase
from tools_app.core.extensions.manifest import HOOKS, Manifest
from tools_app.core.extensions.naming import tool_name
from tools_app.core.schema_check import check_schema
from tools_app.errors import ExtensionInvalid, SchemaInvalid

MAX_TOOLS: Final = 32
MAX_SCHEMA_BYTES: Final = 20_000
MAX_DESCRIPTION_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSurface:
    """A tool of an extension. `name`: within it, without the prefix."""

    name: str
    description: str
    input_schema: JSONObject

    def to_json(self) -> JSONObject:
        """The stored form."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The tools and hooks of a source."""

    tools: tuple[ToolSurface, ...] = ()
    hooks: tuple[str, ...] = ()

    def to_json(self) -> JSONObject:
        """The stored form."""
        return {"tools": [each.to_json() for each in self.tools], "hooks": list(self.hooks)}

    def tool(self, name: str) -> ToolSurface | None:
        """A tool by its own name."""
        return next((each for each in self.tools if each.name == name), None)


def stored_surface(value: JSONObject) -> Surface:
    """Read what `to_json` made."""
    return Surface(tools=tuple(ToolSurface(**each) for each in value["tools"]), hooks=tuple(value["hooks"]))


def read_surface(value: JSONValue, manifest: Manifest) -> Surface:
    """Check what a source says of itself; it is a stranger's. Errors: `ExtensionInvalid`."""
    found: Any = value if isinstance(value, dict) else {}
    tools, hooks = found.get("tools"), found.get("hooks")
    if not isinstance(tools, list) or not isinstance(hooks, list):
        raise ExtensionInvalid("The source did not describe itself.")
    if len(tools) > MAX_TOOLS:
        raise ExtensionInvalid(Phrase("An extension has at most {limit} tools.", limit=MAX_TOOLS))
    names = [str(hook) for hook in hooks]
    unknown = [name for name in names if name not in HOOKS]
    if unknown:
        known = ", ".join(HOOKS)
        raise ExtensionInvalid(Phrase("There is no hook {name!r}. Hooks are: {known}.", name=unknown[0], known=known))
    if set(names) != set(manifest.hooks):
        raise ExtensionInvalid(
            Phrase(
                "The manifest names the hooks {declared}, the source has {found}: name exactly those that it has.",
                declared=", ".join(sorted(manifest.hooks)) or "(none)",
                found=", ".join(sorted(names)) or "(none)",
            )
        )
    if not tools and not names:
        raise ExtensionInvalid("The source has neither tools nor hooks.")
    return Surface(tools=tuple(_tool(each, manifest.prefix) for each in tools), hooks=tuple(names))


def _tool(value: JSONValue, prefix: str) -> ToolSurface:
    if not isinstance(value, dict):
        raise ExtensionInvalid("The source did not describe itself.")
    name, description = str(value.get("name", "")), str(value.get("description", ""))
    tool_name(prefix, name)
    schema = _schema(name, value.get("parameters"), value.get("required"))
    try:
        check_schema(schema)
    except SchemaInvalid as error:
        raise ExtensionInvalid(
            Phrase("The parameters of the tool {name!r} are no JSON Schema: {error}", name=name, error=error.message)
        ) from error
    if byte_size(schema) > MAX_SCHEMA_BYTES:
        raise ExtensionInvalid(Phrase("The parameters of the tool {name!r} are too long.", name=name))
    return ToolSurface(name=name, description=description[:MAX_DESCRIPTION_CHARS], input_schema=schema)


def _schema(name: str, parameters: JSONValue, required: JSONValue) -> JSONObject:
    """The schema of an input: of its properties, or a whole one where that is what the author wrote."""
    given = {} if parameters is None else parameters
    if not isinstance(given, dict) or not isinstance(required, list | None):
        raise ExtensionInvalid(Phrase("The parameters of the tool {name!r} must be an object.", name=name))
    if given.get("type") == "object" and isinstance(given.get("properties", {}), dict):
        return {**given, "properties": given.get("properties", {})}
    schema: JSONObject = {"type": "object", "properties": given}
    if required:
        schema["required"] = cast("JSONValue", required)
    return schema
