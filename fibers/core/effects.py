"""The events that follow from what a queryset has now and what it had. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from thinkproject.kernel.jsonvalue import JSONValue

T = TypeVar("T")


class EffectKind(StrEnum):
    """Ways of a row into, in and out of a queryset."""

    ENTER = "enter"
    UPDATE = "update"
    EXIT = "exit"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDiff:
    """Rows by their keys, in the order in which they were read."""

    entered: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All of them."""
        return self.entered + self.updated + self.left


def compare(present: Mapping[str, JSONValue], known: Mapping[str, JSONValue]) -> EntryDiff:
    """Compare key to fingerprint of the rows that are there with those that were."""
    return EntryDiff(
        entered=tuple(key for key in present if key not in known),
        updated=tuple(key for key, value in present.items() if key in known and known[key] != value),
        left=tuple(key for key in known if key not in present),
    )


def batches(events: Sequence[T], size: int) -> list[Sequence[T]]:
    """Cut events into lists of at most so many; 0: each alone."""
    step = max(size, 1)
    return [events[at : at + step] for at in range(0, len(events), step)]
