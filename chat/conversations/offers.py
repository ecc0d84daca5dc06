"""The tools of an agent class and its reach, in words, before a conversation with it has begun."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.agent.appearance import appearance_of
from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.instance.instance import started_agent
from chat.user_code.call_hook import call_hook, user_code_boundary
from tools_app.core.permissions.rules import Permission, RuleAction
from tools_app.core.tool import Tool
from tools_app.core.toolset import named_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool of the class. `name`: as models call it; `title`: empty where it has none. `asks`: a person first."""

    name: str
    title: str
    asks: bool
    changes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The tools of a class, and sentences about its reach."""

    tools: list[OfferedTool]
    reach: list[str]


async def offers_of(key: InstanceKey) -> Offers:
    """Ask a class for its tools, as a turn would. `key`: of any conversation with it; nothing is written.

    Errors: `AgentNotFound`, `AgentCodeFailed`.
    """
    agent = await started_agent(key)
    if not isinstance(agent, Think):
        return Offers(tools=[], reach=[])
    given = await call_hook(agent, "get_tools")
    with user_code_boundary("get_tools", type(agent)):  # a generator runs now
        own = list(named_tools(given))
    tools = [
        OfferedTool(
            name=tool.name,
            title=str(tool.title),
            asks=tool.needs_approval is not False,
            changes=not (tool.read_only or tool.asks_person),
        )
        for tool in own
    ]
    return Offers(tools=tools, reach=_reach(type(agent), own))


def _reach(agent: type[Think], own: Sequence[Tool]) -> list[str]:
    """Sentences about the class's declarations."""
    found = []
    if agent.workspace_tools:
        found.append(
            _("It reads and changes the files of its workspace, and runs commands on them, apart from this machine.")
        )
    if agent.code_tool:
        found.append(_("It runs code in a sandbox."))
    if any(tool.open_world for tool in own):
        found.append(_("What it looks up or sends may leave this installation."))
    if agents := [_title(each) for each in agent.agents]:
        found.append(_("It has others work for it: %(names)s.") % {"names": ", ".join(agents)})
    if asks := _keys(agent.permissions, RuleAction.ASK):
        found.append(_("It asks you first: %(names)s.") % {"names": asks})
    if denied := _keys(agent.permissions, RuleAction.DENY):
        found.append(_("It may not use: %(names)s.") % {"names": denied})
    return found


def _title(agent: object) -> str:
    reference = getattr(agent, "agent", agent)
    name = reference if isinstance(reference, str) else reference.route_name()  # type: ignore[attr-defined]  # a class
    return appearance_of(get_agent_class(name)).title if is_served(name) else name


def _keys(rules: Sequence[Permission], action: RuleAction) -> str:
    """The keys of the rules of an action, each once."""
    said = [
        rule.key if rule.pattern == "*" else f"{rule.key} {rule.pattern}" for rule in rules if rule.action is action
    ]
    return ", ".join(dict.fromkeys(said))
