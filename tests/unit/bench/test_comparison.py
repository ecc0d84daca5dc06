"""What a comparison of checkouts is made of: which benchmarks run where, and one table of all runs."""

from pathlib import Path

import pytest

from bench.apart import other_checkout
from bench.catalogue import ON_BOTH, TITLES, runs_of
from bench.compare import merged, named
from bench.pages import write_page
from bench.rows import Row, beside, median_of


def entry(what: str, median: float, p99: float | None = None, goal: float | None = None) -> Row:
    return Row(what=what, unit="ms", median=median, p99=p99, goal=goal)


def test_each_benchmark_runs_once_or_on_both_databases() -> None:
    runs = list(runs_of([], "both"))
    assert [name for _, name, _ in runs if name not in ON_BOTH] == [name for name in TITLES if name not in ON_BOTH]
    assert list(runs_of(["load"], "both")) == [
        (f"{TITLES['load']} (SQLite)", "load", "sqlite"),
        (f"{TITLES['load']} (PostgreSQL)", "load", "postgres"),
    ]
    assert list(runs_of(["idle"], "both")) == [(TITLES["idle"], "idle", "sqlite")]
    assert list(runs_of(["idle"], "postgres")) == [(TITLES["idle"], "idle", "postgres")]
    assert {database for _, _, database in runs_of([], "postgres")} == {"postgres"}


def test_runs_are_summed_up_by_the_median_of_each_figure() -> None:
    found = median_of([entry("x", 3.0, 9.0, 1.0), entry("x", 1.0, 30.0, 1.0), entry("x", 2.0, 10.0, 1.0)])
    assert (found.what, found.median, found.p99, found.goal, found.is_met) == ("x", 2.0, 10.0, 1.0, False)
    assert median_of([entry("x", 3.0)]).p99 is None


def test_rows_stand_beside_each_other_and_what_one_cannot_do_is_empty() -> None:
    runs = {
        "parent": [[entry("a", 4.0)], [entry("a", 6.0)], [entry("a", 5.0)]],
        "this": [[entry("a", 2.5), entry("b", 1.0)]],
    }
    entries = merged(runs, ["parent", "this"])
    text = beside(["parent", "this"], [("Group", [*entries, {"parent": entry("c", 7.0, 8.0)}])])
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert lines[0] == ["", "parent", "this", "this / parent", "unit"]  # no row has a goal
    assert lines[2][0] == "**Group**"
    assert lines[3] == ["a", "5.00", "2.50", "0.50", "ms"]
    assert lines[4] == ["b", "", "1.00", "", "ms"]
    assert lines[5] == ["c", "7.00 / 8.00", "", "", "ms"]


def test_the_99th_percentiles_have_a_ratio_as_well() -> None:
    text = beside(["reference", "ours"], [("G", [{"reference": entry("a", 4.0, 10.0), "ours": entry("a", 2.0, 30.0)}])])
    assert [cell.strip() for cell in text.splitlines()[-1].strip("|").split("|")][1:4] == [
        "4.00 / 10.0",
        "2.00 / 30.0",
        "0.50 / 3.00",
    ]


def test_a_goal_is_held_against_this_checkout() -> None:
    text = beside(
        ["parent", "this"], [("G", [{"parent": entry("a", 9.0, goal=5.0), "this": entry("a", 4.0, goal=5.0)}])]
    )
    head, last = ([cell.strip() for cell in text.splitlines()[at].strip("|").split("|")] for at in (0, -1))
    assert head == ["", "goal", "parent", "this", "this / parent", "unit", "met"]
    assert last == ["a", "≤ 5.00", "9.00", "4.00", "0.44", "ms", "yes"]


def test_a_checkout_has_the_name_that_it_is_given_or_that_of_its_directory() -> None:
    assert named("parent=/a/b") == ("parent", Path("/a/b"))
    assert named("/a/b") == ("b", Path("/a/b"))


def test_a_checkout_without_an_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no environment yet"), other_checkout("x", tmp_path):
        pass


def test_a_table_takes_the_place_of_the_one_of_its_name(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a <!-- x --> old <!-- end of x --> b <!-- y --> kept <!-- end of y -->", encoding="utf-8")
    write_page(page, "x", "new")
    expected = "a <!-- x -->\n\nnew\n<!-- end of x --> b <!-- y --> kept <!-- end of y -->"
    assert page.read_text(encoding="utf-8") == expected
    with pytest.raises(ValueError, match="no place"):
        write_page(page, "z", "new")
    assert page.read_text(encoding="utf-8") == expected
