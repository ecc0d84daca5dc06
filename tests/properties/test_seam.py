"""Laws of the seam: wherever a text is cut, and however the model takes it up, nothing of it is doubled or garbled."""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.core.loop.seam import MAX_WORD, Joined, Joiner, Seam
from tests.budget import examples

TEXTS = {
    "words": "The quick brown fox jumps over the lazy dog, and nobody knows why it does so each morning. Really!",
    "numbers": "\n".join(str(number) for number in range(35, 61)),
    "from one": "Counting:\n\n" + "\n".join(f"{number}. item number {number}" for number in range(1, 13)),
    "paragraphs": "First paragraph with words.\n\nSecond one, **bold** and `code`.\n\n- a point\n- another point\n",
    "fence": 'Here it is:\n\n```python\ndef total(values):\n    """Sum."""\n    return sum(values)\n```\n\nThat is it.',
    "chinese": "今天天气很好，我们一起去公园散步吧。公园里有很多花，也有很多孩子在玩耍。Python编程很有趣！",
    "japanese": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "emoji": "Party 🎉🎉 for the family 👨‍👩‍👧‍👦 and 👍🏽 from 🇩🇪 with café and naïve façade, ok?",
    "json": json.dumps({"name": "Alice", "age": 41, "tags": ["a", "b"], "nested": {"x": [1, 2, {"y": None}]}}),
    "indented json": json.dumps({"name": "Alice", "list": [41, 42, 43], "nested": {"x": "y z"}}, indent=2),
    "table": "| a | b |\n|---|---|\n| 41 | 42 |\n| 43 | 44 |\n",
    "address": "See https://example.com/a/very/long/path?with=query&and=more for all of it, please.",
    "arabic": "مرحبا بالعالم، هذا نص طويل قليلا للاختبار.",
}
CUTS = [pytest.param(name, id=name) for name in TEXTS]


def goes_on(text: str, base: str) -> str:
    """A model that goes on from what it was given: so it writes the word anew that was cut."""
    return text[len(base) :]


def repeats_line(text: str, base: str) -> str:
    """A model that begins with the last line that it was given."""
    begin = base.rstrip("\n").rfind("\n") + 1
    return text[begin:]


def repeats_words(text: str, base: str) -> str:
    """A model that begins with the last words that it was given, three of them."""
    words = re.search(r"(?:\S+\s+){3}\Z", base)
    return text[words.start() if words else len(base) :]


def begins_anew(text: str, _base: str) -> str:
    """A model that gives the whole answer again."""
    return text


MANNERS: list[Callable[[str, str], str]] = [goes_on, repeats_line, repeats_words, begins_anew]


def joined(joiner: Joiner, pieces: Iterator[str]) -> Joined:
    """What the text becomes: the decision, and all that is said after it."""
    for piece in pieces:
        found = joiner.hear(piece)
        if found is not None:
            return Joined(replaced=found.replaced, added=found.added + "".join(pieces))
    return joiner.end()


def taken_up(shown: str, said: str, size: int, joiner: Joiner) -> str:
    pieces = iter([said[start : start + size] for start in range(0, len(said), size)])
    found = joined(joiner, pieces)
    assert shown.endswith(found.replaced)
    return shown.removesuffix(found.replaced) + found.added


def may_be_meant(text: str, base: str, said: str) -> bool:
    """Whether what is repeated is too little to know: one or two letters, or the end of a block."""
    repeated = base.removeprefix(text[: len(text) - len(said)])
    return 0 < sum(character.isalnum() for character in repeated) < 3 or not re.search(r"\w", repeated)


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("name", CUTS)
def test_a_text_cut_anywhere_becomes_the_text(name: str, manner: Callable[[str, str], str]) -> None:
    text, wrong = TEXTS[name], []
    for cut in range(1, len(text)):
        for size in (1, 3, 50):
            seam = Seam.of(text[:cut])
            said = manner(text, seam.base)
            made = taken_up(text[:cut], said, size, Joiner(seam))
            if made != text and not (len(said) > len(text) - len(seam.base) and may_be_meant(text, seam.base, said)):
                wrong.append((cut, size, seam.base[-30:], seam.tail, made[max(0, cut - 30) : cut + 30]))
    assert wrong == []


@pytest.mark.parametrize("echoes", [False, True])
@pytest.mark.parametrize("name", CUTS)
def test_a_provider_that_goes_on_within_the_text_makes_it_whole(name: str, echoes: bool) -> None:
    text, wrong = TEXTS[name], []
    for cut in range(1, len(text)):
        shown = text[:cut]
        sent = shown.rstrip()
        for size in (1, 3, 50) if sent else ():
            joiner = Joiner(Seam.of(shown))
            joiner.goes_on_exactly(echoes=echoes)
            said = text if echoes else text[len(sent) :]
            made = taken_up(shown, said, size, joiner)
            if made != text:
                wrong.append((cut, size, made[max(0, cut - 30) : cut + 30]))
    assert wrong == []


@pytest.mark.parametrize("name", CUTS)
def test_another_answer_never_stands_in_the_middle_of_a_word(name: str) -> None:
    text = TEXTS[name]
    for cut in range(1, len(text)):
        seam = Seam.of(text[:cut])
        made = taken_up(text[:cut], "Zq, something else.", 1, Joiner(seam))
        assert made in {seam.base + "Zq, something else.", "Zq, something else."}


@given(
    text=st.text(alphabet="ab 4\n-.今", min_size=1, max_size=60),
    said=st.text(alphabet="ab 4\n-.今", max_size=80),
    size=st.integers(1, 7),
)
@settings(max_examples=examples(500), deadline=None)
def test_no_more_is_taken_back_than_the_cut_word(text: str, said: str, size: int) -> None:
    seam = Seam.of(text)
    assert seam.shown == text
    made = taken_up(text, said, size, Joiner(seam))
    assert made.startswith(seam.base) or not re.search(r"\s", seam.base)
    pieces = [said[start : start + size] for start in range(0, len(said), size)]
    assert made == taken_up(text, said, max(1, len(said)), Joiner(seam)), pieces  # in whatever pieces it comes


@pytest.mark.parametrize(
    ("shown", "said", "right"),
    [
        ("41\n4", "42\n43", "41\n42\n43"),
        ("41\n4", "41\n42\n43", "41\n42\n43"),
        ("He said: ha ha ha ", "ha ha ha!", "He said: ha ha ha ha ha ha!"),
        ("it is very ve", "very good", "it is very very good"),
        ("That is really ", "really good", "That is really really good"),
        ("if a\n  if b\nend\n", "end\n", "if a\n  if b\nend\nend\n"),
        ("1 0 0\n0 0 0\n", "0 0 0\n", "1 0 0\n0 0 0\n0 0 0\n"),
        ("42 is th", "a number", "42 is a number"),
        ("Hel", "lo", "Hello"),
        ("Hel", "Howdy", "Howdy"),
        ("Smile 😀", " and go on", "Smile 😀 and go on"),
        ("The cat ", " sat", "The cat sat"),
        ("def f():\n  ", "    return 1", "def f():\n    return 1"),
        ("Done.", "", "Done."),
        ("Half a wor", "", "Half a wor"),
    ],
)
def test_repetitions_that_may_be_meant_stay(shown: str, said: str, right: str) -> None:
    for size in (1, 100):
        assert taken_up(shown, said, size, Joiner(Seam.of(shown))) == right


def test_json_of_a_schema_begins_anew() -> None:
    text = TEXTS["json"]
    for cut in range(1, len(text)):
        seam = Seam.of(text[:cut], begins_anew=True)
        assert seam.base == ""
        assert taken_up(text[:cut], text, 3, Joiner(seam)) == text
        other = '{"name": "Bob"}'
        assert taken_up(text[:cut], other, 3, Joiner(seam)) == other


def test_a_run_without_spaces_goes_on_where_it_was_cut() -> None:
    text = "See " + "x1" * MAX_WORD
    assert Seam.of(text).base == text
