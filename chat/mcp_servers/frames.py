"""The MCP servers of a conversation as frames show them."""

from chat.agent.base import InstanceKey
from chat.core.wire.extension_frames import McpPrompt, McpResource, McpServer, McpState, McpTool
from chat.instances.rows import find_instance
from tools_app.core.mcp.servers import McpServerView
from tools_app.mcp import selectors


def mcp_state(key: InstanceKey) -> McpState:
    """Read them: those of the conversation, of its owner and of the site. Disabled ones have no tools."""
    instance = find_instance(key)
    views = selectors.views_for("" if instance is None else instance.pk, key.owner_id)
    shown = [view for view in views if view.is_enabled]
    return McpState(
        servers={view.id: _server(view) for view in views},
        tools=[McpTool.model_validate({**each, "serverId": view.id}) for view in shown for each in view.tools],
        prompts=[McpPrompt.model_validate({**each, "serverId": view.id}) for view in shown for each in view.prompts],
        resources=[
            McpResource.model_validate({**each, "serverId": view.id}) for view in shown for each in view.resources
        ],
    )


def _server(view: McpServerView) -> McpServer:
    return McpServer(
        name=view.name,
        server_url=view.url,
        auth_url=view.auth_url,
        state=view.state.value,
        error=view.error,
        instructions=view.instructions,
        capabilities=view.capabilities or None,
    )
