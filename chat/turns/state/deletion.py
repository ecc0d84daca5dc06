"""Removal of turns with their logs and calls, the code that ran in them, and what was kept of files."""

from typing import Final

from django.db.models import QuerySet

from chat.models import AgentMessage, AgentRun, StreamSegment, Turn, TurnSeen
from tools_app.calls.services import forget_calls
from tools_app.code_tool.records import forget_executions
from tools_app.workspace.turn_files import forget_backups

BATCH = 200
"""Rows of one statement: databases limit the parameters of a statement, and conversations have any number of turns."""
RELEASED: Final = frozenset({AgentMessage, AgentRun, Turn, TurnSeen})
"""Tables whose rows name turns and let go of them here."""


def delete_turns(turns: QuerySet[Turn]) -> None:
    """Delete turns with their records, in batches. Inside the caller's transaction.

    One statement where there are none. Runs of agents stay, without their turns.
    """
    is_released = False
    while turn_ids := list(turns.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        if not is_released:
            _release(turns.order_by())
            is_released = True
        StreamSegment.objects.filter(stream__in=turn_ids).delete()
        forget_calls(turn_ids=turn_ids)
        forget_executions(turn_ids=turn_ids)
        forget_backups(turn_ids)
        _delete(Turn.objects.filter(pk__in=turn_ids))
        if len(turn_ids) < BATCH:
            break


def _release(turns: QuerySet[Turn]) -> None:
    """Take turns out of the rows that name them: as many statements for any number of turns and of rows."""
    AgentRun.objects.filter(parent_turn__in=turns).update(parent_turn=None)
    AgentRun.objects.filter(turn__in=turns).update(turn=None)
    AgentMessage.objects.filter(asked_in__in=turns).update(asked_in=None)
    AgentMessage.objects.filter(turn__in=turns).update(turn=None)
    Turn.objects.filter(parent__in=turns).update(parent=None)
    TurnSeen.objects.filter(turn__in=turns).delete()


def _delete(turns: QuerySet[Turn]) -> None:
    """Delete rows that nothing of ours names any more: without loading them, unless another app's rows name turns."""
    relations = (
        field for field in Turn._meta.get_fields(include_hidden=True) if field.auto_created and field.is_relation
    )
    if RELEASED.issuperset(relation.related_model for relation in relations):
        turns._raw_delete(turns.db)
    else:
        turns.delete()
