"""The table, the statistics and the comparison that the benchmarks rest on."""

import pytest

from bench.chats import delays
from bench.rows import Row, from_json, percentile, row, table, to_json
from bench.sockets import FrameReader, encode_frame


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.0
    assert percentile([float(value) for value in range(1, 201)], 99) == 198.0
    assert percentile([7.0], 99) == 7.0


def test_a_row_is_reduced_by_what_the_driver_takes_and_compared_with_its_goal() -> None:
    entry = row("x", "ms", [12.0, 10.0, 30.0], minus=2.0, goal=10.0)
    assert (entry.median, entry.p99, entry.is_met) == (10.0, 28.0, True)
    assert row("x", "ms", [12.0], goal=10.0, goal_on="p99").is_met is False
    assert row("x", "ms", [12.0]).is_met is None


def test_nothing_measured_is_an_error_and_no_figure() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        row("x", "ms", [])


def test_rows_travel_between_processes() -> None:
    rows = [Row(what="a", unit="ms", median=1.0, p99=2.0, goal=3.0, goal_on="p99"), Row(what="b", unit="", median=0)]
    assert from_json(to_json(rows)) == rows


def test_the_table_states_when_a_goal_is_missed() -> None:
    text = table(
        [("Group", [Row(what="slow", unit="ms", median=11.0, goal=10.0), Row(what="free", unit="s", median=1)])]
    )
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert lines[0] == ["", "goal", "median", "p99", "unit", "met"]
    assert lines[3] == ["slow", "≤ 10.0", "11.0", "", "ms", "**no**"]
    assert lines[4] == ["free", "", "1.00", "", "s", ""]


def test_a_chunk_is_late_until_its_last_character_came() -> None:
    sent = [(1.0, "ab"), (2.0, "cd"), (3.0, "e")]
    assert delays(sent, [(1.5, "abc"), (4.0, "de")]) == [0.5, 2.0, 1.0]


@pytest.mark.parametrize("received", [[(1.0, "a")], [(1.0, "abc")], [(1.0, "ax")], [(1.0, "ba")], []])
def test_a_lost_doubled_or_changed_text_is_noticed(received: list[tuple[float, str]]) -> None:
    with pytest.raises(ValueError, match="came"):
        delays([(0.0, "a"), (0.0, "b")], received)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("mask", [True, False])
def test_frames_are_read_back_however_they_are_cut(size: int, mask: bool) -> None:
    payload = bytes(index % 251 for index in range(size))
    data = encode_frame(payload, mask=mask) + encode_frame(b"next", mask=mask)
    whole, cut = FrameReader(), FrameReader()
    assert whole.feed(data) == [(1, payload), (1, b"next")]
    step = max(1, len(data) // 7)
    pieces = [frame for at in range(0, len(data), step) for frame in cut.feed(data[at : at + step])]
    assert pieces == [(1, payload), (1, b"next")]


def test_fragments_are_one_message() -> None:
    reader = FrameReader()
    first = bytes([0x01, 2]) + b"ab"
    assert reader.feed(first) == []
    assert reader.feed(bytes([0x80, 1]) + b"c") == [(1, b"abc")]
