"""What of a model's answer is meant to be read."""

import pytest

from sessions_app.core.plain_text import visible, without_thoughts


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Tea.", "Tea."),
        (" <think>hm</think>\nTea.", "Tea."),
        ("<THINKING>hm\nhm</THINKING> Tea.", "Tea."),
        ("thought without a beginning</think> Tea.", "Tea."),
        ("<think>never ends", ""),
        ("The tag <think> begins, </think> ends.", "The tag <think> begins, </think> ends."),
        ("<think>a</think> The tag </think> ends.", "The tag </think> ends."),
    ],
)
def test_thoughts_in_front_are_left_out(said: str, meant: str) -> None:
    assert without_thoughts(said) == meant


def test_only_what_is_seen_stays() -> None:
    assert visible("a\u202eb\0c\n\n d\u200bé 👩\u200d🔬") == "abc dé 👩\u200d🔬"
