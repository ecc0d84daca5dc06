"""Create a session from an export (`export.py`): the whole tree, its compactions, blocks and entries.

The input is not trusted: every message is checked like a client's, open tool calls are closed because no client waits
for their results here, and a system prompt is never imported. Rows are inserted in batches, under a scope that no list
shows, and the session gets its own scope at the end. So other writers do not wait, and a partial import is never
visible. `prune_unfinished` finds the rows of an import whose process died.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from sessions_app.compactions.summaries import check_text
from sessions_app.context.store import MAX_WORDS
from sessions_app.core.context.block_policy import BlockPolicy
from sessions_app.core.context.context_blocks import Entry, check_key, check_label
from sessions_app.core.messages import call_texts, shapes
from sessions_app.core.messages.messages import MAX_BYTES, MessageRole, is_message_id, parse_message
from sessions_app.core.messages.parts import interrupt_part, is_pending, map_parts
from sessions_app.core.messages.plain_text import storable
from sessions_app.errors import (
    BlockNotFound,
    BlockNotWritable,
    BlockTooLarge,
    ContextInvalid,
    ExportInvalid,
    MessageInvalid,
    SummaryInvalid,
)
from sessions_app.messages.forks import insert_as_they_were
from sessions_app.messages.services import create_session, delete_session
from sessions_app.messages.writer import prepare
from sessions_app.models import Compaction, ContextBlock, ContextEntry, Message, Session, SessionSummary
from sessions_app.search.indexing import index_entries, message_tags
from sessions_app.transfer import import_rows
from sessions_app.transfer.export import BLOCK_FIELDS, COMPACTION_FIELDS, ENTRY_FIELDS, FORMAT, SUMMARY_FIELDS, VERSION
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, load
from thinkproject.kernel.phrases import Phrase

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
RECENT: Final = timedelta(minutes=1)
MAX_PAUSE: Final = 0.2
"""Seconds at most between two batches of a person's import, else as long as the batch took."""
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
"""What a database and every time zone can show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRules:
    """Limits of a person's import. System messages are refused: people must not add instructions for models.

    `blocks`: the policy of the agent that will read the session. Blocks that it does not declare, or that are not
    written by people, are left out, and so is what says that a block was added or removed while an agent ran.
    `begin` is called in the transaction that begins the import, `admit` in the one that stores a batch of messages,
    with their number and bytes; errors of both end the import. `inside` opens the transaction that makes the session
    visible, `also` is called in it with the session's id: what it writes is there exactly when the session is.
    """

    blocks: BlockPolicy
    admit: Admit
    begin: Callable[[], None]
    max_messages: int = 50_000
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext
    also: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Result of an import. `left_out`: labels of blocks that the importer may not write."""

    session_id: str
    message_count: int
    left_out: tuple[str, ...] = ()


def import_session(
    lines: Lines, *, owner_id: Any = None, scope: str = "", name: str = "", rules: ImportRules | None = None
) -> Imported:
    """Make a session of an export. `name`: instead of the exported one. All of it or nothing.

    Without `rules` the export is the developer's or the operator's own: it may hold any role and any block.
    **Errors:** `ExportInvalid`, with the number of the line; what `rules.admit` raises.
    """
    with transaction.atomic():
        if rules is not None:
            rules.begin()
        session = create_session(owner_id=owner_id, scope=f"{UNFINISHED}{new_id('imp')}")
    reader = _Reader(session.pk, rules, message_tags(session.pk, owner_id, scope))
    is_done = False
    try:
        reader.read(lines)
        _finish(session.pk, reader, scope, name)
        is_done = True
    finally:
        if not is_done:
            delete_session(session.pk)
    left_out = tuple(sorted(reader.left_out))
    return Imported(session_id=session.pk, message_count=reader.count, left_out=left_out)


def let_others_write(seconds: float) -> None:
    """Wait between two batches: SQLite has one writer, and the interpreter one lock."""
    time.sleep(seconds)


def is_importing(owner_id: Any) -> bool:
    """Whether an import of this owner has written something within the last minute and is not finished."""
    since = timezone.now() - RECENT
    return Session.objects.filter(owner_id=owner_id, scope__startswith=UNFINISHED, updated_at__gt=since).exists()


def prune_unfinished(*, limit: int = 100) -> int:
    """Delete the remains of unfinished imports. Returns their number."""
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
    rules: ImportRules | None
    tags: str  # of the search
    head: JSONObject | None = None  # what the first line says of the session
    count: int = 0
    leaf_id: str | None = None  # that the export names, then each queued message in its place
    others: list[Any] = field(default_factory=list)  # compactions, blocks, entries
    waiting: list[tuple[Message, str | None]] = field(default_factory=list)  # with the ids of their parents
    waiting_bytes: int = 0
    left_out: set[str] = field(default_factory=set)  # labels of blocks
    seen: set[tuple[str, ...]] = field(default_factory=set)  # labels of texts, labels and keys of entries
    has_ended: bool = False

    def read(self, lines: Lines) -> None:
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    self._take(_object(line))
            except (ExportInvalid, MessageInvalid, SummaryInvalid, ContextInvalid, BlockTooLarge) as error:
                raise ExportInvalid(
                    Phrase("Up to line {number}: {message}", number=number, message=error.message), line=number
                ) from error
        if not self.has_ended:
            raise ExportInvalid("The file is incomplete: it ends before the export does.")

    def _take(self, line: JSONObject) -> None:
        kind = line.get("kind")
        if self.has_ended or (kind == "session") is (self.head is not None):
            raise ExportInvalid(
                Phrase(
                    "An export begins with one line of kind 'session' and ends after 'end', not {kind!r}.", kind=kind
                )
            )
        match kind:
            case "session":
                self._begin(line)
            case "message":
                self._message(line)
            case "summary":
                self._summary(line)
            case "compaction":
                self._compaction(line)
            case "block":
                self._block(_chosen(line, BLOCK_FIELDS))
            case "entry":
                self._entry(_chosen(line, ENTRY_FIELDS))
            case "end":
                self._end(line)
            case _:
                raise ExportInvalid(Phrase("There are no lines of kind {kind!r:.80} in an export.", kind=kind))

    def _begin(self, line: JSONObject) -> None:
        if line.get("format") != FORMAT or line.get("version") != VERSION:
            raise ExportInvalid(
                Phrase(
                    "This file is not an export in the format {format!r}, version {version}.",
                    format=FORMAT,
                    version=VERSION,
                )
            )
        leaf_id = line.get("leaf")
        if leaf_id is not None and not is_message_id(leaf_id):
            raise ExportInvalid("The leaf of a session is the id of a message, or null.")
        self.head = _chosen(line, SESSION_FIELDS)
        self.leaf_id = leaf_id

    def _message(self, line: JSONObject) -> None:
        message = prepare(_closed(parse_message(line)))
        if message["role"] == MessageRole.SYSTEM and self.rules is not None:
            raise ExportInvalid("Messages of role 'system' cannot be imported.")
        parent_id = line.get("parent")
        if line.get("queued"):  # no turn will place it, so it goes to the end of the path
            parent_id, self.leaf_id = self.leaf_id, message["id"]
        if parent_id is not None and not is_message_id(parent_id):
            raise ExportInvalid("A message's parent is the id of a message, or null.")
        self.count += 1
        limit = MAX_MESSAGES if self.rules is None else self.rules.max_messages
        if self.count > limit:
            raise ExportInvalid(Phrase("At most {limit} messages can be imported.", limit=limit))
        created_at = _instant(line, "created_at")
        placed_at = _instant(line, "placed_at") if "placed_at" in line else created_at
        row = import_rows.row_of(self.session_id, message, created_at=created_at, placed_at=placed_at)
        row.pruned_calls = _texts(line, "pruned_calls")
        self.waiting.append((row, parent_id))
        self.waiting_bytes += row.byte_size
        if len(self.waiting) >= BATCH or self.waiting_bytes >= BATCH_BYTES:
            self._write()

    def _summary(self, line: JSONObject) -> None:
        if any(isinstance(row, SessionSummary) for row in self.others):
            raise ExportInvalid("An export has one summary at most.")
        fields = {"text": "", "written_at": timezone.now(), **_chosen(line, SUMMARY_FIELDS)}
        if not isinstance(fields["text"], str):
            raise ExportInvalid("A summary is a text.")
        # As many as imported messages have: it covers all of them.
        self._other(SessionSummary(**fields | {"text": check_text(fields["text"])}, change_seq=1))

    def _compaction(self, line: JSONObject) -> None:
        if line.get("created_at") is None:
            raise ExportInvalid("A compaction says when it was made.")
        self._other(Compaction(id=new_id("cmp"), **_chosen(line, COMPACTION_FIELDS)))

    def _block(self, values: JSONObject) -> None:
        label = check_label(values.get("label"))
        self._note_seen(label)
        if self.rules is not None:
            if values.get("is_runtime") or values.get("is_removed"):
                self.left_out.add(label)
                return
            content = values.get("content", "")
            try:
                declaration = self.rules.blocks.imported_text(label, content)
            except (BlockNotFound, BlockNotWritable):
                self.left_out.add(label)
                return
            shape = {"description": declaration.description[:MAX_WORDS], "max_tokens": declaration.max_tokens}
            values = {"label": label, "content": content, **shape}
        self._other(ContextBlock(**values))

    def _entry(self, values: JSONObject) -> None:
        label, key = check_label(values.get("label")), check_key(values.get("key"))
        self._note_seen(label, key)
        if self.rules is not None:
            texts = {name: values.get(name, "") for name in ("content", "title", "description")}
            try:
                self.rules.blocks.imported_entry(label, Entry(key=key, **texts))
            except (BlockNotFound, BlockNotWritable):
                self.left_out.add(label)
                return
        self._other(ContextEntry(**values))

    def _note_seen(self, *names: str) -> None:
        if names in self.seen:
            raise ExportInvalid(Phrase("The block or entry {names!r} comes twice.", names="/".join(names)))
        self.seen.add(names)

    def _other(self, row: Any) -> None:
        row.session_id = self.session_id
        try:
            row.clean_fields(exclude=["session", "owner", "created_by"])
        except ValidationError as error:
            raise ExportInvalid(
                Phrase(
                    "A line of kind {kind!r} is wrong: {problems}.",
                    kind=type(row).__name__,
                    problems=error.message_dict,
                )
            ) from error
        if len(self.others) >= MAX_OTHERS:
            raise ExportInvalid(
                Phrase("At most {limit} compactions, blocks and entries can be imported.", limit=MAX_OTHERS)
            )
        self.others.append(row)

    def _end(self, line: JSONObject) -> None:
        if line.get("messages") != self.count:
            raise ExportInvalid(
                Phrase(
                    "The export has {declared!r} messages, {count} were found.",
                    declared=line.get("messages"),
                    count=self.count,
                )
            )
        self._write()
        self.has_ended = True

    def _write(self) -> None:
        started = time.monotonic()
        with transaction.atomic():
            if self.rules is not None and self.waiting:
                self.rules.admit(len(self.waiting), self.waiting_bytes)
            import_rows.write(self.session_id, self.waiting, self.tags)
            Session.objects.filter(pk=self.session_id).update(updated_at=timezone.now())  # see `is_importing`
        if self.rules is not None:
            let_others_write(min(time.monotonic() - started, MAX_PAUSE))
        self.waiting, self.waiting_bytes = [], 0


def _finish(session_id: str, reader: _Reader, scope: str, name: str) -> None:
    """Attach the session's data, its scope last: from then on it is visible."""
    rules = reader.rules
    with nullcontext() if rules is None else rules.inside(), transaction.atomic():
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
        if rules is not None and rules.also is not None:
            rules.also(session_id)


def _leaf(session_id: str, leaf_id: str | None) -> Message | None:
    if leaf_id is None:
        return None
    leaf = Message.objects.filter(session_id=session_id, message_id=leaf_id).only("depth").first()
    if leaf is None:
        raise ExportInvalid(Phrase("The leaf {id!r} is not among the messages.", id=leaf_id))
    return leaf


def _check_session(session: Session) -> None:
    try:
        session.clean_fields(exclude=["owner", "active_leaf", "parent", "forked_from"])
    except ValidationError as error:
        raise ExportInvalid(
            Phrase("The line of kind 'session' is wrong: {problems}.", problems=error.message_dict)
        ) from error
    if not isinstance(session.loaded_keys, list) or not all(isinstance(key, str) for key in session.loaded_keys):
        raise ExportInvalid("The loaded keys of a session are a list of texts.")


def _texts(line: JSONObject, name: str) -> list[str]:
    value = line.get(name) or []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ExportInvalid(Phrase("{name!r} must be a list of texts.", name=name))
    return [storable(text) for text in value]


def _object(line: str | bytes) -> JSONObject:
    if len(line) > MAX_LINE_BYTES:
        raise ExportInvalid(Phrase("A line has at most {limit} bytes.", limit=MAX_LINE_BYTES))
    try:
        value = load(line)
    except ValueError as error:
        raise ExportInvalid(Phrase("This is not JSON: {error}.", error=error)) from error
    if not isinstance(value, dict):
        raise ExportInvalid("Each line is a JSON object.")
    return value


def _closed(message: shapes.Message) -> shapes.Message:
    """The message without open tool calls: they can be answered where they came from, not here."""
    return map_parts(message, lambda part: interrupt_part(part, call_texts.INTERRUPTED) if is_pending(part) else part)


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
    try:
        is_known = instant is not None and timezone.is_aware(instant) and EARLIEST <= instant <= LATEST
    except OverflowError:  # an instant at the limits of the calendar in another time zone
        is_known = False
    if instant is None or not is_known:
        raise ExportInvalid(
            Phrase("{name!r} must be an instant with its time zone, such as '2026-01-31T12:00:00+00:00'.", name=name)
        )
    return instant


def lines_of(file: Any) -> Iterator[bytes]:
    """Lines of a binary file, none of them longer than a line may be. **Errors:** `ExportInvalid`."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line
