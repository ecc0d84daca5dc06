"""What of a match is shown."""

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.search.ranking import SNIPPET_CHARS, snippet
from sessions_app.core.search.search_query import parse_query


def marked(text: str, query: str) -> list[str]:
    shown = snippet(text, parse_query(query).phrases)
    return [shown.text[low:high] for low, high in shown.highlights]


def test_a_snippet_shows_what_matches() -> None:
    assert marked("The Bikes and a bike-shed", "bike") == ["Bikes", "bike"]
    assert marked("A red bike, a red door", '"red bike"') == ["red bike"]
    assert marked("Wir fahren nach 東京都", "東京") == ["東京"]
    assert marked("Nothing here", "bike") == []


def test_a_snippet_of_a_long_text_begins_shortly_before_the_first_match() -> None:
    text = "lead " * 500 + "the bike is red" + " trail" * 500
    shown = snippet(text, parse_query("bike").phrases)
    assert [shown.text[low:high] for low, high in shown.highlights] == ["bike"]
    assert len(shown.text) <= SNIPPET_CHARS
    assert shown.text.startswith("lead")
    assert shown.text.endswith("trail")


@given(st.text(), st.text())
def test_highlights_lie_in_the_snippet_and_in_order(text: str, query: str) -> None:
    shown = snippet(text, parse_query(query).phrases)
    rest = iter(text)
    assert all(character in rest for character in shown.text)  # in their order, without marks of Markdown
    edges = [edge for pair in shown.highlights for edge in pair]
    assert edges == sorted(edges)
    assert all(0 <= low < high <= len(shown.text) for low, high in shown.highlights)


def test_a_snippet_shows_no_marks_of_markdown() -> None:
    text = "# Plan\n\n" + "words before " * 40 + "take the **blue bike** with [its bell](https://example.com/bell)\n"
    shown = snippet(text, parse_query("bike").phrases)
    assert shown.text.strip().endswith("take the blue bike with its bell")
    assert [shown.text[low:high] for low, high in shown.highlights] == ["bike"]


def test_a_match_that_only_a_mark_holds_is_shown_as_it_was_written() -> None:
    text = "see [the page](https://example.com/bike)"
    assert marked(text, "bike") == ["bike"]
    assert snippet(text, parse_query("bike").phrases).text == text


@given(st.text(alphabet="*_`~[]()#>|- \nab", max_size=200))
def test_ranges_lie_inside_the_snippet_whatever_is_marked(text: str) -> None:
    shown = snippet(text, parse_query("a OR b").phrases)
    assert all(0 <= low < high <= len(shown.text) for low, high in shown.highlights)
    assert all(shown.text[low:high] for low, high in shown.highlights)
