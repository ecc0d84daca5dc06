"""A writer's buffer: chunks without an offset, and records not yet in both tiers. Pure.

    base <= cold_next, hot_next <= assigned <= next_offset
    held = records [base, assigned), pending = chunks that get the offsets [assigned, next_offset)

Adjacent deltas are merged while they are pending; once a chunk has an offset it never changes.
"""

from chat.core.wire.chunks import Chunk, merge
from chat.streams.records import Record
from thinkproject.kernel.jsonvalue import dump

MAX_MERGES = 256  # deltas in one record: merging is quadratic, and a record is what a slow reader takes at once


class Backlog:
    """Buffer of a writer between the loop that makes chunks, the hot log and the database."""

    def __init__(self) -> None:
        self._merges = 0
        self.pending: list[Chunk] = []
        self.held: list[str] = []
        self.begin(0, ())

    def begin(self, cold_next: int, tail: tuple[str, ...]) -> None:
        """Resume at the end of the tiers; `tail`: records in the hot log that the database lacks."""
        self.held[:] = tail
        self.held_size = sum(map(len, tail))  # characters
        self.base = self.cold_next = cold_next
        self.hot_next = cold_next + len(tail)

    @property
    def assigned(self) -> int:
        """First offset that no record has."""
        return self.base + len(self.held)

    @property
    def next_offset(self) -> int:
        """Offset of the next chunk, if it does not merge into the last one."""
        return self.base + len(self.held) + len(self.pending)

    @property
    def waiting(self) -> int:
        """Number of records in neither tier."""
        return self.next_offset - max(self.hot_next, self.cold_next)

    @property
    def unstored_count(self) -> int:
        """Number of records with an offset that are not in the database."""
        return self.base + len(self.held) - self.cold_next

    def add(self, chunk: Chunk) -> None:
        """Take a chunk; merge it into the last one if that has no offset yet."""
        pending = self.pending
        if pending and self._merges < MAX_MERGES:
            merged = merge(pending[-1], chunk)
            if merged is not None:
                pending[-1] = merged
                self._merges += 1
                return
        self._merges = 0
        pending.append(chunk)

    def assign(self) -> None:
        """Give every pending chunk its offset."""
        for chunk in self.pending:
            text = dump(chunk)
            self.held.append(text)
            self.held_size += len(text)
        self.pending.clear()
        self._merges = 0

    def unsent(self) -> tuple[int, list[str]]:
        """The records missing in the hot log: first offset and texts."""
        return self.hot_next, self.held[self.hot_next - self.base :]

    def unstored(self) -> list[Record]:
        """The records missing in the database."""
        texts = self.held[self.cold_next - self.base :]
        return [Record(offset, text) for offset, text in enumerate(texts, self.cold_next)]

    def sent(self, following: int) -> None:
        """The hot log has everything below."""
        self.hot_next = max(self.hot_next, following)
        self._release(min(self.cold_next, self.hot_next))

    def stored(self, following: int, *, is_hot_down: bool) -> None:
        """The database has everything below. A hot log that is down gets none of it any more."""
        self.cold_next = max(self.cold_next, following)
        if is_hot_down:
            self.hot_next = max(self.hot_next, self.cold_next)
        self._release(min(self.cold_next, self.hot_next))

    def forget_sent(self) -> None:
        """The hot log lost records: everything held counts as unsent."""
        self.hot_next = self.base

    def _release(self, below: int) -> None:
        count = below - self.base
        if count > 0:
            self.held_size -= sum(map(len, self.held[:count]))
            del self.held[:count]
            self.base = below
