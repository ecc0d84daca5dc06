"""The tools of a turn that extensions give, and those with which a model loads and lists extensions."""

from collections.abc import Collection

from chat.agent.think import Think
from chat.turns.tools.providers import ToolRequest
from chat.user_code.extension_services import AgentServices
from chat.user_code.extensions import extensions_of
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.code.names import identifier
from tools_app.core.extensions.manifest import Manifest
from tools_app.core.tool import Tool
from tools_app.core.tool_names import check_patterns, selects
from tools_app.core.toolset import ToolSource
from tools_app.extensions.host import ExtensionPlace
from tools_app.extensions.load_tools import LIST, LOAD, load_tools
from tools_app.extensions.tools import extension_tools
from tools_app.models.extensions import ExtensionLevel


async def tools_of_extensions(request: ToolRequest) -> ToolSource:
    """Give them. A name that another source has already stays that one's: no extension gets its calls."""
    agent = request.agent
    loaded = await extensions_of(agent)
    asked_by = agent.instance.asked_by
    if asked_by is not None:  # extensions of the owner's own conversations are not a member's
        loaded = tuple(each for each in loaded if each.level != ExtensionLevel.USER)
    ours = model_tools(agent, request.taken) if agent.extensions and asked_by is None else []
    if not loaded:
        return ours
    place = ExtensionPlace(owner_id=agent.key.owner_id, scope=agent.key.instance_id, turn_id=agent.instance.turn_id)
    taken = request.taken | {tool.name for tool in ours}
    return [*extension_tools(loaded, AgentServices(agent), place, taken=taken), *ours]


def model_tools(agent: Think, taken: Collection[str] = ()) -> list[Tool]:
    """The tools of a model that may ask for extensions. `taken`: names of other tools, which no extension gets."""
    operations = agent.instance.extensions
    others = {identifier(name) for name in (*taken, LOAD, LIST)}

    def shown(extension: JSONObject) -> JSONObject:
        names: list[str] = extension["tools"]
        kept = [name for name in names if identifier(name) not in others and _is_enabled(agent, name)]
        left_out = [name for name in names if name not in kept]
        return {**extension, "tools": kept} | ({"notOffered": left_out} if left_out else {})

    async def load(manifest: Manifest, source: str, *, replaces: bool) -> JSONObject:
        return shown(await operations.load(manifest, source, replaces=replaces, via="model"))

    async def list_all() -> list[JSONObject]:
        return [shown(extension) for extension in await operations.list_all()]

    return load_tools(load, list_all)


def _is_enabled(agent: Think, name: str) -> bool:
    return agent.enabled_tools is None or selects(check_patterns(agent.enabled_tools), name)
