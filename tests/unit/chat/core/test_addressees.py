"""What each of several agents sees of one conversation."""

import pytest

from chat.core.context.addressees import addressee_of, view_of
from sessions_app.core.messages.shapes import Message


def exchange(number: int, addressee: str) -> list[Message]:
    question: Message = {"id": f"q{number}", "role": "user", "parts": [{"type": "text", "text": "?"}]}
    if addressee:
        question["metadata"] = {"addressee": addressee}
    return [question, {"id": f"a{number}", "role": "assistant", "parts": [{"type": "text", "text": "!"}]}]


TALK = [*exchange(1, "researcher"), *exchange(2, "writer"), *exchange(3, ""), *exchange(4, "planner")]


def numbers(messages: list[Message]) -> str:
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2)
    return "".join(message["id"][1:] for message in messages[::2])


@pytest.mark.parametrize(
    ("agent", "sees", "wanted"),
    [
        ("researcher", (), "13"),
        ("writer", ("researcher",), "123"),
        ("planner", (), "34"),
        ("", (), "3"),
        ("new", (), "3"),
    ],
)
def test_each_sees_what_is_for_it_and_whose_work_it_reads(agent: str, sees: tuple[str, ...], wanted: str) -> None:
    assert numbers(view_of(TALK, agent, sees=sees)) == wanted


@pytest.mark.parametrize(("limit", "wanted"), [(100, "123"), (5, "23"), (4, "23"), (3, "3"), (1, "3")])
def test_a_limit_leaves_out_the_oldest_exchanges(limit: int, wanted: str) -> None:
    assert numbers(view_of(TALK, "writer", sees=("researcher",), limit=limit)) == wanted


def test_the_last_question_says_whom_it_is_for() -> None:
    assert [addressee_of(TALK[:end]) for end in (0, 2, 3, 6, 8)] == ["", "researcher", "writer", "", "planner"]
    odd: Message = {"id": "q", "role": "user", "parts": [], "metadata": {"addressee": ["writer"]}}
    assert addressee_of([odd]) == ""
    assert view_of([TALK[1]], "writer") == [TALK[1]]  # of an import that begins with an answer
