"""The classes that were declared, by route name. Subclasses register themselves when they are defined.

A clash is kept for the system check (`chat.E001`), which names both modules; it does not crash an import.
"""

from typing import Any

classes: dict[str, type[Any]] = {}
clashes: list[tuple[str, type[Any], type[Any]]] = []


def kebab(name: str) -> str:
    """Make a class name a route name, as the published clients do: `MyChatAgent` is `my-chat-agent`.

    Source: wire protocol 1.1.
    """
    if any(c.isalpha() for c in name) and name.upper() == name:
        return name.lower().replace("_", "-")
    dashed = "".join(f"-{c.lower()}" if "A" <= c <= "Z" else c for c in name)
    return dashed.removeprefix("-").replace("_", "-").removesuffix("-")


def register(agent_class: type[Any]) -> None:
    """Serve a class under its route name. The same class again (a reload of its module) replaces itself."""
    name = agent_class.route_name()
    present = classes.get(name)
    if present is not None and _identity(present) != _identity(agent_class):
        clashes.append((name, present, agent_class))
        return
    classes[name] = agent_class


def _identity(agent_class: type[Any]) -> tuple[str, str]:
    return agent_class.__module__, agent_class.__qualname__


def unregister(agent_class: type[Any]) -> None:
    """Forget a class and its clashes: for tests that define agents."""
    name = agent_class.route_name()
    if classes.get(name) is agent_class:
        del classes[name]
    clashes[:] = [clash for clash in clashes if agent_class not in clash[1:]]
