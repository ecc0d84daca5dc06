"""The first words of a message, from the first characters of its JSON."""

import json

import pytest

from sessions_app.admin.message_start import SHOWN_CHARS, START_CHARS, beginning_of

PARTS = [{"type": "step-start"}, {"type": "reasoning", "text": "no"}, {"type": "text", "text": 'Say "hi"\nto ü\\n'}]


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_the_first_text_is_found_after_other_parts(ensure_ascii: bool) -> None:
    assert beginning_of(json.dumps({"parts": PARTS}, ensure_ascii=ensure_ascii)) == 'Say "hi" to ü\\n'


def test_keys_may_stand_in_any_order() -> None:
    assert beginning_of('{"parts":[{"text":"first","type":"text"}]}') == "first"


def test_a_cut_anywhere_gives_a_beginning() -> None:
    whole = json.dumps({"parts": [{"type": "text", "text": 'ab \U0001f600 \\ " \n' * 30}]})
    full = beginning_of(whole)
    for length in range(len(whole)):
        found = beginning_of(whole[:length])
        assert full.startswith(found.rstrip("…�"))


def test_a_long_text_is_shortened_and_nothing_is_nothing() -> None:
    assert len(beginning_of(json.dumps({"parts": [{"type": "text", "text": "word " * START_CHARS}]}))) == SHOWN_CHARS
    assert beginning_of('{"parts": [{"type": "file", "url": "x"}]}') == ""
    assert beginning_of("") == ""
