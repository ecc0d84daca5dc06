"""The arguments of a call are the same, in whatever pieces and ways they come."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.llm.adapters.call_arguments import arguments_of
from thinkproject.kernel.jsonvalue import JSONObject, dump, load

VALUES = st.dictionaries(st.text(max_size=8), st.recursive(st.integers() | st.text(max_size=8) | st.none(), st.lists))


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (['{"q":', '"Graz"}', '{"q":"Graz"}'], {"q": "Graz"}),
        (['{"q":"Graz"}', '{"q":"Graz"}'], {"q": "Graz"}),
        (["{", '{"q":', '{"q":"Graz"}'], {"q": "Graz"}),
        (["{}", '{"q":"Graz"}'], {"q": "Graz"}),
        (['"{\\"q\\":', '\\"Graz\\"}"'], {"q": "Graz"}),
        (["null"], {}),
        ([], {}),
        (['""'], {}),
        (['"null"'], {}),
        (['{"a":', '{"a":1}}'], {"a": {"a": 1}}),
        (['{"a":', '{"b":1}}', '{"b":1}}'], {"a": {"b": 1}}),
        (['{"q":', '"a"}', "}"], {"q": "a"}),
    ],
)
def test_ways_of_sending_them(pieces: list[str], expected: JSONObject) -> None:
    assert load(arguments_of(pieces)) == expected


def test_what_is_no_object_stays_as_it_is() -> None:
    assert arguments_of(['{"path": "a.txt", ', '"n": ']) == '{"path": "a.txt", "n": '
    assert arguments_of(["[1, 2]"]) == "[1, 2]"
    for text in ("nonsense", '{"q": "a"', '{"q": "a"}{"q": "b"}', 'look {"q": "a"} or {"q": "b"}', '{"a": {"b": 1}'):
        assert arguments_of([text]) == text


@given(VALUES, st.data())
def test_pieces_do_not_matter(value: JSONObject, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([dump(value), json.dumps(value, indent=1), json.dumps(dump(value))]))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)) | {0, len(text)})
    pieces = [text[start:end] for start, end in pairwise(cuts)]
    again = data.draw(st.booleans())
    assert load(arguments_of([*pieces, text] if again and text.startswith("{") else pieces)) == value
