"""API operations on code that models wrote and that ran in a conversation. Read only."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router

from chat.access.auth import open_instance
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.abilities import ExecutionDetailOut, ExecutionPageOut
from tools_app.errors import ExecutionNotFound
from tools_app.models.code_runs import Execution

router = Router(tags=["code"])
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[int | None, Query(ge=1)]


@router.get("/instances/{instance_id}/executions", response=ExecutionPageOut, operation_id="list_executions")
def execution_list(request: HttpRequest, instance_id: str, cursor: Cursor = None, limit: Limit = 50) -> object:
    """Code that ran in a conversation, newest first."""
    rows = Execution.objects.filter(scope=open_instance(caller_of(request).user, instance_id).pk).order_by("-pk")
    found = list((rows if cursor is None else rows.filter(pk__lt=cursor))[: limit + 1])
    return {"items": found[:limit], "next_cursor": str(found[limit - 1].pk) if len(found) > limit else None}


@router.get(
    "/instances/{instance_id}/executions/{execution_id}", response=ExecutionDetailOut, operation_id="get_execution"
)
def execution_detail(request: HttpRequest, instance_id: str, execution_id: int) -> object:
    """One execution, with the calls that the code made."""
    scope = open_instance(caller_of(request).user, instance_id).pk
    found = Execution.objects.prefetch_related("calls").filter(scope=scope, pk=execution_id).first()
    if found is None:
        raise ExecutionNotFound
    return found
