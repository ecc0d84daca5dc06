"""A fiber's page in the admin: its journal and reason, and buttons for what its state allows."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.agent.values.schedules import Work
from chat.core.durable_names import (
    AGENT_RUN,
    EXPIRY_FIBER,
    RESPONSE_FIBER,
    RUN_WATCH_FIBER,
    SEALED_TURN_FIBER,
    TITLE_FIBER,
)
from chat.models import AgentInstance, AgentRun
from chat.schedules.service import draft_of
from fibers.core.schedules.timing import Timing
from fibers.models import Fiber, FiberStep
from fibers.models.schedules import ScheduleRun
from fibers.schedules import services as schedules
from fibers.services import start_fiber
from tests.db.chat.conftest import say

pytestmark = pytest.mark.django_db(transaction=True)

ENDED = {"finished_at": "2026-01-01T00:00Z", "attempt": 1}
BUTTONS = {
    "pending": {"stop"},
    "parked": {"stop"},
    "failed": {"run-again"},
    "interrupted": {"run-again", "complete", "fail", "dismiss"},
    "completed": set(),
    "cancelled": set(),
}


@pytest.fixture
def garden(alice: User, make_instance: Callable[..., AgentInstance], settings: Any) -> AgentInstance:
    settings.THINK_FIBER_DISPATCH = "manual"
    return make_instance(alice, "talk", title="Garden")


def work(instance: AgentInstance, **changes: Any) -> Fiber:
    payload = {"instance_id": instance.pk, "method": "report", "payload": None, "id": None}
    fiber = start_fiber("chat.agent_fiber:assistant.report", payload, scope=instance.pk, owner_id=instance.owner_id)
    Fiber.objects.filter(pk=fiber.pk).update(**changes)
    fiber.refresh_from_db()
    return fiber


def page(client: Client, fiber: Fiber) -> str:
    return client.get(f"/admin/think_fibers/fiber/{fiber.pk}/change/").content.decode()


def act(client: Client, fiber: Fiber, do: str) -> int:
    status = client.post(f"/admin/think_fibers/fiber/{fiber.pk}/act/", {"do": do}).status_code
    fiber.refresh_from_db()
    return status


@pytest.mark.parametrize("status", BUTTONS)
def test_a_page_has_the_buttons_that_its_state_allows(admin_client: Client, garden: AgentInstance, status: str) -> None:
    shown = page(admin_client, work(garden, status=status, **({} if status in ("pending", "parked") else ENDED)))
    assert {do for do in ("stop", "run-again", "complete", "fail", "dismiss") if f'value="{do}"' in shown} == BUTTONS[
        status
    ]
    assert "Garden" in shown


def test_a_page_shows_its_journal_and_why_it_waits(admin_client: Client, garden: AgentInstance) -> None:
    fiber = work(garden, reason="method_missing")
    FiberStep.objects.create(fiber=fiber, step_key="fetch", value=1, attempt=1)
    shown = page(admin_client, fiber)
    assert "no worker has its method now" in shown
    assert "fetch" in shown


def test_buttons_stop_run_again_and_resolve(admin_client: Client, garden: AgentInstance) -> None:
    waiting, failed = work(garden), work(garden, status="failed", **ENDED)
    assert (act(admin_client, waiting, "stop"), waiting.status, waiting.reason) == (
        302,
        "cancelled",
        "cancelled_by_staff",
    )
    assert (act(admin_client, failed, "run-again"), failed.status) == (302, "pending")
    for do, status in (("complete", "completed"), ("fail", "failed"), ("dismiss", "cancelled")):
        lost = work(garden, status="interrupted", **ENDED)
        assert (act(admin_client, lost, do), lost.status) == (302, status)
    assert (act(admin_client, lost, "complete"), lost.status) == (302, "cancelled")
    assert act(admin_client, lost, "odd") == 403


def test_a_function_that_ended_with_its_process_is_not_run_again(admin_client: Client, garden: AgentInstance) -> None:
    lost = work(garden, name=AGENT_RUN, status="interrupted", **ENDED)
    assert 'value="run-again"' not in page(admin_client, lost)
    assert (act(admin_client, lost, "run-again"), lost.status) == (302, "interrupted")


def test_buttons_need_the_permissions_of_the_actions(garden: AgentInstance) -> None:
    user = User.objects.create_user("staff", password="staff-password", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_fiber", "cancel_fiber"]))
    client = Client()
    client.force_login(user)
    lost = work(garden, status="interrupted", **ENDED)
    assert 'value="complete"' not in page(client, lost)
    assert (act(client, lost, "complete"), lost.status) == (403, "interrupted")
    assert (act(client, lost, "dismiss"), lost.status) == (302, "cancelled")
    assert client.get(f"/admin/think_fibers/fiber/{lost.pk}/act/").status_code == 405


def test_schedules_their_runs_and_conversations_are_linked(admin_client: Client, garden: AgentInstance) -> None:
    draft = draft_of(garden, Timing.cron("0 9 * * *", "UTC"), Work(prompt="say: hello"), created_by="person")
    schedule = schedules.create_schedule(draft)[0]
    schedules.run_now(schedule.pk)
    run = ScheduleRun.objects.get()
    shown = admin_client.get(f"/admin/think_fibers/schedule/{schedule.pk}/change/").content.decode()
    assert f"/admin/think_fibers/fiber/{run.fiber_id}/change/" in shown
    assert f"/admin/think_fibers/schedule/{schedule.pk}/change/" in page(admin_client, run.fiber)
    talk = admin_client.get(f"/admin/think_chat/agentinstance/{garden.pk}/change/").content.decode()
    assert f"/admin/think_fibers/fiber/?q={garden.pk}" in talk
    assert f"/admin/think_fibers/schedule/?q={garden.pk}" in talk


def test_what_works_for_a_conversation_names_it(admin_client: Client, garden: AgentInstance) -> None:
    turn = say(garden, "q1", "a1")
    run = AgentRun.objects.create(parent=garden, child=garden, run_id="r1")
    ours = [
        start_fiber(TITLE_FIBER, {"instance_id": garden.pk, "session_id": "s", "generation": 0}),
        start_fiber(EXPIRY_FIBER, {"row_id": 1, "instance_id": garden.pk}),
        start_fiber(RESPONSE_FIBER, {"turn_id": turn.pk, "status": "completed", "error": None, "output": None}),
        start_fiber(RUN_WATCH_FIBER, {"run_id": run.pk}),
        start_fiber(SEALED_TURN_FIBER, {"fiber_id": "f", "fence": 1, "payload": {"turn_id": turn.pk}}),
    ]
    for fiber in ours:
        assert f"/admin/think_chat/agentinstance/{garden.pk}/change/" in page(admin_client, fiber), fiber.name
    others = start_fiber("developers.own", {"instance_id": garden.pk, "run_id": "not a number"})
    assert garden.pk not in page(admin_client, others).replace("instance_id", "").partition("Input and result")[0]
    shown = admin_client.get("/admin/think_fibers/fiber/").content.decode()
    assert shown.count(f"/admin/think_chat/agentinstance/{garden.pk}/change/") >= len(ours)


def test_a_list_of_work_costs_the_same_for_any_length(admin_client: Client, garden: AgentInstance) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            admin_client.get("/admin/think_fibers/fiber/")
        return len(found)

    for _ in range(2):
        start_fiber(TITLE_FIBER, {"instance_id": garden.pk, "session_id": "s", "generation": 0})
    few = queries()
    for _ in range(20):
        start_fiber(TITLE_FIBER, {"instance_id": garden.pk, "session_id": "s", "generation": 0})
    assert queries() == few


def test_a_payload_is_shown_as_json(admin_client: Client, garden: AgentInstance) -> None:
    shown = page(admin_client, work(garden))
    assert "&quot;method&quot;: &quot;report&quot;" in shown
    assert "&#x27;method&#x27;" not in shown
