"""Rules that hold for the agents below a conversation: what is denied to one agent is denied to those that work for it.

The classes above hand their rules down by the address, so they hold however the sub-agent is spoken to. What a turn
denies (`active_tools` of `before_turn`) goes down with the turns that it starts, in their options. A rule only ever
takes away: a sub-agent may be stricter, and never looser.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.errors import TurnConfigInvalid
from tools_app.core.guard.rules import ON, InjectionGuard, strictest
from tools_app.core.tool_names import NOT, check_patterns
from tools_app.errors import ToolDeclarationInvalid

Denied: TypeAlias = tuple[tuple[str, ...], ...]
"""Lists of patterns. A name is denied where the last match of any list is a negation."""

EVERYTHING: Final = ("!*",)
"""Below a class that is gone: its rules are not known, so no tool is left."""

_present: ContextVar[tuple[InstanceKey, Denied] | None] = ContextVar("think_handed_down", default=None)


@contextmanager
def handing_down(key: InstanceKey, denied: Denied) -> Iterator[None]:
    """Have turns that the block starts below this instance get these lists, in this task and those that it starts."""
    token = _present.set((key, denied))
    try:
        yield
    finally:
        _present.reset(token)


def handed_down_to(key: InstanceKey) -> Denied:
    """The lists for a turn of this instance that is started here; none unless an instance above it starts it."""
    present = _present.get()
    if present is None:
        return ()
    above, denied = present
    return denied if any(_is_same(above, each) for each in key.ancestors) else ()


def _is_same(one: InstanceKey, other: InstanceKey) -> bool:
    """Whether these are one address: a key may lack the id of its row."""
    lineages = ([(key.agent, key.name) for key in (*each.ancestors, each)] for each in (one, other))
    return one.owner_id == other.owner_id and next(lineages) == next(lineages)


def denied_above(key: InstanceKey) -> Denied:
    """The lists of `enabled_tools` of the classes above, as far as they take anything away by name.

    Errors: `TurnConfigInvalid` where one of them is no list of patterns.
    """
    return tuple(filter(None, (_denied_by(above.agent) for above in key.ancestors)))


def _denied_by(agent: str) -> tuple[str, ...]:
    if not is_served(agent):
        return EVERYTHING
    patterns = getattr(get_agent_class(agent), "enabled_tools", None)
    return () if patterns is None else negations(patterns, f"enabled_tools of agent {agent!r}")


def negations(patterns: Sequence[str], where: str) -> tuple[str, ...]:
    """A list of patterns that takes anything away by name; empty for one that does not. Errors: `TurnConfigInvalid`."""
    try:
        checked = check_patterns(patterns)
    except ToolDeclarationInvalid as error:
        raise TurnConfigInvalid(f"{where}: {error.message}") from error
    return checked if any(pattern.startswith(NOT) for pattern in checked) else ()


def rules_of(agent: str) -> InjectionGuard:
    """The injection guard that an agent's class has; that of every class, where this one is gone."""
    cls = get_agent_class(agent) if is_served(agent) else Think
    return cls.injection_guard if issubclass(cls, Think) else ON


def guard_below(key: InstanceKey, own: InjectionGuard) -> InjectionGuard:
    """The injection guard of a conversation: `own`, its class's, and no weaker than those of the classes above."""
    return strictest([own, *(rules_of(above.agent) for above in key.ancestors)])
