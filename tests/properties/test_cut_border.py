"""Laws of the cut: what was sent stays as it is, except at a step; a step is worth it; nothing later moves it back."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, cast

from hypothesis import given
from hypothesis import strategies as st

from chat.core.context.context_policy import CACHE_AWARE, READ_TIME, ContextPolicy, newest, truncate
from chat.core.context.cut_border import cut_border
from chat.core.context.prompt import GO_ON_TEXT
from chat.core.model.language_model import ModelMessage
from chat.turns.execution.prompting import Prompt
from sessions_app.core.messages.shapes import Message, Part

POLICY: Final = CACHE_AWARE
KEPT: Final = POLICY.keep_messages - 1  # and the answer
NOTHING: Final[Message] = {"id": "", "role": "assistant", "parts": []}

outputs = st.one_of(
    st.integers(0, 4_000).map(lambda count: "o" * count),
    st.integers(0, 60).map(lambda count: [{"row": number, "text": "t" * 40} for number in range(count)]),
)
turns = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 400, 7_200]), st.integers(1, 200), st.lists(outputs, max_size=3)),
    min_size=1,
    max_size=25,
)
"""Each: seconds since the last, characters of the question, outputs of its answer's calls."""


class Named:
    """A model that is never asked: only its name is."""

    name = "acme/unknown"
    accepts_images = accepts_documents = False


def conversation(given_turns: Sequence[tuple[int, int, list[Any]]]) -> list[list[Message]]:
    """The history of each turn: it ends with the question."""
    made: list[Message] = []
    histories = []
    for number, (pause, length, found) in enumerate(given_turns):
        question: Message = {"id": f"u{number}", "role": "user", "parts": [{"type": "text", "text": "q" * length}]}
        if pause:
            question["parts"][0]["pauseSeconds"] = pause
        made.append(question)
        histories.append(list(made))
        made.append({"id": f"a{number}", "role": "assistant", "parts": answer_parts(number, found)})
    return histories


def answer_parts(number: int, found: Sequence[Any]) -> list[Part]:
    calls = [
        {"type": "tool-look", "toolCallId": f"c{number}-{index}", "state": "output-available", "input": {}, "output": o}
        for index, o in enumerate(found)
    ]
    return cast("list[Part]", [*calls, {"type": "step-start"}, {"type": "text", "text": f"answer {number}"}])


def sent(history: list[Message], policy: ContextPolicy, answer: Message = NOTHING) -> tuple[ModelMessage, ...]:
    """The messages of a request, as turns make them."""
    prompt = Prompt(
        history,
        cast("Any", Named()),
        files={},
        policy=policy,
        reads=lambda read, said=(): [*read, *said],
    )
    return prompt(answer)


def test_an_ordinary_conversation_is_cut_once_and_not_in_every_turn() -> None:
    histories = conversation([(0, 40, ["o" * 1_500])] * 20)

    def changes(policy: ContextPolicy) -> int:
        prompts = [sent(history, policy) for history in histories]
        return sum(later[: len(before)] != before for before, later in pairwise(prompts))

    assert changes(READ_TIME) == 17
    assert changes(POLICY) == 1


@given(turns)
def test_a_prompt_begins_with_the_one_before_except_at_a_step(given_turns: list[tuple[int, int, list[Any]]]) -> None:
    histories = conversation(given_turns)
    borders = [cut_border(history, POLICY) for history in histories]
    prompts = [sent(history, POLICY) for history in histories]
    assert borders == sorted(borders)
    for number in range(1, len(histories)):
        if borders[number] == borders[number - 1]:
            assert prompts[number][: len(prompts[number - 1])] == prompts[number - 1]
        else:
            assert borders[number] == newest(histories[number], KEPT)
            assert histories[number][: borders[number]] != sent_of(histories[number])[: borders[number]]


def sent_of(history: list[Message]) -> list[Message]:
    return truncate(history, POLICY, border=cut_border(history, POLICY))


@given(turns)
def test_steps_of_one_answer_keep_what_the_first_sent(given_turns: list[tuple[int, int, list[Any]]]) -> None:
    history = conversation(given_turns)[-1]
    first = sent(history, POLICY)
    answer: Message = {"id": "a", "role": "assistant", "parts": answer_parts(99, ["o" * 5_000])[:1]}
    second = sent(history, POLICY, answer)
    assert second[: len(first)] == first
    assert GO_ON_TEXT not in str(second[: len(first)])


@given(turns, st.integers(1_000, 100_000))
def test_what_could_be_cut_never_takes_more_than_its_share_of_the_window(
    given_turns: list[tuple[int, int, list[Any]]], window_chars: int
) -> None:
    for history in conversation(given_turns):
        border = cut_border(history, CACHE_AWARE, window_chars=window_chars)
        old = newest(history, KEPT)
        left = [len(str(p["output"])) - 500 for m in history[border:old] for p in m["parts"] if "output" in p]
        assert sum(over for over in left if over > 0) <= max(window_chars // 8, 1) * 2  # `str` counts more than JSON


@given(turns)
def test_without_a_step_it_is_the_rule_of_each_turn(given_turns: list[tuple[int, int, list[Any]]]) -> None:
    history = conversation(given_turns)[-1]
    assert cut_border(history, READ_TIME) == newest(history, READ_TIME.keep_messages)
