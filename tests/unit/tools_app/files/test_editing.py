"""Edits of a text, by example; the law is in `tests/properties/test_editing.py`."""

import pytest

from tools_app.core.files.editing import Edited, NotEdited, Outcome, replace_once


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        ("one two", "two", "2", Edited("one 2")),
        ("price", "price", "$& $1 $$ \\1 \\g<0>", Edited("$& $1 $$ \\1 \\g<0>")),
        ("a a", "a", "b", NotEdited("ambiguous", 2)),
        ("aaa", "aa", "b", NotEdited("ambiguous", 2)),
        ("hello   world", "hello world", "x", Edited("x", is_fuzzy=True)),
        ("\tif a:\r\n\t\tb\r\n", "\tif a:\n\t\tb\n", "c\n", Edited("c\n", is_fuzzy=True)),
        ("a  b\na\tb", "a b", "x", NotEdited("ambiguous_fuzzy")),
        ("a\n\nb", "a\nb", "x", NotEdited("missing")),
        ("a b", "ab", "x", NotEdited("missing")),
        ("x \t y", "x y", "", Edited("", is_fuzzy=True)),
        ("keep\r\n  it  \r\nend", "it \n", "that\n", Edited("keep\r\n  that\nend", is_fuzzy=True)),
        ("", "a", "b", NotEdited("missing")),
    ],
)
def test_edits(content: str, old: str, new: str, expected: Outcome) -> None:
    assert replace_once(content, old, new) == expected


def test_a_text_of_one_character_is_not_counted_for_ever() -> None:
    assert replace_once("a" * 2_000_000, "a" * 1_000, "b") == NotEdited("ambiguous", 100)
