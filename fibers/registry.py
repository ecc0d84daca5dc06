"""Durable functions by name. A name is a contract: rows that are waiting carry it."""

from collections.abc import Awaitable, Callable, Collection
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

QueueFunction: TypeAlias = Callable[[str], str]
"""Gets the full name of a fiber; returns the queue of its messages, empty for that of all workers. Must be pure."""

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
    retries_at_once: bool = False
    interrupts_when_lost: bool = False
    members: Callable[[], Collection[str]] | None = None  # of a family: what may follow its name and a colon
    budget: BudgetFunction | None = None
    queue: QueueFunction | None = None  # of the messages about its fibers; `None`: that of all workers

    @property
    def source(self) -> str:
        """The function's location, for messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


_durables: dict[str, Durable] = {}
_clashes: list[tuple[Durable, Durable]] = []
_served: frozenset[str] | None = None


def durable(  # noqa: PLR0913 - one keyword for each thing a function may declare
    name: str,
    *,
    sealed: str = "",
    resume_seconds: float | None = None,
    never_started: Callable[[JSONValue], None] | None = None,
    begin: BeginFunction | None = None,
    retries_at_once: bool = False,
    interrupts_when_lost: bool = False,
    members: Callable[[], Collection[str]] | None = None,
    budget: BudgetFunction | None = None,
    queue: QueueFunction | None = None,
) -> Callable[[DurableFunction], DurableFunction]:
    """Register an async function under a name, so that a fiber can run it in any process.

    **Shape:** `sealed` names another durable function. When a fiber that had started ends without its function having
    ended it (abandoned by recovery, cancelled while no worker ran it or where it did not answer with `Cancelled`, out
    of retries), a fiber of that name is started in the same transaction, with the payload
    `{"fiber_id", "name", "payload", "status", "reason"}`. `never_started` is called with the payload, inside the
    transaction that cancels a fiber which never ran. `begin` is called with the context in the transaction of each
    claim, and what it returns is `FiberContext.begun`; when it raises, its work is undone and the function runs without
    it. `retries_at_once`: a function that failed and may try again does so without a pause. `interrupts_when_lost`:
    when its worker is lost the fiber is interrupted with the reason `worker_lost`, and the `sealed` function decides
    what follows. `members` makes it a family: the function runs the fibers named `<name>:<member>`, and a worker claims
    those whose members it has; asked before each claim, so it must be quick. `budget` decides, each time a fiber lost
    its worker, how often that may happen. `queue` names the queue of the messages about a fiber, so that they reach a
    process that has the function; a worker takes the fibers of the queues that it listens to. **Units:** a fiber that
    was started and then lay for longer than `resume_seconds` is sealed, not resumed. **Errors:** never raises; the same
    name twice is the system check `fibers.E001`.
    """

    def register(function: DurableFunction) -> DurableFunction:
        entry = Durable(
            name=name,
            function=function,
            sealed=sealed,
            resume_seconds=resume_seconds,
            never_started=never_started,
            begin=begin,
            retries_at_once=retries_at_once,
            interrupts_when_lost=interrupts_when_lost,
            members=members,
            budget=budget,
            queue=queue,
        )
        known = _durables.get(name)
        if known is not None and known.source != entry.source:
            _clashes.append((known, entry))
        _durables[name] = entry
        return function

    return register


def find_durable(name: str) -> Durable | None:
    """The function registered under a name or for the family of it, or `None`."""
    found = _durables.get(name)
    if found is not None:
        return found if found.members is None else None
    family = _durables.get(name.partition(":")[0])
    return family if family is not None and family.members is not None else None


def get_durable(name: str) -> Durable:
    """The function registered under a name. Errors: `UnknownDurable`."""
    found = find_durable(name)
    if found is None:
        raise UnknownDurable(f"no durable function is named {name!r}")
    return found


def queue_of(name: str) -> str:
    """The queue of the messages about fibers of this name; empty: that of all workers."""
    entry = find_durable(name)
    return "" if entry is None or entry.queue is None else entry.queue(name)


def serve_queues(queues: Collection[str] | None) -> None:
    """Have this process take the fibers of these queues alone; `None`: of all. Empty: the queue of all workers."""
    global _served  # noqa: PLW0603 - one for each process, as the registry
    _served = None if queues is None else frozenset(queues)


def own_queues() -> set[str]:
    """The queues of all functions that this process has, without that of all workers."""
    return {queue for queue in map(queue_of, known_names()) if queue}


def served_queues() -> list[str]:
    """The queues whose fibers this process takes; empty: that of all workers."""
    return sorted({"", *own_queues()} if _served is None else _served)


def served_names() -> list[str]:
    """The names of fibers that this process takes: those it has a function for, of the queues that it listens to."""
    names, served = known_names(), _served
    return names if served is None else [name for name in names if queue_of(name) in served]


def known_names() -> list[str]:
    """All names of fibers that this process can run, families by their members."""
    names: list[str] = []
    for entry in _durables.values():
        if entry.members is None:
            names.append(entry.name)
        else:
            names += [f"{entry.name}:{member}" for member in entry.members()]
    return names


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
