"""Applies an agent's `message_concurrency` to other turns, or what the message itself asks for, inside the admission.

Only plain new messages are concerned: those of clients, and of code that says how they are delivered. Edits,
regenerations, continuations and other turns of the server queue. The decision itself is
`chat/core/loop/concurrency.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.core.loop.concurrency import ConcurrencyPolicy, Strategy, decide, to_policy
from chat.errors import InputInvalid, TurnDropped
from chat.models import AgentInstance, Delivery, Turn, TurnTrigger
from chat.turns.admission.commands import begins_by_itself
from chat.turns.admission.intake import ClientArray, Intake, Placement, Program, Submit
from chat.turns.state.active import active_turns
from chat.turns.state.merging import MERGED
from fibers.core.states import FiberStatus
from fibers.queue.enqueue import LANE_GAP
from thinkproject.kernel.phrases import Phrase

QUEUES = (Strategy.QUEUE, Strategy.DROP, Strategy.STEER)
AHEAD = (Strategy.STEER, Strategy.INTERRUPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Effects on earlier turns, and the new one's place among them.

    `merged_ids`: messages merged with the new one for the model. `stopped`: turns that it interrupts. `behind`: the
    place in the lane that it follows, where it comes before turns that wait; these are `ahead_of`.
    """

    superseded: Sequence[Turn] = ()
    merged_ids: tuple[str, ...] = ()
    delay_seconds: float = 0.0
    delivery: Delivery = Delivery.QUEUE
    stopped: Sequence[Turn] = ()
    behind: int | None = None
    ahead_of: tuple[str, ...] = ()


def delivery_of(word: str | None) -> Delivery | None:
    """Read the word of a caller; `None` leaves it to the class. Errors: `InputInvalid` for another one."""
    if word is None or word in Delivery.values:
        return None if word is None else Delivery(word)
    known = ", ".join(Delivery.values)
    raise InputInvalid(Phrase("There is no delivery {word!r}; it is one of {known}.", word=word, known=known))


def ended_fibers(agent: str, intake: Intake, delivery: Delivery | None) -> Callable[[AgentInstance], list[str]] | None:
    """Gives the fibers of turns that this request may end, which are locked before the instance's row.

    In the global lock order of fibers. Nothing where it can end none.
    """
    strategy = _policy_of(agent, delivery).strategy
    if strategy in QUEUES or not _is_concerned(intake, delivery):
        return None
    return _begun_fibers if strategy is Strategy.INTERRUPT else _waiting_fibers


def waiting_turns(instance: AgentInstance) -> list[Turn]:
    """Turns of plain messages that have not begun, in their order."""
    return [turn for turn in _active_turns_of(instance) if _waits(turn)]


def _waiting_fibers(instance: AgentInstance) -> list[str]:
    return sorted(turn.fiber_id for turn in waiting_turns(instance))


def _begun_fibers(instance: AgentInstance) -> list[str]:
    return sorted(turn.fiber_id for turn in _active_turns_of(instance) if _has_begun(turn))


def decide_overlap(
    instance: AgentInstance,
    intake: Intake,
    placement: Placement,
    delivery: Delivery | None = None,
    author: str = "",
) -> Overlap:
    """Decide about a request; the instance's row is locked. `delivery`: as it asks for. Errors: `TurnDropped`.

    `author`: of the request. Turns of others are neither replaced, merged nor steered: a turn has the rights of the
    one who asked for it.
    """
    is_plain = placement.trigger is TurnTrigger.PROGRAM or _is_plain(placement.trigger, placement.base_is_explicit)
    if not _is_concerned(intake, delivery) or not is_plain:
        return Overlap()
    policy = _policy_of(instance.agent, delivery)
    if policy.strategy is Strategy.QUEUE:
        return Overlap()
    active = _active_turns_of(instance)
    if policy.strategy in AHEAD:
        is_alone = policy.strategy is Strategy.INTERRUPT or all(turn.author == author for turn in active)
        return _ahead(active, Delivery(policy.strategy.value)) if active and is_alone else Overlap()
    mine = [turn for turn in active if _waits(turn) and turn.author == author]
    waiting = {turn.pk: turn for turn in mine if not begins_by_itself(turn.options)}
    decision = decide(policy, is_submit=True, is_busy=bool(active), waiting=tuple(waiting))
    if not decision.is_accepted:
        raise TurnDropped
    merged = [waiting[turn_id] for turn_id in decision.merged]
    return Overlap(
        superseded=[waiting[turn_id] for turn_id in decision.superseded],
        merged_ids=tuple(i for turn in merged for i in [*turn.options.get(MERGED, ()), *turn.input_ids]),
        delay_seconds=decision.delay_seconds,
    )


def _is_concerned(intake: Intake, delivery: Delivery | None) -> bool:
    return isinstance(intake, Submit | ClientArray) or (isinstance(intake, Program) and delivery is not None)


def _ahead(active: Sequence[Turn], delivery: Delivery) -> Overlap:
    """The place before the plain messages that wait, and behind everything else.

    What steers comes behind the first turn in any case, which it is to steer once that has begun.
    """
    others = active if delivery is Delivery.INTERRUPT else active[1:]
    queued = [turn for turn in others if _waits(turn) and turn.delivery == Delivery.QUEUE]
    stopped = [turn for turn in active if _has_begun(turn)] if delivery is Delivery.INTERRUPT else []
    if not queued:
        return Overlap(delivery=delivery, stopped=stopped)
    first = queued[0].fiber.lane_position
    before = [turn.fiber.lane_position for turn in active if turn.fiber.lane_position < first]
    behind = max(before, default=max(0, first // LANE_GAP * LANE_GAP - LANE_GAP))
    return Overlap(delivery=delivery, stopped=stopped, behind=behind, ahead_of=tuple(turn.pk for turn in queued))


def _policy_of(agent: str, delivery: Delivery | None = None) -> ConcurrencyPolicy:
    """The class's policy; what a message asks for stands in its place, unless the class takes none meanwhile."""
    agent_class = get_agent_class(agent)
    assert issubclass(agent_class, Think), "admission refuses agents that do not chat"
    policy = to_policy(agent_class.message_concurrency)
    if delivery is None or policy.strategy is Strategy.DROP:
        return policy
    return ConcurrencyPolicy(strategy=Strategy(delivery.value))


def _active_turns_of(instance: AgentInstance) -> list[Turn]:
    """Active turns of the current session in their order; those before the last clear are left out."""
    active = active_turns(instance.pk)
    turns = list(active.filter(generation=instance.generation, session_id=instance.session_id))
    for turn in turns:
        turn.instance = instance
    return turns


def _has_begun(turn: Turn) -> bool:
    return turn.started_at is not None or turn.fiber.status != FiberStatus.PENDING


def _waits(turn: Turn) -> bool:
    return not _has_begun(turn) and _is_plain(TurnTrigger(turn.trigger), turn.base_is_explicit)


def _is_plain(trigger: TurnTrigger, base_is_explicit: bool) -> bool:
    return trigger is TurnTrigger.SUBMIT and not base_is_explicit
