"""Durable functions by name. A name is a contract: rows that are waiting carry it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from fibers.core.budget import RecoveryBudget
from fibers.errors import UnknownDurable
from thinkproject.kernel.jsonvalue import JSONValue

__all__ = ["durable"]

DurableFunction: TypeAlias = Callable[[Any], Awaitable[JSONValue]]
"""Gets a `FiberContext`."""

BudgetFunction: TypeAlias = Callable[[JSONValue, RecoveryBudget], RecoveryBudget]
"""Gets a fiber's payload and the budget of the settings; returns the fiber's own. Sync."""

BeginFunction: TypeAlias = Callable[[Any], Any]
"""Gets a `FiberContext`, in the transaction of a claim. Sync."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Durable:
    """A registered function with its options."""

    name: str
    function: DurableFunction
    sealed: str = ""
    resume_seconds: float | None = None
    never_started: Callable[[JSONValue], None] | None = None
    begin: BeginFunction | None = None
    budget: BudgetFunction | None = None

    @property
    def source(self) -> str:
        """The function's location, for messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


_durables: dict[str, Durable] = {}
_clashes: list[tuple[Durable, Durable]] = []


def durable(
    name: str,
    *,
    sealed: str = "",
    resume_seconds: float | None = None,
    never_started: Callable[[JSONValue], None] | None = None,
    begin: BeginFunction | None = None,
    budget: BudgetFunction | None = None,
) -> Callable[[DurableFunction], DurableFunction]:
    """Register an async function under a name, so that a fiber can run it in any process.

    **Shape:** `sealed` names another durable function. When a fiber that had started ends without its function having
    ended it (abandoned by recovery, cancelled while no worker ran it or where it did not answer with `Cancelled`, out
    of retries), a fiber of that name is started in the same transaction, with the payload
    `{"fiber_id", "name", "payload", "status", "reason"}`. `never_started` is called with the payload, inside the
    transaction that cancels a fiber which never ran. `begin` is called with the context in the transaction of each
    claim, and what it returns is `FiberContext.begun`; when it raises, its work is undone and the function runs without
    it. `budget` decides, each time a fiber lost its worker, how often that may happen.

    **Units:** a fiber that was started and then lay for longer than `resume_seconds` is sealed, not resumed.
    **Errors:** never raises; the same name twice is the system check `fibers.E001`.
    """

    def register(function: DurableFunction) -> DurableFunction:
        entry = Durable(
            name=name,
            function=function,
            sealed=sealed,
            resume_seconds=resume_seconds,
            never_started=never_started,
            begin=begin,
            budget=budget,
        )
        known = _durables.get(name)
        if known is not None and known.source != entry.source:
            _clashes.append((known, entry))
        _durables[name] = entry
        return function

    return register


def find_durable(name: str) -> Durable | None:
    """The function registered under a name, or `None`."""
    return _durables.get(name)


def get_durable(name: str) -> Durable:
    """The function registered under a name. Errors: `UnknownDurable`."""
    found = _durables.get(name)
    if found is None:
        raise UnknownDurable(f"no durable function is named {name!r}")
    return found


def durables() -> list[Durable]:
    """All registered functions, by name."""
    return [_durables[name] for name in sorted(_durables)]


def clashes() -> list[tuple[Durable, Durable]]:
    """Pairs of functions that claim the same name."""
    return list(_clashes)


def resume_windows() -> dict[str, float]:
    """Name to seconds, of the functions that declare `resume_seconds`."""
    return {entry.name: entry.resume_seconds for entry in durables() if entry.resume_seconds is not None}


def forget(name: str) -> None:
    """Take a name out again. For tests."""
    _durables.pop(name, None)
    _clashes[:] = [pair for pair in _clashes if pair[0].name != name]
