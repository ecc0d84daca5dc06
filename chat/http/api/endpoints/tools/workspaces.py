"""API operations on the workspaces that a conversation may use besides its own."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Router, Status

from chat.access.auth import open_instance
from chat.errors import InputInvalid
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.abilities import WorkspaceUseIn, WorkspaceUseOut
from chat.instances.rows import key_of
from chat.instances.workspaces import attach_workspace, detach_workspace
from thinkproject.kernel.phrases import Phrase
from tools_app.errors import WorkspaceNotFound
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
    key = key_of(open_instance(user, instance_id))
    if (data.instance_id is None) == (data.workspace_id is None):
        raise InputInvalid(Phrase("Name either a conversation or a workspace."))
    if name == DEFAULT_NAME:
        raise InputInvalid(Phrase("{name} is the conversation's own workspace.", name=name))
    other = data.workspace_id or key_of(open_instance(user, data.instance_id or ""))
    found = attach_workspace(key, other, name=name, can_write=data.can_write)
    return _use(WorkspaceAttachment.objects.get(scope=open_instance(user, instance_id).pk, name=name, workspace=found))


@router.delete(_LIST + "/{name}", response={204: None}, operation_id="detach_workspace")
def use_detach(request: HttpRequest, instance_id: str, name: UseName) -> object:
    """End the use of a workspace; the workspace stays."""
    instance = open_instance(caller_of(request).user, instance_id)
    row = WorkspaceAttachment.objects.filter(scope=instance.pk, name=name).exclude(name=DEFAULT_NAME).first()
    if row is None or not detach_workspace(key_of(instance), row.workspace_id):
        raise WorkspaceNotFound
    return Status(204, None)


def _use(row: WorkspaceAttachment) -> dict[str, object]:
    return {
        "name": row.name,
        "workspace_id": row.workspace_id,
        "can_write": row.can_write,
        "is_own": row.name == DEFAULT_NAME,
    }
