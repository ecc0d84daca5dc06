"""API operations on background work: what the agent of a conversation does besides its turns.

Only the agent starts such work. Its owner sees it, stops it, runs it again, and says how interrupted work has ended.
"""

from dataclasses import asdict
from typing import cast

from django.http import HttpRequest
from ninja import Query, Router

from chat.access.auth import open_instance
from chat.background import rows
from chat.background.service import cancel_row, resolve_row, restart_row
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.common import CancelOut
from chat.http.api.schemas.fibers import (
    FiberEntryOut,
    FiberErrorOut,
    FiberOut,
    FiberResolution,
    FibersQuery,
    FiberStatusName,
    FiberWaitOut,
)
from fibers.core.states import FiberStatus
from fibers.errors import FiberNotFound
from fibers.models import Fiber
from thinkproject.kernel.filling import filled
from thinkproject.kernel.jsonvalue import JSONObject

router = Router(tags=["background work"])
_LIST, _ONE = "/instances/{instance_id}/fibers", "/instances/{instance_id}/fibers/{fiber_id}"
_INTERNAL = "internal"


@router.get(_LIST, response=list[FiberOut], operation_id="list_fibers")
def fiber_list(request: HttpRequest, instance_id: str, query: Query[FibersQuery]) -> list[FiberOut]:
    """The background work of a conversation, newest first."""
    found = rows.in_scope(open_instance(caller_of(request).user, instance_id).pk)
    if query.status is not None:
        found = found.filter(status=query.status)
    return [_shown(row) for row in found.order_by("-created_at", "-pk")[: query.limit]]


@router.get(_ONE, response=FiberOut, operation_id="get_fiber")
def fiber_detail(request: HttpRequest, instance_id: str, fiber_id: str) -> FiberOut:
    """One piece of background work."""
    return _shown(_opened(request, instance_id, fiber_id))


@router.get(_ONE + "/journal", response=list[FiberEntryOut], operation_id="get_fiber_journal")
def fiber_journal(request: HttpRequest, instance_id: str, fiber_id: str) -> list[FiberEntryOut]:
    """The journal of one piece of background work, oldest first; of its steps the newest 200."""
    row = _opened(request, instance_id, fiber_id)
    return [FiberEntryOut(**asdict(entry)) for entry in rows.journal_of(row)]


@router.post(_ONE + "/cancel", response=CancelOut, operation_id="cancel_fiber")
def fiber_cancel(request: HttpRequest, instance_id: str, fiber_id: str) -> CancelOut:
    """Stop it. One that has ended stays as it is. Idempotent."""
    return CancelOut(cancelled=cancel_row(_opened(request, instance_id, fiber_id), reason="stopped"))


@router.post(_ONE + "/restart", response=FiberOut, operation_id="restart_fiber", openapi_extra=declares(409))
def fiber_restart(request: HttpRequest, instance_id: str, fiber_id: str) -> FiberOut:
    """Run it again where it failed, was interrupted or halted, with its last snapshot. One under way stays as it is."""
    restart_row(_opened(request, instance_id, fiber_id))
    return _shown(_opened(request, instance_id, fiber_id))


@router.post(_ONE + "/resolve", response=FiberOut, operation_id="resolve_fiber", openapi_extra=declares(409))
def fiber_resolve(request: HttpRequest, instance_id: str, fiber_id: str, data: FiberResolution) -> FiberOut:
    """Say how interrupted work has ended. Any other stays as it is."""
    resolve_row(_opened(request, instance_id, fiber_id), data.status, result=data.result, error=data.error)
    return _shown(_opened(request, instance_id, fiber_id))


def _opened(request: HttpRequest, instance_id: str, fiber_id: str) -> Fiber:
    row = rows.find_row(open_instance(caller_of(request).user, instance_id).pk, fiber_id)
    if row is None:
        raise FiberNotFound("There is no such background work.")
    return row


def _shown(row: Fiber) -> FiberOut:
    found = rows.inspection_of(row)
    return filled(
        FiberOut,
        found,
        id=row.pk,
        fiber_id=found.id,
        status=cast("FiberStatusName", found.status),
        result=found.result.get("output") if rows.is_call(row) and found.result else found.result,
        call_id=row.payload.get("call", {}).get("call_id") if rows.is_call(row) else None,
        progress=found.snapshot if rows.is_call(row) and found.status == FiberStatus.RUNNING else None,
        error=_error(row),
        can_restart=rows.can_restart(row),
        can_resolve=found.status == FiberStatus.INTERRUPTED,
        is_stopping=found.status == FiberStatus.RUNNING and row.cancel_requested_at is not None,
        waits=[_wait(wait) for wait in row.waits] if found.status == FiberStatus.PARKED else [],
        not_before=row.available_at if found.status == FiberStatus.PENDING else None,
    )


def _wait(wait: JSONObject) -> FiberWaitOut:
    return FiberWaitOut(kind=wait["kind"], label=wait.get("label") or "", since=wait.get("since"))


def _error(row: Fiber) -> FiberErrorOut | None:
    error = row.error
    if not error:
        return None
    code = str(error.get("code", ""))
    text = "The agent's own code failed." if code == _INTERNAL else str(error.get("message", ""))
    return FiberErrorOut(code=code, message=text)
