"""Route name ↔ agent class."""

from chat.agent import declared
from chat.agent.appearance import Appearance, appearance_of
from chat.agent.base import Agent
from chat.errors import AgentNotFound
from thinkproject.kernel.phrases import Phrase


def get_agent_class(name: str) -> type[Agent]:
    """Find the class of a route name. Errors: `AgentNotFound`."""
    try:
        return declared.classes[name]
    except KeyError:
        raise AgentNotFound(Phrase("There is no agent {name!r}.", name=name)) from None


def is_served(name: str) -> bool:
    """Whether there is a class of this route name. Instances whose class is gone can be read and not continued."""
    return name in declared.classes


def list_agents() -> list[Appearance]:
    """All served classes, by title."""
    found = [appearance_of(agent_class) for agent_class in declared.classes.values()]
    return sorted(found, key=lambda shown: shown.title.lower())


def registered_classes() -> list[type[Agent]]:
    """All served classes, for checks."""
    return list(declared.classes.values())
