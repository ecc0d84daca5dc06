"""A session as lines of JSON, whole, and its shown path as Markdown. Streams: in memory there is a page at a time.

The first line says what this is, then one line a message (parents before what hangs below them), the summary, a
compaction, a block or an entry, and the last line counts the messages, so that a file that was cut is known. Ids of
messages are kept.
Left out on purpose: the frozen system prompt, which may hold what a developer wrote for models alone; turns, their logs
and costs a step; files, to which messages refer by their address; what the user's own memory holds.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from django.db.models import Q

from sessions_app.core.messages.shapes import WRITTEN_BY
from sessions_app.core.text.markdown import to_markdown
from sessions_app.errors import SessionNotFound
from sessions_app.models import Compaction, ContextBlock, ContextEntry, Message, Session, SessionSummary
from thinkproject.kernel.jsonvalue import JSONObject, dump
from thinkproject.kernel.phrases import Phrase

FORMAT: Final = "think-session"
VERSION: Final = 1
PAGE_ROWS: Final = 200
PAGE_BYTES: Final = 4 * 1024 * 1024

SESSION_FIELDS: Final = (
    "name",
    "source",
    "model_name",
    "end_reason",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cached_tokens",
    "cost",
    "auto_compaction",
    "loaded_keys",
    "archived_depth",
    "created_at",
)
OWNERS_FIELDS: Final = {"cost", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "loaded_keys"}
OWNERS_KINDS: Final = {"block", "entry"}
"""What others than the owner do not get: costs and memory."""
COMPACTION_FIELDS: Final = (
    "first_id",
    "last_id",
    "summary",
    "trigger",
    "model_name",
    "message_count",
    "tokens_before",
    "tokens_after",
    "created_at",
    "edited_at",
    "undone_at",
)
SUMMARY_FIELDS: Final = ("text", "leaf_id", "model_name", "written_at")
BLOCK_FIELDS: Final = ("label", "content", "description", "max_tokens", "is_runtime", "is_removed")
ENTRY_FIELDS: Final = ("label", "key", "title", "description", "content")
_MESSAGE: Final = ("message_id", "role", "parent__message_id", "content", "pruned_calls", "created_at", "placed_at")


class MessageRow(NamedTuple):
    """The columns of a message that an export takes. `placed_at`: nothing while it is queued."""

    message_id: str
    role: str
    parent_id: str | None
    content: JSONObject
    pruned_calls: list[str]
    created_at: datetime
    placed_at: datetime | None


def export_lines(session_id: str, *, is_owner: bool = True) -> Iterator[str]:
    """Everything of a session, a line at a time, each with its line end. **Errors:** `SessionNotFound`, at once.

    For others than the owner without memory and costs.
    """
    fields = [name for name in SESSION_FIELDS if is_owner or name not in OWNERS_FIELDS]
    session = Session.objects.filter(pk=session_id).values(*fields, "active_leaf__message_id").first()
    if session is None:
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
    leaf_id = session.pop("active_leaf__message_id")
    head = {"kind": "session", "format": FORMAT, "version": VERSION, "leaf": leaf_id, **session}
    return _lines(session_id, head, is_owner=is_owner)


def export_markdown(session_id: str) -> Iterator[str]:
    """The shown path from its beginning, archived messages too, to read. **Errors:** `SessionNotFound`, at once."""
    found = Session.objects.filter(pk=session_id).values_list("name", "summary__text").first()
    if found is None:
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
    return _markdown(session_id, *found)


def message_rows(session_id: str) -> Iterator[MessageRow]:
    """All messages of a session, those that it shares with its origin too: parents first, then what is queued."""
    # Parents lie less deep. Among siblings the older row comes first, and so it does after an import.
    mine = Q(session_id=session_id) | Q(pk__in=Message.objects.shared_with_origin(session_id, 0).values("pk"))
    placed = Message.objects.filter(mine, placed_at__isnull=False).order_by("depth", "pk")
    yield from _rows(list(placed.values_list("pk", "byte_size")))
    yield from _rows(list(Message.objects.queue_of(session_id).values_list("pk", "byte_size")))


def _lines(session_id: str, head: JSONObject, *, is_owner: bool) -> Iterator[str]:
    yield _line(head)
    count = 0
    for row in message_rows(session_id):
        count += 1
        yield _message_line(row)
    for kind, model, fields in (
        ("summary", SessionSummary, SUMMARY_FIELDS),
        ("compaction", Compaction, COMPACTION_FIELDS),
        ("block", ContextBlock, BLOCK_FIELDS),
        ("entry", ContextEntry, ENTRY_FIELDS),
    ):
        if not is_owner and kind in OWNERS_KINDS:
            continue
        order = ("created_at", "id") if model is Compaction else ("pk",)
        rows: Any = model._default_manager.filter(session_id=session_id).order_by(*order)
        ids = list(rows.values_list("pk", flat=True))
        # Page by page, and no open cursor between two of them: the reader may use several connections.
        for begin in range(0, len(ids), PAGE_ROWS):
            for values in rows.filter(pk__in=ids[begin : begin + PAGE_ROWS]).values(*fields):
                yield _line({"kind": kind, **values})
    yield _line({"kind": "end", "messages": count})


def _markdown(session_id: str, name: str, summary: str | None) -> Iterator[str]:
    if name:
        yield f"# {' '.join(name.split())}\n\n"
    if summary:
        yield "".join(f"> {line}".rstrip() + "\n" for line in summary.splitlines()) + "\n"
    path = Message.objects.on_path(session_id, None, 0).order_by("depth")
    for row in _rows(list(path.values_list("pk", "byte_size"))):
        yield to_markdown(row.role, row.content["parts"], _written_by(row))


def _written_by(row: MessageRow) -> str:
    """The author of an answer that a person wrote, and when; empty for any other message."""
    who = (row.content.get("metadata") or {}).get(WRITTEN_BY)
    return f"Written by {who}, {row.created_at:%Y-%m-%d %H:%M} UTC" if isinstance(who, str) else ""


def _rows(places: list[tuple[int, int]]) -> Iterator[MessageRow]:
    """Read rows in order, in batches of bounded size. Deleted rows are skipped."""
    begin = 0
    while begin < len(places):
        end, size = begin, 0
        while end < len(places) and end - begin < PAGE_ROWS and (end == begin or size + places[end][1] <= PAGE_BYTES):
            size += places[end][1]
            end += 1
        ids = [pk for pk, _ in places[begin:end]]
        found = {pk: rest for pk, *rest in Message.objects.filter(pk__in=ids).values_list("pk", *_MESSAGE)}
        yield from (MessageRow(*found[pk]) for pk in ids if pk in found)
        begin = end


def _message_line(row: MessageRow) -> str:
    line: JSONObject = {
        "kind": "message",
        "id": row.message_id,
        "role": row.role,
        "parent": row.parent_id,
        **row.content,
    }
    line["created_at"] = row.created_at
    if row.pruned_calls:
        line["pruned_calls"] = row.pruned_calls
    line |= {"queued": True} if row.placed_at is None else {"placed_at": row.placed_at}
    return _line(line)


def _line(values: JSONObject) -> str:
    return dump({key: _plain(value) for key, value in values.items()}) + "\n"


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case Decimal():
            return format(value.normalize(), "f")
    return value
