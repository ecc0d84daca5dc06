"""What the log speaks in: records, appends, and what readers get.

A record is one chunk's compact JSON text under an offset; offsets start at 0 and have no gaps. Nothing here does I/O.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Record(NamedTuple):
    """One chunk in the log."""

    offset: int
    text: str  # compact JSON, no line breaks


class Published(NamedTuple):
    """A batch as it was announced. Shared by all followers of a process."""

    epoch: str
    records: list[Record]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Answer to a writer that takes a stream: where to go on, and what the database does not have yet."""

    epoch: str
    next_offset: int
    tail: tuple[str, ...]  # records from `floor` up to `next_offset`


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Records of one writer for the hot log."""

    stream: str
    fence: int
    epoch: str
    first: int
    texts: Sequence[str]
    is_rewrite: bool = False  # what is there already is skipped; what is missing below is in the database
    trim_below: int = 0  # offsets below are in the database and may go


class Outcome(StrEnum):
    """What became of an append."""

    APPENDED = "ok"
    BEHIND = "behind"  # the hot log lacks records (it came back empty): write again what is held
    FENCED = "fenced"  # another writer has the stream


class AppendResult(NamedTuple):
    """Outcome of an append, and the epoch that holds now."""

    outcome: Outcome
    epoch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSlice:
    """What the hot log knows: records from an offset without gaps among them. `next_offset` None: nothing at all."""

    epoch: str | None = None
    next_offset: int | None = None
    is_closed: bool = False
    records: tuple[Record, ...] = ()  # may start later than asked for: what is below is in the database


@dataclass(frozen=True, slots=True)
class Reset:
    """What came before does not hold: forget it, the records from 0 follow."""

    epoch: str | None


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything that was stored has been replayed; what follows is live."""

    offset: int  # of the next record
    epoch: str | None


@dataclass(frozen=True, slots=True)
class End:
    """The turn is final and every record was delivered."""

    offset: int  # number of records
