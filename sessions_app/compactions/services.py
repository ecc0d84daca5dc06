"""Store, change and undo summaries that stand for stretches of a path; compact a path by a compact function.

The messages themselves are never touched. Every change leaves a row that says who made it (`ContextChange`).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils import timezone

from sessions_app.core.compaction.compaction import (
    CompactFunction,
    Overlay,
    Range,
    beyond_reach,
    stored_range,
    summary_message,
)
from sessions_app.core.compaction.tokens import TokenCounter, estimate_messages, estimate_text
from sessions_app.core.messages import shapes
from sessions_app.core.messages.plain_text import storable
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import CompactionFailed, CompactionInvalid, CompactionNotFound, MessageNotFound
from sessions_app.messages.derived import compaction_subject
from sessions_app.messages.selectors import HISTORY_BYTES, HISTORY_MESSAGES, compacted_tail, is_on_path
from sessions_app.messages.writer import writing
from sessions_app.models import Compaction, CompactionTrigger, ContextChange, Message, Session
from thinkproject.kernel.aio import db
from thinkproject.kernel.filling import filled
from thinkproject.kernel.phrases import Phrase

MAX_SUMMARY_CHARS: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionView:
    """A stored compaction. `first_id` and `last_id` are message ids; undone ones apply to nothing."""

    id: str
    session_id: str
    first_id: str
    last_id: str
    summary: str
    trigger: str
    model_name: str
    message_count: int
    tokens_before: int
    tokens_after: int
    created_at: datetime
    edited_at: datetime | None
    undone_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDone:
    """Result of a compaction. Units: tokens of the model's whole history, before and after."""

    compaction_id: str
    first_id: str
    last_id: str
    summary: str
    tokens_before: int
    tokens_after: int

    @property
    def helped(self) -> bool:
        """Whether the model gets less than before."""
        return self.tokens_after < self.tokens_before


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAuthor:
    """The author of a change: a user or the product itself, and the way it came (`model`, `code`, `api`, `admin`)."""

    user_id: int | None = None
    via: str = "code"


CODE: Final = SummaryAuthor()


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Metadata of a new compaction besides its range and its summary."""

    trigger: CompactionTrigger = CompactionTrigger.ADDED
    model_name: str = ""
    tokens_before: int = 0
    tokens_after: int = 0


def compactions(session_id: str, *, with_undone: bool = False) -> list[CompactionView]:
    """Compactions of a session, oldest first. One query."""
    rows = Compaction.objects.filter(session_id=session_id).order_by("created_at", "id")
    return [_view(row) for row in (rows if with_undone else rows.filter(undone_at=None))]


def get_compaction(compaction_id: str) -> CompactionView:
    """One compaction. **Errors:** `CompactionNotFound`."""
    return _view(_find(compaction_id))


def add_compaction(
    session_id: str,
    *,
    first_id: str,
    last_id: str,
    summary: str,
    made: Made | None = None,
    author: SummaryAuthor = CODE,
) -> CompactionView:
    """Let a summary stand for the messages from the first to the last, on every path on which both lie.

    An older one in the middle of which the new one ends is undone: the later one counts. The frozen system prompt is
    forgotten, so that the next turn renders it afresh.
    **Errors:** `CompactionInvalid` for a blank summary, or when the first message does not lie above the last one;
    `MessageNotFound`, `SessionNotFound`. Nothing is written then.
    """
    made, text = made or Made(), check_summary(summary)
    with writing(session_id) as writer:
        first, last = writer.placed(first_id), writer.placed(last_id)
        if first.depth > last.depth or not is_on_path(session_id, first_id, leaf=last_id):
            raise CompactionInvalid(
                Phrase("Message {first!r} does not lie above {last!r} on one path.", first=first_id, last=last_id)
            )
        _undo_around(session_id, last, author)
        row = Compaction.objects.create(
            session_id=session_id,
            first_id=first_id,
            last_id=last_id,
            summary=text,
            trigger=made.trigger,
            model_name=made.model_name[:200],
            message_count=last.depth - first.depth + 1,
            tokens_before=made.tokens_before,
            tokens_after=made.tokens_after,
            created_by_id=author.user_id,
        )
        Session.objects.filter(pk=session_id).update(system_prompt=None)
        _note(row, "add", after=text, author=author)
        writer.changed = True
    return _view(row)


def edit_compaction(compaction_id: str, summary: str, *, author: SummaryAuthor = CODE) -> CompactionView:
    """Replace a summary's text; it is marked as edited. **Errors:** `CompactionNotFound`, `CompactionInvalid`."""
    text = check_summary(summary)
    with writing(_find(compaction_id).session_id) as writer:
        row = _find(compaction_id)
        if row.summary != text:
            _note(row, "edit", before=row.summary, after=text, author=author)
            row.summary, row.edited_at = text, timezone.now()
            row.save(update_fields=["summary", "edited_at"])
            writer.changed = True
    return _view(row)


def undo_compaction(compaction_id: str, *, author: SummaryAuthor = CODE) -> CompactionView:
    """Have the messages read as they are again; the summary is kept. Twice is once. **Errors:** `CompactionNotFound`.

    What an older summary covered before is read as that summary again.
    """
    with writing(_find(compaction_id).session_id) as writer:
        row = _find(compaction_id)
        if row.undone_at is None:
            _undo(row, author)
            writer.changed = True
    return _view(row)


async def compact_path(
    session_id: str,
    function: CompactFunction,
    *,
    leaf: str | Leaf = Leaf.ACTIVE,
    options: "CompactOptions | None" = None,
) -> CompactionDone | None:
    """Compact a path by a compact function; `None` when it finds nothing to do or the messages are gone meanwhile.

    **Durability:** one transaction at the end; until then nothing is written.
    **Errors:** `CompactionFailed` for a blank summary; whatever `function` raises; `MessageNotFound` for the leaf.
    """
    options = options or CompactOptions()
    history = await db(_history, session_id, leaf, options)
    result = await function(history)
    if result is None:
        return None
    if not result.summary.strip():
        raise CompactionFailed("The summary came back empty.")
    covered = stored_range(history, result)
    if covered is None:
        return None
    return await db(_store, session_id, _Found(history, covered, result.summary), options)


def _no_transaction() -> AbstractContextManager[None]:
    return nullcontext()


def _nothing(_done: CompactionDone) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """Options of a compaction. `inside` opens the transaction of the write; `also` runs in it, after the write."""

    trigger: CompactionTrigger = CompactionTrigger.ADDED
    author: SummaryAuthor = CODE
    counter: TokenCounter = estimate_text
    model_name: str = ""
    max_messages: int = HISTORY_MESSAGES
    max_bytes: int = HISTORY_BYTES
    inside: Callable[[], AbstractContextManager[None]] = _no_transaction
    also: Callable[[CompactionDone], None] = _nothing


@dataclass(frozen=True, slots=True)
class _Found:
    history: list[shapes.Message]
    covered: Range
    summary: str


def _history(session_id: str, leaf: str | Leaf, options: CompactOptions) -> list[shapes.Message]:
    read, is_cut = compacted_tail(session_id, leaf, max_messages=options.max_messages, max_bytes=options.max_bytes)
    history = [message.to_ui() for message in read]
    last_id = read[0].parent_id if is_cut else None
    return history if last_id is None else [beyond_reach(_top(session_id, last_id), last_id), *history]


def _top(session_id: str, message_id: str) -> str:
    """The first message of the path to a message, without archived ones. Costs the path."""
    last_pk = Message.objects.named(session_id, [message_id]).values_list("pk", flat=True).get()
    floor = Session.objects.filter(pk=session_id).values_list("archived_depth", flat=True).get()
    path = Message.objects.on_path(session_id, last_pk, floor)
    return str(path.order_by("depth").values_list("message_id", flat=True)[:1].get())


def _store(session_id: str, found: _Found, options: CompactOptions) -> CompactionDone | None:
    before, after = _estimates(found, options.counter)
    made = Made(trigger=options.trigger, model_name=options.model_name, tokens_before=before, tokens_after=after)
    try:
        with options.inside():
            view = add_compaction(
                session_id,
                first_id=found.covered.first_id,
                last_id=found.covered.last_id,
                summary=found.summary,
                made=made,
                author=options.author,
            )
            done = CompactionDone(
                compaction_id=view.id,
                first_id=view.first_id,
                last_id=view.last_id,
                summary=view.summary,
                tokens_before=before,
                tokens_after=after,
            )
            options.also(done)
    except MessageNotFound:  # cleared or deleted while the summary was written
        return None
    return done


def _estimates(found: _Found, counter: TokenCounter) -> tuple[int, int]:
    kept = [*found.history[: found.covered.start], *found.history[found.covered.end :]]
    summary = summary_message(Overlay(id="", first_id="", last_id="", summary=found.summary))
    return estimate_messages(found.history, counter), estimate_messages([*kept, summary], counter)


def _undo_around(session_id: str, last: Message, author: SummaryAuthor) -> None:
    """Undo older compactions that end below the new one and begin at or above its end."""
    live = Compaction.objects.filter(session_id=session_id, undone_at=None).exclude(last_id=last.message_id)
    rows = list(live)
    ids = {message_id for row in rows for message_id in (row.first_id, row.last_id)}
    named = Message.objects.named(session_id, list(ids)) if ids else Message.objects.none()
    depths = dict(named.values_list("message_id", "depth"))
    for row in rows:
        top, bottom = depths.get(row.first_id), depths.get(row.last_id)
        if top is None or bottom is None or not top <= last.depth < bottom:
            continue
        if is_on_path(session_id, last.message_id, leaf=row.last_id):
            _undo(row, author)


def _undo(row: Compaction, author: SummaryAuthor) -> None:
    row.undone_at = timezone.now()
    row.save(update_fields=["undone_at"])
    _note(row, "undo", before=row.summary, author=author)


def _note(row: Compaction, action: str, *, before: str = "", after: str = "", author: SummaryAuthor) -> None:
    ContextChange.objects.create(
        session_id=row.session_id,
        subject=compaction_subject(row.id),
        action=action,
        before=before,
        after=after,
        actor_id=author.user_id,
        via=author.via,
    )


def check_summary(summary: str) -> str:
    """Give a summary as it is stored. **Errors:** `CompactionInvalid` when it is blank or too long."""
    text = storable(summary).strip()
    if not text:
        raise CompactionInvalid("A summary cannot be empty.")
    if len(text) > MAX_SUMMARY_CHARS:
        raise CompactionInvalid(
            Phrase("A summary has at most {limit} characters.", limit=MAX_SUMMARY_CHARS), max_length=MAX_SUMMARY_CHARS
        )
    return text


def _find(compaction_id: str) -> Compaction:
    row = Compaction.objects.filter(pk=compaction_id).first()
    if row is None:
        raise CompactionNotFound(Phrase("There is no compaction {id!r}.", id=compaction_id))
    return row


def _view(row: Compaction) -> CompactionView:
    return filled(CompactionView, row)
