"""Background work by the API: its owner sees it, stops it, runs it again and says how it ended."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.models import AgentInstance
from fibers.models import Fiber
from fibers.services import start_fiber
from tests.db.chat.conftest import make_turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def instance(alice: User, client: Client, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
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


def test_work_is_listed_and_its_input_and_snapshot_are_not_shown(instance: AgentInstance, client: Client) -> None:
    fiber = work(instance, stash={"secret": "snapshot"}, reason="method_missing")
    (shown,) = client.get(path(instance)).json()
    assert (shown["id"], shown["fiber_id"], shown["method"], shown["status"], shown["reason"]) == (
        fiber.pk,
        fiber.pk,
        "report",
        "pending",
        "method_missing",
    )
    assert not {"payload", "snapshot"} & set(shown)
    assert client.get(path(instance, f"/{fiber.pk}")).json() == shown


def test_the_list_is_filtered_and_bounded(instance: AgentInstance, client: Client) -> None:
    work(instance)
    failed = work(instance, status="failed", **ENDED)
    assert [row["id"] for row in client.get(path(instance), {"status": "failed"}).json()] == [failed.pk]
    assert len(client.get(path(instance), {"limit": 1}).json()) == 1
    assert client.get(path(instance), {"limit": 101}).status_code == 422
    assert client.get(path(instance), {"status": "odd"}).status_code == 422


def test_what_the_agents_code_raised_is_not_shown(instance: AgentInstance, client: Client) -> None:
    fiber = work(instance, status="failed", error={"code": "internal", "message": "KeyError: secret"}, **ENDED)
    error = client.get(path(instance, f"/{fiber.pk}")).json()["error"]
    assert error == {"code": "internal", "message": "The agent's own code failed."}


def test_work_is_stopped_once(instance: AgentInstance, client: Client) -> None:
    fiber = work(instance)
    assert client.post(path(instance, f"/{fiber.pk}/cancel")).json() == {"cancelled": True}
    assert client.post(path(instance, f"/{fiber.pk}/cancel")).json() == {"cancelled": False}
    assert client.get(path(instance, f"/{fiber.pk}")).json()["status"] == "cancelled"


def test_failed_work_runs_again_and_completed_work_does_not(instance: AgentInstance, client: Client) -> None:
    failed, done = work(instance, status="failed", **ENDED), work(instance, status="completed", **ENDED)
    assert client.get(path(instance, f"/{failed.pk}")).json()["can_restart"] is True
    assert client.post(path(instance, f"/{failed.pk}/restart")).json()["status"] == "pending"
    refused = client.post(path(instance, f"/{done.pk}/restart"))
    assert (refused.status_code, refused.json()["code"]) == (409, "fiber_conflict")


def test_interrupted_work_is_resolved(instance: AgentInstance, client: Client) -> None:
    fiber = work(instance, status="interrupted", reason="worker_lost", **ENDED)
    body = {"status": "failed", "error": "no use"}
    reply = client.post(path(instance, f"/{fiber.pk}/resolve"), body, content_type="application/json").json()
    assert (reply["status"], reply["error"]["message"]) == ("failed", "no use")
    odd = client.post(path(instance, f"/{fiber.pk}/resolve"), {"status": "running"}, content_type="application/json")
    assert odd.status_code == 422


def test_a_turn_of_the_conversation_is_no_background_work(instance: AgentInstance, client: Client) -> None:
    turn = make_turn(instance, status="running")
    assert client.get(path(instance)).json() == []
    assert client.post(path(instance, f"/{turn.fiber_id}/cancel")).status_code == 404
    assert Fiber.objects.get(pk=turn.fiber_id).status == "running"


def test_the_page_of_a_stranger_is_not_found(instance: AgentInstance, client: Client) -> None:
    fiber = work(instance)
    client.force_login(User.objects.create_user("mallory"))
    assert client.get(path(instance)).status_code == 404
    assert client.get(path(instance, f"/{fiber.pk}")).status_code == 404
