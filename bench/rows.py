"""What a benchmark prints: rows of one table, and the few statistics in them."""

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `goal` is the most it may be, on the median or, where `goal_on` is set, on the 99th percentile."""

    what: str
    unit: str
    median: float
    p99: float | None = None
    goal: float | None = None
    goal_on: str = "median"

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; nothing where there is none."""
        measured = self.p99 if self.goal_on == "p99" else self.median
        return None if self.goal is None or measured is None else measured <= self.goal


def row(what: str, unit: str, values: Iterable[float], *, minus: float = 0.0, **goal: object) -> Row:
    """Summarise values; `minus` is what the driver and the provider would have taken by themselves."""
    ordered = sorted(value - minus for value in values)
    if not ordered:
        raise ValueError(f"nothing was measured for {what!r}")
    return Row(what=what, unit=unit, median=statistics.median(ordered), p99=percentile(ordered, 99), **goal)  # type: ignore[arg-type]  # fields of Row


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of the sorted values do not exceed."""
    return ordered[min(len(ordered) - 1, max(0, math.ceil(len(ordered) * percent / 100) - 1))]


def milliseconds(seconds: Iterable[float]) -> list[float]:
    """Turn seconds into milliseconds."""
    return [value * 1000 for value in seconds]


def to_json(rows: Iterable[Row]) -> str:
    """Encode rows for the process that asked for them."""
    return json.dumps([asdict(entry) for entry in rows])


def from_json(text: str) -> list[Row]:
    """Decode what `to_json` made."""
    return [Row(**entry) for entry in json.loads(text)]


def median_of(runs: Sequence[Row]) -> Row:
    """The same row of several runs as one: the median of each figure."""
    p99 = [entry.p99 for entry in runs if entry.p99 is not None]
    return replace(
        runs[-1],
        median=statistics.median(entry.median for entry in runs),
        p99=statistics.median(p99) if p99 else None,
    )


def table(groups: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """Draw the table as Markdown, which reads well on a terminal too."""
    lines = [["", "goal", "median", "p99", "unit", "met"]]
    for name, rows in groups:
        lines.append([f"**{name}**", "", "", "", "", ""])
        lines += [_cells(entry) for entry in rows]
    return _draw(lines, numbers=range(1, 4))


def beside(names: Sequence[str], groups: Sequence[tuple[str, Sequence[Mapping[str, Row]]]]) -> str:
    """Draw a table of the same rows of several checkouts, the last of which is held against the first.

    A cell has the median and, where there is one, the 99th percentile behind a stroke; so has the ratio. Where no row
    has a goal there are no columns for goals.
    """
    lines = [["", "goal", *names, f"{names[-1]} / {names[0]}", "unit", "met"]]
    for title, entries in groups:
        lines.append([f"**{title}**", *([""] * (len(names) + 4))])
        for entry in entries:
            found = [entry.get(name) for name in names]
            first, last = found[0], found[-1]
            some = next(row for row in reversed(found) if row is not None)
            what, goal, _, _, unit, met = _cells(some)
            lines.append([what, goal, *map(_figures, found), _ratio(first, last), unit, "" if last is None else met])
    if not any(entry.goal is not None for _, entries in groups for found in entries for entry in found.values()):
        return _draw([[line[0], *line[2:-1]] for line in lines], numbers=range(1, len(names) + 2))
    return _draw(lines, numbers=range(1, len(names) + 3))


def _ratio(first: Row | None, last: Row | None) -> str:
    if first is None or last is None or not first.median:
        return ""
    median = f"{last.median / first.median:.2f}"
    return f"{median} / {last.p99 / first.p99:.2f}" if first.p99 and last.p99 else median


def _figures(entry: Row | None) -> str:
    if entry is None:
        return ""
    return _number(entry.median) + ("" if entry.p99 is None else f" / {_number(entry.p99)}")


def _draw(lines: Sequence[Sequence[str]], *, numbers: range) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]

    def drawn(line: Sequence[str]) -> str:
        cells = (cell.rjust(widths[at]) if at in numbers else cell.ljust(widths[at]) for at, cell in enumerate(line))
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (width + 1) + (":" if at in numbers else "-") for at, width in enumerate(widths)) + "|"
    return "\n".join([drawn(lines[0]), rule, *map(drawn, lines[1:])])


def _cells(entry: Row) -> list[str]:
    goal = "" if entry.goal is None else f"≤ {_number(entry.goal)}" + (" (p99)" if entry.goal_on == "p99" else "")
    met = {None: "", True: "yes", False: "**no**"}[entry.is_met]
    return [entry.what, goal, _number(entry.median), "" if entry.p99 is None else _number(entry.p99), entry.unit, met]


def _number(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
