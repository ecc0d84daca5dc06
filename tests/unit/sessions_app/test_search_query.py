"""What a user types, as the search understands it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.search.search_query import MAX_QUERY_CHARS, MAX_TERMS, Alternative, Query, parse_query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("red bikes", [Alternative((("red",), ("bike",)))]),
        ('"red bike" fast', [Alternative((("red", "bike"), ("fast",)))]),
        ("bike -red", [Alternative((("bike",),), (("red",),))]),
        ('bike -"very red"', [Alternative((("bike",),), (("veri", "red"),))]),
        ("a b OR c", [Alternative((("a",), ("b",))), Alternative((("c",),))]),
        ("or", [Alternative((("or",),))]),
        ("e-mail", [Alternative((("e", "mail"),))]),
        ("東京 駅", [Alternative((("東", "京"), ("駅",)))]),
        ('"half"glued', [Alternative((("half",), ("glu",)))]),
        ("bike - !? *", [Alternative((("bike",),))]),
    ],
)
def test_queries(text: str, expected: list[Alternative]) -> None:
    assert parse_query(text) == Query(tuple(expected))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no word"),
        (" \0 \n?!", "no word"),
        ('""', "no word"),
        ('"not closed', "not closed"),
        ("OR", "OR stands"),
        ("a OR", "OR stands"),
        ("a OR OR b", "OR stands"),
        ("-a", "only words to leave out"),
        ("a OR -b", "only words to leave out"),
        ("x" * (MAX_QUERY_CHARS + 1), "characters"),
        ("x " * (MAX_TERMS + 1), "words and phrases"),
    ],
)
def test_what_cannot_be_understood_gives_the_reason(text: str, problem: str) -> None:
    query = parse_query(text)
    assert problem in query.problem
    assert not query.alternatives


@given(st.text())
def test_a_query_is_understood_or_gives_the_reason(text: str) -> None:
    query = parse_query(text)
    assert bool(query.problem) != bool(query.alternatives)
    assert all(each.wanted for each in query.alternatives)
