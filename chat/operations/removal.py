"""The removal of an instance with everything that is its own, sub-agents included."""

from collections.abc import Callable
from typing import Any

from django.db import transaction

from chat.files import attachments
from chat.instances.rows import descendants, hold_instance, key_of
from chat.instances.runs import forget_runs_of
from chat.models import AgentInstance, Project, Revert, Turn
from chat.operations.data_exports import forget_exports
from chat.operations.reverts import forget_reverts
from chat.turns.admission.holding import live_fibers
from chat.turns.admission.stop import cancel_all, stopping
from chat.turns.state.deletion import BATCH, delete_turns
from fibers.schedules.services import forget_schedules_of
from fibers.services import forget_scopes, hold_fiber, stop_all_of_owner
from sessions_app.messages.services import delete_session
from sessions_app.models import Session
from thinkproject.kernel.append_only import erasing
from tools_app.actions.ledger import forget_effects
from tools_app.calls.services import forget_calls, forget_executors
from tools_app.extensions.services import forget_extensions_of
from tools_app.mcp.rows import forget_servers
from tools_app.permissions.rows import forget_rules_of
from tools_app.workspace.services import forget_workspaces_of


def delete_instance(instance: AgentInstance, *, only_if: Callable[[], bool] | None = None) -> bool:
    """Remove the conversation: running turns are cancelled, then turns, sessions, logs, files go.

    `only_if` is asked while no turn can begin or end; when it says no, nothing has happened and the answer is false.
    Durability: rows in one transaction, file objects after the commit. A runner that is still writing finds its rows
    gone and stops; the segments it may leave are pruned.
    """
    if instance.deleted_at is not None:
        return _remove_deleted(instance, only_if)
    with stopping(key_of(instance), queued_reason="deleted"), erasing():
        if only_if is not None and not only_if():
            transaction.set_rollback(True)
            return False
        _remove(instance)
    return True


def _remove_deleted(instance: AgentInstance, only_if: Callable[[], bool] | None) -> bool:
    """Do so with one that is in *Deleted*: nothing of it can begin, and another one may have its address."""
    with transaction.atomic(), erasing():
        for fiber_id in live_fibers(instance):
            hold_fiber(fiber_id)
        hold_instance(instance)
        if only_if is not None and not only_if():
            transaction.set_rollback(True)
            return False
        cancel_all(instance, queued_reason="deleted")
        _remove(instance)
    return True


def remove_all_of_owner(owner_id: Any) -> None:
    """Remove all conversations of a user who is deleted, and stop what else runs for them. In that transaction.

    The database would delete the rows alone: what runs would run on, and histories, files and workspaces would stay.
    """
    for root in AgentInstance.everything.filter(owner_id=owner_id, parent=None).order_by("pk"):
        delete_instance(root)
    forget_exports(owner_id)
    forget_workspaces_of(Project.objects.filter(owner_id=owner_id).values_list("pk", flat=True))
    stop_all_of_owner(owner_id, reason="owner_deleted")


def remove_turns_of_session(session_id: str) -> None:
    """Remove the turns of a history that is deleted, in that transaction. One statement where it has none.

    The database would refuse to delete the history: turns name it, and runs of agents name turns.
    """
    delete_turns(Turn.objects.filter(session_id=session_id))
    forget_reverts(Revert.objects.filter(session_id=session_id))


def _remove(instance: AgentInstance) -> None:
    family = [instance.pk, *descendants(instance.pk)]
    forget_runs_of(family)
    for begin in range(0, len(family), BATCH):
        _empty(family[begin : begin + BATCH], root_id=instance.pk)
    AgentInstance.everything.filter(pk=instance.pk).delete()


def _empty(family: list[str], *, root_id: str) -> None:
    """Remove what these conversations hold, in a transaction of the caller's, which has stopped the root's turns."""
    if below := [each for each in family if each != root_id]:
        for child in AgentInstance.everything.filter(pk__in=below):
            cancel_all(child)
    forget_executors(family)
    forget_scopes(family, reason="deleted")
    attachments.forget_files_of(family)
    AgentInstance.everything.filter(pk__in=family).update(session=None)
    forget_calls(scopes=family)
    forget_workspaces_of(family)
    forget_effects(family)
    forget_servers(family)
    forget_extensions_of(family)
    forget_reverts(Revert.objects.filter(instance_id__in=family))
    forget_rules_of(family)
    forget_schedules_of(family)
    delete_turns(Turn.objects.filter(instance_id__in=family))
    for session_id in list(Session.objects.filter(scope__in=family).values_list("id", flat=True)):
        delete_session(session_id)
