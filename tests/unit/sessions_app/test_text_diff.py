"""What changed between two texts, and which changes belong together (B5.5)."""

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.text.text_diff import (
    MAX_CHARS,
    MAX_PATCH_CHARS,
    TOO_LONG,
    Step,
    Stretch,
    TextDiff,
    diff_texts,
    joined,
    stretches,
)

LINES = st.lists(st.sampled_from(["a", "b", "", "-- c", "++ d", "@@"]), max_size=12)


def test_lines_that_came_and_went() -> None:
    diff = diff_texts("tea\ncake\nmilk", "tea\nscones\nmilk\njam")
    assert (diff.additions, diff.deletions, diff.is_cut) == (2, 1, False)
    assert diff.patch == "@@ -1,3 +1,4 @@\n tea\n-cake\n+scones\n milk\n+jam"


def test_lines_that_look_like_a_diff_are_counted() -> None:
    assert diff_texts("-- old", "++ new") == TextDiff(additions=1, deletions=1, patch="@@ -1 +1 @@\n--- old\n+++ new")


def test_a_text_that_came_and_one_that_went() -> None:
    assert diff_texts("", "a\nb").additions == 2
    assert diff_texts("a\nb", "").deletions == 2
    assert diff_texts("a", "a") == TextDiff()


def test_long_texts_are_not_compared_and_long_patches_are_cut() -> None:
    assert diff_texts("x" * MAX_CHARS, "y") == TOO_LONG
    cut = diff_texts("", "x" * (MAX_PATCH_CHARS + 1))
    assert (cut.additions, len(cut.patch), cut.is_cut) == (1, MAX_PATCH_CHARS, True)


def test_several_changes_of_a_text_as_one() -> None:
    both = joined([diff_texts("a", "b"), diff_texts("c", "c\nd")])
    assert (both.additions, both.deletions) == (2, 1)
    assert both.patch == "@@ -1 +1 @@\n-a\n+b\n@@ -1 +1,2 @@\n c\n+d"
    assert joined([TOO_LONG, diff_texts("a", "b")]).is_cut


@given(LINES, LINES)
def test_counts_add_up(before: list[str], after: list[str]) -> None:
    diff = diff_texts("\n".join(before), "\n".join(after))
    old, new = "\n".join(before).splitlines(), "\n".join(after).splitlines()
    assert len(old) - diff.deletions + diff.additions == len(new)


def step(number: int, before: str, after: str, text: str = "t") -> Step:
    return Step(id=number, text=text, before=before, after=after)


def test_changes_that_follow_each_other_are_one() -> None:
    first, second, third = step(1, "", "a"), step(2, "a", "b"), step(5, "c", "d")
    other = step(3, "", "x", text="u")
    found = stretches([first, second, other, third])
    assert found == [Stretch(third, third), Stretch(other, other), Stretch(first, second)]


def test_what_was_changed_back_is_no_change() -> None:
    [found] = stretches([step(1, "a", "b"), step(2, "b", "a")])
    assert not found.is_change
    assert Stretch(step(1, "a", "b"), step(1, "a", "b")).is_change
