"""The tree of a conversation on (id, parent) pairs alone.

The database walks the same tree in SQL (`sessions_app/queries.py`); these functions say what that walk must give, and
serve callers that hold the pairs already. Pairs are in the order in which the messages came, oldest first.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

Pair = tuple[str, str | None]


class Leaf(Enum):
    """Stands for a leaf that is not named by an id."""

    ACTIVE = "active"  # the end of the path that is shown


ACTIVE: Final = Leaf.ACTIVE


def path_to(leaf: str, parents: Mapping[str, str | None]) -> list[str]:
    """Walk from a leaf to its root; the result is root first.

    A parent that is not there, or a cycle, ends the walk: a broken row never hides what is below it. An unknown leaf
    has no path.
    """
    path: list[str] = []
    seen: set[str] = set()
    current: str | None = leaf
    while current is not None and current in parents and current not in seen:
        seen.add(current)
        path.append(current)
        current = parents[current]
    path.reverse()
    return path


def branches(pairs: Iterable[Pair], message_id: str | None) -> list[str]:
    """Give the children of a message, oldest first; of `None`, the roots."""
    return [child for child, parent in pairs if parent == message_id]


def newest_leaf(pairs: Iterable[Pair], below: str | None = None) -> str | None:
    """Give the newest message without children, in the whole tree or in the subtree of one message."""
    ordered = list(pairs)
    parents = dict(ordered)
    inner = {parent for _, parent in ordered if parent is not None}
    for candidate, _ in reversed(ordered):
        if candidate not in inner and (below is None or below in path_to(candidate, parents)):
            return candidate
    return None
