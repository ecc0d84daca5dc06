"""Shapes of runs: the message of a child, and outcomes."""

from typing import Any

import pytest

from chat.agent.values.runs import Detached, failed, input_text, started, succeeded
from chat.turns.delegation.ending import last_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a text", "a text"),
        ({"task": "the only text"}, "the only text"),
        ({"task": 3}, '{"task":3}'),
        ({"a": "b", "c": "d"}, '{"a":"b","c":"d"}'),
        ([1, None], "[1,null]"),
    ],
)
def test_the_message_of_a_child_is_a_text_or_json(value: Any, text: str) -> None:
    assert input_text(value).replace(" ", "") == text.replace(" ", "")


def test_outcomes_leave_out_what_is_not_known() -> None:
    assert succeeded("r", "done") == {"ok": True, "runId": "r", "status": "completed", "summary": "done"}
    assert succeeded("r", "", {"n": 1})["output"] == {"n": 1}
    assert started("r") == {"ok": True, "runId": "r", "status": "running"}
    assert failed("r", "error", "no", reason=None) == {
        "ok": False,
        "runId": "r",
        "status": "error",
        "error": "no",
        "retryable": False,
    }
    assert failed("r", "interrupted", "late", retryable=True, childStillRunning=False)["childStillRunning"] is False


def test_a_detached_run_is_stored_as_it_was_asked_for() -> None:
    limits = Detached(budget_seconds=60, on_end="ended")
    assert Detached(**limits.to_json()) == limits


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "text", "text": "a"}, {"type": "step-start"}, {"type": "text", "text": "b"}], "b"),
        ([{"type": "step-start"}, {"type": "text", "text": "a"}, {"type": "step-start"}], "a"),
    ],
)
def test_the_summary_is_the_text_of_the_last_step_that_has_any(parts: list[Any], text: str) -> None:
    assert last_text({"id": "m", "role": "assistant", "parts": parts}) == text
