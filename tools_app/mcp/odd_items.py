"""Items of a server's results that do not follow the protocol: each is set aside by itself.

The client of the protocol refuses a whole result for one item that is wrong. So a list is looked through as it arrives:
an item that is whole but for some part that may be left out stays without that part, and any other is put beside the
list, where `listing.py` finds it, and the catalogue names it with the reason. Of a call's result the wrong block alone
is replaced by words.
"""

from collections.abc import Mapping
from typing import Any, Final

from mcp_types import ContentBlock
from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import TypeAdapter, ValidationError

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.mcp.catalogue import plain_tool

SET_ASIDE: Final = "think/setAside"
"""Where in the `_meta` of a list the items are that were set aside."""
METHODS: Final = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}


def with_items_set_aside(result: JSONObject, version: str) -> JSONObject:
    """A result whose items all follow this version of the protocol. Most are returned as they are.

    Schemas of outputs are taken away: the client would keep a result that does not fit its own from the model.
    """
    if "content" in result or "structuredContent" in result:
        return {**result, "content": [_block(item) for item in _content(result.get("content"))]}
    if isinstance(result.get("tools"), list):
        result = {**result, "tools": [_without_output(item) for item in result["tools"]]}
    field = next((name for name in METHODS if isinstance(result.get(name), list)), None)
    if field is None or not _problems(field, result, version):
        return result
    kept: list[JSONValue] = []
    odd: list[JSONValue] = []
    for item in result[field]:
        plain = plain_tool(item) if field == "tools" else item
        for each in (item, plain):
            if not _problems(field, {**result, field: [each]}, version):
                kept.append(each)
                break
        else:
            odd.append(item)
    meta = result.get("_meta")
    return {**result, field: kept, "_meta": {**(meta if isinstance(meta, dict) else {}), SET_ASIDE: odd}}


def whole_introduction(result: JSONObject) -> JSONObject:
    """The result with which a server introduces itself, with what it left out or has wrong. Others are as they are."""
    if not isinstance(result.get("protocolVersion"), str) or "tools" in result:
        return result
    info = result.get("serverInfo")
    given = {name: value for name, value in info.items() if isinstance(value, str)} if isinstance(info, dict) else {}
    capabilities = result.get("capabilities")
    parts = capabilities.items() if isinstance(capabilities, dict) else ()
    whole = {
        **result,
        "serverInfo": {"name": "", "version": "", **given},
        "capabilities": {name: part for name, part in parts if isinstance(part, dict)},
    }
    if not isinstance(whole.get("instructions", ""), str):
        del whole["instructions"]
    return whole


def _without_output(item: JSONValue) -> JSONValue:
    if not isinstance(item, dict):
        return item
    return {name: value for name, value in item.items() if name != "outputSchema"}


def _content(given: JSONValue) -> list[JSONValue]:
    """The blocks of a result, also where a server gives one alone, a plain text, or none beside its value."""
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _block(item: JSONValue) -> JSONValue:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    try:
        _BLOCK.validate_python(item)
    except ValidationError:
        kind = item.get("type") if isinstance(item, dict) else None
        return {"type": "text", "text": f"[content of the type {str(kind)[:40]!r} cannot be read]"}
    return item


_BLOCK: Final[TypeAdapter[Any]] = TypeAdapter(ContentBlock)


def _problems(field: str, result: Mapping[str, Any], version: str) -> bool:
    """Whether an item of a list is wrong; what else may be is not its concern."""
    try:
        validate_server_result(METHODS[field], version or LATEST_HANDSHAKE_VERSION, result)
    except ValidationError as error:
        return any(field in problem["loc"][:3] for problem in error.errors(include_url=False, include_input=False))
    except (KeyError, ValueError):  # a version that it does not know: nor does the client
        return False
    return False
