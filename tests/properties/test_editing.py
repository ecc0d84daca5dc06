"""The edit of a text agrees with its specification, written down plainly."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tools_app.core.files.editing import Edited, NotEdited, Outcome, replace_once

texts = st.lists(st.sampled_from(["a", "b", "ab", " ", "  ", "\t", "\n", "\r\n", "\r", "$&", "\\1", "é"]), max_size=14)
contents = texts.map("".join)
needles = texts.map(lambda parts: "".join(parts[:5])).filter(bool)


def specified(content: str, old: str, new: str) -> Outcome:
    """Try every place, and compare what stands between any two of them."""
    places = [at for at in range(len(content)) if content[at : at + len(old)] == old]
    if len(places) > 1:
        return NotEdited("ambiguous", len(places))
    if places:
        return Edited(content[: places[0]] + new + content[places[0] + len(old) :])
    units = re.findall(r"[ \t]+|\r\n|.", content, re.DOTALL)  # what counts as one character
    wanted = [spelled(unit) for unit in re.findall(r"[ \t]+|\r\n|.", old, re.DOTALL)]
    found = [at for at in range(len(units)) if [spelled(unit) for unit in units[at : at + len(wanted)]] == wanted]
    if not found:
        return NotEdited("missing")
    if any(at >= found[0] + len(wanted) for at in found):
        return NotEdited("ambiguous_fuzzy")
    return Edited("".join(units[: found[0]]) + new + "".join(units[found[0] + len(wanted) :]), is_fuzzy=True)


def spelled(unit: str) -> str:
    return " " if unit.strip(" \t") == "" else unit.replace("\r\n", "\n")


@settings(max_examples=examples(2000))
@given(content=contents, old=needles, new=contents)
def test_an_edit_is_what_its_specification_says(content: str, old: str, new: str) -> None:
    assert replace_once(content, old, new) == specified(content, old, new)


@settings(max_examples=examples(1000))
@given(before=contents, old=needles, after=contents, new=contents)
def test_what_surrounds_an_edit_stays(before: str, old: str, after: str, new: str) -> None:
    outcome = replace_once(before + old + after, old, new)
    if isinstance(outcome, Edited):
        assert not outcome.is_fuzzy
        assert outcome.content == before + new + after
    else:
        assert outcome.reason == "ambiguous"
