"""Sessions as a whole: facts, lists, and operations besides messages.

Lists cost what they return. `scope` narrows to what belongs together; an owner narrows to what is one person's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.db.models.lookups import IsNull
from django.utils import timezone

from sessions_app.core.messages.messages import MessageRole
from sessions_app.core.messages.session_facts import SessionFacts
from sessions_app.core.messages.shapes import Part
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.messages.services import append_messages, create_session, delete_session
from sessions_app.models import Message, Session
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.phrases import Phrase

MAX_LISTED: Final = 500
MAX_DAYS: Final = 36_500
_UNPINNED: Final = IsNull(F("pinned_at"), True)
SPLIT_REASON: Final = "compaction"
SPLIT_TEXT: Final = "[Context from previous session]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo(SessionFacts):
    """A session as its own row knows it. **Units:** `path_length`: messages of the active path."""

    scope: str
    owner_id: Any
    end_reason: str
    source: str
    path_length: int
    leaf_id: str | None


def session_info(session_id: str) -> SessionInfo:
    """One session. One query. **Errors:** `SessionNotFound`."""
    found = _infos(Session.objects.filter(pk=session_id))
    if not found:
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
    return found[0]


def find_info(session_id: str, *, scope: str) -> SessionInfo | None:
    """One session of a scope, or nothing. One query."""
    found = _infos(Session.objects.filter(pk=session_id, scope=scope))
    return found[0] if found else None


def session_list(
    *,
    scope: str | None = None,
    owner_id: Any = None,
    is_archived: bool | None = False,
    after: SessionInfo | None = None,
    limit: int = 50,
) -> list[SessionInfo]:
    """Sessions, pinned ones first, then the most recently changed. One query.

    **Shape:** at most 500; `after` is the last one of the page before. `is_archived`: `None` gives both kinds.
    """
    rows = sessions_of(scope=scope, owner_id=owner_id)
    if is_archived is not None:
        rows = rows.filter(archived_at__isnull=not is_archived)
    if after is not None:
        below = Q(updated_at__lt=after.updated_at) | Q(updated_at=after.updated_at, id__gt=after.id)
        is_below_pinned = Q(pinned_at=None)
        rows = rows.filter(is_below_pinned & below if after.pinned_at is None else is_below_pinned | below)
    return _infos(rows.order_by(_UNPINNED, "-updated_at", "id")[: min(max(limit, 1), MAX_LISTED)])


def latest_session_id(*, scope: str | None = None, owner_id: Any = None) -> str | None:
    """The most recently changed session that is not archived, or nothing. One query."""
    rows = sessions_of(scope=scope, owner_id=owner_id).filter(archived_at=None)
    return rows.order_by("-updated_at", "id").values_list("pk", flat=True).first()


def prunable_sessions(
    *,
    scope: str | None = None,
    owner_id: Any = None,
    days: int | None = None,
    keep: int | None = None,
    archived_only: bool = True,
    limit: int = MAX_LISTED,
) -> list[SessionInfo]:
    """Sessions that match all given conditions, longest unchanged first. Pinned sessions are kept.

    `days`: not changed for so long; `keep`: not among the so many newest of their owner and scope. One query.
    **Errors:** `ValueError` when neither is given, or one is negative.
    """
    if days is None and keep is None:
        raise ValueError("Say how old (days), or how many are to stay (keep).")
    if (days is not None and not 0 <= days <= MAX_DAYS) or (keep is not None and keep < 0):
        raise ValueError(f"Days are from 0 to {MAX_DAYS:,}, and a count is not negative.")
    all_rows = sessions_of(scope=scope, owner_id=owner_id)
    rows = all_rows.filter(pinned_at=None)
    if archived_only:
        rows = rows.filter(archived_at__isnull=False)
    if days is not None:
        rows = rows.filter(updated_at__lt=timezone.now() - timedelta(days=days))
    if keep is not None:
        groups = [F("owner_id"), F("scope")]
        place = Window(RowNumber(), partition_by=groups, order_by=[F("updated_at").desc(), F("id")])
        rows = rows.filter(pk__in=all_rows.annotate(place=place).filter(place__gt=keep).values("pk"))
    return _infos(rows.order_by("updated_at", "id")[: min(max(limit, 1), MAX_LISTED)])


def prune_sessions(listed: Iterable[SessionInfo]) -> list[SessionInfo]:
    """Delete listed sessions that have not changed since; returns the deleted ones.

    What a fork reaches stays. One transaction for each session, so a stop in between leaves whole sessions. Sessions of
    agents are removed with their conversations (`prune_conversations`), not here.
    """
    return [each for each in listed if _remove_as_listed(each)]


@transaction.atomic
def _remove_as_listed(info: SessionInfo) -> bool:
    rows = Session.objects.select_for_update().filter(pk=info.id, updated_at=info.updated_at)
    if not rows.filter(pinned_at=info.pinned_at, archived_at=info.archived_at).exists():
        return False
    delete_session(info.id)
    return True


def sessions_of(*, scope: str | None = None, owner_id: Any = None) -> QuerySet[Session]:
    """Rows of a scope, of an owner, of both, or all."""
    rows = Session.objects.all()
    if scope is not None:
        rows = rows.filter(scope=scope)
    return rows if owner_id is None else rows.filter(owner_id=owner_id)


def touch_session(session_id: str) -> None:
    """Make it the most recently changed one; nothing else changes. **Errors:** `SessionNotFound`."""
    _update(session_id, updated_at=timezone.now())


def pin_session(session_id: str, *, is_pinned: bool = True) -> None:
    """List it before the others, or no longer. Does not count as a change. **Errors:** `SessionNotFound`."""
    _update(session_id, pinned_at=timezone.now() if is_pinned else None)


def archive_session(session_id: str, *, is_archived: bool = True) -> None:
    """Put it away, or take it back. Its messages stay as they are. **Errors:** `SessionNotFound`."""
    _update(session_id, archived_at=timezone.now() if is_archived else None)


def hide_sessions(scopes: Sequence[str], *, is_hidden: bool) -> None:
    """Keep the sessions of these scopes from every search, or no longer. One query."""
    Session.objects.filter(scope__in=scopes).update(hidden_at=timezone.now() if is_hidden else None)


@transaction.atomic
def split_session(session_id: str, summary: str, *, name: str = "") -> Session:
    """End a session and begin the next one with a summary of it, as an assistant's message.

    The old one keeps its messages and gets the end reason "compaction"; the new one is linked to it and has its owner,
    scope, source, model, and its name unless another is given. **Errors:** `SessionNotFound`, `MessageInvalid` for a
    blank summary.
    """
    if not summary.strip():
        raise MessageInvalid("A summary cannot be empty.")
    # The update is the lock: two splits of one session come one after the other.
    _update(session_id, end_reason=SPLIT_REASON, updated_at=timezone.now())
    old = Session.objects.get(pk=session_id)
    new = create_session(
        owner_id=old.owner_id,
        scope=old.scope,
        name=name or old.name,
        parent_id=old.pk,
        source=old.source,
        model_name=old.model_name,
    )
    parts: list[Part] = [{"type": "text", "text": SPLIT_TEXT + summary}]
    if old.hidden_at is not None:
        _update(new.pk, hidden_at=old.hidden_at)
    append_messages(new.pk, [{"id": new_id("msg"), "role": MessageRole.ASSISTANT.value, "parts": parts}])
    new.refresh_from_db()
    return new


def message_count(session_id: str) -> int:
    """Number of a session's messages on all branches, without queued ones. Costs its own messages."""
    own = Message.objects.filter(session_id=session_id, placed_at__isnull=False).count()
    shared = Session.objects.filter(pk=session_id).values_list("forked_from__depth", flat=True).first()
    return own if shared is None else own + shared + 1


def _update(session_id: str, **values: Any) -> None:
    rows = Session.objects.filter(pk=session_id)
    if not (rows.update(**values) if values else rows.exists()):
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))


_DERIVED: Final = {"path_length", "leaf_id", "summary"}
"""Fields that are no columns of the row under the same name."""

_COLUMNS: Final = tuple(field.name for field in fields(SessionInfo) if field.name not in _DERIVED)


def _infos(rows: QuerySet[Session]) -> list[SessionInfo]:
    # Not the rows themselves: a frozen prompt may be long, and a list does not show it.
    found = rows.values(*_COLUMNS, "archived_depth", "active_leaf__depth", "active_leaf__message_id", "summary__text")
    return [_info(dict(values)) for values in found]


def _info(values: dict[str, Any]) -> SessionInfo:
    depth, leaf_id = values.pop("active_leaf__depth"), values.pop("active_leaf__message_id")
    floor, summary = values.pop("archived_depth"), values.pop("summary__text")
    path_length = 0 if depth is None else depth + 1 - floor
    return SessionInfo(**values, path_length=path_length, leaf_id=leaf_id, summary=summary or "")
