"""The tools that an agent offers to programs: `chat`, and those of its own that its class names."""

import logging
from collections.abc import Sequence
from typing import Any, Final

import mcp_types as types
from django.utils.translation import gettext as _

from chat.access.oauth.scopes import Scope
from chat.agent.base import InstanceKey
from chat.agent.think import Think
from chat.errors import AgentNotFound, WorkspaceMissing
from chat.http.mcp.callers import McpCaller
from chat.http.oauth.addresses import offered_agents, title_of
from chat.instance.instance import started_agent
from chat.instance.resolve import resolve
from chat.instances.addresses import Address
from chat.instances.rows import ensure_instance, ensure_session, key_of
from chat.models import AgentInstance
from chat.turns.tools.providers import ToolRequest, gather_tools
from chat.user_code.workspace import workspace_of
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.source import Source
from tools_app.core.tool import Tool
from tools_app.core.tool_names import check_patterns, names_source

logger = logging.getLogger(__name__)

CHAT: Final = "chat"
MAX_TOOLS: Final = 200
MAX_MESSAGE: Final = 100_000
CALLS: Final = "mcp-tools"
"""Name of the conversation in which tools run that programs call."""

_STATUSES: Final = ["completed", "waiting", "stopped", "failed"]
CHAT_INPUT: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "minLength": 1, "maxLength": MAX_MESSAGE, "description": "What to say."},
        "conversation": {
            "type": "string",
            "maxLength": 200,
            "description": "Name of a conversation to go on in, as an earlier answer gave it. A new one without it.",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}
CHAT_OUTPUT: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": _STATUSES},
        "answer": {"type": "string"},
        "conversation": {"type": "string"},
        "conversation_id": {"type": "string"},
        "turn_id": {"type": "string"},
        "waits_for": {"type": "array", "items": {"type": "string"}},
        "page": {"type": "string"},
    },
    "required": ["status", "answer", "conversation", "conversation_id", "turn_id"],
}


async def list_tools(caller: McpCaller) -> list[types.Tool]:
    """The tools that this caller may call, at most `MAX_TOOLS`. Errors: those of the agent's code."""
    found = [_chat_tool(caller)] if Scope.CHAT in caller.scopes else []
    if Scope.TOOLS in caller.scopes:
        found += [_described(tool) for tool in await own_tools(caller)]
    if len(found) > MAX_TOOLS:
        logger.warning("tools left out", extra={"action": "mcp_tools_left_out", "agent": caller.agent})
    return found[:MAX_TOOLS]


async def own_tools(caller: McpCaller) -> list[Tool]:
    """The agent's tools that its class lets programs call. Those that clients run are none of them."""
    patterns = patterns_of(caller.agent)
    if not patterns:
        return []
    instance = await db(ensure_calls, await key_named(caller, CALLS))
    agent = await started_agent(key_of(instance))
    if not isinstance(agent, Think):
        raise AgentNotFound
    context = await agent.instance.open_context(instance.session_id)
    state = await context.state()
    workspace = None
    if agent.workspace_tools:
        try:
            workspace = await workspace_of(agent)
        except WorkspaceMissing:
            workspace = None
    asked = ToolRequest(
        agent=agent,
        context=context,
        state=state,
        client_tools=(),
        workspace=workspace,
        has_mcp_servers=names_source(check_patterns(patterns), Source.MCP),
    )
    merged = (await gather_tools(asked)).merged()
    return [tool for tool in merged.only(agent.enabled_tools).granted(patterns) if _is_callable(tool)]


def patterns_of(agent: str) -> Sequence[str]:
    """The patterns of an agent's class for tools; none where it offers only itself."""
    declared = offered_agents()[agent].mcp_server
    return () if isinstance(declared, bool) else declared  # one text alone is no list: `granted` refuses it


async def key_named(caller: McpCaller, name: str) -> InstanceKey:
    """The address of the caller's conversation of this name. Errors: `AgentNotFound`, `AgentUnavailable`."""
    return await resolve(caller.user.pk, Address(agent=caller.agent, name=name))


def ensure_calls(key: InstanceKey) -> AgentInstance:
    """The conversation of calls, made if there is none. Errors: `QuotaExceeded`."""
    instance = ensure_instance(key, title=_("Calls of programs"))
    ensure_session(instance)
    return instance


def _is_callable(tool: Tool) -> bool:
    return not tool.is_client and tool.name != CHAT


def _chat_tool(caller: McpCaller) -> types.Tool:
    agent_class = offered_agents()[caller.agent]
    title = title_of(caller.agent)
    about = str(agent_class.description or "")
    return types.Tool(
        name=CHAT,
        title=title,
        description=f"Ask {title} and wait for the answer. {about}".strip(),
        input_schema=CHAT_INPUT,
        output_schema=CHAT_OUTPUT,
        annotations=types.ToolAnnotations(title=title, read_only_hint=False, open_world_hint=True),
    )


def _described(tool: Tool) -> types.Tool:
    hints: dict[str, Any] = {"read_only_hint": tool.read_only, "open_world_hint": tool.open_world}
    return types.Tool(
        name=tool.name,
        title=tool.title or None,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=types.ToolAnnotations(title=tool.title or None, **hints),
    )
