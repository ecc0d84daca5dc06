"""Edits of a text, by example; the law is in `tests/properties/test_editing.py`."""

import pytest

from tools_app.core.files.editing import Edited, NotEdited, Outcome, replace_once

LETTER = "She said “re-read it” – don’t wait.\nTotal:\u00a05 €\n"


def fuzzy(content: str) -> Edited:
    return Edited(content, is_fuzzy=True)


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        ("one two", "two", "2", Edited("one 2")),
        ("price", "price", "$& $1 $$ \\1 \\g<0>", Edited("$& $1 $$ \\1 \\g<0>")),
        ("a a", "a", "b", NotEdited("ambiguous", 2)),
        ("aaa", "aa", "b", NotEdited("ambiguous", 2)),
        ("hello   world", "hello world", "x", Edited("x", is_fuzzy=True)),
        ("\tif a:\r\n\t\tb\r\n", "\tif a:\n\t\tb\n", "c\n", Edited("c\r\n", is_fuzzy=True)),
        ("a  b\na\tb", "a b", "x", NotEdited("ambiguous_fuzzy")),
        ("a\n\nb", "a\nb", "x", NotEdited("missing")),
        ("a b", "ab", "x", NotEdited("missing")),
        ("x \t y", "x y", "", Edited("", is_fuzzy=True)),
        ("keep\r\n  it  \r\nend", "it \n", "that\n", Edited("keep\r\n  that\r\nend", is_fuzzy=True)),
        ("", "a", "b", NotEdited("missing")),
        # line ends: those of the file
        ("one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "ONE\nTWO\nTWO-B\n", fuzzy("ONE\r\nTWO\r\nTWO-B\r\nthree\r\n")),
        ("one\r\ntwo\r\nthree\r\n", "two", "two\nnew", Edited("one\r\ntwo\r\nnew\r\nthree\r\n")),
        ("a\r\nb\nc", "c", "C", Edited("a\r\nb\nC")),
        ("a\r\nb\nc\r\n", "b\nc", "b\nC\nD", Edited("a\r\nb\nC\r\nD\r\n")),
        ("a\nb\nc\r\n", "b\n", "b\r\nx\r\n", Edited("a\nb\nx\nc\r\n")),
        ("a\r\nb\r\n", "\nb", "\nX\nb", Edited("a\r\nX\r\nb\r\n")),
        ("a\r\nb\r\n", "\nb", "", Edited("a\r\n")),
        ("a\r\nb\r\n", "a\r\n", "a\n", Edited("a\nb\r\n")),  # the edit is about the line end itself
        ("only", "only", "two\r\nlines", Edited("two\r\nlines")),
        # typographic characters: the file's own where the words are the same
        (
            LETTER,
            '"re-read it" - don\'t wait.',
            '"re-read it" - don\'t wait long.',
            fuzzy(LETTER.replace("t.", "t long.")),
        ),
        (LETTER, "Total: 5 €", "Total: 6 €", fuzzy(LETTER.replace("5", "6"))),
        (LETTER, '"re-read it"', '"re-read it", "twice"', fuzzy(LETTER.replace("it”", 'it”, "twice"'))),
        ("say(\"a\", 'b')\n", "say(“a”, ‘b’)", "say(“c”, ‘b’, “d”)", fuzzy('say("c", \'b\', "d")\n')),
        ("“a” and “a”", '"a"', "b", NotEdited("ambiguous_fuzzy")),
        ("x – y", "x - y", "x — y", fuzzy("x — y")),
        ("Cafe\u0301 au lait", "Café au lait", "Café noir", fuzzy("Cafe\u0301 noir")),
        ("Café au lait", "Cafe\u0301 au lait", "Cafe\u0301 noir", fuzzy("Café noir")),
        ("한국 a", "\u1112\u1161\u11ab국 a", "한국 b", fuzzy("한국 b")),
        ("q\u0301\u0323 x", "q\u0323\u0301 x", "y", fuzzy("y")),
        ("wait… now", "wait... now", "wait... then", fuzzy("wait… then")),
        ("a\u202f%\u2009b", "a % b", "a % c", fuzzy("a\u202f%\u2009c")),
        ("\tx = 1", "    x = 1", "    x = 2", fuzzy("\tx = 2")),
    ],
)
def test_edits(content: str, old: str, new: str, expected: Outcome) -> None:
    assert replace_once(content, old, new) == expected


def test_a_text_of_one_character_is_not_counted_for_ever() -> None:
    assert replace_once("a" * 2_000_000, "a" * 1_000, "b") == NotEdited("ambiguous", 100)


def test_a_long_edit_takes_little_time_and_keeps_both_ends() -> None:
    old = "".join(f"row {number} of “many”\r\n" for number in range(20_000))
    said = old.replace("\r\n", "\n").replace("“", '"').replace("”", '"')
    outcome = replace_once(f"{old}end\r\n", said, said.replace("row 10000 ", "line 10000\n"))
    assert outcome == fuzzy(f"{old}end\r\n".replace("row 10000 ", "line 10000\r\n"))
