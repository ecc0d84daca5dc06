"""Removal of turns with their logs and calls, the code that ran in them, and what was kept of files."""

from django.db.models import QuerySet

from chat.models import StreamSegment, Turn
from tools_app.execute.records import forget_executions
from tools_app.services import forget_calls
from tools_app.workspace.turn_files import forget_backups

BATCH = 200
"""Rows of one statement: databases limit the parameters of a statement, and conversations have any number of turns."""


def delete_turns(turns: QuerySet[Turn]) -> None:
    """Delete turns with their records, in batches. Inside the caller's transaction."""
    while turn_ids := list(turns.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        StreamSegment.objects.filter(stream__in=turn_ids).delete()
        forget_calls(turn_ids=turn_ids)
        forget_executions(turn_ids=turn_ids)
        forget_backups(turn_ids)
        Turn.objects.filter(pk__in=turn_ids).delete()
