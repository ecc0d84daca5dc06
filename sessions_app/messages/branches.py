"""The shape of a session's tree: where it forks, and what stands there. Reads only.

Messages in a row without a fork are one node, so a long conversation is as small as its forks are few.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from sessions_app.core.messages.messages import MessageRole
from sessions_app.models import Message, Session

MAX_ROWS: Final = 10_000
"""Messages that are looked at: the newest."""

MAX_NODES: Final = 500
MAX_TEXT: Final = 80
_CHUNK: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchNode:
    """A message, or several in a row (`message_count`), named by the first of them.

    `parent_id` is the node above, nothing at the top. `text`: the beginning of its words; none for several.
    """

    id: str
    parent_id: str | None
    role: str
    text: str
    turn_id: str
    created_at: datetime
    message_count: int
    is_shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchTree:
    """Nodes in the order of the tree, siblings oldest first. `is_cut`: older ones are left out."""

    items: list[BranchNode]
    is_cut: bool


class _Row(NamedTuple):
    pk: int
    message_id: str
    parent_id: int | None
    role: str
    created_at: datetime
    turn_id: str


class _Run(NamedTuple):
    """Rows that are one node, and the first row of the node above."""

    rows: list[_Row]
    above: _Row | None


def branch_tree(session_id: str) -> BranchTree:
    """The tree of a session with what it shares with its origin.

    **Shape:** at most 500 nodes of the newest 10,000 messages; with more of either the oldest are left out.
    Four queries.
    """
    rows, is_cut = _newest(session_id)
    runs = list(_runs(rows))
    while len(runs) > MAX_NODES:
        rows, is_cut = rows[max(len(rows) // 4, 1) :], True
        runs = list(_runs(rows))
    leaf = Session.objects.filter(pk=session_id).values_list("active_leaf_id", flat=True).first()
    shown = _path_to(leaf, {row.pk: row.parent_id for row in rows})
    texts = _texts([run.rows[0].pk for run in runs if len(run.rows) == 1])
    return BranchTree(items=[_node(run, texts, shown) for run in runs], is_cut=is_cut)


def _newest(session_id: str) -> tuple[list[_Row], bool]:
    """Rows of the tree, the oldest first, and whether there are more."""
    own = Message.objects.filter(session_id=session_id, placed_at__isnull=False).order_by("-pk")
    shared = Message.objects.shared_with_origin(session_id, 0).order_by("-pk")
    found = {
        row.pk: row
        for rows in (shared, own)
        for row in (_Row(*values) for values in rows.values_list(*_Row._fields)[: MAX_ROWS + 1])
    }
    newest = [found[pk] for pk in sorted(found)]
    return newest[-MAX_ROWS:], len(newest) > MAX_ROWS


def _runs(rows: list[_Row]) -> Iterator[_Run]:
    """The nodes, each after the one above it. Ends, forks and their branches stand alone."""
    known = {row.pk for row in rows}
    below: dict[int | None, list[_Row]] = {}
    for row in rows:
        below.setdefault(row.parent_id if row.parent_id in known else None, []).append(row)
    todo: list[tuple[_Row, _Row | None]] = [(row, None) for row in reversed(below.get(None, []))]
    alone = {row.pk for family in below.values() if len(family) > 1 for row in family}
    alone |= {row.pk for row in below.get(None, [])} | {pk for pk in known if len(below.get(pk, [])) != 1}
    while todo:
        row, above = todo.pop()
        taken = [row]
        while taken[-1].pk not in alone and (following := below[taken[-1].pk][0]).pk not in alone:
            taken.append(following)
        yield _Run(taken, above)
        todo += [(child, row) for child in reversed(below.get(taken[-1].pk, []))]


def _path_to(leaf: int | None, parents: Mapping[int, int | None]) -> set[int]:
    path: set[int] = set()
    while leaf is not None and leaf in parents:
        path.add(leaf)
        leaf = parents[leaf]
    return path


def _texts(keys: list[int]) -> dict[int, str]:
    """The beginnings of messages. Their contents are held some at a time: with tool outputs they may be large."""
    rows = Message.objects.filter(pk__in=keys).values_list("pk", "content")
    return {pk: _beginning(content) for pk, content in rows.iterator(chunk_size=_CHUNK)}


def _beginning(content: Any) -> str:
    texts = [part.get("text") or "" for part in content["parts"] if part.get("type") == "text"]
    return next((text.strip()[:MAX_TEXT] for text in texts if text.strip()), "")


def _node(run: _Run, texts: Mapping[int, str], shown: set[int]) -> BranchNode:
    first = run.rows[0]
    return BranchNode(
        id=first.message_id,
        parent_id=run.above and run.above.message_id,
        role=MessageRole(first.role),
        text=texts.get(first.pk, ""),
        turn_id=first.turn_id,
        created_at=first.created_at,
        message_count=len(run.rows),
        is_shown=first.pk in shown,
    )
