"""What `message_concurrency` may say."""

from typing import Any

import pytest

from chat.agent.declared import unregister
from chat.checks import check_values
from chat.think import Think


def problems(value: Any) -> list[str]:
    class Speaker(Think):
        message_concurrency = value

    try:
        return [str(found.msg) for found in check_values() if "Speaker" in str(found.msg)]
    finally:
        unregister(Speaker)


@pytest.mark.parametrize(
    "value",
    [
        "queue",
        "latest",
        "merge",
        "drop",
        "debounce",
        {"strategy": "debounce"},
        {"strategy": "debounce", "debounceMs": 200},
        {"strategy": "debounce", "debounce_ms": 0},
        {"strategy": "drop"},
    ],
)
def test_words_that_are_served(value: Any) -> None:
    assert problems(value) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("newest", "one of"),
        (3, "one of"),
        (None, "one of"),
        ({"strategy": "newest"}, "one of"),
        ({"strategy": "debounce", "debounceMs": -1}, "milliseconds"),
        ({"strategy": "debounce", "debounceMs": float("nan")}, "milliseconds"),
        ({"strategy": "latest", "debounceMs": 200}, "'debounce' alone"),
        ({"strategy": "debounce", "wait": 200}, "no setting 'wait'"),
    ],
)
def test_what_the_product_would_have_to_guess(value: Any, said: str) -> None:
    [problem] = problems(value)
    assert said in problem
