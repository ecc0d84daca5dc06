"""The looks of an agent: title, description, symbol and suggestions, as its class declares them.

Texts may be lazy translations; they become text when they are asked for, in the language of that moment. Needs no
Django.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from chat.agent import declared
from chat.core.commands import Command

if TYPE_CHECKING:
    from chat.agent.base import Agent

ICONS: Final = (
    "chat",
    "book",
    "bulb",
    "calendar",
    "cart",
    "chart",
    "code",
    "edit",
    "file",
    "globe",
    "heart",
    "home",
    "mail",
    "memory",
    "people",
    "search",
    "shield",
    "tool",
)
"""The symbols of the page that an agent may have; each is `i-NAME` in `templates/chat/icons.svg`."""

DEFAULT_ICON: Final = ICONS[0]
MAX_TITLE: Final = 60
MAX_DESCRIPTION: Final = 200
MAX_SUGGESTIONS: Final = 6
MAX_SUGGESTION: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """An agent class as people see it. `icon`: one of `ICONS`, or the path of a static file.

    `is_listed`: people are offered it to begin a conversation with. `delivery`: what messages do while it answers,
    where they say nothing else: queue, steer or interrupt.
    """

    name: str
    title: str
    description: str
    icon: str
    suggestions: tuple[str, ...]
    is_listed: bool
    delivery: Literal["queue", "steer", "interrupt"] = "queue"
    commands: tuple[Command, ...] = ()  # besides those that every conversation has
    has_shell: bool = False  # what begins with a `!` is run
    thread_agent: str = ""  # route name of the agent of its threads, where it keeps threads


def appearance_of(agent_class: "type[Agent]") -> Appearance:
    """Read what a class declares; a class that declares nothing has a title and a description all the same."""
    title, description = _text(agent_class.title), _text(agent_class.description)
    return Appearance(
        name=agent_class.route_name(),
        title=title or declared.kebab(agent_class.__name__).replace("-", " ").capitalize(),
        description=description or (agent_class.__dict__.get("__doc__") or "").strip().partition("\n")[0],
        icon=agent_class.icon or DEFAULT_ICON,
        suggestions=tuple(text for each in agent_class.suggestions if (text := _text(each))),
        is_listed=agent_class.listed,
        delivery=_delivery(getattr(agent_class, "message_concurrency", "queue")),
        commands=tuple(getattr(agent_class, "commands", ())),
        has_shell=bool(getattr(agent_class, "user_shell", "")),
        thread_agent=_route(getattr(agent_class, "thread_agent", "")),
    )


def _delivery(concurrency: Any) -> Literal["queue", "steer", "interrupt"]:
    if concurrency == "steer":
        return "steer"
    return "interrupt" if concurrency == "interrupt" else "queue"


def _route(agent: Any) -> str:
    return agent if isinstance(agent, str) else str(agent.route_name())


def is_symbol(icon: str) -> bool:
    """Whether an icon is a symbol of the page, and not a file."""
    return icon in ICONS


def problems_of(agent_class: "type[Agent]") -> list[str]:
    """Declarations that cannot be shown; whether an icon's file exists is not looked at."""
    limits = {"title": MAX_TITLE, "description": MAX_DESCRIPTION}
    found = [
        problem for name, limit in limits.items() if (problem := _text_problem(name, getattr(agent_class, name), limit))
    ]
    icon: Any = agent_class.icon
    if not isinstance(icon, str) or (icon and not is_symbol(icon) and not _is_path(icon)):
        found.append(f"icon must be one of {', '.join(ICONS)}, or the path of a static file, not {icon!r}.")
    listed: Any = agent_class.listed
    if not isinstance(listed, bool):
        found.append(f"listed must be True or False, not {listed!r}.")
    suggestions: Any = agent_class.suggestions
    if isinstance(suggestions, str) or not isinstance(suggestions, Sequence):
        return [*found, f"suggestions must be a tuple of texts, not {suggestions!r}."]
    if len(suggestions) > MAX_SUGGESTIONS:
        found.append(f"suggestions must be at most {MAX_SUGGESTIONS}, not {len(suggestions)}.")
    return found + [
        problem for each in suggestions if (problem := _text_problem("a suggestion", each, MAX_SUGGESTION, least=1))
    ]


def _text_problem(name: str, value: Any, limit: int, *, least: int = 0) -> str:
    if callable(value) or isinstance(value, property | classmethod | staticmethod):
        return f"{name} is a text now, and no method: write {name} = ..., not {value!r}."
    text = str(value).strip()
    if not least <= len(text) <= limit or "\n" in text:
        return f"{name} must be one line of {least} to {limit} characters, not {text[:limit]!r} ({len(text)})."
    return ""


def _text(value: Any) -> str:
    return "" if callable(value) else " ".join(str(value).split())


def _is_path(icon: str) -> bool:
    """Whether this could name a static file: relative, inside of the static files, with an extension."""
    parts = icon.split("/")
    return "." in parts[-1] and ":" not in icon and "\\" not in icon and not {"", ".", ".."} & set(parts)
