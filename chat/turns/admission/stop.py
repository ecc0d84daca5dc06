"""Ends of turns before their time: one or all are cancelled, a conversation is cleared. An interrupted one goes on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.errors import TurnConflict
from chat.instances.notifications import (
    ChatCleared,
    group_of,
    notify_conversation,
    notify_on_commit,
    notify_waiters,
)
from chat.instances.rows import (
    key_of,
)
from chat.instances.runs import note_turn_end
from chat.models import AgentInstance, Turn, TurnSeen
from chat.people.feedback import forget_feedback_in
from chat.turns.admission.holding import holding, live_fibers
from chat.turns.admission.tool_answers import supersede_open_calls
from chat.turns.state.active import active_turns
from chat.turns.state.compaction_queue import active_compactions
from chat.turns.state.status import SKIPPED_REASON
from chat.turns.tools.client_tools import remember_client_tools
from fibers.core.states import FiberStatus
from fibers.services import cancel_fiber, requeue_fiber
from sessions_app.messages.services import clear_session
from tools_app.calls.services import Actor
from tools_app.core.tool_calls import OPEN
from tools_app.guard.standings import forget_guards

STOP_TRIES = 5


def cancel_turn(turn_id: str) -> bool:
    """Stop a turn, running or queued. Durable and idempotent; `False` if it had ended.

    A running one keeps its partial answer, a queued one its message. No client has to be connected.
    """
    turn = Turn.objects.select_related("fiber", "instance").get(pk=turn_id)
    cancelled = cancel_fiber(turn.fiber_id, reason="stopped")
    if cancelled:
        notify_settled(turn)
    return cancelled


@transaction.atomic
def resume_turn(turn_id: str) -> bool:
    """Run an interrupted turn on, over its journal and from what was shown; `False` if it is not interrupted.

    Errors: `TurnConflict` where the conversation has gone on since, so that its answer would come too late.
    """
    turn = Turn.objects.select_related("fiber", "instance").get(pk=turn_id)
    if turn.fiber.status != FiberStatus.INTERRUPTED or turn.finished_at is None:
        return False
    later = Turn.objects.filter(instance_id=turn.instance_id, session_id=turn.session_id, position__gt=turn.position)
    if turn.generation != turn.instance.generation or later.exists():
        raise TurnConflict("The conversation has gone on since this turn was interrupted. Ask again instead.")
    resumed = requeue_fiber(turn.fiber_id)
    if resumed:
        TurnSeen.objects.filter(turn=turn).delete()  # it may fail once more, which they have not seen
        notify_on_commit(group_of(key_of(turn.instance)), {"type": "turn.resumed", "turn_id": turn.pk})
        notify_conversation(turn.instance.owner_id, turn.instance_id)
    return resumed


def cancel_all(
    instance: AgentInstance, *, queued_reason: str = "stopped", session_id: str | None = None
) -> Sequence[Turn]:
    """Stop every turn and compaction of an instance, or of one of its sessions, that has not ended.

    `queued_reason` is for those that never began.
    """
    active = active_turns(instance.pk).select_related("fiber", "instance")
    # Chosen here: asked for the session, a database would start from all turns that it ever had.
    turns = [turn for turn in active if session_id in (None, turn.session_id)]
    for turn in turns:
        reason = queued_reason if turn.started_at is None else "stopped"
        if cancel_fiber(turn.fiber_id, reason=reason):
            notify_settled(turn)
    for fiber_id in active_compactions(instance.pk, session_id):
        cancel_fiber(fiber_id, reason="stopped")
    return turns


def clear_instance(key: InstanceKey, *, origin: str = "") -> int:
    """Empty the current session: stop the running turn, skip the queued ones, forget the messages.

    A turn of the old generation writes nothing afterwards, whatever it was doing. Returns the new generation. Other
    sessions of the instance are left alone, and where none is current nothing is cleared.
    """
    with stopping(key, queued_reason=SKIPPED_REASON, session_of=_current) as instance:
        remember_client_tools(instance, ())
        AgentInstance.objects.filter(pk=instance.pk).update(last_body={})
        if instance.parent_id is not None:
            note_turn_end(instance.pk, f"clear {instance.generation}", "aborted", error="The conversation was cleared.")
        if instance.session_id is not None:
            actor = Actor(user_id=key.owner_id, via="clear")
            supersede_open_calls(instance, actor, session_id=instance.session_id, statuses=OPEN, with_lasting=True)
            clear_session(instance.session_id)
            forget_feedback_in(instance.session_id)
            forget_guards([instance.session_id])
        cleared: ChatCleared = {"type": "chat.cleared", "origin": origin, "generation": instance.generation}
        notify_on_commit(group_of(key), cleared)
        notify_conversation(instance.owner_id, instance.pk)
    return instance.generation


def _current(instance: AgentInstance) -> str:
    return instance.session_id or ""


def _every(_instance: AgentInstance) -> None:
    return None


@contextmanager
def stopping(
    key: InstanceKey,
    *,
    queued_reason: str = "stopped",
    session_of: Callable[[AgentInstance], str | None] = _every,
) -> Iterator[AgentInstance]:
    """Open a transaction in which every turn of the instance is stopped and none can begin or end.

    `session_of` names the one session whose turns are stopped; those of others go on afterwards as if nothing had been.
    Errors: `TurnConflict` when turns are admitted again and again meanwhile.
    """
    with holding(key, live_fibers, tries=STOP_TRIES) as locked:
        instance = locked.row
        instance.generation += 1
        instance.save(update_fields=["generation"])
        session_id = session_of(instance)
        if session_id is not None:
            others = active_turns(instance.pk).exclude(session_id=session_id).values_list("pk", flat=True)
            Turn.objects.filter(pk__in=list(others)).update(generation=instance.generation)
        cancel_all(instance, queued_reason=queued_reason, session_id=session_id)
        yield instance


def notify_settled(turn: Turn) -> None:
    """Notify clients and callers, on commit, that a turn has ended. Needs its instance loaded."""
    key = key_of(turn.instance)
    notify_on_commit(group_of(key), {"type": "turn.settled", "turn_id": turn.id})
    notify_conversation(key.owner_id, turn.instance_id)
    notify_waiters(turn.id)
