"""May this turn run, and how much of it: one ordered seam, asked at admission and before each model step.

`THINK_TURN_POLICIES` names classes in order; the first that raises decides. Built in: turns a minute for each user, and
the budget of a session.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Protocol

from django.utils import timezone
from django.utils.module_loading import import_string

from chat.agent.base import InstanceKey
from chat.core.durable_names import COMPACT_FIBER, SUMMARY_FIBER, TURN_FIBER
from chat.errors import BudgetReached, QuotaExceeded
from chat.instances.rows import find_instance
from chat.instances.spending import session_spending
from chat.models import AgentInstance
from chat.turns.conf import turn_settings
from fibers.context import current_fiber
from fibers.models import Fiber
from thinkproject.kernel.jsonvalue import load
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.statements import Columns, Statement, read_instant

_NOTHING: Final = Decimal(0)
COUNTED: Final = {"is_counted": True}  # in the metadata of a fiber that a person asked for: it counts like a message
DELEGATED: Final = {"is_delegated": True}  # in the metadata of a turn that an agent or durable code has started
_delegating: ContextVar[bool | None] = ContextVar("think_delegating", default=None)


@contextmanager
def delegating() -> Iterator[None]:
    """Have the turns that are admitted within the block count as delegated."""
    token = _delegating.set(True)
    try:
        yield
    finally:
        _delegating.reset(token)


_asked_by: ContextVar[Any] = ContextVar("think_asked_by", default=None)


@contextmanager
def asked_by(user_id: Any) -> Iterator[None]:
    """Have the turn that is admitted within the block count for this member, and not for the owner. None: the owner."""
    token = _asked_by.set(user_id)
    try:
        yield
    finally:
        _asked_by.reset(token)


@contextmanager
def asked_by_owner() -> Iterator[None]:
    """Have the turns that are admitted within the block count as the owner's own, also where durable code admits them.

    For what a person, or a model for that person, has planned: a plan would else be a way round the person's pace.
    """
    token = _delegating.set(False)
    try:
        yield
    finally:
        _delegating.reset(token)


def is_delegated() -> bool:
    """Whether a turn that is admitted here is started by an agent or by durable code, and not by a person."""
    known = _delegating.get()
    return current_fiber() is not None if known is None else known


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSoFar:
    """A turn before its next model call: number of calls and cost so far.

    `has_budget`: whether the session has a limit of cost, where its row was read just now.
    """

    count: int
    cost: Decimal
    session_id: str
    has_budget: bool | None = None


class TurnPolicy(Protocol):
    """One rule. Raise `QuotaExceeded` (or another `ChatError`) to refuse; the text is shown to the user."""

    def check_admission(self, instance: AgentInstance) -> None:
        """Run inside the admission transaction, the instance's row locked."""

    def check_step(self, instance: AgentInstance, steps: StepsSoFar) -> None:
        """Run before each model call of a turn, outside any transaction."""


class TurnsPerMinute:
    """At most `THINK_TURNS_PER_MINUTE` accepted turns a minute for one user, whatever the entry; 0 switches it off.

    A requested summary or compaction counts as one, and so does a prompt of a schedule. Turns that agents and durable
    code start count towards `THINK_DELEGATED_TURNS_PER_MINUTE` alone.
    """

    def check_admission(self, instance: AgentInstance) -> None:
        """Count this user's turns of the last minute by the database clock, with the owner's row locked.

        Two statements on PostgreSQL, one on SQLite.
        """
        is_own = not is_delegated()
        limit = turn_settings.turns_per_minute if is_own else turn_settings.delegated_turns_per_minute
        user_id = _asked_by.get() or instance.owner_id
        if not limit or user_id is None:
            return
        lock_owner(user_id)
        lately = asked_lately(user_id, is_delegated=not is_own)
        if len(lately) < limit:
            return
        wait = _seconds_until_room(lately, limit)
        if is_own:
            raise QuotaExceeded(
                Phrase("You have sent {limit} messages within a minute.", limit=limit), retry_after_seconds=wait
            )
        raise QuotaExceeded(
            Phrase("Agents have started {limit} turns for you within a minute, as many as they may.", limit=limit),
            retry_after_seconds=wait,
        )

    def check_step(self, instance: AgentInstance, steps: StepsSoFar) -> None:
        """Steps are not limited here."""


_ASKED: Final = (TURN_FIBER, SUMMARY_FIBER, COMPACT_FIBER)
_FIBERS_OF_A_MINUTE: Final = Statement(
    "SELECT name, CASE WHEN name = %s AND share IS NOT NULL THEN '' ELSE metadata END, :instant_of_created_at:"
    " FROM think_fibers_fiber"
    " WHERE owner_id = %s AND created_at > :later: AND name IN (%s, %s, %s)"
)
_OWNER: Final = Columns(Fiber, ("owner_id",))


def asked_lately(owner_id: int, *, is_delegated: bool = False) -> list[str]:
    """Instants at which this user's turns of the last minute were asked for, or the delegated ones.

    Shape: texts for `read_instant`. Requested summaries and the like count as well. Uses an index. Only fibers without
    a share can be delegated turns, so the metadata of others is not read.
    """
    owner = _OWNER.prepare({"owner_id": owner_id})[0]
    found = []
    for name, metadata, created_at in _FIBERS_OF_A_MINUTE.all(TURN_FIBER, owner, -60.0, *_ASKED):
        facts = load(metadata) if metadata else {}
        is_delegate = DELEGATED.items() <= facts.items()
        is_counted = name == TURN_FIBER or COUNTED.items() <= facts.items()
        if is_delegate if is_delegated else is_counted and not is_delegate:
            found.append(created_at)
    return found


def _seconds_until_room(asked: list[str], limit: int) -> float:
    """When so many of these are a minute old that one more is within the limit."""
    last_in_the_way = read_instant(sorted(asked, reverse=True)[limit - 1])
    return max(1.0, 60.0 - (timezone.now() - last_in_the_way).total_seconds())


class SessionBudget:
    """Refuse model calls for a session at its cost limit, counting the running turn and sub-agents.

    A call is not cut: the one that goes beyond the limit is the last. Messages are stored all the same, so that they
    can be answered once the limit is raised.
    """

    def check_admission(self, instance: AgentInstance) -> None:
        """The message is stored; the turn has the reason why it is not answered."""

    def check_step(self, instance: AgentInstance, steps: StepsSoFar) -> None:
        """Compare with the limit. Errors: `BudgetReached`."""
        if steps.has_budget is False:
            return
        spending = session_spending(instance, steps.session_id)
        if spending.max_cost is not None and spending.cost + steps.cost >= spending.max_cost:
            raise BudgetReached(
                Phrase(
                    "This conversation has reached its budget of {cost:f}. Raise the budget to continue.",
                    cost=spending.max_cost.normalize(),
                ),
                max_cost=str(spending.max_cost),
                cost=str(spending.cost + steps.cost),
            )


@lru_cache(maxsize=8)
def _load(names: tuple[str, ...]) -> tuple[TurnPolicy, ...]:
    return tuple(import_string(name.replace(".turns.state.policies.", ".turns.policies."))() for name in names)


def check_admission(instance: AgentInstance) -> None:
    """Ask every policy. Errors: that of the first refusing policy."""
    for rule in _load(tuple(turn_settings.policies)):
        rule.check_admission(instance)


def check_step(instance: AgentInstance, steps: StepsSoFar) -> None:
    """Ask every policy before a model call."""
    for rule in _load(tuple(turn_settings.policies)):
        rule.check_step(instance, steps)


def looks_before(*, has_budget: bool | None) -> bool:
    """Whether a policy may look at anything before a first step; the built-in ones do where there is a budget."""
    free: tuple[type, ...] = (TurnsPerMinute, SessionBudget) if has_budget is False else (TurnsPerMinute,)
    return any(type(rule) not in free for rule in _load(tuple(turn_settings.policies)))


def check_call(key: InstanceKey, session_id: str, *, count: int = 0, cost: Decimal = _NOTHING) -> None:
    """Ask every policy before a model call that is no step of a turn: of a summary, or of a title.

    `count` and `cost` are those of the turn that it is for. One query more than the policies'.
    """
    instance = find_instance(key)
    if instance is not None:
        check_step(instance, StepsSoFar(count=count, cost=cost, session_id=session_id))
