"""Applies an agent's `message_concurrency` to waiting turns, inside the admission.

Only plain new messages of clients are concerned. Edits, regenerations, continuations and turns of the server queue.
The decision itself is `chat/core/loop/concurrency.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.core.loop.concurrency import ConcurrencyPolicy, Strategy, decide, to_policy
from chat.errors import TurnDropped
from chat.models import AgentInstance, Turn, TurnTrigger
from chat.turns.admission.intake import ClientArray, Intake, Placement, Submit
from chat.turns.state.active import active_turns
from chat.turns.state.merging import MERGED
from fibers.core.states import FiberStatus

QUEUES = (Strategy.QUEUE, Strategy.DROP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Effects on earlier turns. `merged_ids`: messages merged with the new one for the model."""

    superseded: Sequence[Turn] = ()
    merged_ids: tuple[str, ...] = ()
    delay_seconds: float = 0.0


def supersedes(agent: str, intake: Intake) -> bool:
    """Whether this request may end turns that wait: then their fibers are locked before the instance's row."""
    return isinstance(intake, Submit | ClientArray) and _policy_of(agent).strategy not in QUEUES


def waiting_fibers(instance: AgentInstance) -> list[str]:
    """Fibers of the turns that may be superseded, in the global lock order of fibers."""
    return sorted(turn.fiber_id for turn in _active_turns_of(instance) if _waits(turn))


def decide_overlap(instance: AgentInstance, intake: Intake, placement: Placement) -> Overlap:
    """Decide about a request; the instance's row is locked. Errors: `TurnDropped`."""
    if not isinstance(intake, Submit | ClientArray) or not _is_plain(placement.trigger, placement.base_is_explicit):
        return Overlap()
    policy = _policy_of(instance.agent)
    if policy.strategy is Strategy.QUEUE:
        return Overlap()
    active = _active_turns_of(instance)
    waiting = {turn.pk: turn for turn in active if _waits(turn)}
    decision = decide(policy, is_submit=True, is_busy=bool(active), waiting=tuple(waiting))
    if not decision.is_accepted:
        raise TurnDropped
    merged = [waiting[turn_id] for turn_id in decision.merged]
    return Overlap(
        superseded=[waiting[turn_id] for turn_id in decision.superseded],
        merged_ids=tuple(i for turn in merged for i in [*turn.options.get(MERGED, ()), *turn.input_ids]),
        delay_seconds=decision.delay_seconds,
    )


def _policy_of(agent: str) -> ConcurrencyPolicy:
    agent_class = get_agent_class(agent)
    assert issubclass(agent_class, Think), "admission refuses agents that do not chat"
    return to_policy(agent_class.message_concurrency)


def _active_turns_of(instance: AgentInstance) -> list[Turn]:
    """Active turns of the current session, oldest first; those before the last clear are left out."""
    active = active_turns(instance.pk)
    turns = list(active.filter(generation=instance.generation, session_id=instance.session_id))
    for turn in turns:
        turn.instance = instance
    return turns


def _waits(turn: Turn) -> bool:
    has_begun = turn.started_at is not None or turn.fiber.status != FiberStatus.PENDING
    return not has_begun and _is_plain(TurnTrigger(turn.trigger), turn.base_is_explicit)


def _is_plain(trigger: TurnTrigger, base_is_explicit: bool) -> bool:
    return trigger is TurnTrigger.SUBMIT and not base_is_explicit
