"""Make a session of what was exported (`exporting.py`): the whole tree, its compactions, blocks and entries.

Nothing that is read is believed: every message is checked like a client's, open tool calls are closed, since nobody
waits for their results here, and the system prompt is not among what can be brought. Rows go in batch by batch, under a
scope that nobody lists, and the session is given its own at the end; so nobody is kept waiting and nothing half done is
ever seen. What an import leaves that died in between is found by `prune_unfinished`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from sessions_app import import_rows
from sessions_app.core.messages import MAX_BYTES, Role, is_message_id, parse_message
from sessions_app.core.parts import interrupt_part, is_pending, map_parts
from sessions_app.core.plain_text import storable
from sessions_app.core.repair import INTERRUPTED_TEXT
from sessions_app.errors import ExportInvalid, MessageInvalid, SummaryInvalid
from sessions_app.exporting import (
    BLOCK_FIELDS,
    COMPACTION_FIELDS,
    ENTRY_FIELDS,
    FORMAT,
    SUMMARY_FIELDS,
    VERSION,
)
from sessions_app.forking import insert_as_they_were
from sessions_app.models import Compaction, ContextBlock, ContextEntry, Message, Session, SessionSummary
from sessions_app.search.indexing import index_entries, message_tags
from sessions_app.services import create_session, delete_session
from sessions_app.session_summaries import check_text
from sessions_app.writing import prepare
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, load

Lines: TypeAlias = Iterable[str | bytes]
Admit: TypeAlias = Callable[[int, int], None]

BATCH: Final = 200
BATCH_BYTES: Final = 8 * 1024 * 1024
MAX_MESSAGES: Final = 1_000_000
MAX_OTHERS: Final = 20_000
MAX_LINE_BYTES: Final = MAX_BYTES + 64 * 1024
SESSION_FIELDS: Final = (
    "name",
    "source",
    "model_name",
    "end_reason",
    "auto_compaction",
    "loaded_keys",
    "archived_depth",
    "created_at",
)  # usage and cost were another session's
UNFINISHED: Final = "import:"
PATIENCE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came in."""

    session_id: str
    message_count: int


def import_session(
    lines: Lines,
    *,
    owner_id: Any = None,
    scope: str = "",
    name: str = "",
    accepts_system: bool = True,
    admit: Admit | None = None,
) -> Imported:
    """Make a session of an export. `name`: instead of the exported one. All of it or nothing.

    `admit` is called with the number and the bytes of each batch of messages, in the transaction that stores it; its
    errors end the import. `accepts_system=False` refuses messages of role system, which people must not put into what
    models are told.
    **Errors:** `ExportInvalid`, with the number of the line.
    """
    session = create_session(owner_id=owner_id, scope=f"{UNFINISHED}{new_id('imp')}")
    reader = _Reader(session.pk, accepts_system, message_tags(session.pk, owner_id, scope), admit)
    is_done = False
    try:
        reader.read(lines)
        _finish(session.pk, reader, scope, name)
        is_done = True
    finally:
        if not is_done:
            delete_session(session.pk)
    return Imported(session_id=session.pk, message_count=reader.count)


def prune_unfinished(*, limit: int = 100) -> int:
    """Delete what imports have left that never came to their end. Returns how many."""
    before = timezone.now() - PATIENCE
    found = Session.objects.filter(scope__startswith=UNFINISHED, updated_at__lt=before)
    ids = list(found.values_list("pk", flat=True)[:limit])
    for session_id in ids:
        delete_session(session_id)
    return len(ids)


@dataclass(slots=True)
class _Reader:
    """Reads the lines in order and writes messages as they come."""

    session_id: str
    accepts_system: bool
    tags: str  # of the search
    admit: Admit | None = None
    head: JSONObject | None = None  # what the first line says of the session
    count: int = 0
    leaf_id: str | None = None  # that the export names, then each queued message in its place
    others: list[Any] = field(default_factory=list)  # compactions, blocks, entries
    waiting: list[tuple[Message, str | None]] = field(default_factory=list)  # with the ids of their parents
    waiting_bytes: int = 0
    has_ended: bool = False

    def read(self, lines: Lines) -> None:
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    self._take(_object(line))
            except (ExportInvalid, MessageInvalid, SummaryInvalid) as error:
                raise ExportInvalid(f"Up to line {number}: {error.message}", line=number) from error
        if not self.has_ended:
            raise ExportInvalid("The file ends before the export does; it was cut.")

    def _take(self, line: JSONObject) -> None:
        kind = line.get("kind")
        if self.has_ended or (kind == "session") is (self.head is not None):
            raise ExportInvalid(f"An export begins with one line of kind 'session' and ends after 'end', not {kind!r}.")
        match kind:
            case "session":
                self._begin(line)
            case "message":
                self._message(line)
            case "summary":
                self._summary(line)
            case "compaction":
                self._other(Compaction(id=new_id("cmp"), **_chosen(line, COMPACTION_FIELDS)))
            case "block":
                self._other(ContextBlock(**_chosen(line, BLOCK_FIELDS)))
            case "entry":
                self._other(ContextEntry(**_chosen(line, ENTRY_FIELDS)))
            case "end":
                self._end(line)
            case _:
                raise ExportInvalid(f"There are no lines of kind {kind!r:.80} in an export.")

    def _begin(self, line: JSONObject) -> None:
        if line.get("format") != FORMAT or line.get("version") != VERSION:
            raise ExportInvalid(f"This is no export of the format {FORMAT!r}, version {VERSION}.")
        leaf_id = line.get("leaf")
        if leaf_id is not None and not is_message_id(leaf_id):
            raise ExportInvalid("The leaf of a session is the id of a message, or null.")
        self.head = _chosen(line, SESSION_FIELDS)
        self.leaf_id = leaf_id

    def _message(self, line: JSONObject) -> None:
        message = prepare(_closed(parse_message(line)))
        if message["role"] == Role.SYSTEM and not self.accepts_system:
            raise ExportInvalid("Messages of role 'system' cannot be imported.")
        parent_id = line.get("parent")
        if line.get("queued"):  # nobody's turn will place it, so it goes to the end of the path
            parent_id, self.leaf_id = self.leaf_id, message["id"]
        if parent_id is not None and not is_message_id(parent_id):
            raise ExportInvalid("A message's parent is the id of a message, or null.")
        self.count += 1
        if self.count > MAX_MESSAGES:
            raise ExportInvalid(f"At most {MAX_MESSAGES} messages can be imported.")
        created_at = _instant(line, "created_at")
        placed_at = _instant(line, "placed_at") if "placed_at" in line else created_at
        row = import_rows.row_of(self.session_id, message, created_at=created_at, placed_at=placed_at)
        row.pruned_calls = [call for call in line.get("pruned_calls") or [] if isinstance(call, str)]
        self.waiting.append((row, parent_id))
        self.waiting_bytes += row.byte_size
        if len(self.waiting) >= BATCH or self.waiting_bytes >= BATCH_BYTES:
            self._write()

    def _summary(self, line: JSONObject) -> None:
        if any(isinstance(row, SessionSummary) for row in self.others):
            raise ExportInvalid("An export has one summary at most.")
        said = {"text": "", "written_at": timezone.now(), **_chosen(line, SUMMARY_FIELDS)}
        if not isinstance(said["text"], str):
            raise ExportInvalid("A summary is a text.")
        # As many as imported messages have: it tells of all of them.
        self._other(SessionSummary(**said | {"text": check_text(said["text"])}, change_seq=1))

    def _other(self, row: Any) -> None:
        row.session_id = self.session_id
        try:
            row.clean_fields(exclude=["session", "owner", "created_by"])
        except ValidationError as error:
            raise ExportInvalid(f"A line of kind {type(row).__name__!r} is wrong: {error.message_dict}.") from error
        if len(self.others) >= MAX_OTHERS:
            raise ExportInvalid(f"At most {MAX_OTHERS} compactions, blocks and entries can be imported.")
        self.others.append(row)

    def _end(self, line: JSONObject) -> None:
        if line.get("messages") != self.count:
            raise ExportInvalid(f"The export has {line.get('messages')!r} messages, {self.count} were found.")
        self._write()
        self.has_ended = True

    def _write(self) -> None:
        with transaction.atomic():
            if self.admit is not None and self.waiting:
                self.admit(len(self.waiting), self.waiting_bytes)
            import_rows.write(self.session_id, self.waiting, self.tags)
        self.waiting, self.waiting_bytes = [], 0


def _finish(session_id: str, reader: _Reader, scope: str, name: str) -> None:
    """Give the session what belongs to it, its scope last: from here on it can be seen."""
    with transaction.atomic():
        for model in (SessionSummary, Compaction, ContextBlock, ContextEntry):
            rows = [row for row in reader.others if isinstance(row, model)]
            for begin in range(0, len(rows), BATCH):
                insert_as_they_were(rows[begin : begin + BATCH], *(("created_at",) if model is Compaction else ()))
        index_entries(row for row in reader.others if isinstance(row, ContextEntry))
        leaf = _leaf(session_id, reader.leaf_id)
        head = reader.head or {}
        session = Session(**{"name": "", **head})
        if name:
            session.name = name[:200]
        _check_session(session)
        values = {key: getattr(session, key) for key in SESSION_FIELDS if key in head or key == "name"}
        values["archived_depth"] = min(session.archived_depth, leaf.depth) if leaf is not None else 0
        Session.objects.filter(pk=session_id).update(
            **values, scope=scope, active_leaf=leaf, change_seq=F("change_seq") + 1, updated_at=timezone.now()
        )


def _leaf(session_id: str, leaf_id: str | None) -> Message | None:
    if leaf_id is None:
        return None
    leaf = Message.objects.filter(session_id=session_id, message_id=leaf_id).only("depth").first()
    if leaf is None:
        raise ExportInvalid(f"The leaf {leaf_id!r} is not among the messages.")
    return leaf


def _check_session(session: Session) -> None:
    try:
        session.clean_fields(exclude=["owner", "active_leaf", "parent", "forked_from"])
    except ValidationError as error:
        raise ExportInvalid(f"The line of kind 'session' is wrong: {error.message_dict}.") from error
    if not isinstance(session.loaded_keys, list) or not all(isinstance(key, str) for key in session.loaded_keys):
        raise ExportInvalid("The loaded keys of a session are a list of texts.")


def _object(line: str | bytes) -> JSONObject:
    if len(line) > MAX_LINE_BYTES:
        raise ExportInvalid(f"A line has at most {MAX_LINE_BYTES} bytes.")
    try:
        value = load(line)
    except ValueError as error:
        raise ExportInvalid(f"This is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ExportInvalid("Each line is a JSON object.")
    return value


def _closed(message: JSONObject) -> JSONObject:
    """The message without open tool calls: in the conversation that it came from somebody may answer them, not here."""
    return map_parts(message, lambda part: interrupt_part(part, INTERRUPTED_TEXT) if is_pending(part) else part)


def _chosen(line: JSONObject, fields: Iterable[str]) -> JSONObject:
    return {name: _value(line, name) for name in fields if line.get(name) is not None}


def _value(line: JSONObject, name: str) -> Any:
    if name.endswith("_at"):
        return _instant(line, name)
    value = line[name]
    return storable(value) if isinstance(value, str) else value


def _instant(line: JSONObject, name: str) -> datetime:
    value = line.get(name)
    try:
        instant = parse_datetime(value) if isinstance(value, str) else None
    except ValueError:
        instant = None
    if instant is None or timezone.is_naive(instant):
        raise ExportInvalid(f"{name!r} must be an instant with its time zone, such as '2026-01-31T12:00:00+00:00'.")
    return instant


def lines_of(file: Any) -> Iterator[bytes]:
    """Lines of a binary file, none of them longer than a line may be. **Errors:** `ExportInvalid`."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line
