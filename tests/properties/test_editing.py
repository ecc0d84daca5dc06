"""The edit of a text agrees with its specification, written down plainly, and changes nothing else."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tools_app.core.files.editing import Edited, replace_once

texts = st.lists(
    st.sampled_from(
        ["a", "b", "ab", " ", "  ", "\t", "\n", "\r\n", "\r", "$&", "\\1", "é", "e\u0301", "“", '"', "–", "-", "\u00a0"]
    ),
    max_size=14,
)
contents = texts.map("".join)
PLAIN = {ord("“"): '"', ord("–"): "-", 0xA0: " ", ord("\r"): None}
needles = texts.map(lambda parts: "".join(parts[:5])).filter(bool)


RUN = r"[ \t\u00a0]+|\r\n|e\u0301|."


def specified(content: str, old: str) -> str:
    """Try every place, and compare what stands between any two of them."""
    places = [at for at in range(len(content)) if content[at : at + len(old)] == old]
    if places:
        return "exact" if len(places) == 1 else "ambiguous"
    units = [spelled(unit) for unit in re.findall(RUN, content, re.DOTALL)]  # what counts as one character
    wanted = [spelled(unit) for unit in re.findall(RUN, old, re.DOTALL)]
    found = [at for at in range(len(units)) if units[at : at + len(wanted)] == wanted]
    return "missing" if not found else "fuzzy" if len(found) == 1 else "ambiguous_fuzzy"


def spelled(unit: str) -> str:
    if unit.strip(" \t\u00a0") == "":
        return " "
    return {"\r\n": "\n", "e\u0301": "é", "“": '"', "–": "-"}.get(unit, unit)


@settings(max_examples=examples(2000))
@given(content=contents, old=needles, new=contents)
def test_an_edit_is_found_as_its_specification_says(content: str, old: str, new: str) -> None:
    outcome = replace_once(content, old, new)
    found = ("fuzzy" if outcome.is_fuzzy else "exact") if isinstance(outcome, Edited) else outcome.reason
    assert found == specified(content, old)


def in_one_spelling(text: str) -> list[str]:
    return [spelled(unit) for unit in re.findall(RUN, text, re.DOTALL)]


@settings(max_examples=examples(2000))
@given(before=contents, old=needles, after=contents, new=contents)
def test_all_around_an_edit_stays_and_what_is_new_is_what_was_asked(
    before: str, old: str, after: str, new: str
) -> None:
    """Whatever spelling the file has, whatever spelling was asked for."""
    content, new = f"{before}|{old}|{after}", new.replace("\r", "")
    outcome = replace_once(content, f"|{old.translate(PLAIN)}|", f"|{new}|")
    if not isinstance(outcome, Edited):
        return
    start, end = outcome.content[: len(before)], outcome.content[len(outcome.content) - len(after) :]
    made = outcome.content[len(before) : len(outcome.content) - len(after)]
    assert (start, end) == (before, after)
    assert in_one_spelling(made.replace("\r\n", "\n")) == in_one_spelling(f"|{new}|")


@settings(max_examples=examples(1000))
@given(content=contents, old=needles)
def test_an_edit_that_changes_nothing_changes_no_character(content: str, old: str) -> None:
    outcome = replace_once(content, old, old)
    assert not isinstance(outcome, Edited) or outcome.content == content


@settings(max_examples=examples(1000))
@given(lines=st.lists(st.sampled_from(["a", "b", "é", ""]), max_size=5), end=st.sampled_from(["\n", "\r\n"]))
def test_new_line_ends_are_those_of_the_file(lines: list[str], end: str) -> None:
    content = end.join(["first", "here", "last", ""])
    outcome = replace_once(content, "here", "\n".join(["here", *lines]))
    assert outcome == Edited(end.join(["first", "here", *lines, "last", ""]))
