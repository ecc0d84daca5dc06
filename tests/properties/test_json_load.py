"""`load` reads what Python's own `json` reads, and gives the same values."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from thinkproject.kernel.jsonvalue import JSONValue, dump, load, refuse_constant

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
SCRAPS = st.text(alphabet='[]{}",:\\0123456789.eE+-tfnrulasNI \t\n\u00e9\ud800\x00', max_size=12)

ODD = [
    *("-0", "-0.0", "0", "1e5", "1e400", "-1e400", "5e-324", "1" * 30, "1" * 5_000, "01", "1.", ".5", "-"),
    *("9007199254740993.0", "NaN", "Infinity", "[-Infinity]", "", "  ", " 1 ", "1 2", "[1,]", '{"a":1,}'),
    *('{"a":1,"b":2,"a":3}', "{1:2}", "'a'", "[" * 5_000 + "]" * 5_000, "tru", "nul", "[]", "{}"),
    *(r'"\ud800"', '"\ud800"', r'"\ud83d\ude00"', r'"\u0000"', '"\x00"', '"\x7f"', r'"\x"', r'"\/"', '"a\\', '"\t"'),
    *('""', "\ufeff1", b'"\xed\xa0\x80"', b"\xef\xbb\xbf1", b'"\xff"', '"\u00e9"'.encode("utf-16")),
    '{"a": "\u00e9"}'.encode(),
]  # fmt: skip


def outcome(text: str | bytes, *, is_reference: bool) -> tuple[str, str]:
    """Type and value, or that it was refused; `load` refuses with `ValueError` alone."""
    refusals = (ValueError, RecursionError) if is_reference else ValueError
    try:
        value: JSONValue = json.loads(text, parse_constant=refuse_constant) if is_reference else load(text)
    except refusals:
        return "refused", ""
    return type(value).__name__, repr(value)


@given(VALUES)
@settings(max_examples=examples(300))
def test_what_was_dumped_is_loaded(value: JSONValue) -> None:
    text = dump(value)
    assert outcome(text, is_reference=False) == outcome(text, is_reference=True)
    assert load(text) == value


@given(VALUES, st.integers(min_value=0), SCRAPS)
@settings(max_examples=examples(500))
def test_a_spoiled_text_is_refused_or_read_as_python_does(value: JSONValue, at: int, scrap: str) -> None:
    text = json.dumps(value, ensure_ascii=False)
    at %= len(text) + 1
    spoiled = text[:at] + scrap + text[at + 1 :]
    assert outcome(spoiled, is_reference=False) == outcome(spoiled, is_reference=True)


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_read_as_python_does(text: str | bytes) -> None:
    assert outcome(text, is_reference=False) == outcome(text, is_reference=True)


def test_a_number_beyond_a_float_is_infinite() -> None:
    assert load("[1e400]") == [math.inf]
