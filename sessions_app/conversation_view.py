"""A conversation as the admin shows it: roles, texts, tool calls to unfold. Reads only, and a bounded page of it.

Nothing a person or model wrote becomes a link, an image or HTML here; all of it is text.
"""

import json
from dataclasses import dataclass
from typing import Final

from sessions_app import selectors
from sessions_app.core.messages import StoredMessage
from sessions_app.core.parts import is_tool, tool_name
from sessions_app.core.shortening import shorten
from sessions_app.core.tree import Leaf
from sessions_app.errors import MessageNotFound
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

PAGE_MESSAGES: Final = 50
BLOCK_CHARS: Final = 20_000

_SHOWN_OF_TOOL: Final = (
    ("input", "input"),
    ("rawInput", "raw input"),
    ("approval", "approval"),
    ("output", "output"),
    ("errorText", "error"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A labelled piece of text inside something to unfold."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """One part: plain `text`, or a `title` under which `blocks` unfold."""

    kind: str
    text: str = ""
    title: str = ""
    state: str = ""
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """One message. `siblings`: ids of all in its place, oldest first; `position` counts from 1."""

    message: StoredMessage
    parts: list[PartView]
    siblings: list[str]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """A page of a path, root first, and the queue. `older` is where the page above begins, if there is one."""

    messages: list[MessageView]
    queued: list[MessageView]
    older: str
    branch: str
    count: int
    is_newest: bool


def conversation_view(session_id: str, *, branch: str = "", before: str = "") -> ConversationView:
    """A page of a session: of the shown path, or of the one through the message `branch`. Unknown ids are ignored."""
    leaf: str | Leaf = (branch and selectors.newest_leaf(session_id, branch)) or Leaf.ACTIVE
    page = _page(session_id, leaf, before)
    families = selectors.siblings(session_id, [message.id for message in page.messages])
    return ConversationView(
        messages=[_message_view(message, families.get(message.id, [message.id])) for message in page.messages],
        queued=[] if before else [_message_view(m, [m.id]) for m in selectors.queued(session_id)[:PAGE_MESSAGES]],
        older=page.messages[0].id if page.has_more else "",
        branch=branch,
        count=selectors.count_path(session_id),
        is_newest=not before,
    )


def _page(session_id: str, leaf: str | Leaf, before: str) -> selectors.Page:
    try:
        return selectors.path_page(session_id, leaf=leaf, before=before or None, limit=PAGE_MESSAGES)
    except MessageNotFound:
        return selectors.path_page(session_id, limit=PAGE_MESSAGES)


def _message_view(message: StoredMessage, family: list[str]) -> MessageView:
    parts = [part_view(part) for part in message.parts if part.get("type") != "step-start"]
    return MessageView(message=message, parts=parts, siblings=family, position=family.index(message.id) + 1)


def part_view(part: JSONObject) -> PartView:
    """Say what a part is and what unfolds; a part of any shape gives something readable."""
    kind = str(part.get("type", ""))
    if kind == "text":
        return PartView(kind="text", text=_text(part.get("text", "")))
    if kind == "reasoning":
        return PartView(kind="reasoning", title="Reasoning", blocks=(Block(label="", text=_text(part.get("text"))),))
    if is_tool(part):
        blocks = tuple(Block(label=label, text=_text(part[key])) for key, label in _SHOWN_OF_TOOL if key in part)
        state = _text(str(part.get("state", "")))
        return PartView(kind="tool", title=_text(tool_name(part)), state=state, blocks=blocks)
    title = str(part.get("filename") or part.get("title") or part.get("mediaType") or "")
    rest = {key: value for key, value in part.items() if key != "type"}
    return PartView(kind="other", title=_text(f"{kind} {title}".strip()), blocks=(Block(label="", text=_text(rest)),))


def _text(value: JSONValue) -> str:
    short = shorten(value, BLOCK_CHARS)
    text = short if isinstance(short, str) else json.dumps(short, ensure_ascii=False, indent=2)
    return text.encode(errors="replace").decode()  # a lone surrogate has no UTF-8
