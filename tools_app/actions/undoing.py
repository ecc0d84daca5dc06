"""Undo an effect by the compensation that was stored with it. Nothing calls this by itself."""

import asyncio
from typing import Final

from django.db.models import Q

from thinkproject.kernel.aio import call_tool_code, db
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.actions.compensation import Undo, find_compensation
from tools_app.actions.run_action import safe_output
from tools_app.core.action_rules import ActionStatus, UndoStatus, error_output
from tools_app.errors import UndoRefused
from tools_app.models import ActionRecord

TIMEOUT_SECONDS: Final = 60.0


async def undo_effect(record_id: int, *, repeats: bool = False) -> JSONValue:
    """Run the compensation of a settled effect, once, and return its result.

    `repeats`: also where an earlier run never ended; the compensation gets the same `idempotency_key` each time.
    Durability: marked as running before, as done or failed after. Errors: `UndoRefused`; what the compensation raises.
    """
    row = await db(_claim, record_id, repeats=repeats)
    function = find_compensation(row.undo)
    if function is None:
        await db(_end, row, UndoStatus.FAILED, error_output("UndoRefused", "No code has this compensation."))
        raise UndoRefused("No code registers the compensation of this action any more.")
    undo = Undo(
        action=row.action,
        input=row.input,
        output=row.output,
        idempotency_key=f"undo:{row.scope}:{row.action}:{row.key}",
        user_id=row.owner_id,
    )
    work = asyncio.create_task(_run(function, undo))
    await asyncio.wait({work}, timeout=TIMEOUT_SECONDS)
    if not work.done():
        work.cancel()
        raise UndoRefused("The compensation took too long; whether it took effect is not known.")
    error = work.exception()
    if error is not None:
        await db(_end, row, UndoStatus.FAILED, error_output(type(error).__name__, str(error)))
        raise error
    output = safe_output(work.result())
    await db(_end, row, UndoStatus.DONE, output)
    return output


async def _run(function: object, undo: Undo) -> object:
    assert callable(function)
    return await call_tool_code(function, undo)


def _claim(record_id: int, *, repeats: bool) -> ActionRecord:
    free = [UndoStatus.NONE, UndoStatus.FAILED, *([UndoStatus.RUNNING] if repeats else [])]
    rows = ActionRecord.objects.filter(~Q(undo=""), pk=record_id, status=ActionStatus.SETTLED, undo_status__in=free)
    if not rows.update(undo_status=UndoStatus.RUNNING, undo_output=None):
        raise UndoRefused
    return ActionRecord.objects.get(pk=record_id)


def _end(row: ActionRecord, status: UndoStatus, output: JSONValue) -> None:
    ActionRecord.objects.filter(pk=row.pk).update(undo_status=status, undo_output=output)
