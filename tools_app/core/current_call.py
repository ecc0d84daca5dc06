"""The call in whose course code runs: what a tool's own code reaches without being given its context."""

import itertools
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from tools_app.core.tool import ToolContext


@dataclass(frozen=True, slots=True)
class CurrentCall:
    """A running call. `ordinals`: numbers for what it does several times, from 0, the same when it runs again."""

    context: ToolContext
    ordinals: Iterator[int] = field(default_factory=itertools.count)


_present: ContextVar[CurrentCall | None] = ContextVar("think_current_call", default=None)


def enter_call(context: ToolContext) -> None:
    """Make this the current call of the running task and those that it starts."""
    _present.set(CurrentCall(context))


def current_call() -> CurrentCall | None:
    """The call that is running here, if one is."""
    return _present.get()
