"""Route name ↔ agent class."""

from dataclasses import dataclass

from chat.agent import declared
from chat.agent.base import Agent
from chat.errors import AgentNotFound
from thinkproject.kernel.phrases import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """An agent class as lists show it."""

    name: str
    title: str
    description: str


def get_agent_class(name: str) -> type[Agent]:
    """Find the class of a route name. Errors: `AgentNotFound`."""
    try:
        return declared.classes[name]
    except KeyError:
        raise AgentNotFound(Phrase("There is no agent {name!r}.", name=name)) from None


def is_served(name: str) -> bool:
    """Whether there is a class of this route name. Instances whose class is gone can be read and not continued."""
    return name in declared.classes


def list_agents() -> list[AgentInfo]:
    """All served classes, by title."""
    infos = [
        AgentInfo(name=name, title=agent_class.title(), description=agent_class.description())
        for name, agent_class in declared.classes.items()
    ]
    return sorted(infos, key=lambda info: info.title.lower())


def registered_classes() -> list[type[Agent]]:
    """All served classes, for checks."""
    return list(declared.classes.values())


def clashes() -> list[tuple[str, type[Agent], type[Agent]]]:
    """Route names claimed by two classes: the name, the served class, the hidden class."""
    return list(declared.clashes)
