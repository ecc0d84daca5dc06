"""Decoding in pieces: the same values and the same refusals as the ordinary decoder, wherever a piece ends."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkproject.kernel import json_pieces
from thinkproject.kernel.json_pieces import JSONTooComplex, load_in_pieces
from thinkproject.kernel.jsonvalue import JSONValue, load

numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
)


def in_pieces(text: str, size: int, max_values: int = 10_000) -> JSONValue:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "PIECE_CHARS", size)
        return load_in_pieces(text, max_values=max_values, pause=lambda: None)


def outcome(decode: object, *arguments: object) -> tuple[str, JSONValue]:
    try:
        return "value", decode(*arguments)  # type: ignore[operator]  # one of the two decoders
    except ValueError:
        return "refused", None


@given(values, st.sampled_from([None, 1]), st.integers(40, 80))
def test_a_value_is_read_as_by_the_ordinary_decoder(value: JSONValue, indent: int | None, size: int) -> None:
    text = json.dumps(value, indent=indent)
    assert in_pieces(text, size) == load(text)


@given(values, st.data())
def test_broken_text_is_refused_like_by_the_ordinary_decoder(value: JSONValue, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    broken = (
        text[:at] + data.draw(st.sampled_from(["", ",", "]", "}", ":", '"', "-", "e", " ", "NaN"])) + text[at + 1 :]
    )
    assert outcome(in_pieces, broken, 60) == outcome(load, broken)


@given(st.lists(values, max_size=20), st.integers(40, 80))
def test_values_are_counted(items: list[JSONValue], size: int) -> None:
    text = json.dumps(items)
    number = _count(items)
    assert in_pieces(text, size, number) == load(text)
    with pytest.raises(JSONTooComplex):
        in_pieces(text, size, number - 1)


def _count(value: JSONValue) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_count(item) for item in items)


def test_no_call_sees_more_than_a_piece() -> None:
    pauses: list[None] = []
    text = "[" + "[1,2,3]," * 100_000 + "[]]"
    assert len(load_in_pieces(text, max_values=1_000_000, pause=lambda: pauses.append(None))) == 100_001
    assert len(pauses) >= len(text) / json_pieces.PIECE_CHARS


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[" * 300 + "0," * 70_000], ids=["lists", "objects", "wide"]
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(JSONTooComplex):
        load_in_pieces(text, max_values=1_000_000, pause=lambda: None)
