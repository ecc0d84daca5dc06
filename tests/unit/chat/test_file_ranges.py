"""Single byte ranges, as RFC 9110 has them."""

import pytest

from chat.http.api.file_response import parse_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 0)),
        ("bytes=2-", (2, 9)),
        ("bytes=5-99", (5, 9)),
        ("bytes=-4", (6, 9)),
        ("bytes=-99", (0, 9)),
        ("bytes=10-", (1, 0)),
        ("bytes=-0", (1, 0)),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("items=0-1", None),
        ("bytes=a-b", None),
        ("bytes=٠-١", None),
        ("bytes=" + "9" * 30 + "-", None),
    ],
)
def test_a_range_is_taken_ignored_or_unsatisfiable(header: str, expected: tuple[int, int] | None) -> None:
    assert parse_range(header, 10) == expected
