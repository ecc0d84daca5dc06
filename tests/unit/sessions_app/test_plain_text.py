"""What of a model's answer is meant to be read."""

import pytest

from sessions_app.core.messages.plain_text import visible, without_markup, without_thoughts


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


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("**Bold** and *slanted*, ***both***", "Bold and slanted, both"),
        ("~~gone~~ and `code` and ``a b``", "gone and code and a b"),
        ("**bold with `code` and *slanted* inside**", "bold with code and slanted inside"),
        (
            "# A heading\n\n> quoted\n- an item\n- [x] a task\n1. a step",
            "A heading\n\nquoted\nan item\na task\n1. a step",
        ),
        ("see [the page](https://example.com/a_b_c) and ![a cat](/cat.png)", "see the page and a cat"),
        ("```python\nprint(1)\n```\n---\nafter", "print(1)\nafter"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a | b\n1 | 2"),
        ("_slanted_ and __bold words__", "slanted and bold words"),
        ("1\\* is \\_not\\_ marked", "1* is _not_ marked"),
    ],
)
def test_marks_of_markdown_are_left_out(written: str, plain: str) -> None:
    assert without_markup(written) == plain


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4 and a_b_c",
        "def f(*args, **options): __init__",
        "**never closed",
        "C# > Java | sh",
        "a < b > c",
        "`not closed",
        "[a] (b)",
        "-1 is less than +1",
    ],
)
def test_what_is_no_mark_stays(text: str) -> None:
    assert without_markup(text) == text


def test_a_code_span_keeps_its_stars() -> None:
    assert without_markup("call `f(**x)` or `**y**`") == "call f(**x) or **y**"
