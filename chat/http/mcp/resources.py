"""Conversations of the caller with this agent as resources: `think://{agent}/{name}`. Never another's."""

from typing import Final
from urllib.parse import quote, unquote, urlsplit

import mcp_types as types
from mcp.shared.exceptions import MCPError

from chat.access.oauth.scopes import Scope
from chat.agent.base import InstanceKey
from chat.core.wire.accumulator import tool_name
from chat.http.mcp.callers import McpCaller
from chat.http.mcp.tools import key_named
from chat.instances.rows import find_instance
from chat.models import AgentInstance
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump

SCHEME: Final = "think"
PAGE: Final = 100
MAX_MESSAGES: Final = 200
MAX_CHARACTERS: Final = 400_000
_JSON: Final = "application/json"


async def list_resources(caller: McpCaller, cursor: str | None) -> types.ListResourcesResult:
    """A page of the conversations, the newest first. Errors: `MCPError` without the scope, or for another cursor."""
    _require(caller)
    rows = await db(_page, caller, cursor)
    following = rows[PAGE - 1].pk if len(rows) > PAGE else None
    return types.ListResourcesResult(resources=[_resource(row) for row in rows[:PAGE]], next_cursor=following)


def templates(caller: McpCaller) -> types.ListResourceTemplatesResult:
    """The form of their addresses."""
    template = types.ResourceTemplate(
        name="conversation",
        uri_template=f"{SCHEME}://{caller.agent}/{{name}}",
        description="The newest messages of a conversation, as JSON.",
        mime_type=_JSON,
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(caller: McpCaller, uri: str) -> types.ReadResourceResult:
    """The newest messages of a conversation. Errors: `MCPError`; another's conversation is an unknown one."""
    _require(caller)
    parts = urlsplit(str(uri))
    name = unquote(parts.path.removeprefix("/"))
    if parts.scheme != SCHEME or unquote(parts.netloc) != caller.agent or not name:
        raise MCPError(types.INVALID_PARAMS, "Unknown resource.")
    text = await db(_read, await key_named(caller, name))
    if text is None:
        raise MCPError(types.INVALID_PARAMS, "Unknown resource.")
    content = types.TextResourceContents(uri=str(uri), mime_type=_JSON, text=text)
    return types.ReadResourceResult(contents=[content])


def address_of(agent: str, name: str) -> str:
    """The address of a conversation as a resource."""
    return f"{SCHEME}://{quote(agent, safe='')}/{quote(name, safe='')}"


def _require(caller: McpCaller) -> None:
    if Scope.HISTORY not in caller.scopes:
        raise MCPError(types.INVALID_REQUEST, "This program may not read conversations.")


def _page(caller: McpCaller, cursor: str | None) -> list[AgentInstance]:
    rows = AgentInstance.objects.filter(owner_id=caller.user.pk, agent=caller.agent, parent=None)
    if cursor is not None:
        after = rows.filter(pk=cursor).values_list("active_at", "pk").first()
        if after is None:
            raise MCPError(types.INVALID_PARAMS, "Unknown cursor.")
        older = rows.filter(active_at__lt=after[0])
        rows = older | rows.filter(active_at=after[0], pk__gt=after[1])
    return list(rows.order_by("-active_at", "pk")[: PAGE + 1])


def _resource(row: AgentInstance) -> types.Resource:
    return types.Resource(
        uri=address_of(row.agent, row.name), name=row.name, title=row.title or row.name, mime_type=_JSON
    )


def _read(key: InstanceKey) -> str | None:
    instance = find_instance(key)
    if instance is None or instance.session_id is None:
        return None
    page = selectors.path_page(instance.session_id, limit=MAX_MESSAGES)
    messages: list[JSONObject] = []
    room = MAX_CHARACTERS
    for message in reversed(page.messages):  # the newest have room
        shown = _message(message)
        room -= len(dump(shown))
        if room < 0 and messages:
            break
        messages.insert(0, shown)
    return dump(
        {
            "conversation": instance.name,
            "conversation_id": instance.pk,
            "title": instance.title,
            "has_earlier": page.has_more or len(messages) < len(page.messages),
            "messages": messages,
        }
    )


def _message(message: StoredMessage) -> JSONObject:
    text = "".join(str(part.get("text", "")) for part in message.parts if part.get("type") == "text")
    calls = [
        {"tool": name, "state": part.get("state"), "input": part.get("input"), "output": part.get("output")}
        for part in message.parts
        if (name := tool_name(part))
    ]
    shown: JSONObject = {"id": message.id, "role": str(message.role), "text": text}
    return {**shown, "calls": calls} if calls else shown
