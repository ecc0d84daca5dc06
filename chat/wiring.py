"""The connections between rooms that do not import each other, made once when the app is ready."""

from chat.extensions.tools import tools_of_extensions
from chat.instance.handle import AgentHandle
from chat.mcp_servers.tools import tools_of_servers
from chat.schedules.tools import tools_of_schedules
from chat.sub_agents.service import InstanceSubAgents
from chat.turns.tools import own_sources
from chat.turns.tools.providers import register
from tools_app.core.source import Source


def wire() -> None:
    """Give each source of tools its provider, and agents the handles of other agents."""
    register(Source.WORKSPACE, own_sources.tools_of_workspace)
    register(Source.SCHEDULES, tools_of_schedules)
    register(Source.AGENT, own_sources.tools_of_agent)
    register(Source.EXTENSIONS, tools_of_extensions)
    register(Source.SESSION, own_sources.tools_of_session)
    register(Source.SKILLS, own_sources.tools_of_skills)
    register(Source.MCP, tools_of_servers)
    register(Source.CLIENT, own_sources.tools_of_client)
    register(Source.CALLER, own_sources.tools_of_caller)
    InstanceSubAgents.handle_of = AgentHandle
