"""Points of a turn at which its worker can die, and the probes that find them and let it.

A point is a fiber's function, a key and a number: the n-th time that a fiber of this function comes by. Keys are those
of `FiberContext.reached` and `FiberContext.passed`.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from chat.crashing.outcome import ID
from fibers import context as contexts
from fibers.context import BEFORE, BEGINS, ENDING, RETURNED, FiberContext
from fibers.testing import die

ROW: Final = re.compile(r"((?:^|:)approved:)\d+$")
"""The key of an approved call has the number of its row, which is another one in each run."""

ARGUMENTS: Final = ("chunk:tool-input-start", "chunk:tool-input-delta", "chunk:tool-input-available")
"""Chunks of a call that its model is still writing: a worker that dies there cuts the call."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the course of a conversation. `number` counts from 1."""

    function: str
    key: str
    number: int

    def __str__(self) -> str:
        return f"{_words(self.key)}{f' (time {self.number})' if self.number > 1 else ''}, in {self.function}"

    @property
    def cuts_call(self) -> bool:
        """Whether a call is cut here before its model has finished it. Its result differs from an undisturbed one."""
        return self.key in ARGUMENTS

    @property
    def tool(self) -> str:
        """The name of the tool that runs here, if one does."""
        words = self.key.split(":")
        return words[1] if words[0] == "tool" else ""


def _words(key: str) -> str:
    if key.startswith("tool:"):
        tool, call_id, where = _tool_words(key)
        place = "was about to run" if where == "begins" else "had returned, before its result was recorded"
        return f"when tool {tool!r} (call {call_id}) {place}"
    if key.startswith("chunk:"):
        return f"after a chunk {key.removeprefix('chunk:')!r} was shown"
    if key.startswith(BEFORE):
        return f"before the record {key.removeprefix(BEFORE)!r} was committed"
    if key in {BEGINS, RETURNED}:
        return "before its first line" if key == BEGINS else "after it had returned, before its end was committed"
    if key == ENDING:
        return "before the last transaction was committed"
    return f"after the record {key!r} was committed"


def _tool_words(key: str) -> tuple[str, str, str]:
    _, tool, rest = key.split(":", 2)
    call_id, _, where = rest.rpartition(":")
    return tool, call_id, where


class Course:
    """The points that a run comes by, in order; where it is to die, it dies, at each of them once."""

    def __init__(self, deaths: Sequence[Point] = ()) -> None:
        self.passed: list[Point] = []
        self.died: list[Point] = []
        self._left = list(deaths)
        self._mark = 0
        self._open: set[str] = set()  # calls that have begun and have no record
        self.may_cut = False
        """Whether a death cut a call, whose result may differ then: half written, or of a tool that is not rerun."""
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()  # records are committed on other threads than the loop's

    @property
    def passed_since_death(self) -> list[Point]:
        """The points after the last death."""
        return self.passed[self._mark :]

    def tool_runs(self) -> Counter[str]:
        """Count the runs of each tool that began."""
        return Counter(point.tool for point in self.passed if point.key.endswith(":begins") and point.tool)

    def probe(self, context: FiberContext, key: str) -> None:
        """Take note of a point, and die there if it is the next one to die at."""
        key = ROW.sub(r"\1*", ID.sub(r"\1_*", key))
        with self._lock:
            self._counts[context.name, key] += 1
            here = Point(context.name, key, self._counts[context.name, key])
            self.passed.append(here)
            self._follow(key)
            is_death = bool(self._left) and self._left[0] == here
            if is_death:
                self.died.append(self._left.pop(0))
                self.may_cut |= here.cuts_call or bool(self._open)
                self._mark = len(self.passed)
                self._counts.clear()  # what comes next counts from the crash
        if is_death:
            die(context)

    def _follow(self, key: str) -> None:
        if key.startswith("tool:") and key.endswith(":begins"):
            self._open.add(_tool_words(key)[1])
        elif key.startswith("call:"):
            self._open.discard(key.removeprefix("call:"))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Probe all fibers of this process until the end of the block."""
        contexts.recorded_probes.append(self.probe)
        contexts.passed_probes.append(self.probe)
        try:
            yield
        finally:
            contexts.recorded_probes.remove(self.probe)
            contexts.passed_probes.remove(self.probe)


def chosen(passed: Sequence[Point]) -> list[Point]:
    """The points to die at: all of them, but of equal chunks in a row the first, the middle one and the last."""
    kept: list[Point] = []
    group: list[Point] = []
    for point in [*passed, None]:
        if group and (point is None or point.key != group[0].key or not point.key.startswith("chunk:")):
            kept += [group[at] for at in sorted({0, len(group) // 2, len(group) - 1})]
            group = []
        if point is not None:
            group.append(point)
    return kept
