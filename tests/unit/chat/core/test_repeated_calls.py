"""Calls that go round in a circle."""

import pytest

from chat.core.loop.repeated_calls import cycle_of
from tools_app.core.tool_calls import ToolCall


def calls(letters: str) -> list[list[ToolCall]]:
    return [[ToolCall(call_id=str(at), tool_name="read", input={"path": letter})] for at, letter in enumerate(letters)]


@pytest.mark.parametrize(
    ("letters", "length"),
    [
        ("", 0),
        ("aa", 0),
        ("aaa", 1),
        ("aab", 0),
        ("baaa", 1),
        ("aba", 0),
        ("abab", 2),
        ("xabab", 2),
        ("abcabc", 3),
        ("abcdabcd", 4),
        ("abcdeabcde", 0),
        ("aabaab", 3),
        ("abcab", 0),
    ],
)
def test_a_circle_is_found_at_the_call_that_closes_it(letters: str, length: int) -> None:
    assert cycle_of(calls(letters)) == length


def test_the_order_of_keys_is_no_difference_and_another_value_is_one() -> None:
    inputs = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}]
    same = [[ToolCall(call_id=str(at), tool_name="add", input=each)] for at, each in enumerate(inputs)]
    assert cycle_of(same) == 1
    assert cycle_of([*same[:2], [ToolCall(call_id="2", tool_name="add", input={"a": 1, "b": 3})]]) == 0
    assert cycle_of([*same[:2], [ToolCall(call_id="2", tool_name="sum", input=inputs[0])]]) == 0


def test_equal_calls_of_one_step_count_once() -> None:
    [[first], *_] = calls("a")
    assert cycle_of([[first] * 5]) == 0
    assert cycle_of([[first] * 5, [first]]) == 0
    assert cycle_of([[first] * 5, [first], [first]]) == 1
