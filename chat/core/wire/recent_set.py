"""A bounded set that keeps the most recently added items."""

from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

KEPT: Final = 1_000
"""How many ids of turns a connection remembers: late notifications are seconds late, and not a thousand turns."""


class RecentSet(Generic[T]):
    """The newest `limit` members. A member that is added again is the newest."""

    def __init__(self, limit: int = KEPT) -> None:
        self._limit = limit
        self._members: dict[T, None] = {}

    def __contains__(self, member: object) -> bool:
        return member in self._members

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[T]:
        return iter(self._members)

    def add(self, member: T) -> None:
        """Add a member; the oldest goes where there are too many."""
        self._members.pop(member, None)
        self._members[member] = None
        if len(self._members) > self._limit:
            del self._members[next(iter(self._members))]

    def update(self, members: Iterable[T]) -> None:
        """Add them in their order."""
        for member in members:
            self.add(member)

    def discard(self, *members: T) -> None:
        """Forget them, as far as they are there."""
        for member in members:
            self._members.pop(member, None)
