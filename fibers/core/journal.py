"""The step rule: a recorded step is returned, a new one is run and recorded.

The journal is held in memory for one attempt and filled once, so that asking for a key costs no query. A value is
normalised when it is recorded: the attempt that ran the step and the attempt that replays it see the same JSON.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fibers.errors import StepMismatch
from thinkproject.kernel.jsonvalue import JSONValue, dump, load


@dataclass(frozen=True, slots=True)
class Recorded:
    """The record of a settled step. Its value may be `None`, which is why it is wrapped."""

    value: JSONValue


class Journal:
    """Settled steps of one fiber by their key, in the order in which they were recorded."""

    def __init__(self, entries: Iterable[tuple[str, JSONValue]] = ()) -> None:
        self._entries: dict[str, Recorded] = {key: Recorded(value) for key, value in entries}

    def find(self, key: str) -> Recorded | None:
        """Return the record of this key, or None when the step has to run."""
        return self._entries.get(key)

    def check_new(self, key: str) -> None:
        """Refuse a key that has a record. Errors: `StepMismatch`."""
        if key in self._entries:
            raise StepMismatch(f"step {key!r} is recorded already; give each step of a fiber a key of its own")

    def add(self, key: str, value: JSONValue) -> None:
        """Take over a record that has been committed."""
        self._entries[key] = Recorded(value)

    def items(self) -> list[tuple[str, JSONValue]]:
        """Return all records, in order."""
        return [(key, entry.value) for key, entry in self._entries.items()]

    def __len__(self) -> int:
        return len(self._entries)


def normalised(value: JSONValue) -> JSONValue:
    """Return the value as it will be read back. Errors: `TypeError`, `ValueError` for what JSON cannot carry."""
    return load(dump(value))
