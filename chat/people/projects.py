"""Projects of people: made, changed and removed by their owner alone, and the conversations that are in them.

A conversation is in one project at most, by a column of its own, so a move is one write. Sub-agents are where their
root is. What goes with a project is its files; its conversations stay, in no project.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet

from chat.account_errors import ProjectNotFound
from chat.agent.registry import is_served
from chat.core.context.project_instructions import NO_PROJECT, ProjectContext
from chat.errors import InputInvalid
from chat.instances.notifications import notify_conversation, notify_projects
from chat.models import AgentInstance, Project
from sessions_app.core.compaction.tokens import estimate_text
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from tools_app.models import WorkspaceAttachment
from tools_app.workspace.services import DEFAULT_NAME, forget_workspaces_of

MAX_PROJECTS: Final = 100
MAX_NAME: Final = 60
MAX_INSTRUCTION_TOKENS: Final = 2_000
"""They are a part of every request in the project."""


def projects_of(user_id: Any) -> list[Project]:
    """The projects of a person, by their names, each with its `conversation_count`. One query."""
    rows = _counted(Project.objects.filter(owner_id=user_id))
    return sorted(rows, key=lambda row: (row.name.casefold(), row.pk))


def project_of(user_id: Any, project_id: str) -> Project:
    """One of them, with its `conversation_count`. Errors: `ProjectNotFound`, also for another's."""
    found = None if "\x00" in project_id else _counted(_own(user_id, project_id)).first()
    if found is None:
        raise ProjectNotFound
    return found


@transaction.atomic
def add_project(user_id: Any, **values: str) -> Project:
    """Make a project. Errors: `InputInvalid` for values that are not possible, and beyond `MAX_PROJECTS`."""
    _check(values, "")
    lock_owner(user_id)
    if Project.objects.filter(owner_id=user_id).count() >= MAX_PROJECTS:
        raise InputInvalid(Phrase("You have {limit} projects already. Delete one of them first.", limit=MAX_PROJECTS))
    row = _saved(Project(owner_id=user_id, **values))
    notify_projects(user_id)
    return project_of(user_id, row.pk)


@transaction.atomic
def change_project(user_id: Any, project_id: str, **changes: str) -> Project:
    """Change a project; what is left out stays. Errors: `ProjectNotFound`, also for another's; `InputInvalid`."""
    row = hold_project(user_id, project_id)
    _check(changes, row.agent)
    for name, value in changes.items():
        setattr(row, name, value)
    _saved(row)
    notify_projects(user_id)
    return project_of(user_id, row.pk)


@transaction.atomic
def remove_project(user_id: Any, project_id: str) -> None:
    """Remove a project with its files. Its conversations stay. Errors: `ProjectNotFound`, also for another's."""
    row = hold_project(user_id, project_id)
    inside = AgentInstance.everything.filter(project=row)
    held = list(inside.select_for_update().order_by("pk").values_list("pk", "deleted_at"))
    inside.update(project=None)
    forget_workspaces_of([row.pk])
    row.delete()
    notify_projects(user_id)
    for instance_id, deleted_at in held:
        if deleted_at is None:
            notify_conversation(user_id, instance_id)


def hold_project(user_id: Any, project_id: str) -> Project:
    """Lock a project until the transaction ends. Errors: `ProjectNotFound`, also for another's."""
    row = None if "\x00" in project_id else _own(user_id, project_id).select_for_update().first()
    if row is None:
        raise ProjectNotFound
    return row


@transaction.atomic
def move_to_project(user_id: Any, ids: Sequence[str], project_id: str | None) -> set[str]:
    """Put root conversations of this person into a project, or with `None` into no project; gives the ids of these.

    Others' and sub-agents are left out. A fixed number of queries. Errors: `ProjectNotFound`, and nothing is moved.
    """
    if project_id is not None:
        hold_project(user_id, project_id)
    wanted = [each for each in ids if "\x00" not in each]
    rows = AgentInstance.objects.filter(owner_id=user_id, parent=None, pk__in=wanted)
    mine = set(rows.select_for_update().order_by("pk").values_list("pk", flat=True))
    AgentInstance.objects.filter(pk__in=mine).update(project_id=project_id)
    for instance_id in sorted(mine):
        notify_conversation(user_id, instance_id)
    return mine


def project_context(instance: AgentInstance, user_id: Any) -> ProjectContext:
    """The part of the project that a turn of this person's reads; for others than the owner none. Two queries at most.

    A member who asks could have the model say what the owner wrote for all conversations of the project, and what is in
    its files; so it reads neither then.
    """
    if instance.project_id is None or instance.owner_id != user_id:
        return NO_PROJECT
    row = Project.objects.filter(pk=instance.project_id, owner_id=user_id).first()
    if row is None:
        return NO_PROJECT
    files = WorkspaceAttachment.objects.filter(scope=row.pk, name=DEFAULT_NAME, workspace__file_count__gt=0)
    return ProjectContext(id=row.pk, name=row.name, instructions=row.instructions, has_files=files.exists())


def _own(user_id: Any, project_id: str) -> QuerySet[Project]:
    return Project.objects.filter(pk=project_id, owner_id=user_id)


def _counted(rows: QuerySet[Project]) -> QuerySet[Project]:
    here = Q(conversations__deleted_at=None, conversations__archived_at=None)
    return rows.annotate(conversation_count=Count("conversations", filter=here))


def _check(values: dict[str, str], stored_agent: str) -> None:
    agent = values.get("agent", "")
    if agent and agent != stored_agent and not is_served(agent):
        raise InputInvalid(Phrase("There is no agent {name!r}.", name=agent))
    tokens = estimate_text(values.get("instructions", ""))
    if tokens > MAX_INSTRUCTION_TOKENS:
        raise InputInvalid(
            Phrase(
                "This text has {tokens} tokens. Up to {most} fit, because models read it with every message.",
                tokens=tokens,
                most=MAX_INSTRUCTION_TOKENS,
            )
        )


def _saved(row: Project) -> Project:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise InputInvalid(Phrase("You have a project named {name!r} already.", name=row.name)) from error
    return row
