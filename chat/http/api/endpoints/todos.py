"""API operation on the to-do list of a conversation."""

from django.http import HttpRequest
from ninja import Router

from chat.access.auth import open_instance
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.todos import TodosOut
from chat.models import Role
from chat.reads.todos import todo_list

router = Router(tags=["todos"])


@router.get("/instances/{instance_id}/todos", response=TodosOut, operation_id="get_todos")
def todo_detail(request: HttpRequest, instance_id: str) -> object:
    """The to-do list that the agent keeps, as the shown path and a running answer have it. Undo and redo change it."""
    return {"todos": todo_list(open_instance(caller_of(request).user, instance_id, needs=Role.READER))}
