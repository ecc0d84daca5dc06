"""Background work by the API: its owner sees it, stops it, runs it again and says how it ended."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.models import AgentInstance
from fibers.models import Fiber, FiberStep
from fibers.services import start_fiber
from tests.db.chat.conftest import make_turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def signed_in_talk(alice: User, client: Client, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    client.force_login(alice)
    return make_instance(alice, "talk")


def work(instance: AgentInstance, **changes: Any) -> Fiber:
    payload = {"instance_id": instance.pk, "method": "report", "payload": {"private": 1}, "id": None}
    fiber = start_fiber(
        "chat.agent_fiber:assistant.report", payload, scope=instance.pk, owner_id=instance.owner_id, max_retries=3
    )
    if changes:
        Fiber.objects.filter(pk=fiber.pk).update(**changes)
    return fiber


def path(instance: AgentInstance, rest: str = "") -> str:
    return f"/api/v1/instances/{instance.pk}/fibers{rest}"


ENDED = {"finished_at": "2026-01-01T00:00Z", "attempt": 1}


def test_work_is_listed_and_its_input_and_snapshot_are_not_shown(signed_in_talk: AgentInstance, client: Client) -> None:
    fiber = work(signed_in_talk, stash={"secret": "snapshot"}, reason="method_missing")
    (shown,) = client.get(path(signed_in_talk)).json()
    assert (shown["id"], shown["fiber_id"], shown["method"], shown["status"], shown["reason"]) == (
        fiber.pk,
        fiber.pk,
        "report",
        "pending",
        "method_missing",
    )
    assert not {"payload", "snapshot"} & set(shown)
    assert client.get(path(signed_in_talk, f"/{fiber.pk}")).json() == shown


def test_the_list_is_filtered_and_bounded(signed_in_talk: AgentInstance, client: Client) -> None:
    work(signed_in_talk)
    failed = work(signed_in_talk, status="failed", **ENDED)
    assert [row["id"] for row in client.get(path(signed_in_talk), {"status": "failed"}).json()] == [failed.pk]
    assert len(client.get(path(signed_in_talk), {"limit": 1}).json()) == 1
    assert client.get(path(signed_in_talk), {"limit": 201}).status_code == 422
    assert client.get(path(signed_in_talk), {"status": "odd"}).status_code == 422


def test_what_the_agents_code_raised_is_not_shown(signed_in_talk: AgentInstance, client: Client) -> None:
    fiber = work(signed_in_talk, status="failed", error={"code": "internal", "message": "KeyError: secret"}, **ENDED)
    error = client.get(path(signed_in_talk, f"/{fiber.pk}")).json()["error"]
    assert error == {"code": "internal", "message": "The agent's own code failed."}


def test_work_is_stopped_once(signed_in_talk: AgentInstance, client: Client) -> None:
    fiber = work(signed_in_talk)
    assert client.post(path(signed_in_talk, f"/{fiber.pk}/cancel")).json() == {"cancelled": True}
    assert client.post(path(signed_in_talk, f"/{fiber.pk}/cancel")).json() == {"cancelled": False}
    assert client.get(path(signed_in_talk, f"/{fiber.pk}")).json()["status"] == "cancelled"


def test_failed_work_runs_again_and_completed_work_does_not(signed_in_talk: AgentInstance, client: Client) -> None:
    failed, done = work(signed_in_talk, status="failed", **ENDED), work(signed_in_talk, status="completed", **ENDED)
    assert client.get(path(signed_in_talk, f"/{failed.pk}")).json()["can_restart"] is True
    assert client.post(path(signed_in_talk, f"/{failed.pk}/restart")).json()["status"] == "pending"
    refused = client.post(path(signed_in_talk, f"/{done.pk}/restart"))
    assert (refused.status_code, refused.json()["code"]) == (409, "fiber_conflict")


def test_interrupted_work_is_resolved(signed_in_talk: AgentInstance, client: Client) -> None:
    fiber = work(signed_in_talk, status="interrupted", reason="worker_lost", **ENDED)
    body = {"status": "failed", "error": "no use"}
    reply = client.post(path(signed_in_talk, f"/{fiber.pk}/resolve"), body, content_type="application/json").json()
    assert (reply["status"], reply["error"]["message"]) == ("failed", "no use")
    odd = client.post(
        path(signed_in_talk, f"/{fiber.pk}/resolve"), {"status": "running"}, content_type="application/json"
    )
    assert odd.status_code == 422


def test_parked_work_says_what_it_waits_for(signed_in_talk: AgentInstance, client: Client) -> None:
    waits = [{"key": "k", "kind": "person", "label": "the invoice", "since": "2026-01-01T00:00:00Z"}]
    fiber = work(signed_in_talk, status="parked", waits=waits)
    shown = client.get(path(signed_in_talk, f"/{fiber.pk}")).json()
    assert [(wait["kind"], wait["label"]) for wait in shown["waits"]] == [("person", "the invoice")]
    Fiber.objects.filter(pk=fiber.pk).update(status="completed", **ENDED)
    assert client.get(path(signed_in_talk, f"/{fiber.pk}")).json()["waits"] == []


def test_work_that_is_to_stop_says_so(signed_in_talk: AgentInstance, client: Client) -> None:
    fiber = work(signed_in_talk, status="running", started_at="2026-01-01T00:00Z", attempt=1)
    assert client.get(path(signed_in_talk, f"/{fiber.pk}")).json()["is_stopping"] is False
    client.post(path(signed_in_talk, f"/{fiber.pk}/cancel"))
    assert client.get(path(signed_in_talk, f"/{fiber.pk}")).json()["is_stopping"] is True


def test_the_journal_names_steps_and_not_their_values(signed_in_talk: AgentInstance, client: Client) -> None:
    times = dict.fromkeys(("since", "lost_at", "counted_at"), "2026-01-01T00:00:00+00:00")
    fiber = work(
        signed_in_talk,
        status="completed",
        started_at="2026-01-01T00:00Z",
        created_at="2025-12-31T00:00Z",
        finished_at="2099-01-01T00:00Z",
        incident={"id": "i", **times, "losses": 2, "memory_losses": 0, "steps": 0, "work": 0},
    )
    FiberStep.objects.create(fiber=fiber, step_key="fetch", value={"secret": 1}, attempt=1)
    shown = client.get(path(signed_in_talk, f"/{fiber.pk}/journal")).json()
    assert [entry["kind"] for entry in shown] == ["created", "lost", "started", "step", "ended"]
    assert (shown[1]["count"], shown[3]["step"], shown[3]["attempt"]) == (2, "fetch", 1)
    assert "secret" not in str(shown)


def test_a_turn_of_the_conversation_is_no_background_work(signed_in_talk: AgentInstance, client: Client) -> None:
    turn = make_turn(signed_in_talk, status="running")
    assert client.get(path(signed_in_talk)).json() == []
    assert client.post(path(signed_in_talk, f"/{turn.fiber_id}/cancel")).status_code == 404
    assert Fiber.objects.get(pk=turn.fiber_id).status == "running"


def test_the_page_of_a_stranger_is_not_found(signed_in_talk: AgentInstance, client: Client) -> None:
    fiber = work(signed_in_talk)
    client.force_login(User.objects.create_user("mallory"))
    assert client.get(path(signed_in_talk)).status_code == 404
    assert client.get(path(signed_in_talk, f"/{fiber.pk}")).status_code == 404
