"""Stopping what works for a turn, or for a call: the child, and through the end of its turn all below it. Sync."""

from typing import Final

from django.db import transaction
from django.utils import timezone

from chat.agent.values.runs import failed
from chat.instances.rows import hold_if_there
from chat.instances.runs import end_run_as, executors_of
from chat.models import AgentInstance, AgentMessage
from chat.models.runs import AgentRun
from chat.turns.admission.stop import cancel_turn
from chat.turns.admission.tool_answers import supersede_open_calls
from chat.turns.state.active import active_turns
from fibers.services import cancel_fiber
from tools_app.calls.services import Actor
from tools_app.core.tool_calls import OPEN

STOPPED: Final = "The run was stopped."


def stop_all_of(turn_id: str, reason: str) -> int:
    """Stop the runs, calls and executors that a turn waited for; returns how many. Safe to call again.

    Each in transactions of its own.
    """
    calls = AgentMessage.objects.filter(asked_in_id=turn_id, processed_at=None, wait__isnull=False)
    stopped = sum(stop_call(call) for call in list(calls))
    runs = AgentRun.objects.filter(parent_turn_id=turn_id, finished_at=None, is_detached=False)
    stopped += sum(stop_run(run, reason) for run in list(runs.select_related("child")))
    return stopped + sum(cancel_fiber(fiber_id, reason=reason or "stopped") for fiber_id in executors_of(turn_id))


def stop_call(call: AgentMessage) -> bool:
    """Take back a call of an agent that no turn waits for. Its turn is stopped where it answers nothing else."""
    with transaction.atomic():
        row = AgentMessage.objects.select_for_update(of=("self",)).filter(pk=call.pk, processed_at=None).first()
        if row is None:
            return False
        row.wait = None
        if row.turn_id is None:
            row.processed_at = timezone.now()
        row.save(update_fields=["wait", "processed_at"])
    wanted = AgentMessage.objects.filter(turn_id=row.turn_id, processed_at=None)
    if row.turn_id is not None and not any(_is_wanted(each) for each in wanted.exclude(pk=row.pk)):
        cancel_turn(row.turn_id)
    return True


def stop_run(run: AgentRun, reason: str = "") -> bool:
    """Stop a run: its child's turns, partial answers are kept, and its questions to people. Ends it as aborted."""
    if run.child_id is not None:
        stop_instance(run.child_id)
    text = f"{STOPPED[:-1]}: {reason}." if reason else STOPPED
    with transaction.atomic():
        end_run_as(run.pk, failed(run.run_id, "aborted", text, reason=reason or None), cause="stopped")
    return True


def stop_below(instance_id: str, reason: str) -> bool:
    """Stop what a sub-agent does, and the runs that it works for; false when there was nothing."""
    runs = list(AgentRun.objects.filter(child_id=instance_id, finished_at=None))
    has_stopped = [stop_run(run, reason) for run in runs]
    return stop_instance(instance_id) or any(has_stopped)


def stop_instance(instance_id: str) -> bool:
    """Stop every turn of an instance and settle its open calls; false when there was nothing."""
    stopped = [cancel_turn(turn_id) for turn_id in list(active_turns(instance_id).values_list("pk", flat=True))]
    instance = AgentInstance.objects.filter(pk=instance_id).first()
    if instance is None or instance.session_id is None:
        return any(stopped)
    with transaction.atomic():
        if hold_if_there(instance):
            actor = Actor(user_id=None, via="server")
            supersede_open_calls(instance, actor, session_id=instance.session_id, statuses=OPEN, with_lasting=True)
    return any(stopped)


def _is_wanted(row: AgentMessage) -> bool:
    """Whether a message is to be answered: a call that is waited for, or no call."""
    return not row.call_chain or row.wait is not None
