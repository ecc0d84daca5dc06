"""Cutting outputs in their shape, and paging through the whole."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from sessions_app.core.messages.truncation import FORMER, cut_text
from tests.budget import examples
from thinkproject.kernel.jsonvalue import JSONValue, dump
from tools_app.core.output_limits import LINE_CHARS, CutOutput, OutputLimit, cut_output, lines_of, page_of

LIMIT = OutputLimit(lines=2_000, max_bytes=50 * 1024)


def size(value: JSONValue) -> int:
    return len((value if isinstance(value, str) else dump(value)).encode())


def cut(output: JSONValue, limit: OutputLimit = LIMIT) -> CutOutput:
    found = cut_output(output, limit)
    assert found is not None
    return found


@pytest.mark.parametrize("output", ["", "short", "x\n" * 1_999, None, 3, {"a": [1, "x" * 40_000]}, "é" * 25_600])
def test_what_fits_is_left_alone(output: JSONValue) -> None:
    assert cut_output(output, LIMIT) is None


def test_too_many_lines_are_cut_with_a_mark_and_a_place_to_read_on() -> None:
    made = cut("\n".join(str(number) for number in range(1, 2_501)))
    assert isinstance(made.output, str)
    assert "\n1334\n... [501 more lines, 2501 characters truncated] ...\n1835\n" in made.output
    assert made.output.endswith("\n2499\n2500")
    assert made.next_line == 1_335


def test_the_end_of_a_run_stays_and_a_second_cut_changes_nothing() -> None:
    """Real world 12: the error stands at the end."""
    failed = "FAILED tests/test_pay.py::test_total - exit 1"
    for output in ("\n".join([*(f"line {n}" for n in range(3_000)), failed]), "x" * 90_000 + f"\n{failed}"):
        made = cut(output)
        assert isinstance(made.output, str)
        assert made.output.endswith(failed)
        assert made.output.count("truncated]") == 1
        assert cut_output(made.output, LIMIT) is None
        shorter = cut_text(cut_text(made.output, 2_000), 500)
        assert shorter.endswith(failed)
        assert shorter.count("truncated]") == 1
        assert cut_text(shorter, 500) == shorter
        assert len(FORMER.sub("", shorter)) + int(FORMER.findall(shorter)[0]) == len(output)


def test_too_many_bytes_are_cut_at_a_line() -> None:
    made = cut("\n".join(f"line {number} " + "x" * 90 for number in range(1, 1_001)))
    assert isinstance(made.output, str)
    assert size(made.output) <= 50 * 1024
    lines = made.output.split("\n")
    notice = next(index for index, line in enumerate(lines) if line.startswith("... ["))
    assert lines[notice - 1] == f"line {made.next_line - 1} " + "x" * 90
    assert lines[-1] == "line 1000 " + "x" * 90


def test_one_long_line_is_cut_inside() -> None:
    made = cut("é" * 60_000)
    assert isinstance(made.output, str)
    assert 50_000 < size(made.output) <= 50 * 1024
    assert "\ufffd" not in made.output


def test_an_object_keeps_its_shape() -> None:
    made = cut({"exit": 0, "out": "x" * 100_000, "rows": list(range(20))})
    assert isinstance(made.output, dict)
    assert (made.output["exit"], made.output["rows"]) == (0, list(range(20)))
    assert size(made.output) <= 50 * 1024
    assert "truncated" in made.output["out"]


def test_lines_inside_of_an_object_count() -> None:
    made = cut({"out": "\n" * 3_000, "other": "x"})
    assert isinstance(made.output, dict)
    assert "[1002 more lines, 1002 characters truncated]" in made.output["out"]
    assert made.output["other"] == "x"


def test_no_limit_cuts_nothing() -> None:
    assert cut_output("x\n" * 100_000, OutputLimit()) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=400),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=5),
    max_leaves=30,
)


@hypothesis_settings(max_examples=examples(200), deadline=None)
@given(VALUES, st.integers(256, 2_000), st.integers(1, 20))
def test_a_cut_output_is_within_its_limit_and_of_its_kind(value: JSONValue, max_bytes: int, lines: int) -> None:
    found = cut_output(value, OutputLimit(lines=lines, max_bytes=max_bytes))
    if found is None:
        assert size(value) <= max_bytes
    else:
        assert size(found.output) <= max_bytes
        assert type(found.output) is type(value)
        assert cut_output(found.output, OutputLimit(lines=lines, max_bytes=max_bytes)) is None


@hypothesis_settings(max_examples=examples(200), deadline=None)
@given(VALUES | st.text("ab\n", max_size=3_000), st.integers(1, 7), st.integers(1, 500))
def test_pages_are_the_whole_without_gaps(value: JSONValue, max_lines: int, max_bytes: int) -> None:
    read: list[str] = []
    line = 1
    while line:
        page = page_of(value, first_line=line, max_lines=max_lines, max_bytes=max_bytes)
        assert page.first_line == line
        read.extend(page.text.split("\n"))
        assert page.next_line > line or page.next_line == 0
        line = page.next_line
    assert read == lines_of(value)


def test_the_text_of_an_object_is_read_by_its_lines() -> None:
    assert lines_of({"exit": 0, "out": "a\nb", "name": "x"}) == ["exit: 0", "out:", "a", "b", "name: x"]
    assert lines_of("x" * (LINE_CHARS + 1)) == ["x" * LINE_CHARS, "x"]


@pytest.mark.parametrize("line", [0, 99])
def test_a_page_beyond_the_ends_is_the_nearest(line: int) -> None:
    page = page_of("a\nb", first_line=line, max_lines=1, max_bytes=10)
    assert page.text in ("a", "b")
