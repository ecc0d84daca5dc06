"""The classes that were declared, by route name. Subclasses register themselves when they are defined."""

from typing import Any

classes: dict[str, type[Any]] = {}


def kebab(name: str) -> str:
    """Make a class name a route name, as the published clients do: `MyChatAgent` is `my-chat-agent`.

    Source: wire protocol 1.1.
    """
    if any(c.isalpha() for c in name) and name.upper() == name:
        return name.lower().replace("_", "-")
    dashed = "".join(f"-{c.lower()}" if "A" <= c <= "Z" else c for c in name)
    return dashed.removeprefix("-").replace("_", "-").removesuffix("-")


def register(agent_class: type[Any]) -> None:
    """Serve a class under its route name. The same class again (a reload of its module) replaces itself.

    Errors: `RuntimeError` when another class has the name; that one is served on.
    """
    name = agent_class.route_name()
    present = classes.get(name, agent_class)
    if _place(present) != _place(agent_class):
        raise RuntimeError(
            f"Two agents claim the route name {name!r}: {_place(present)} and {_place(agent_class)}. "
            "Rename one of the classes."
        )
    classes[name] = agent_class


def _place(agent_class: type[Any]) -> str:
    return f"{agent_class.__module__}.{agent_class.__qualname__}"


def unregister(agent_class: type[Any]) -> None:
    """Forget a class: for tests that define agents."""
    name = agent_class.route_name()
    if classes.get(name) is agent_class:
        del classes[name]
