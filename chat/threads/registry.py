"""Threads and workspaces of one `ThreadsAgent`: their rows. The only writer of what its verbs change.

A thread is a sub-agent of the orchestrator: its name is the thread's id, its title the thread's name. A workspace is a
stored workspace that is attached to the orchestrator, under a name that is the workspace's id. What a thread works on
is what is attached to it as `default`; where nothing is, it has no files. All functions take the orchestrator's key.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from chat.agent.base import InstanceKey
from chat.conversations.changes import rename_instance
from chat.errors import InputInvalid
from chat.instances.addresses import is_name
from chat.instances.notifications import ThreadsChanged, group_of, notify_on_commit
from chat.instances.rows import ensure_instance, find_instance, hold_instance
from chat.models import AgentInstance, Turn
from chat.operations.removal import delete_instance
from thinkproject.kernel.phrases import Phrase
from tools_app.models import StoredWorkspace, WorkspaceAttachment
from tools_app.workspace import services
from tools_app.workspace.services import DEFAULT_NAME

MAX_LISTED = 500
"""Threads that are listed, and workspaces that there may be."""

THREADS, WORKSPACES, MESSAGES, CLEARED, ENDED = "threads", "workspaces", "messages", "cleared", "ended"
"""What a change has clients shown: `ThreadsChanged.shows`."""

DEFAULT_TITLE = "Default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread. `workspace_id`: of the workspace that it works on, if there is one."""

    id: str
    name: str
    workspace_id: str | None
    created_at: datetime
    active_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadWorkspace:
    """A workspace of the registry. `stored_id`: of its row."""

    id: str
    name: str
    stored_id: str
    can_write: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTurn:
    """A turn of a thread that has not ended."""

    thread_id: str
    turn_id: str


def new_short_id() -> str:
    """Eight characters, the first a letter: the id of a thread or a workspace."""
    return secrets.choice("abcdef") + secrets.token_hex(4)[1:]


@transaction.atomic
def start(key: InstanceKey) -> None:
    """Make the orchestrator and its workspace `default`, where they are missing. Errors: `QuotaExceeded`."""
    orchestrator = find_instance(key)
    if orchestrator is None or _attached(orchestrator.pk, DEFAULT_NAME) is None:
        orchestrator = ensure_instance(key)
        made = services.ensure_for_scope(orchestrator.pk, key.owner_id)
        if not made.title:
            services.title_workspace(made.pk, DEFAULT_TITLE)


def threads_of(key: InstanceKey, route: str) -> list[Thread]:
    """The threads, the one active last first; `MAX_LISTED` at most. Four queries."""
    orchestrator = find_instance(key)
    if orchestrator is None:
        return []
    rows = list(_children(orchestrator, route).order_by("-active_at", "pk")[:MAX_LISTED])
    links = WorkspaceAttachment.objects.filter(scope__in=[row.pk for row in rows], name=DEFAULT_NAME)
    used = dict(links.values_list("scope", "workspace_id"))
    own = {link.workspace_id: link.name for link in WorkspaceAttachment.objects.filter(scope=orchestrator.pk)}
    return [
        Thread(
            id=row.name,
            name=row.title or _thread_title(row.name),
            workspace_id=own.get(used.get(row.pk, "")),
            created_at=row.created_at,
            active_at=row.active_at,
        )
        for row in rows
    ]


def ensure_thread(key: InstanceKey, route: str, thread_id: str, name: str = "") -> AgentInstance:
    """Find a thread, or make it with the workspace `default`. Without a name it is called by its id.

    Errors: `InputInvalid` for an id that none can have, `QuotaExceeded`.
    """
    if not is_name(thread_id):
        raise InputInvalid(Phrase("No thread can have the id {id!r}.", id=thread_id[:80]))
    child = key.below(route, thread_id)
    found = find_instance(child)
    if found is not None:
        return found
    start(key)
    with transaction.atomic():
        orchestrator = _held(key)
        made = ensure_instance(child, title=" ".join(name.split())[: services.MAX_TITLE] or thread_id)
        default = _attached(orchestrator.pk, DEFAULT_NAME)
        if default is not None:
            services.attach(default.workspace_id, made.pk, can_write=default.can_write)
        notify(key, THREADS)
    return made


def create_thread(key: InstanceKey, route: str, name: str) -> Thread:
    """Make a thread. Errors: `QuotaExceeded`."""
    thread_id = new_short_id()
    ensure_thread(key, route, thread_id, name or _thread_title(thread_id))
    return next(thread for thread in threads_of(key, route) if thread.id == thread_id)


def rename_thread(key: InstanceKey, route: str, thread_id: str, name: str) -> bool:
    """Name a thread. False where there is none. Errors: `InputInvalid` for a name that is too long or empty."""
    found = find_instance(key.below(route, thread_id))
    if found is None:
        return False
    if not name.strip():
        raise InputInvalid("A thread needs a name.")
    with transaction.atomic():
        rename_instance(found, name)
        notify(key, THREADS)
    return True


def delete_thread(key: InstanceKey, route: str, thread_id: str) -> bool:
    """Stop a thread and remove it with its messages; its workspace stays. False where there is none."""
    found = find_instance(key.below(route, thread_id))
    if found is None or not delete_instance(found):
        return False
    notify(key, THREADS)
    return True


def touch(child: AgentInstance) -> None:
    """Note that a thread was active now."""
    AgentInstance.objects.filter(pk=child.pk).update(active_at=Now())


def workspaces_of(key: InstanceKey) -> list[ThreadWorkspace]:
    """The workspaces, oldest first. Two queries."""
    orchestrator = find_instance(key)
    if orchestrator is None:
        return []
    links = WorkspaceAttachment.objects.filter(scope=orchestrator.pk).select_related("workspace")
    return [_view(link) for link in links.order_by("created_at", "pk")]


def find_workspace(key: InstanceKey, workspace_id: str) -> ThreadWorkspace | None:
    """One workspace of the registry; `None` for any other, of whichever person."""
    orchestrator = find_instance(key)
    link = None if orchestrator is None else _attached(orchestrator.pk, workspace_id)
    return None if link is None else _view(link)


def create_workspace(key: InstanceKey, name: str) -> ThreadWorkspace:
    """Make a workspace. Errors: `InputInvalid` where there are `MAX_LISTED`, `QuotaExceeded`."""
    start(key)
    with transaction.atomic():
        orchestrator = _held(key)
        if WorkspaceAttachment.objects.filter(scope=orchestrator.pk).count() >= MAX_LISTED:
            raise InputInvalid(Phrase("There can be {limit} workspaces.", limit=MAX_LISTED))
        workspace_id = new_short_id()
        made = services.create_workspace(key.owner_id, title=name.strip() or f"Workspace {workspace_id}")
        link = services.attach(made.pk, orchestrator.pk, name=workspace_id)
        notify(key, WORKSPACES)
    return _view(link)


def rename_workspace(key: InstanceKey, workspace_id: str, name: str) -> bool:
    """Name a workspace, cut to 100 characters. False where there is none. Errors: `InputInvalid` for an empty name."""
    found = find_workspace(key, workspace_id)
    if found is None:
        return False
    if not name.strip():
        raise InputInvalid("A workspace needs a name.")
    services.title_workspace(found.stored_id, name)
    notify(key, WORKSPACES)
    return True


@transaction.atomic
def delete_workspace(key: InstanceKey, route: str, workspace_id: str) -> bool:
    """Take a workspace from all threads and delete it with its files. False where there is none.

    One that another conversation uses stays there.
    """
    orchestrator = None if find_instance(key) is None else _held(key)
    link = None if orchestrator is None else _attached(orchestrator.pk, workspace_id)
    if orchestrator is None or link is None:
        return False
    services.take_from(
        link.workspace_id, [orchestrator.pk, *_children(orchestrator, route).values_list("pk", flat=True)]
    )
    notify(key, WORKSPACES, THREADS)
    return True


def move_thread(key: InstanceKey, route: str, thread_id: str, workspace_id: str | None) -> bool:
    """Have a thread work on another workspace, or with `None` on none. One transaction.

    False for a workspace that is not of the registry, and for a thread without one that is to have none. An unknown
    thread is made. Errors: as `ensure_thread`.
    """
    if workspace_id is not None and find_workspace(key, workspace_id) is None:
        return False
    if workspace_id is None and find_instance(key.below(route, thread_id)) is None:
        return False
    child = ensure_thread(key, route, thread_id)
    with transaction.atomic():
        _held(key)
        wanted = None if workspace_id is None else find_workspace(key, workspace_id)
        if workspace_id is not None and wanted is None:
            return False  # it was deleted meanwhile
        hold_instance(child)
        present = _attached(child.pk, DEFAULT_NAME)
        if wanted is None and present is None:
            return False
        if present is not None:
            services.detach(present.workspace_id, child.pk)
        if wanted is not None:
            services.attach(wanted.stored_id, child.pk, can_write=wanted.can_write)
        notify(key, THREADS)
    return True


def has_workspace(child: InstanceKey) -> bool:
    """Whether a thread works on a workspace. `child`: the thread's key."""
    found = child.instance_id or getattr(find_instance(child), "pk", "")
    return _attached(found, DEFAULT_NAME) is not None


def running_turns(key: InstanceKey, route: str) -> list[ThreadTurn]:
    """The turns of threads that have not ended, in their order. One query, and the one that finds the orchestrator."""
    orchestrator = find_instance(key)
    if orchestrator is None:
        return []
    turns = Turn.objects.filter(instance__parent=orchestrator, instance__agent=route, finished_at=None)
    found = turns.order_by("position", "pk").values_list("instance__name", "pk")[:MAX_LISTED]
    return [ThreadTurn(thread_id=name, turn_id=turn_id) for name, turn_id in found]


def notify(key: InstanceKey, *shows: str, thread_id: str = "", origin: str = "") -> None:
    """Have the clients of the orchestrator shown what has changed, after the present transaction, in this order."""
    event: ThreadsChanged = {
        "type": "threads.changed",
        "shows": list(shows),
        "thread_id": thread_id,
        "origin": origin,
    }
    notify_on_commit(group_of(key), event)


def _held(key: InstanceKey) -> AgentInstance:
    """The orchestrator, locked until the transaction ends: what attaches and what deletes take turns."""
    orchestrator = ensure_instance(key)
    hold_instance(orchestrator)
    return orchestrator


def _children(orchestrator: AgentInstance, route: str) -> QuerySet[AgentInstance]:
    return AgentInstance.objects.filter(parent=orchestrator, agent=route)


def _attached(scope: str, name: str) -> WorkspaceAttachment | None:
    links = WorkspaceAttachment.objects.filter(scope=scope, name=name)
    return links.select_related("workspace").first()


def _view(link: WorkspaceAttachment) -> ThreadWorkspace:
    stored: StoredWorkspace = link.workspace
    fallback = DEFAULT_TITLE if link.name == DEFAULT_NAME else f"Workspace {link.name}"
    return ThreadWorkspace(
        id=link.name,
        name=stored.title or fallback,
        stored_id=stored.pk,
        can_write=link.can_write,
        created_at=stored.created_at,
    )


def _thread_title(thread_id: str) -> str:
    return f"Thread {thread_id}"
