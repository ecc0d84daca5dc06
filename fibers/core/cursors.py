"""Checkpoints of a runner: how far it is in each of its sources. They only ever advance."""

from dataclasses import dataclass

from fibers.errors import CheckpointRegression


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place in a source. The cursor is a text that sorts: of two numbers the larger is later."""

    source: str
    cursor: str


def is_later(cursor: str, stored: str | None) -> bool:
    """Whether a cursor advances a stored one; an equal one does not. Errors: `CheckpointRegression` for an earlier."""
    if stored is None:
        return True
    if _order(cursor, stored) < 0:
        raise CheckpointRegression(f"the cursor {cursor!r} is before {stored!r}, which is stored")
    return cursor != stored and _order(cursor, stored) > 0


def _order(one: str, other: str) -> int:
    if _is_number(one) and _is_number(other):
        return (int(one) > int(other)) - (int(one) < int(other))
    return (one > other) - (one < other)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 1000  # longer ones are slow to read as numbers
