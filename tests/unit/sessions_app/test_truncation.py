"""Texts that are cut say so: row A3.20 of the reference."""

import pytest

from sessions_app.core.messages.truncation import (
    MARK,
    Strategy,
    truncate_head,
    truncate_lines,
    truncate_middle,
    truncate_tail,
    truncate_tool_output,
)


def test_what_fits_is_left_alone() -> None:
    text = "x" * 30_000
    for cut in (truncate_head, truncate_tail, truncate_middle, truncate_tool_output):
        assert cut(text) == text
    assert truncate_lines("a\n" * 199) == "a\n" * 199


def test_where_it_is_cut() -> None:
    assert MARK == "\n\n... [truncated] ...\n\n"
    assert truncate_head("abcdef", 2) == f"{MARK}ef"
    assert truncate_tail("abcdef", 2) == f"ab{MARK}"
    assert truncate_middle("abcdef", 3) == f"ab{MARK}f"
    assert truncate_head("abc", 0) == truncate_middle("abc", 0) == truncate_tail("abc", 0) == MARK
    assert truncate_lines("a\nb\nc", 1) == "a\n... [2 more lines truncated]"


@pytest.mark.parametrize(("strategy", "cut"), [("tail", f"ab{MARK}"), ("head", f"{MARK}ed]"), ("middle", f"a{MARK}]")])
def test_tool_outputs_are_cut_by_lines_and_then_by_characters(strategy: Strategy, cut: str) -> None:
    size = {"tail": 2, "head": 3, "middle": 2}[strategy]
    assert truncate_tool_output("ab\nc", max_chars=size, max_lines=1, strategy=strategy) == cut
    assert truncate_tool_output("\n".join("x" * 600)).count("\n") == 500
