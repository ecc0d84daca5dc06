"""The list of conversations: newest first, filtered, in pages, and one line of it.

Whether the user may do it was decided in `auth.py`; these functions take what it opened.
"""

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from chat.agent.registry import is_served
from chat.conversations.flags import (
    guard_of,
    has_failed,
    is_running,
    plans,
    retry_of,
    undone,
    waiting_count,
    with_flags,
)
from chat.core.model.chosen_model import stored_choice
from chat.errors import InputInvalid, InstanceNotFound
from chat.instances.rows import key_of, path_of
from chat.members.selectors import role_in, shared_with
from chat.models import AgentInstance, Role
from chat.runtime.sessions import keeps_sessions
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load

ANY_PROJECT: Final = "any"
NO_PROJECT: Final = "none"
"""In place of the id of a project, in a filter: those in any project, or in none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of a fork: an existing message of another conversation."""

    instance_id: str
    message_id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSummary:
    """One line of the list of conversations."""

    id: str
    role: Role  # of the person who asks
    is_shared: bool  # others are members of it
    agent: str
    name: str
    path: str  # behind `/agents/`, encoded
    parent_id: str | None  # the conversation that it works for
    title: str
    active_at: datetime
    created_at: datetime
    pinned_at: datetime | None
    archived_at: datetime | None
    temporary: bool
    session_id: str | None  # the current history
    keeps_sessions: bool  # its agent keeps several
    is_running: bool
    retry: JSONValue  # the next attempt of its running turn, where the model has failed
    waiting_count: int  # calls at the end of the shown path that can be answered
    guard: str  # differs after every change of its injection guard; empty without one
    plans: bool  # it is in plan mode
    undone: dict[str, Any] | None  # the undo that a redo would take back: id, file_count, includes_messages
    has_failed: bool  # the last turn of the shown path failed, and nothing followed
    is_unread: bool  # an answer ended after the owner last looked
    is_read_only: bool  # its agent is not served any more
    forked_from: Origin | None  # of the current history
    model_choice: JSONObject | None  # as it is stored
    project_id: str | None  # that its owner has put it into; the owner's alone


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePage:
    """A page of the list. `next_cursor`: nothing at the end."""

    items: list[InstanceSummary]
    next_cursor: str | None

    @property
    def has_more(self) -> bool:
        """Whether there is another page."""
        return self.next_cursor is not None


def list_line(instance_id: str, owner_id: Any) -> InstanceSummary | None:
    """One of a user's conversations as the list shows it; `None` for a stranger. One query for its owner."""
    row = with_flags(AgentInstance.objects.filter(pk=instance_id, owner_id=owner_id)).first()
    if row is not None:
        return _summary(row)
    role = role_in(owner_id, instance_id)
    return None if role is None else instance_summary(instance_id, role=role)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFilter:
    """Filter of a list: root conversations, or with `parent_id` that instance's direct sub-agents."""

    agent: str = ""
    search: str = ""
    parent_id: str | None = None
    is_archived: bool = False
    is_pinned: bool | None = None  # None: whether or not
    project: str = ""  # an id, or one of `ANY_PROJECT` and `NO_PROJECT`; empty: whether or not

    def rows_of(self, owner_id: int, shared: Collection[str] = ()) -> QuerySet[AgentInstance]:
        """The user's rows that it lets through, and of those `shared`. Pins and archives are the owner's."""
        mine = Q(owner_id=owner_id, archived_at__isnull=not self.is_archived)
        if self.is_pinned is not None:
            mine &= Q(pinned_at__isnull=not self.is_pinned)
        if self.project:
            mine &= _in_project(self.project)
        if shared and not self.is_archived and not self.is_pinned and self.project in {"", NO_PROJECT}:
            mine |= Q(pk__in=shared)
        if self.parent_id is not None:  # opened for this user, so all below it are
            mine = Q(archived_at__isnull=not self.is_archived)
        if self.parent_id is None:
            mine &= Q(is_temporary=False)
        rows = AgentInstance.objects.filter(mine, parent_id=self.parent_id)
        if self.agent:
            rows = rows.filter(agent=self.agent)
        if self.search:
            rows = rows.filter(Q(title__icontains=self.search) | Q(name__icontains=self.search))
        return rows


_EVERYTHING = InstanceFilter()


def _in_project(wanted: str) -> Q:
    if wanted in {ANY_PROJECT, NO_PROJECT}:
        return Q(project__isnull=wanted == NO_PROJECT)
    return Q(project_id=wanted)


def instance_page(
    owner_id: int, wanted: InstanceFilter = _EVERYTHING, *, cursor: str = "", limit: int = 50
) -> InstancePage:
    """The user's conversations and those shared with the user, most recently active first. Two queries, no count.

    Shape: `cursor` is the former page's `next_cursor`. Errors: `InputInvalid` for a cursor that is none.
    """
    roles = {} if wanted.parent_id else shared_with(owner_id)
    rows = wanted.rows_of(owner_id, roles)
    if cursor:
        active_at, last_id = _decode_cursor(cursor)
        rows = rows.filter(active_at__lte=active_at).filter(Q(active_at__lt=active_at) | Q(id__gt=last_id))
    found = list(with_flags(rows).order_by("-active_at", "id")[: limit + 1])
    page = found[:limit]
    return InstancePage(
        items=[_summary(row, role=_role(owner_id, row, roles)) for row in page],
        next_cursor=_encode_cursor(page[-1]) if len(found) > limit else None,
    )


def _role(user_id: Any, row: AgentInstance, shared: Mapping[str, Role]) -> Role:
    """Of a sub-agent, which is listed for those who may read it, the least."""
    return Role.OWNER if row.owner_id == user_id else shared.get(row.pk, Role.READER)


def instance_summary(instance_id: str, *, role: Role = Role.OWNER) -> InstanceSummary:
    """One instance as the list shows it to a person with this role. One query. Errors: `InstanceNotFound`."""
    row = with_flags(AgentInstance.objects.filter(pk=instance_id)).first()
    if row is None:
        raise InstanceNotFound
    return _summary(row, role=role)


def _summary(row: AgentInstance, *, role: Role = Role.OWNER) -> InstanceSummary:
    is_own = role is Role.OWNER
    last_finished_at: datetime | None = getattr(row, "last_finished_at", None)
    is_unread = last_finished_at is not None and (row.seen_at is None or last_finished_at > row.seen_at)
    return InstanceSummary(
        id=row.id,
        role=role,
        is_shared=bool(getattr(row, "is_shared", False)),
        agent=row.agent,
        name=row.name,
        path=path_of(key_of(row)),
        parent_id=row.parent_id,
        title=row.title,
        active_at=row.active_at,
        created_at=row.created_at,
        pinned_at=row.pinned_at if is_own else None,
        archived_at=row.archived_at if is_own else None,
        temporary=row.is_temporary,
        session_id=row.session_id,
        keeps_sessions=keeps_sessions(row.agent),
        is_running=is_running(row),
        retry=retry_of(row),
        waiting_count=waiting_count(row),
        guard=guard_of(row),
        plans=plans(row),
        undone=undone(row),
        has_failed=has_failed(row),
        is_unread=is_unread and is_own,
        is_read_only=not is_served(row.agent),
        forked_from=_origin(row) if is_own else None,
        model_choice=stored_choice(row.model_choice).to_json(),
        project_id=row.project_id if is_own else None,
    )


def _origin(row: AgentInstance) -> Origin | None:
    origin_id: str | None = getattr(row, "origin_id", None)
    if origin_id is None:
        return None
    return Origin(
        instance_id=origin_id,
        message_id=str(getattr(row, "origin_message_id", "")),
        title=str(getattr(row, "origin_title", "")),
    )


def _encode_cursor(row: AgentInstance) -> str:
    return base64.urlsafe_b64encode(dump([row.active_at.isoformat(), row.id]).encode()).decode()


def _decode_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        value: JSONValue = load(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, binascii.Error):
        raise InputInvalid("This cursor is not valid.") from None
    match value:
        case [str(text), str(last_id)]:
            active_at = parse_datetime(text)
            if active_at is not None and timezone.is_aware(active_at):
                return active_at, last_id
    raise InputInvalid("This cursor is not valid.")
