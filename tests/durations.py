"""How long the tests of each folder took, set-up and teardown included: seconds, and seconds of the processor.

The latter say what a test costs whatever runs beside it: those of its process and of the processes that it ended.
"""

import collections
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest


def cpu_seconds() -> float:
    """What this process and the children that it has waited for have used of the processor."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@dataclass
class Spent:
    """What tests took."""

    seconds: float = 0.0
    cpu: float = 0.0
    tests: int = 0

    def add(self, report: pytest.TestReport) -> None:
        """Add the set-up, call or teardown of a test."""
        self.seconds += report.duration
        self.cpu += getattr(report, "cpu_seconds", 0.0)
        self.tests += report.when == "call"

    def merge(self, other: "Spent") -> None:
        """Add what others took."""
        self.seconds += other.seconds
        self.cpu += other.cpu
        self.tests += other.tests


COSTLY_SECONDS = 4.0
"""Seconds of the processor from which on a module takes turns (`tests/suite/rotation.py`)."""


def by_module(reports: Iterable[object]) -> dict[str, Spent]:
    """What the tests of each module took."""
    found: dict[str, Spent] = collections.defaultdict(Spent)
    for report in reports:
        if isinstance(report, pytest.TestReport):
            found[report.nodeid.partition("::")[0]].add(report)
    return found


def by_folder(reports: Iterable[object]) -> dict[str, Spent]:
    """What the tests of each folder took, the slowest first."""
    found: dict[str, Spent] = collections.defaultdict(Spent)
    for module, spent in by_module(reports).items():
        found[module.rpartition("/")[0]].merge(spent)
    return dict(sorted(found.items(), key=lambda pair: -pair[1].seconds))


def write_costs(target: Path, reports: Iterable[object], *, but: tuple[str, ...]) -> None:
    """Write which modules are costly, those below the folders `but` excepted. `target` keeps its comments."""
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    comments = [line for line in before.splitlines() if line.startswith("#")]
    costly = [
        (spent.cpu, name)
        for name, spent in by_module(reports).items()
        if spent.cpu >= COSTLY_SECONDS and not name.startswith(but)
    ]
    lines = [f"{cpu:.0f} {name}" for cpu, name in sorted(costly, reverse=True)]
    target.write_text("\n".join([*comments, *lines]) + "\n", encoding="utf-8")


def table(reports: Iterable[object]) -> list[str]:
    """Lines of a table, with the sum of all."""
    rows = by_folder(reports)
    total = Spent(*(sum(getattr(spent, name) for spent in rows.values()) for name in ("seconds", "cpu", "tests")))
    lines = [f"{'folder':<40}{'seconds':>10}{'processor':>11}{'tests':>8}"]
    for folder, spent in [*rows.items(), ("all", total)]:
        lines.append(f"{folder:<40}{spent.seconds:>10.1f}{spent.cpu:>11.1f}{spent.tests:>8}")
    return lines


def told(report: pytest.TestReport | pytest.CollectReport) -> str:
    """All that a failed test says: the traceback, and what was printed and logged."""
    return "\n".join([report.longreprtext, *(f"--- {name}\n{text}" for name, text in report.sections)])
