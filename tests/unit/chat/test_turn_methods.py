"""Combinations of `run_turn` that do not exist, and words that become messages."""

from typing import Any

import pytest

from chat.agent.methods.turns import TurnMethods, to_messages
from chat.errors import InputInvalid
from sessions_app.core.messages.shapes import Message, NewMessage


class Methods(TurnMethods):
    """Never gets as far as its ports."""


def function(_messages: list[Any]) -> str:
    return ""


@pytest.mark.parametrize(
    ("messages", "options"),
    [
        (None, {}),
        ("x", {"continuation": True}),
        ("x", {"mode": "stream"}),
        ("x", {"callback": object()}),
        (function, {"mode": "submit"}),
        (None, {"mode": "submit", "continuation": True}),
    ],
)
async def test_odd_combinations_are_refused(messages: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputInvalid):
        await Methods().run_turn(messages, **options)


def test_words_become_messages() -> None:
    message: Message = {"id": "m", "role": "user", "parts": []}
    text: NewMessage = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
    assert to_messages("hi") == [text]
    assert to_messages(message) == [message]
    assert to_messages(["hi", message]) == [text, message]
    assert to_messages([]) == []
