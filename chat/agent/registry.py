"""Route name ↔ agent class.

Subclasses register themselves when they are defined. A clash is kept for the system check (`chat.E001`), which names
both modules; it does not crash an import.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chat.errors import AgentNotFound

if TYPE_CHECKING:
    from chat.agent.base import Agent

_classes: dict[str, "type[Agent]"] = {}
_clashes: list[tuple[str, "type[Agent]", "type[Agent]"]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """What lists show of an agent class."""

    name: str
    title: str
    description: str


def kebab(name: str) -> str:
    """Make a class name a route name, as the published clients do: `MyChatAgent` is `my-chat-agent`.

    Source: wire protocol 1.1.
    """
    if any(c.isalpha() for c in name) and name.upper() == name:
        return name.lower().replace("_", "-")
    dashed = "".join(f"-{c.lower()}" if "A" <= c <= "Z" else c for c in name)
    return dashed.removeprefix("-").replace("_", "-").removesuffix("-")


def register(agent_class: "type[Agent]") -> None:
    """Serve a class under its route name. The same class again (a reload of its module) replaces itself."""
    name = agent_class.route_name()
    present = _classes.get(name)
    if present is not None and _identity(present) != _identity(agent_class):
        _clashes.append((name, present, agent_class))
        return
    _classes[name] = agent_class


def _identity(agent_class: "type[Agent]") -> tuple[str, str]:
    return agent_class.__module__, agent_class.__qualname__


def unregister(agent_class: "type[Agent]") -> None:
    """Forget a class and its clashes: for tests that define agents."""
    name = agent_class.route_name()
    if _classes.get(name) is agent_class:
        del _classes[name]
    _clashes[:] = [clash for clash in _clashes if agent_class not in clash[1:]]


def get_agent_class(name: str) -> "type[Agent]":
    """Find the class of a route name. Errors: `AgentNotFound`."""
    try:
        return _classes[name]
    except KeyError:
        raise AgentNotFound(f"There is no agent {name!r}.") from None


def is_served(name: str) -> bool:
    """Whether there is a class of this route name. Instances whose class is gone can be read and not continued."""
    return name in _classes


def list_agents() -> list[AgentInfo]:
    """All served classes, by title."""
    infos = [
        AgentInfo(name=name, title=agent_class.title(), description=agent_class.description())
        for name, agent_class in _classes.items()
    ]
    return sorted(infos, key=lambda info: info.title.lower())


def registered_classes() -> "list[type[Agent]]":
    """All served classes, for checks."""
    return list(_classes.values())


def clashes() -> "list[tuple[str, type[Agent], type[Agent]]]":
    """Route names that two classes claim: name, the class that is served, the one that is not."""
    return list(_clashes)
