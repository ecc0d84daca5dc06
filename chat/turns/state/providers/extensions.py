"""The tools of a turn that extensions give, and those with which a model loads and lists extensions."""

from functools import partial

from chat.agent.think import Think
from chat.turns.state.tool_providers import ToolRequest
from chat.user_code.extension_services import AgentServices
from chat.user_code.extensions import extensions_of
from tools_app.core.tool import Tool
from tools_app.core.toolset import ToolSource
from tools_app.extensions.host import Place
from tools_app.extensions.load_tools import load_tools
from tools_app.extensions.tools import extension_tools


async def tools_of_extensions(request: ToolRequest) -> ToolSource:
    """Give them. A name that another source has already stays that one's: no extension gets its calls."""
    agent = request.agent
    loaded = await extensions_of(agent)
    ours = model_tools(agent) if agent.extensions else []
    if not loaded:
        return ours
    place = Place(owner_id=agent.key.owner_id, scope=agent.key.instance_id, turn_id=agent.host.turn_id)
    taken = request.taken | {tool.name for tool in ours}
    return [*extension_tools(loaded, AgentServices(agent), place, taken=taken), *ours]


def model_tools(agent: Think) -> list[Tool]:
    """The tools of a model that may ask for extensions."""
    operations = agent.host.extensions_of(agent)
    return load_tools(partial(operations.load, via="model"), operations.list_all)
