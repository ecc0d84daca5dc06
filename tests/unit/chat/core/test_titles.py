"""What of a model's answer may stand in the list of conversations."""

import pytest

from chat.core.context.titles import clean_title, is_decent

QUESTION = "How do I plant tomatoes on a small balcony? Thanks for helping."


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Balcony tomatoes", "Balcony tomatoes"),
        ("<think>The user wants\na title.</think>\n\n  Balcony tomatoes  \nMore.", "Balcony tomatoes"),
        ("The user wants a title.</think>Balcony tomatoes", "Balcony tomatoes"),
        ("<think>never ends", ""),
        ('**Title:** "Balcony tomatoes."', "Balcony tomatoes"),
        ("# Learning C#", "Learning C#"),
        ("The **Moon** and `tides`", "The Moon and tides"),
        ("Titre : Tomates au balcon", "Tomates au balcon"),
        ("- 東京の天気", "東京の天気"),
        ("Balcony\u202e seotamot\x00", "Balcony seotamot"),
        ("\n \n", ""),
    ],
)
def test_first_line_without_thoughts_and_ornaments(answer: str, title: str) -> None:
    assert clean_title(answer) == title


def test_characters_become_100() -> None:
    assert clean_title("x" * 150) == "x" * 97 + "..."
    assert clean_title("x" * 100) == "x" * 100


@pytest.mark.parametrize(
    "title", ["Balcony tomatoes", "Tomaten", "東京の天気", "What is DNS?", "I/O in Rust", "x" * 97 + "..."]
)
def test_a_good_models_title_is_taken(title: str) -> None:
    assert is_decent(title, "", from_small=False)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "Title",
        "New conversation",
        "?",
        "1",
        "Hello!",
        "I'm sorry, I cannot help",
        "Sure, here is a title",
        "User: hi",
    ],
)
def test_a_stub_is_refused(title: str) -> None:
    assert not is_decent(title, "", from_small=False)


@pytest.mark.parametrize(
    "title", ["Planting tomatoes on a balcony", "Balcony Tomatoes", "Tomatoes for a small balcony"]
)
def test_a_small_models_good_title_is_taken(title: str) -> None:
    assert is_decent(title, QUESTION, from_small=True)


@pytest.mark.parametrize(
    "title",
    [
        "Tomatoes",  # a stub of one word
        "To plant tomatoes on a small balcony you will first have",  # an answer
        "Planting tomatoes: a guide",
        "You can plant tomatoes",
        "Plant tomatoes on your balcony",
        "Tomatoes tomatoes tomatoes balcony",
        "The tomatoes of the",
        "The joys of sailing",  # about something else
        "How to plant tomatoes?",
        "Planting Tomatoes on a Small Balcony" + " and" * 3,
    ],
)
def test_other_text_of_a_small_model_is_refused(title: str) -> None:
    assert not is_decent(title, QUESTION, from_small=True)
