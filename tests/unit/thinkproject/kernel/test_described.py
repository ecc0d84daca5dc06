"""A value in words: its kind, never its content."""

from typing import Any

import pytest

from thinkproject.kernel.described import described

SECRET = "secret-41aa"


class Orders:
    def __repr__(self) -> str:
        return SECRET


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (True, "True"),
        (0, "0"),
        (-1.5, "-1.5"),
        ("", "an empty text"),
        (SECRET, "a text"),
        ([], "an empty list"),
        ([SECRET], "a list of 1"),
        ({SECRET: 1}, "a dict of 1"),
        ((1, 2), "a tuple of 2"),
        (Orders, "the class Orders"),
        (Orders(), "an Orders"),
        (len, "the function len"),
        (b"secret", "a bytes"),
        ((each for each in [SECRET]), "a generator, of a method that yields"),
    ],
)
def test_kinds(value: Any, words: str) -> None:
    assert described(value) == words


async def test_a_coroutine_is_named_and_closed() -> None:
    async def late() -> str:
        return SECRET

    assert described(late()) == "a coroutine that was not awaited"
