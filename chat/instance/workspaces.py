"""Workspaces of instances: the one that each instance has, and the one that its agent names instead."""

from dataclasses import dataclass

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.instance.instance import started_agent
from chat.instances.rows import descendants
from chat.instances.workspaces import InstanceWorkspace
from chat.members.selectors import root_id_of
from chat.models import AgentInstance
from chat.user_code.workspace import workspace_of
from thinkproject.kernel.aio import db
from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import Workspace
from tools_app.models import StoredWorkspace, WorkspaceAttachment
from tools_app.workspace.repositories import Repository
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.stores.directory import DirectoryWorkspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedWorkspace:
    """The workspace of a conversation as people see it. `can_write`: not those of a class that is gone."""

    workspace: Workspace
    can_write: bool


async def view_workspace(key: InstanceKey, instance_id: str) -> ViewedWorkspace:
    """Open the workspace of an instance for people. Errors: `WorkspaceMissing`, `AgentCodeFailed`."""
    if not is_served(key.agent):
        return ViewedWorkspace(workspace=InstanceWorkspace(key, instance_id=instance_id), can_write=False)
    cls = get_agent_class(key.agent)
    if not issubclass(cls, Think) or cls.get_workspace is Think.get_workspace:  # its code has nothing to say
        return ViewedWorkspace(workspace=InstanceWorkspace(key, instance_id=instance_id), can_write=True)
    agent = await started_agent(key)
    return ViewedWorkspace(workspace=await workspace_of(agent), can_write=True)


async def repository_of(key: InstanceKey, instance_id: str) -> Repository:
    """The repository of a workspace that is a directory of this machine.

    Errors: `FileFailed` with `ENOENT` for any other workspace, `WorkspaceMissing`, `AgentCodeFailed`.
    """
    directory = await _directory_of((await view_workspace(key, instance_id)).workspace)
    if directory is None:
        raise failed("ENOENT", "/.git", "this workspace is no directory with a repository")
    return Repository(directory)


async def has_repository(workspace: Workspace) -> bool:
    """Whether a workspace is a directory of this machine with a repository, whole or not. Does not start git."""
    directory = await _directory_of(workspace)
    return directory is not None and await directory.lstat("/.git") is not None


async def _directory_of(workspace: Workspace) -> DirectoryWorkspace | None:
    found = await workspace.directory() if isinstance(workspace, InstanceWorkspace) else workspace
    return found if isinstance(found, DirectoryWorkspace) else None


async def is_of_conversation(workspace: Workspace, instance: AgentInstance) -> bool:
    """Whether the files are of this conversation and its sub-agents alone, so that its members may see them.

    False for a store outside of the database: nothing says who else uses it.
    """
    if not isinstance(workspace, DatabaseWorkspace):
        return False
    workspace_id = await workspace.workspace_id()
    return workspace_id is None or await db(_is_used_here_alone, workspace_id, instance)


def _is_used_here_alone(workspace_id: str, instance: AgentInstance) -> bool:
    root_id = root_id_of(instance)
    if StoredWorkspace.objects.filter(pk=workspace_id).exclude(root="").exists():
        return False
    users = set(WorkspaceAttachment.objects.filter(workspace_id=workspace_id).values_list("scope", flat=True))
    return bool(users) and users <= {root_id, *descendants(root_id)}
