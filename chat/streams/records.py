"""Types of the log: records, append results, and reader events.

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
    """The reply to a writer that takes over a stream: its next offset, and the records missing in the database."""

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


class StreamOutcome(StrEnum):
    """The result of an append."""

    APPENDED = "ok"
    BEHIND = "behind"  # the hot log lacks records (it came back empty): write again what is held
    FENCED = "fenced"  # another writer has the stream


class AppendResult(NamedTuple):
    """Outcome of an append, and the epoch that holds now."""

    outcome: StreamOutcome
    epoch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSlice:
    """A contiguous read of the hot log from an offset. `next_offset` `None`: the stream is unknown."""

    epoch: str | None = None
    next_offset: int | None = None
    is_closed: bool = False
    records: tuple[Record, ...] = ()  # may start later than asked for: what is below is in the database


@dataclass(frozen=True, slots=True)
class Reset:
    """The epoch changed: discard earlier records, those from 0 follow."""

    epoch: str | None


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """All stored records were replayed; live ones follow."""

    offset: int  # of the next record
    epoch: str | None


@dataclass(frozen=True, slots=True)
class End:
    """The turn is final and every record was delivered."""

    offset: int  # number of records
