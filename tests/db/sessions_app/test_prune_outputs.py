"""Marks of pruned outputs: beside the messages, in no other session, and nothing of what is stored changes."""

import pytest
from django.test import TestCase

from sessions_app.core.compaction.pruning import CLEARED_TEXT, as_sent
from sessions_app.core.messages import shapes
from sessions_app.errors import SessionNotFound
from sessions_app.messages import selectors, services
from sessions_app.models import Message, Session
from thinkproject.kernel.jsonvalue import JSONValue

pytestmark = pytest.mark.django_db


def user(message_id: str) -> shapes.Message:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": "do"}]}


def called(message_id: str, *call_ids: str) -> shapes.Message:
    parts: list[shapes.Part] = [
        {
            "type": "tool-grep",
            "toolCallId": call_id,
            "state": "output-available",
            "input": {},
            "output": f"of {call_id}",
        }
        for call_id in call_ids
    ]
    return {"id": message_id, "role": "assistant", "parts": parts}


@pytest.fixture
def session_with_outputs() -> Session:
    made = services.create_session()
    services.append_messages(made.pk, [user("u1"), called("a1", "c1", "c2"), user("u2"), called("a2"), user("u3")])
    return made


def read(session_id: str) -> list[JSONValue]:
    messages = as_sent(selectors.model_history(session_id), session_id)
    return [part["output"] for message in messages for part in message["parts"] if "output" in part]


def test_marked_outputs_are_not_sent_and_stay_stored(session_with_outputs: Session) -> None:
    before = [(row.content, row.change_seq) for row in Message.objects.order_by("pk")]
    assert services.prune_outputs(session_with_outputs.pk, {"a1": ["c1"], "unknown": ["c9"]}) == 1
    assert read(session_with_outputs.pk) == [CLEARED_TEXT, "of c2"]
    assert [(row.content, row.change_seq) for row in Message.objects.order_by("pk")] == before


def test_marks_add_up_and_are_safe_to_repeat(session_with_outputs: Session) -> None:
    for _ in range(2):
        services.prune_outputs(session_with_outputs.pk, {"a1": ["c1"]})
    services.prune_outputs(session_with_outputs.pk, {"a1": ["c2", "c1"]})
    assert Message.objects.get(message_id="a1").pruned_calls == ["c1", "c2"]
    assert read(session_with_outputs.pk) == [CLEARED_TEXT, CLEARED_TEXT]


def test_marks_are_of_one_session(session_with_outputs: Session) -> None:
    fork = services.fork_session(session_with_outputs.pk, "u3")
    assert services.prune_outputs(fork.pk, {"a1": ["c1"]}) == 0
    services.prune_outputs(session_with_outputs.pk, {"a1": ["c1"]})
    assert read(fork.pk) == ["of c1", "of c2"]
    assert read(session_with_outputs.pk) == [CLEARED_TEXT, "of c2"]


def test_nothing_to_mark_asks_nothing(session_with_outputs: Session) -> None:
    case = TestCase()
    with case.assertNumQueries(0):
        assert services.prune_outputs(session_with_outputs.pk, {}) == 0
    with pytest.raises(SessionNotFound):
        services.prune_outputs("ses_none", {"a1": ["c1"]})


@pytest.mark.parametrize("choice", [True, False, None])
def test_a_session_reports_whether_it_is_compacted_automatically(
    session_with_outputs: Session, choice: bool | None
) -> None:
    for _ in range(2):
        services.set_auto_compaction(session_with_outputs.pk, choice)
        assert selectors.auto_compaction(session_with_outputs.pk) is choice
    with pytest.raises(SessionNotFound):
        services.set_auto_compaction("ses_none", choice)
