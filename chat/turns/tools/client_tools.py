"""Tools that clients bring: kept with the instance, given to each turn, and never in the place of the server's own."""

from collections.abc import Sequence

from chat.errors import InputInvalid
from chat.models import AgentInstance
from thinkproject.kernel.jsonvalue import JSONObject, byte_size
from thinkproject.kernel.phrases import Phrase
from tools_app.core.tool import Tool, client_tool
from tools_app.errors import ToolDeclarationInvalid

MAX_TOOLS = 128
MAX_BYTES = 512 * 1024


def remember_client_tools(instance: AgentInstance, tools: Sequence[JSONObject] | None) -> None:
    """Keep a request's tools for later turns; `None` keeps the last ones. In a transaction that holds the row.

    Shape: `{name, description, parameters}` each, `parameters` a JSON Schema. Errors: `InputInvalid` for a name that
    providers refuse, and beyond 128 tools or 512 KiB.
    """
    if tools is None or list(tools) == instance.client_tools:
        return
    if len(tools) > MAX_TOOLS or byte_size(list(tools)) > MAX_BYTES:
        raise InputInvalid(
            Phrase(
                "A client may bring {limit} tools of {kibibytes} KiB together.",
                limit=MAX_TOOLS,
                kibibytes=MAX_BYTES // 1024,
            )
        )
    to_tools(tools)
    instance.client_tools = list(tools)
    AgentInstance.objects.filter(pk=instance.pk).update(client_tools=instance.client_tools)


def to_tools(tools: Sequence[JSONObject]) -> list[Tool]:
    """Make tools of a client's declarations; the last of a name wins. Errors: `InputInvalid`."""
    try:
        return [client_tool(tool["name"], tool.get("description") or "", tool.get("parameters")) for tool in tools]
    except ToolDeclarationInvalid as error:
        raise InputInvalid(error.phrase) from error
