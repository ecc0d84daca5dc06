"""Joining messages for the model: what is named and stands directly before, nothing else."""

from typing import Any

from chat.turns.state.merging import join_merged
from sessions_app.core.messages.shapes import Message, Part


def user(message_id: str, *parts: Any) -> Message:
    return {
        "id": message_id,
        "role": "user",
        "parts": [text(part) if isinstance(part, str) else part for part in parts],
    }


def text(value: str) -> Part:
    return {"type": "text", "text": value}


FILE: Part = {"type": "file", "url": "/f", "mediaType": "image/png"}
ANSWER: Message = {"id": "a", "role": "assistant", "parts": [text("yes")]}


def test_texts_have_a_blank_line_between_them() -> None:
    history: list[Message] = [user("1", "one"), user("2", "two"), {**user("3", "three"), "metadata": {"k": 1}}]
    assert join_merged(history, {"3": frozenset({"1", "2"})}) == [
        {**user("3", "one\n\ntwo\n\nthree"), "metadata": {"k": 1}}
    ]
    assert history[0]["parts"] == [text("one")]  # the given ones are as they were


def test_other_parts_keep_their_order() -> None:
    [joined] = join_merged([user("1", "one", FILE), user("2", "two"), user("3", FILE)], {"3": frozenset({"1", "2"})})
    assert joined["parts"] == [text("one"), FILE, text("two"), FILE]


def test_only_what_stands_directly_before_is_joined() -> None:
    history: list[Message] = [user("0", "zero"), user("1", "one"), ANSWER, user("2", "two"), user("3", "three")]
    joined = join_merged(history, {"3": frozenset({"1", "2"})})
    assert [message["id"] for message in joined] == ["0", "1", "a", "3"]


def test_what_is_not_named_stays_alone() -> None:
    history: list[Message] = [user("1", "one"), user("2", "two"), user("3", "three")]
    assert join_merged(history, {"2": frozenset({"1"})}) == [user("2", "one\n\ntwo"), user("3", "three")]
    assert join_merged(history, {}) == history


def test_joins_may_be_nested() -> None:
    history: list[Message] = [user("1", "one"), user("2", "two"), user("3", "three")]
    [joined] = join_merged(history, {"2": frozenset({"1"}), "3": frozenset({"1", "2"})})
    assert joined == user("3", "one\n\ntwo\n\nthree")
