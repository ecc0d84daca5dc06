"""A conversation as the admin shows it: roles, texts, tool calls to unfold, and the tree around each message.

Reads only, and a bounded page of it. Nothing a person or model wrote becomes a link, an image or HTML here; all of it
is text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from sessions_app.context.history import MessageAuthor, message_authors
from sessions_app.core.messages.messages import MessageRole, StoredMessage
from sessions_app.core.messages.parts import is_tool, tool_name
from sessions_app.core.messages.shapes import Content, Part
from sessions_app.core.messages.shortening import shorten
from sessions_app.core.messages.tree import Leaf
from sessions_app.core.search.words import text_of
from sessions_app.errors import MessageNotFound
from sessions_app.messages import selectors
from sessions_app.models import Compaction, Message, Session
from thinkproject.kernel.jsonvalue import JSONValue

PAGE_MESSAGES: Final = 50
BLOCK_CHARS: Final = 20_000
PREVIEW_CHARS: Final = 120
MAX_PREVIEWED: Final = 100  # siblings of a page whose beginnings are read
MAX_PREVIEWED_BYTES: Final = 64 * 1024
MAX_NOTES: Final = 100  # compactions, and forks, of a page

SPEAKERS: Final[Mapping[str, str | Promise]] = {
    MessageRole.USER: _("Person"),
    MessageRole.ASSISTANT: _("Agent"),
    MessageRole.SYSTEM: _("System"),
}
"""Names of the sides, where the conversation does not say who they are."""

TOOL_WORDS: Final[Mapping[str, str | Promise]] = {
    "input-streaming": _("being written"),
    "input-available": _("waits for its result"),
    "approval-requested": _("waits for a decision"),
    "approval-responded": _("decided"),
    "output-available": _("done"),
    "output-error": _("failed"),
    "output-denied": _("denied"),
}

_SHOWN_OF_TOOL: Final = (
    ("input", _("Arguments")),
    ("rawInput", _("Arguments as written")),
    ("approval", _("Decision")),
    ("output", _("Result")),
    ("errorText", _("Error")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBlock:
    """A labelled piece of text inside something to unfold."""

    label: str | Promise
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """One part: plain `text`, or a `title` under which `blocks` unfold."""

    kind: str
    text: str = ""
    title: str | Promise = ""
    state: str | Promise = ""
    blocks: tuple[ShownBlock, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingView:
    """A message that stands in the same place. `preview`: how its text begins."""

    id: str
    preview: str
    created_at: datetime | None
    is_shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSummary:
    """A compaction at its end. `is_covered`: a larger active one includes its messages."""

    row: Compaction
    is_covered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """One message in its place. `siblings`: all that stand there, oldest first; `position` counts from 1.

    `compactions` end here and `forks` go on from here; `ends_shared`: above, this session shares another one's
    messages; `pruned_count`: how many outputs models are not sent any more. `author`: the person who wrote it in
    another's place, or asked for it.
    """

    message: StoredMessage
    parts: list[PartView]
    speaker: str | Promise = ""
    author: MessageAuthor | None = None
    siblings: Sequence[SiblingView] = ()
    position: int = 1
    compactions: Sequence[ShownSummary] = ()
    forks: Sequence[Session] = ()
    ends_shared: bool = False
    pruned_count: int = 0

    @property
    def before(self) -> SiblingView | None:
        """The version before this one, in the same place."""
        return self.siblings[self.position - 2] if self.position > 1 else None

    @property
    def after(self) -> SiblingView | None:
        """The version after this one."""
        return self.siblings[self.position] if self.position < len(self.siblings) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """A page of a path, root first, and the queue. `older` and `newer`: where the next pages begin, if there are any.

    `target` is the message that the page was opened at; `archived_count`: how many messages above are archived.
    """

    messages: list[ShownMessage]
    queued: list[ShownMessage]
    older: str
    newer: str
    branch: str
    target: str
    count: int
    archived_count: int
    is_newest: bool
    session_id: str


def conversation_view(
    session_id: str,
    *,
    branch: str = "",
    before: str = "",
    at: str = "",
    speakers: Mapping[str, str | Promise] = SPEAKERS,
) -> ConversationView:
    """A page of a session: the active path, the path through message `branch`, or around message `at`.

    Unknown ids are ignored. `speakers`: a name for each role.
    """
    page = _around(session_id, at)
    target = at if page is not None else ""
    if page is None:
        leaf: str | Leaf = (branch and selectors.newest_leaf(session_id, branch)) or Leaf.ACTIVE
        page = _page(session_id, leaf, before)
    elif page.leaf_id != selectors.leaf_id(session_id):
        branch = page.leaf_id or ""
    is_newest = not page.has_newer
    columns = Session.objects.filter(pk=session_id).values_list("archived_depth", "forked_from__message_id")
    archived_count, shared_end = columns.get()
    return ConversationView(
        messages=_message_views(session_id, page.messages, shared_end, speakers),
        queued=[_alone(each, speakers) for each in selectors.queued(session_id)[:PAGE_MESSAGES]] if is_newest else [],
        older=page.messages[0].id if page.has_more else "",
        newer=page.messages[-1].id if page.has_newer and page.messages else "",
        branch=branch,
        target=target,
        count=selectors.count_path(session_id),
        archived_count=archived_count,
        is_newest=is_newest,
        session_id=session_id,
    )


def _around(session_id: str, message_id: str) -> selectors.PathPage | None:
    if not message_id:
        return None
    try:
        return selectors.page_around(session_id, message_id, above=PAGE_MESSAGES // 2, below=PAGE_MESSAGES // 2 - 1)
    except MessageNotFound:
        return None


def _page(session_id: str, leaf: str | Leaf, before: str) -> selectors.PathPage:
    try:
        return selectors.path_page(session_id, leaf=leaf, before=before or None, limit=PAGE_MESSAGES)
    except MessageNotFound:
        return selectors.path_page(session_id, limit=PAGE_MESSAGES)


def _alone(message: StoredMessage, speakers: Mapping[str, str | Promise]) -> ShownMessage:
    return ShownMessage(message=message, parts=_parts(message), speaker=speakers.get(message.role, message.role))


def _message_views(
    session_id: str, messages: Sequence[StoredMessage], shared_end: str | None, speakers: Mapping[str, str | Promise]
) -> list[ShownMessage]:
    ids = [message.id for message in messages]
    families = selectors.siblings(session_id, ids)
    previews = _previews(session_id, [each for family in families.values() if len(family) > 1 for each in family])
    compactions = _compactions(session_id, {message.id: message.depth for message in messages})
    forks = _forks(session_id, ids)
    pruned = _pruned(session_id, ids)
    authors = message_authors(session_id, ids)
    return [
        ShownMessage(
            message=message,
            parts=_parts(message),
            speaker=speakers.get(message.role, message.role),
            author=authors.get(message.id),
            siblings=[_sibling(each, message.id, previews) for each in families.get(message.id, [message.id])],
            position=families.get(message.id, [message.id]).index(message.id) + 1,
            compactions=compactions.get(message.id, ()),
            forks=forks.get(message.id, ()),
            ends_shared=message.id == shared_end,
            pruned_count=pruned.get(message.id, 0),
        )
        for message in messages
    ]


def _parts(message: StoredMessage) -> list[PartView]:
    return [part_view(part) for part in message.parts if part.get("type") != "step-start"]


def _sibling(message_id: str, shown: str, previews: Mapping[str, tuple[str, datetime]]) -> SiblingView:
    preview, created_at = previews.get(message_id, ("", None))
    return SiblingView(id=message_id, preview=preview, created_at=created_at, is_shown=message_id == shown)


def _previews(session_id: str, ids: Sequence[str]) -> dict[str, tuple[str, datetime]]:
    """Beginnings and times of messages, without large ones. One query; none without ids."""
    if not ids:
        return {}
    rows = Message.objects.named(session_id, ids[:MAX_PREVIEWED]).filter(byte_size__lte=MAX_PREVIEWED_BYTES)
    found = rows.values_list("message_id", "content", "created_at")
    return {message_id: (_beginning(content), created_at) for message_id, content, created_at in found}


def _beginning(content: Content) -> str:
    text = " ".join(_text(text_of(content["parts"])).split())
    return text if len(text) <= PREVIEW_CHARS else f"{text[: PREVIEW_CHARS - 1]}…"


def _compactions(session_id: str, depths: Mapping[str, int]) -> dict[str, list[ShownSummary]]:
    """Compactions by the message that they end with, undone ones too. One query."""
    rows = Compaction.objects.filter(session_id=session_id, last_id__in=list(depths)).select_related("created_by")
    shown = list(rows.order_by("created_at", "id")[:MAX_NOTES])
    ranges = {row.pk: (depths[row.last_id] - row.message_count, depths[row.last_id]) for row in shown}
    found: dict[str, list[ShownSummary]] = {}
    for row in shown:
        top, bottom = ranges[row.pk]
        larger = [ranges[other.pk] for other in shown if other.pk != row.pk and other.undone_at is None]
        is_covered = any(above <= top and bottom < below for above, below in larger)
        found.setdefault(row.last_id, []).append(ShownSummary(row=row, is_covered=is_covered))
    return found


def _forks(session_id: str, ids: Sequence[str]) -> dict[str, list[Session]]:
    """Other sessions by the message that they go on from. One query."""
    if not ids:
        return {}
    here = Message.objects.named(session_id, ids).values("pk")
    rows = Session.objects.filter(forked_from__in=here).exclude(pk=session_id).select_related("forked_from")
    found: dict[str, list[Session]] = {}
    for row in rows.only("id", "name", "forked_from__message_id").order_by("id")[:MAX_NOTES]:
        if row.forked_from is not None:
            found.setdefault(row.forked_from.message_id, []).append(row)
    return found


def _pruned(session_id: str, ids: Sequence[str]) -> dict[str, int]:
    """Number of pruned outputs by message. One query."""
    if not ids:
        return {}
    rows = Message.objects.named(session_id, ids).exclude(pruned_calls=[])
    return {message_id: len(calls) for message_id, calls in rows.values_list("message_id", "pruned_calls")}


def part_view(part: Part) -> PartView:
    """Render a part: a title and its details; a part of any shape is readable."""
    kind = str(part.get("type", ""))
    if kind == "text":
        return PartView(kind="text", text=_text(part.get("text", "")))
    if kind == "reasoning":
        thought = ShownBlock(label="", text=_text(part.get("text")))
        return PartView(kind="reasoning", title=_("Reasoning"), blocks=(thought,))
    if is_tool(part):
        blocks = tuple(
            ShownBlock(label=label, text=_text(part.get(key))) for key, label in _SHOWN_OF_TOOL if key in part
        )
        state = _text(str(part.get("state", "")))
        return PartView(kind="tool", title=_text(tool_name(part)), state=TOOL_WORDS.get(state, state), blocks=blocks)
    title = str(part.get("filename") or part.get("title") or part.get("url") or part.get("mediaType") or "")
    rest = (ShownBlock(label="", text=_text({key: value for key, value in part.items() if key != "type"})),)
    if kind == "file":
        return PartView(kind="file", title=_text(title), state=_text(str(part.get("mediaType", ""))), blocks=rest)
    if kind.startswith("source-"):
        return PartView(kind="source", title=_text(title), blocks=rest)
    return PartView(kind="other", title=_text(f"{kind} {title}".strip()), blocks=rest)


def _text(value: JSONValue) -> str:
    short = shorten(value, BLOCK_CHARS)
    text = short if isinstance(short, str) else json.dumps(short, ensure_ascii=False, indent=2)
    return text.encode(errors="replace").decode()  # a lone surrogate has no UTF-8
