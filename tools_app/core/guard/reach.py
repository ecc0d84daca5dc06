"""The call in whose course something is read or written: it learns what was read, and says what is written then.

Stores of files and handles of sub-agents report here, so that every way to a text counts, also that of a developer's
own code. Outside of a turn nothing listens. What runs in threads and tasks of a call belongs to it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from tools_app.core.guard.rules import SeenText
from tools_app.core.origins import UNTRUSTED, Origin


class Reach(Protocol):
    """Something that reads and writes: a call, or a turn beside its calls. From any thread."""

    @property
    def session_id(self) -> str:
        """The conversation; empty where it is not known."""

    def note(self, origin: Origin, source: str) -> None:
        """Text of this origin was read."""

    def written(self) -> Origin | None:
        """The origin of what is written now; `None` for what needs no distrust."""

    def texts(self) -> list[SeenText]:
        """The texts of others that may be in what is passed on now."""


_present: ContextVar[Reach | None] = ContextVar("think_reach", default=None)


@contextmanager
def reaching(reach: Reach | None) -> Iterator[None]:
    """Have this learn what is read within the block."""
    token = _present.set(reach)
    try:
        yield
    finally:
        _present.reset(token)


def enter(reach: Reach | None) -> None:
    """Have this learn what is read from now on, in this task and those that it starts."""
    _present.set(reach)


def note_here(origin: Origin, source: str = "") -> None:
    """Say that text of this origin was read. Ignored outside of a turn."""
    reach = _present.get()
    if reach is not None:
        reach.note(origin, source)


def written_here() -> Origin | None:
    """The origin of what is written now; `None` for what needs no distrust."""
    reach = _present.get()
    return None if reach is None else reach.written()


def passed_on(session_id: str) -> list[SeenText]:
    """The texts of others that may be in what is said now in this conversation, from another one."""
    reach = _present.get()
    return [] if reach is None or reach.session_id == session_id else reach.texts()


def is_reading() -> bool:
    """Whether anything learns what is read."""
    return _present.get() is not None


class _Held:
    """Holds back what is read; what is written, or passed on, is as it would be without."""

    def __init__(self, outer: Reach | None) -> None:
        self.found: list[SeenText] = []
        self.session_id = "" if outer is None else outer.session_id
        self._outer = outer

    def note(self, origin: Origin, source: str) -> None:
        self.found.append(SeenText(origin, source))

    def written(self) -> Origin | None:
        origin = None if self._outer is None else self._outer.written()
        return origin or (Origin.FILE if any(text.origin in UNTRUSTED for text in self.found) else None)

    def texts(self) -> list[SeenText]:
        return [*([] if self._outer is None else self._outer.texts()), *self.found]


@contextmanager
def held_back() -> Iterator[list[SeenText]]:
    """Note nothing within the block, and give what would have been noted: the caller passes on what counts.

    For tools that read much and return little of it.
    """
    held = _Held(_present.get())
    with reaching(held):
        yield held.found


class _WrittenAs(_Held):
    def __init__(self, origin: Origin | None) -> None:
        super().__init__(None)
        self._origin = origin

    def written(self) -> Origin | None:
        return self._origin


@contextmanager
def written_as(origin: Origin | None) -> Iterator[None]:
    """Have all that is written within the block be of this origin, and note nothing."""
    with reaching(_WrittenAs(origin)):
        yield
