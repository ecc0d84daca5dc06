"""Where the cut lies: it waits until it pays, for a pause, for the window, and does not move back."""

from typing import Any, cast

import pytest

from chat.core.context.context_policy import CACHE_AWARE
from chat.core.context.cut_border import cut_border
from sessions_app.core.compaction.pruning import CLEARED_TEXT
from sessions_app.core.messages.shapes import Message, Part

POLICY = CACHE_AWARE


def exchange(number: int, chars: int = 2_500, **more: Any) -> list[Message]:
    """A question and its answer, whose call has given so much."""
    call = {"type": "tool-look", "toolCallId": f"c{number}", "state": "output-available", "input": {}, **more}
    call.setdefault("output", "o" * chars)
    question: Message = {"id": f"u{number}", "role": "user", "parts": [{"type": "text", "text": "look"}]}
    return [question, {"id": f"a{number}", "role": "assistant", "parts": cast("list[Part]", [call])}]


def asked(count: int, chars: int = 2_500, *, pause: int = 0) -> list[Message]:
    """So many exchanges, and the question after them; after a pause."""
    question: Message = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "next"}]}
    if pause:
        question["parts"][0]["pauseSeconds"] = pause
    return [*(message for number in range(count) for message in exchange(number, chars)), question]


def test_the_cut_waits_until_it_pays() -> None:
    """Each answer carries what could be cut before it; 21 outputs of 2,000 are more than 6 times 6,000."""
    borders = [cut_border(asked(count), POLICY) for count in range(16)]
    assert borders == [*[0] * 8, *[14] * 7, 28]


def test_what_is_read_again_counts_against_it() -> None:
    borders = [cut_border(asked(count, 40_000), POLICY) for count in range(3, 12)]
    assert borders == [0, 0, 0, 10, 10, 10, 10, 10, 20]


def test_answers_of_many_calls_are_cut_sooner() -> None:
    def long_answers(count: int) -> list[Message]:
        history = asked(count)
        for message in history[1::2]:
            message["parts"][:0] = [cast("Part", {"type": "step-start"})] * 6
        return history

    assert [cut_border(long_answers(count), POLICY) for count in range(6)] == [0, 0, 0, 0, 6, 6]


@pytest.mark.parametrize(("pause", "border"), [(0, 0), (3_599, 0), (3_600, 4)])
def test_after_an_hour_it_is_cut_whatever_that_saves(pause: int, border: int) -> None:
    assert cut_border(asked(3, pause=pause), POLICY) == border


def test_a_pause_moves_nothing_where_nothing_is_long() -> None:
    assert cut_border(asked(9, chars=500, pause=90_000), POLICY) == 0


def test_a_small_window_is_cut_sooner() -> None:
    assert [cut_border(asked(count), POLICY, window_chars=16_000) for count in range(6)] == [0, 0, 2, 4, 6, 8]
    assert cut_border(asked(7), POLICY, window_chars=4_000_000) == 0


def test_what_was_pruned_counts_as_it_was() -> None:
    history = asked(10)
    pruned = [
        *(m for n in range(4) for m in exchange(n, output=CLEARED_TEXT, pruned=True, prunedChars=2_500)),
        *history[8:],
    ]
    assert cut_border(history, POLICY) == cut_border(pruned, POLICY) == 14


def test_an_answer_that_waited_and_went_on_is_one_message() -> None:
    (question, answer), rest = exchange(0, 20_000), asked(1, pause=7_200)
    went_on: Message = {"id": "a0-2", "role": "assistant", "parts": [{"type": "text", "text": "and so on"}]}
    assert cut_border([question, answer, went_on, *rest[2:]], POLICY) == 0
    assert cut_border([question, answer, went_on, *rest], POLICY) == 3
