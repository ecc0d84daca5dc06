"""The effects of this process, by name. `declaring` adds them, `looking` finds their events, `running` runs them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from django.db.models import Model, QuerySet

from fibers.context import FiberContext
from fibers.core.effects import EffectKind
from thinkproject.kernel.jsonvalue import JSONValue

FAMILY: Final = "effect"
"""Name of the durable functions that run handlers: `effect:<name>`."""

Handler: TypeAlias = Callable[[Any], Awaitable[None] | None]
"""Gets an `EffectEvent`, or with `batch` a list of them. Async, or sync on a thread of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectEvent:
    """One entry, change or exit of a row.

    `row` is the row as it is now; `None` for one that left and was deleted. `previous` is the fingerprint before a
    change or an exit. `key` is the same each time this event is run, and of this event alone: hand it to systems that
    take idempotency keys. `fiber` is what runs it, for steps and for writing with a record (`fiber.fenced`).
    """

    effect: str
    kind: EffectKind
    object_pk: str
    row: Any
    previous: JSONValue
    key: str
    fiber: FiberContext


@dataclass(slots=True, kw_only=True, eq=False)
class RowEffect:
    """A registered effect. Made by `create_effect`."""

    name: str
    queryset: Callable[[], QuerySet[Any]]
    model: type[Model]
    handlers: dict[EffectKind, Handler]
    batch: int = 0
    skip_initial: bool = False
    fingerprint: Callable[[Any], JSONValue] | None = None
    max_retries: int = 3
    unwatch: Callable[["RowEffect"], None]
    is_stored: bool = False  # a sweep of this process has seen to its row
    running: int = 0  # handlers at work in this process
    idle: threading.Event = field(default_factory=threading.Event)

    async def dispose(self) -> None:
        """Take nothing more in this process, and return once the handlers that run here have ended. Twice is once.

        **Durability:** entries and events stay. Another process that declares the effect goes on with them.
        """
        with _lock:
            was_known = _effects.get(self.name) is self
            if was_known:
                del _effects[self.name]
            if not self.running:
                self.idle.set()
        if was_known:
            self.unwatch(self)
        await asyncio.to_thread(self.idle.wait)


_effects: dict[str, RowEffect] = {}
_lock = threading.Lock()


def add(effect: RowEffect) -> bool:
    """Register an effect; false where its name is taken."""
    with _lock:
        return _effects.setdefault(effect.name, effect) is effect


def find_effect(name: str) -> RowEffect | None:
    """The effect of this process with this name, or `None`."""
    return _effects.get(name)


def effect_names() -> Collection[str]:
    """Names of this process's effects."""
    return list(_effects)


def effects() -> list[RowEffect]:
    """The effects of this process."""
    return list(_effects.values())


def begin_run(name: str) -> RowEffect | None:
    """The effect, whose `dispose` waits from now on for `end_run`; `None` where this process has it no more."""
    with _lock:
        effect = _effects.get(name)
        if effect is not None:
            effect.running += 1
        return effect


def end_run(effect: RowEffect) -> None:
    """Count the end of a run."""
    with _lock:
        effect.running -= 1
        if not effect.running and _effects.get(effect.name) is not effect:
            effect.idle.set()
