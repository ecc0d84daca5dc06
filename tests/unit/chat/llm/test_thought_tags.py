"""Reasoning in tags, in whatever pieces it comes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.llm.adapters.thought_tags import TagKind, ThoughtTags


def read(*pieces: str) -> tuple[str, str]:
    """Reasoning and text in the end."""
    tags, thought, text = ThoughtTags(), "", ""
    for piece in (*pieces, None):
        for kind, part in tags.end() if piece is None else tags.feed(piece):
            if kind is TagKind.THOUGHT:
                thought += part
            elif kind is TagKind.TEXT:
                text += part
            else:
                thought, text = text, ""
    return thought.strip(), text


ANSWERS = [
    ("<think>\nhm so</think>\n42", ("hm so", "42")),
    ("\n <think>hm</think>42", ("hm", "42")),
    ("<THINK>hm</THINK>42", ("hm", "42")),
    ("<thinking>hm</thinking>\n\n42", ("hm", "42")),
    ("[THINK]hm[/THINK]42", ("hm", "42")),
    ("<think></think>\n\n42", ("", "42")),
    ("<think>a</think><think>b</think>42", ("ab", "42")),
    ("<think>a < b, a <b</think>42", ("a < b, a <b", "42")),
    ("hm so\n</think>\n\n42", ("hm so", "42")),
    ("hm so.</think>\n\n42", ("hm so.", "42")),
    ("</think>\n\n42", ("", "42")),
    ("<think>\nhm, and the line is lost", ("hm, and the line is lost", "")),
    ("Write `<think>` and `</think>` around it.", ("", "Write `<think>` and `</think>` around it.")),
    ("So:\n```\n<think>x\n</think>\n```\nDone.", ("", "So:\n```\n<think>x\n</think>\n```\nDone.")),
    ("The mark </think> ends it.", ("", "The mark </think> ends it.")),
    ("42\n<think>hm</think>\n43", ("", "42\n<think>hm</think>\n43")),
    ("They ask for `<think>`.\n</think>\n\n42", ("They ask for `<think>`.", "42")),
    ("<|channel>thought\nhm<channel|>42", ("hm", "42")),
    ("It ends with </think>", ("", "It ends with </think>")),
    ("a < b and <b>bold</b>", ("", "a < b and <b>bold</b>")),
    ("<thin ice", ("", "<thin ice")),
    ("<", ("", "<")),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_an_answer_in_one_piece(answer: str, expected: tuple[str, str]) -> None:
    assert read(answer) == expected


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_an_answer_letter_by_letter(answer: str, expected: tuple[str, str]) -> None:
    assert read(*answer) == expected


@given(st.sampled_from(ANSWERS), st.data())
def test_pieces_do_not_matter(answer: tuple[str, tuple[str, str]], data: st.DataObject) -> None:
    text, expected = answer
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})
    assert read(*(text[start:end] for start, end in pairwise(cuts))) == expected


def test_tags_behind_a_field_of_reasoning_are_words() -> None:
    tags = ThoughtTags()
    assert list(tags.stop()) == []
    assert list(tags.feed("<think>is a tag")) == [(TagKind.TEXT, "<think>is a tag")]
