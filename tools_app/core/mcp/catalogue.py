"""The catalogue of a server: what it offers, bounded and checked, as it is kept between connections. Pure.

One tool that is wrong is left out, with its reason, and the others are offered. What a server says is a stranger's
text: it is cut, and never interpreted.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size, fingerprint, is_nested_deeper
from tools_app.core.schema_check import check_schema
from tools_app.errors import SchemaInvalid

MAX_TOOL_NAME: Final = 64
MAX_DESCRIPTION_CHARS: Final = 4_000
MAX_INSTRUCTIONS_CHARS: Final = 4_000
MAX_SCHEMA_BYTES: Final = 32_000
MAX_SCHEMA_DEPTH: Final = 32
MAX_NAME_CHARS: Final = 200
MAX_URI_CHARS: Final = 2_000
MAX_SKIPPED: Final = 50
ODD: Final = "it does not follow the protocol"
HASH_CHARS: Final = 8
HINTS: Final = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueLimits:
    """Bounds of a catalogue: tools, prompts and resources by count, all of it by bytes of JSON."""

    tools: int = 100
    others: int = 200
    max_bytes: int = 512_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The lists of a server, as JSON of the protocol.

    `odd_tools`, `odd_others`: any JSON that stood in the lists and is none of their items. `failed`: why lists, by
    their names, could not be read whole.
    """

    tools: Iterable[JSONObject] = ()
    odd_tools: Iterable[JSONValue] = ()
    odd_others: Iterable[JSONValue] = ()
    prompts: Iterable[JSONObject] = ()
    resources: Iterable[JSONObject] = ()
    templates: Iterable[JSONObject] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    instructions: str = ""
    capabilities: JSONObject | None = None


def build_catalogue(listed: Listed, limits: CatalogueLimits) -> JSONObject:
    """The catalogue of what was listed.

    Shape: `tools`, `prompts`, `resources`, `templates`, `instructions`, `capabilities`, and `skipped`, a list of
    `{name, reason}`.
    """
    skipped: list[JSONObject] = []
    tools: list[JSONObject] = []
    names: set[str] = set()
    room = limits.max_bytes
    skipped += [{"name": name, "reason": reason[:MAX_NAME_CHARS]} for name, reason in listed.failed.items()]
    skipped += [_skipped(odd, _problem_of(odd, names) or ODD) for odd in listed.odd_tools]
    skipped += [_skipped(odd, ODD) for odd in listed.odd_others]
    for raw in map(plain_tool, listed.tools):
        reason = _problem_of(raw, names)
        tool = None if reason else _tool(raw)
        if tool is not None and len(tools) >= limits.tools:
            reason = f"a server may have {limits.tools} tools"
        elif tool is not None and byte_size(tool) > room:
            reason = "the tools of this server are too large together"
        if reason or tool is None:
            skipped.append(_skipped(raw, reason))
            continue
        names.add(tool["name"])
        room -= byte_size(tool)
        tools.append(tool)
    capabilities = listed.capabilities or {}
    return {
        "tools": tools,
        "prompts": _bounded(listed.prompts, ("name", "title", "description", "arguments"), limits.others, "name"),
        "resources": _bounded(
            listed.resources, ("uri", "name", "title", "description", "mimeType"), limits.others, "uri"
        ),
        "templates": _bounded(
            listed.templates, ("uriTemplate", "name", "title", "description", "mimeType"), limits.others, "uriTemplate"
        ),
        "instructions": listed.instructions[:MAX_INSTRUCTIONS_CHARS],
        "capabilities": capabilities if byte_size(capabilities) <= MAX_SCHEMA_BYTES else {},
        "skipped": skipped[:MAX_SKIPPED],
    }


def plain_tool(raw: Any) -> Any:
    """A tool without the parts that are no use here and may be wrong; an input is an object where it may be one.

    Anything but a JSON object is returned as it is.
    """
    if not isinstance(raw, dict):
        return raw
    schema = raw.get("inputSchema")
    if isinstance(schema, dict) and _is_of_objects(schema.get("type")):
        schema = {**schema, "type": "object"}
    given = raw.get("annotations")
    annotations = given if isinstance(given, dict) else {}
    title = raw.get("title") or annotations.get("title")
    return {
        **{name: raw[name] for name in ("name", "description") if isinstance(raw.get(name), str)},
        "title": title if isinstance(title, str) else "",
        "inputSchema": schema,
        "annotations": {name: value for name, value in annotations.items() if isinstance(value, bool)},
    }


def _is_of_objects(kind: JSONValue) -> bool:
    """Whether this type lets objects through, which is all that a tool can be given: also without a word about it."""
    return kind is None or (isinstance(kind, list) and "object" in kind)


def tool_prints(catalogue: Mapping[str, Any]) -> dict[str, str]:
    """A fingerprint of each tool by its name: of everything that a model reads of it, and of what it says it does."""
    return {tool["name"]: fingerprint(tool) for tool in catalogue.get("tools", ())}


def unaccepted(catalogue: Mapping[str, Any], accepted: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the tools that are not what was accepted."""
    return tuple(name for name, print_ in tool_prints(catalogue).items() if accepted.get(name) != print_)


def tool_name(server_id: str, name: str) -> str:
    """The name of a server's tool for models: `tool_<server>_<tool>`, with a hash where that would be too long."""
    full = f"tool_{server_id}_{name}"
    plain = _NOT_IN_NAMES.sub("_", full)
    if plain == full and len(plain) <= MAX_TOOL_NAME:
        return plain
    mark = hashlib.sha256(name.encode()).hexdigest()[:HASH_CHARS]
    return f"{plain[: MAX_TOOL_NAME - HASH_CHARS - 1]}_{mark}"


def _skipped(raw: JSONValue, reason: str) -> JSONObject:
    named = raw if isinstance(raw, dict) else {}
    name = named.get("name") or named.get("uri") or named.get("uriTemplate") or ""
    return {"name": str(name)[:MAX_NAME_CHARS], "reason": reason}


def _problem_of(raw: JSONValue, names: set[str]) -> str:
    """Why a tool cannot be offered; empty when it can."""
    if not isinstance(raw, dict):
        return ODD
    name, schema = raw.get("name"), raw.get("inputSchema")
    if not isinstance(name, str) or not name or len(name) > MAX_NAME_CHARS:
        return f"a tool has a name of 1 to {MAX_NAME_CHARS} characters"
    if name in names:
        return "another tool has this name"
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "the schema of its input is no object"
    if is_nested_deeper(schema, MAX_SCHEMA_DEPTH) or byte_size(schema) > MAX_SCHEMA_BYTES:
        return "the schema of its input is too large"
    try:
        check_schema(schema)
    except SchemaInvalid as error:
        return error.message
    return ""


def _tool(raw: JSONObject) -> JSONObject:
    """Keep of a tool what models and people need."""
    hints = {name: value for name, value in raw["annotations"].items() if name in HINTS}
    tool: JSONObject = {
        "name": raw["name"],
        "description": raw.get("description", "")[:MAX_DESCRIPTION_CHARS],
        "inputSchema": raw["inputSchema"],
    }
    if raw["title"]:
        tool["title"] = " ".join(raw["title"].split())[:80]
    if hints:
        tool["annotations"] = hints
    return tool


def _bounded(items: Iterable[JSONObject], fields: tuple[str, ...], limit: int, key: str) -> list[JSONObject]:
    """The first items that have their key, each with its known fields alone."""
    found: list[JSONObject] = []
    for raw in items:
        item = {name: _cut(raw[name]) for name in fields if raw.get(name) is not None}
        named = item.get(key)
        if isinstance(named, str) and 0 < len(named) <= MAX_URI_CHARS and byte_size(item) <= MAX_SCHEMA_BYTES:
            found.append({**item, "name": str(item.get("name") or named)})
        if len(found) == limit:
            break
    return found


def _cut(value: Any) -> Any:
    return value[:MAX_DESCRIPTION_CHARS] if isinstance(value, str) else value
