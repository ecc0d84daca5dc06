"""Compactions over the API: ask, list, read, reword, undo."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.instances import notifications
from chat.models import AgentInstance
from fibers.models import Fiber
from sessions_app.compactions.services import CompactionView, add_compaction
from sessions_app.messages import selectors
from sessions_app.models import Compaction, ContextChange
from tests.db.chat.conftest import ApiClient, say


@pytest.fixture
def summary(conversation: AgentInstance) -> CompactionView:
    say(conversation, "q2", "a2")
    return add_compaction(str(conversation.session_id), first_id="q1", last_id="a1", summary="the summary")


@pytest.fixture
def notified(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    received: list[Any] = []
    monkeypatch.setattr(notifications, "notify_on_commit", lambda _group, event: received.append(event))
    return received


def test_a_wish_waits_in_the_lane(as_alice: ApiClient, conversation: AgentInstance) -> None:
    path = f"/instances/{conversation.id}/compact"
    reply = as_alice.send("POST", path, {"instructions": "Keep the names."})
    assert reply.status_code == 202
    fiber = Fiber.objects.get(pk=reply.json()["id"])
    assert (fiber.name, fiber.lane, fiber.status) == ("chat.compact", f"instance:{conversation.id}", "pending")
    assert isinstance(fiber.payload, dict)
    assert fiber.payload["instructions"] == "Keep the names."
    assert as_alice.send("POST", path, {}).json() == reply.json()


@pytest.mark.parametrize("body", [{"instructions": "x" * 2001}, {"instructions": 7}, {"other": 1}, []])
def test_a_bad_wish_changes_nothing(as_alice: ApiClient, conversation: AgentInstance, body: Any) -> None:
    count = Fiber.objects.count()
    assert as_alice.send("POST", f"/instances/{conversation.id}/compact", body).status_code == 422
    assert Fiber.objects.count() == count


def test_an_agent_that_is_gone_compacts_nothing(
    as_alice: ApiClient, alice: User, make_instance: Callable[..., AgentInstance]
) -> None:
    gone = make_instance(alice, "old", agent="gone-agent")
    assert as_alice.send("POST", f"/instances/{gone.id}/compact", {}).status_code == 404


def test_summaries_are_listed_and_read(
    as_alice: ApiClient, conversation: AgentInstance, summary: CompactionView
) -> None:
    [item] = as_alice.get(f"/instances/{conversation.id}/compactions").json()
    assert item["id"] == summary.id
    assert {name: item[name] for name in ("first_id", "last_id", "summary", "trigger", "message_count")} == {
        "first_id": "q1",
        "last_id": "a1",
        "summary": "the summary",
        "trigger": "added",
        "message_count": 2,
    }
    assert as_alice.get(f"/sessions/{conversation.session_id}/compactions").json() == [item]
    assert as_alice.get(f"/compactions/{summary.id}").json() == item


def test_a_summary_is_reworded_and_marked(
    as_alice: ApiClient, alice: User, summary: CompactionView, notified: list[Any]
) -> None:
    reply = as_alice.send("PATCH", f"/compactions/{summary.id}", {"summary": "better"}).json()
    assert reply["summary"] == "better"
    assert reply["edited_at"]
    change = ContextChange.objects.get(action="edit")
    assert (change.before, change.after, change.actor_id, change.via) == ("the summary", "better", alice.pk, "api")
    assert [(event["type"], event["phase"]) for event in notified] == [("session.phase", "idle")]
    for bad in ("", "   ", "x" * 200_001, None):
        assert as_alice.send("PATCH", f"/compactions/{summary.id}", {"summary": bad}).status_code == 422
    assert Compaction.objects.get().summary == "better"


def test_a_summary_is_undone(as_alice: ApiClient, conversation: AgentInstance, summary: CompactionView) -> None:
    for _ in range(2):
        assert as_alice.send("POST", f"/compactions/{summary.id}/undo").json()["undone_at"]
    assert [m.id for m in selectors.model_history(summary.session_id)] == ["q1", "a1", "q2", "a2"]
    assert as_alice.get(f"/instances/{conversation.id}/compactions").json() == []
    assert len(as_alice.get(f"/instances/{conversation.id}/compactions?undone=true").json()) == 1


def test_unknown_ones_are_not_found(as_alice: ApiClient, conversation: AgentInstance) -> None:
    for path in ("/compactions/cmp_none", "/compactions/cmp_%00"):
        assert as_alice.get(path).status_code == 404
