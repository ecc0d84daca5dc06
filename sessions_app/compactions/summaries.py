"""Session summaries: a few sentences for people about the topic and the state of a session.

A model's summary makes way for a newer one; a person's own words stay until a person wants others. Nothing of a
conversation changes by them, so they do not count as a change of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import F
from django.utils import timezone

from sessions_app.core.compaction.compaction import SYNTHETIC_PREFIX
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.plain_text import storable
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import SummaryInvalid
from sessions_app.messages import selectors
from sessions_app.messages.writer import writing
from sessions_app.models import Session, SessionSummary
from thinkproject.kernel.phrases import Phrase

MAX_CHARS: Final = 4_000
MAX_MESSAGES: Final = 60
MAX_BYTES: Final = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryView:
    """A session's summary, read. `is_own`: a person wrote it. `is_current`: the path has not changed since."""

    text: str
    model_name: str
    written_at: datetime
    leaf_id: str
    change_seq: int
    is_own: bool
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The sources of a new summary: the former one, and the messages that it does not cover, root first.

    `leaf_id` and `change_seq`: what the new one will cover.
    """

    previous: str
    messages: list[StoredMessage]
    leaf_id: str
    change_seq: int


def find_summary(session_id: str) -> SummaryView | None:
    """The summary of a session, or nothing. One query."""
    rows = SessionSummary.objects.filter(pk=session_id)
    row = rows.annotate(
        shown_id=F("session__active_leaf__message_id"), shown_seq=F("session__active_leaf__change_seq")
    ).first()
    if row is None:
        return None
    return SummaryView(
        text=row.text,
        model_name=row.model_name,
        written_at=row.written_at,
        leaf_id=row.leaf_id,
        change_seq=row.change_seq,
        is_own=not row.model_name,
        is_current=row.leaf_id == (row.shown_id or "") and row.change_seq >= (row.shown_seq or 0),
    )


def read_material(session_id: str, *, afresh: bool = False) -> Material | None:
    """The sources for a summary of the active path; `None` without messages, or when all are covered already.

    Of a long path its newest messages, with the compactions that stand for older ones. With `afresh` the former
    summary, whosever it is, is left out of account; else a person's own words are left alone. At most five queries.
    """
    # First the number, then the messages: what comes in between is covered twice and never left out.
    change_seq = Session.objects.filter(pk=session_id).values_list("change_seq", flat=True).first()
    known = None if afresh else find_summary(session_id)
    if change_seq is None or (known is not None and (known.is_own or known.is_current)):
        return None
    path, _ = selectors.compacted_tail(session_id, Leaf.ACTIVE, max_messages=MAX_MESSAGES, max_bytes=MAX_BYTES)
    if not path:
        return None
    if known is None or not selectors.is_on_path(session_id, known.leaf_id):
        return Material(previous="", messages=path, leaf_id=path[-1].id, change_seq=change_seq)
    ids = [message.id for message in path]
    covered = ids.index(known.leaf_id) + 1 if known.leaf_id in ids else 0
    # An answer that is covered may have grown since, or was edited.
    new = [each for index, each in enumerate(path) if index >= covered or each.change_seq > known.change_seq]
    return Material(previous=known.text, messages=new, leaf_id=ids[-1], change_seq=change_seq)


def store_summary(
    session_id: str,
    text: str,
    *,
    material: Material,
    model_name: str,
    afresh: bool = False,
) -> bool:
    """Store a model's summary, in the caller's transaction if there is one.

    False, and nothing is written, when one of the messages is gone meanwhile, or a person has written a summary (but
    not `afresh`). **Errors:** `SummaryInvalid`, `SessionNotFound`.
    """
    checked = check_text(text)
    with writing(session_id) as writer:
        wanted = _stored_ids(material.messages)
        if len(writer.find(wanted)) < len(wanted):
            return False
        if not afresh and SessionSummary.objects.filter(pk=session_id, model_name="").exists():
            return False
        _put(session_id, checked, leaf_id=material.leaf_id, change_seq=material.change_seq, model_name=model_name[:200])
    return True


def _stored_ids(messages: Sequence[StoredMessage]) -> list[str]:
    return [message.id for message in messages if not message.id.startswith(SYNTHETIC_PREFIX)]


def write_summary(session_id: str, text: str, *, user_id: Any = None) -> SummaryView:
    """Keep a person's own words. **Errors:** `SummaryInvalid` for a blank or too long text, `SessionNotFound`."""
    checked = check_text(text)
    with writing(session_id):
        session = Session.objects.filter(pk=session_id)
        change_seq, leaf_id = session.values_list("change_seq", "active_leaf__message_id").get()
        _put(session_id, checked, leaf_id=leaf_id or "", change_seq=change_seq, written_by_id=user_id)
    view = find_summary(session_id)
    assert view is not None
    return view


def _put(session_id: str, text: str, **fields: Any) -> None:
    values = {"text": text, "model_name": "", "written_by_id": None, "written_at": timezone.now(), **fields}
    SessionSummary.objects.update_or_create(pk=session_id, defaults=values)


def check_text(text: str) -> str:
    """Give a summary as it is stored. **Errors:** `SummaryInvalid` when it is blank or too long."""
    cleaned = storable(text).strip()
    if not cleaned:
        raise SummaryInvalid("A summary cannot be empty.")
    if len(cleaned) > MAX_CHARS:
        raise SummaryInvalid(
            Phrase("A summary has at most {limit:,} characters.", limit=MAX_CHARS), max_length=MAX_CHARS
        )
    return cleaned
