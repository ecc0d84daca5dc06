"""Summaries of sessions and their diffs over the API (B5.5)."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.instances import notifications
from chat.models import AgentInstance
from fibers.models import Fiber
from sessions_app.compactions.summaries import MAX_CHARS
from sessions_app.context import store
from sessions_app.context.history import ContextOwner
from sessions_app.models import SessionSummary
from tests.db.chat.conftest import ApiClient, say

NOTHING: dict[str, Any] = {
    "text": "",
    "model_name": "",
    "written_at": None,
    "leaf_id": "",
    "is_own": False,
    "is_current": False,
    "state": "",
    "error": "",
    "additions": 0,
    "deletions": 0,
    "documents": [],
    "has_more_documents": False,
}


@pytest.fixture
def summary_path(conversation: AgentInstance) -> str:
    return f"/sessions/{conversation.session_id}/summary"


@pytest.fixture
def notified_groups(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    received: list[Any] = []
    monkeypatch.setattr(notifications, "notify_on_commit", lambda group, event: received.append((group, event)))
    return received


def test_no_summary_has_been_written(as_alice: ApiClient, summary_path: str) -> None:
    assert as_alice.get(summary_path).json() == NOTHING


def test_a_persons_summary_is_kept_and_pages_receive_it(
    as_alice: ApiClient, summary_path: str, alice: User, conversation: AgentInstance, notified_groups: list[Any]
) -> None:
    reply = as_alice.send("PUT", summary_path, {"text": "About tea."})
    assert reply.status_code == 200
    assert (reply.json()["text"], reply.json()["is_own"], reply.json()["is_current"]) == ("About tea.", True, True)
    assert SessionSummary.objects.get().written_by == alice
    sent = {"type": "conversation.changed", "instance_id": conversation.pk, "owner": str(conversation.owner_id)}
    assert notified_groups == [(f"think.list.{alice.pk}", sent)]
    [listed] = as_alice.get(f"/instances/{conversation.id}/sessions").json()
    assert listed["summary"] == "About tea."
    say(conversation, "q2", "a2")
    assert not as_alice.get(summary_path).json()["is_current"]
    assert as_alice.send("DELETE", summary_path).status_code == 204
    assert as_alice.send("DELETE", summary_path).status_code == 204
    assert as_alice.get(summary_path).json() == NOTHING


@pytest.mark.parametrize(
    "body",
    [{}, {"text": ""}, {"text": " "}, {"text": "\0"}, {"text": "x" * (MAX_CHARS + 1)}, {"text": "a", "b": 1}, []],
)
def test_what_is_wrong_is_refused_and_changes_nothing(as_alice: ApiClient, summary_path: str, body: Any) -> None:
    reply = as_alice.send("PUT", summary_path, body)
    assert reply.status_code == 422
    if len(str(body)) > MAX_CHARS:
        assert reply.json()["detail"] == "A summary has at most 4,000 characters."
    assert not SessionSummary.objects.exists()


def test_one_is_asked_for(as_alice: ApiClient, summary_path: str, conversation: AgentInstance) -> None:
    reply = as_alice.send("POST", summary_path)
    assert reply.status_code == 202
    fiber = Fiber.objects.get(pk=reply.json()["id"])
    assert (fiber.name, fiber.lane) == ("chat.summary", f"summary:{conversation.session_id}")
    assert as_alice.get(summary_path).json()["state"] == "waiting"
    assert as_alice.send("POST", summary_path).json() == reply.json()


def test_what_it_has_changed(as_alice: ApiClient, summary_path: str, conversation: AgentInstance) -> None:
    store.write_text(ContextOwner(session_id=conversation.session_id), "notes", lambda _: "tea\ncake")
    sent = as_alice.get(summary_path).json()
    assert (sent["additions"], sent["deletions"]) == (2, 0)
    assert sent["documents"] == [
        {
            "label": "notes",
            "key": None,
            "of": "session",
            "status": "added",
            "additions": 2,
            "deletions": 0,
            "patch": "@@ -0,0 +1,2 @@\n+tea\n+cake",
            "is_cut": False,
        }
    ]


def test_memory_changed_through_a_session_is_in_its_diff(as_alice: ApiClient, conversation: AgentInstance) -> None:
    reply = as_alice.send("PUT", "/memory/memory", {"content": "elsewhere"})
    assert reply.status_code in {200, 204}
    assert as_alice.get(f"/sessions/{conversation.session_id}/summary").json()["documents"] == []
