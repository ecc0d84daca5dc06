"""How long the tests of each folder took: seconds of work, set-up and teardown included, whatever runs beside."""

import collections
from collections.abc import Iterable

import pytest


def by_folder(reports: Iterable[object]) -> list[tuple[str, float, int]]:
    """Folders with their seconds and their number of tests, the slowest first."""
    seconds: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    for report in reports:
        if isinstance(report, pytest.TestReport):
            folder = report.nodeid.partition("::")[0].rpartition("/")[0]
            seconds[folder] += report.duration  # type: ignore[assignment]  # a counter of floats
            counts[folder] += report.when == "call"
    return [(folder, float(spent), counts[folder]) for folder, spent in seconds.most_common()]


def table(reports: Iterable[object]) -> list[str]:
    """Lines of a table, with the sum of all."""
    rows = by_folder(reports)
    lines = [f"{'folder':<40}{'seconds':>10}{'tests':>8}"]
    lines += [f"{folder:<40}{spent:>10.1f}{count:>8}" for folder, spent, count in rows]
    total, tests = sum(spent for _, spent, _ in rows), sum(count for _, _, count in rows)
    return [*lines, f"{'all':<40}{total:>10.1f}{tests:>8}"]


def told(report: pytest.TestReport | pytest.CollectReport) -> str:
    """All that a failed test says: the traceback, and what was printed and logged."""
    return "\n".join([report.longreprtext, *(f"--- {name}\n{text}" for name, text in report.sections)])
