"""API operations on the workspaces that a conversation may use besides its own."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Router, Status

from chat.access.auth import open_instance
from chat.conversations import abilities
from chat.errors import InputInvalid
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.abilities import WorkspaceUseIn, WorkspaceUseOut
from thinkproject.kernel.phrases import Phrase
from tools_app.models import WorkspaceAttachment
from tools_app.workspace.services import DEFAULT_NAME

router = Router(tags=["files"])
_LIST = "/instances/{instance_id}/workspaces"
UseName = Annotated[str, Path(min_length=1, max_length=64)]


@router.get(_LIST, response=list[WorkspaceUseOut], operation_id="list_workspaces")
def use_list(request: HttpRequest, instance_id: str) -> object:
    """The workspaces that the agent of a conversation may open, by name."""
    instance = open_instance(caller_of(request).user, instance_id)
    return [_use(row) for row in WorkspaceAttachment.objects.filter(scope=instance.pk).order_by("name")]


@router.put(_LIST + "/{name}", response=WorkspaceUseOut, operation_id="attach_workspace", openapi_extra=declares(409))
def use_attach(request: HttpRequest, instance_id: str, name: UseName, data: WorkspaceUseIn) -> object:
    """Let a conversation use another workspace of yours under a name; again, to change whether it may write."""
    user = caller_of(request).user
    instance = open_instance(user, instance_id)
    if (data.instance_id is None) == (data.workspace_id is None):
        raise InputInvalid(Phrase("Name either a conversation or a workspace."))
    other = data.workspace_id or open_instance(user, data.instance_id or "")
    return _use(abilities.use_workspace(instance, name, other, can_write=data.can_write))


@router.delete(_LIST + "/{name}", response={204: None}, operation_id="detach_workspace")
def use_detach(request: HttpRequest, instance_id: str, name: UseName) -> object:
    """End the use of a workspace; the workspace stays."""
    abilities.end_workspace_use(open_instance(caller_of(request).user, instance_id), name)
    return Status(204, None)


def _use(row: WorkspaceAttachment) -> dict[str, object]:
    return {
        "name": row.name,
        "workspace_id": row.workspace_id,
        "can_write": row.can_write,
        "is_own": row.name == DEFAULT_NAME,
    }
