"""Items of a server's lists that do not follow the protocol: each is set aside by itself.

The client of the protocol refuses a whole list for one item that is wrong. So a list is looked through as it arrives:
an item that is whole but for some part that may be left out stays without that part, and any other is put beside the
list, where `listing.py` finds it, and the catalogue names it with the reason.
"""

from collections.abc import Mapping
from typing import Any, Final

from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

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
    """A result whose items all follow this version of the protocol. Most are returned as they are."""
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


def _problems(field: str, result: Mapping[str, Any], version: str) -> bool:
    """Whether an item of a list is wrong; what else may be is not its concern."""
    try:
        validate_server_result(METHODS[field], version or LATEST_HANDSHAKE_VERSION, result)
    except ValidationError as error:
        return any(field in problem["loc"][:3] for problem in error.errors(include_url=False, include_input=False))
    except (KeyError, ValueError):  # a version that it does not know: nor does the client
        return False
    return False
