"""A stored message as chunks again: folding them gives the message."""

from typing import Any, cast

import pytest

from chat.core.wire.accumulator import Accumulator
from chat.core.wire.chunks import validate
from chat.core.wire.rebuild import rebuild, settlement
from sessions_app.core.messages.shapes import Message, Part

CALL: Part = {"type": "tool-look", "toolCallId": "c1", "toolName": "look", "input": {"at": "the sky", "far": [1, 2]}}


def message(*parts: Part, **more: Any) -> Message:
    return cast("Message", {"id": "a1", "role": "assistant", "parts": list(parts), **more})


def folded(original: Message) -> Message:
    accumulator = Accumulator({"id": original["id"], "role": "assistant", "parts": []})
    for chunk in rebuild(original):
        accumulator.apply(validate(chunk))
    return accumulator.message


def test_parts_of_every_kind_come_back() -> None:
    original = message(
        {"type": "step-start"},
        {"type": "reasoning", "text": "Hm.", "state": "done", "providerMetadata": {"p": {"signature": "s"}}},
        {"type": "text", "text": "One.", "state": "done"},
        {"type": "source-url", "sourceId": "s1", "url": "https://example.com", "title": "E"},
        {"type": "source-document", "sourceId": "s2", "mediaType": "text/plain", "title": "D"},
        {"type": "file", "url": "/files/1", "mediaType": "image/png"},
        {"type": "data-note", "id": "n1", "data": {"a": 1}},
        {"type": "text", "text": "", "state": "done"},
        metadata={"tone": "dry"},
    )
    assert folded(original) == original


@pytest.mark.parametrize(
    "end",
    [
        {"state": "output-available", "output": {"blue": True}},
        {"state": "output-error", "errorText": "clouds"},
        {"state": "input-available"},
    ],
)
@pytest.mark.parametrize("kind", ["tool-look", "dynamic-tool"])
def test_calls_come_back(kind: str, end: Part) -> None:
    [part] = folded(message({**CALL, "type": kind, **end}))["parts"]
    assert part.items() >= {**CALL, "type": kind, **end}.items()


def test_a_settled_call_is_none_that_a_page_would_run() -> None:
    original = message({**CALL, "state": "output-available", "output": 1})
    assert "tool-input-available" not in {chunk["type"] for chunk in rebuild(original)}
    pending = message({**CALL, "state": "input-available"})
    assert "tool-input-available" in {chunk["type"] for chunk in rebuild(pending)}


@pytest.mark.parametrize("state", ["approval-requested", "approval-responded", "output-denied"])
def test_a_question_to_a_person_comes_back(state: str) -> None:
    part: Part = {**CALL, "state": state, "approval": {"id": "p1", "approved": False}}
    [back] = folded(message(part))["parts"]
    assert back["approval"]["id"] == "p1"
    assert back["state"] == ("output-denied" if state == "output-denied" else "approval-requested")


def test_what_no_chunk_can_say_is_left_out() -> None:
    assert (
        folded(message({"type": "future"}, {**CALL, "input": None, "state": "input-streaming"}))["parts"][0].items()
        >= {"state": "input-streaming"}.items()
    )


@pytest.mark.parametrize("state", ["input-available", "approval-requested", "input-streaming"])
def test_a_pending_call_has_no_settlement(state: str) -> None:
    assert settlement({**CALL, "state": state}) is None
