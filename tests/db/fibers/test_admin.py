"""Fibers in the admin, and the commands."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from fibers import selectors, services
from fibers.core.states import FiberEvent
from fibers.models import EffectEntry, EffectState, Fiber, FiberStep, ServedFunction
from fibers.models.served import ExecutorKind
from fibers.queue import leases
from fibers.queue.leases import Settlement
from fibers.testing import expire_lease

pytestmark = pytest.mark.django_db

LIST = "admin:think_fibers_fiber_changelist"


@pytest.fixture
def fiber_viewer(client: Client) -> User:
    user = User.objects.create_user("staff", is_staff=True)
    allow(user, "view_fiber", "view_fiberstep")
    client.force_login(user)
    return user


def allow(user: User, *codes: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(codename__in=codes))


def act(client: Client, action: str, *fibers: Fiber) -> None:
    client.post(reverse(LIST), {"action": action, "_selected_action": [fiber.pk for fiber in fibers]})


def failed() -> Fiber:
    fiber = services.start_fiber("admin.test", {"secret": 1})
    leases.claim(fiber.pk, "worker-7")
    FiberStep.objects.create(fiber=fiber, step_key="model:1", value={"text": "hello"}, attempt=1)
    leases.settle(fiber.pk, 1, Settlement(event=FiberEvent.FAIL, progress=0, reason="no_key", error={"code": "no_key"}))
    return fiber


def test_the_list_shows_where_each_fiber_stands(client: Client, fiber_viewer: User) -> None:
    fiber = failed()
    page = client.get(reverse(LIST), {"status": "failed"}).content.decode()
    assert reverse("admin:think_fibers_fiber_change", args=[quote(fiber.pk)]) in page
    assert "no key" in page


def test_executors_are_listed_with_what_they_last_did(client: Client, fiber_viewer: User) -> None:
    allow(fiber_viewer, "view_servedfunction")
    ServedFunction.objects.create(name="admin.test", kind=ExecutorKind.PROGRAM, queue="lab")
    services.start_fiber("admin.test", 1)
    ended = failed()
    page = client.get(reverse("admin:think_fibers_servedfunction_changelist")).content.decode()
    assert '<td class="field-waiting">1</td>' in page
    assert '<td class="field-under_way">0</td>' in page
    assert reverse("admin:think_fibers_fiber_change", args=[ended.pk]) in page


def test_the_list_counts_no_further_than_its_limit(client: Client, fiber_viewer: User) -> None:
    for _ in range(3):
        services.start_fiber("admin.test", 1)
    with CaptureQueriesContext(connection) as queries:
        client.get(reverse(LIST))
    counts = [q["sql"] for q in queries if "COUNT(" in q["sql"]]
    assert counts
    assert all("LIMIT 10000" in sql for sql in counts)
    assert not [q for q in queries if "DISTINCT" in q["sql"] and "fiber" in q["sql"]]


def test_the_detail_shows_the_journal_and_changes_nothing(client: Client, fiber_viewer: User) -> None:
    fiber = failed()
    url = reverse("admin:think_fibers_fiber_change", args=[fiber.pk])
    page = client.get(url).content.decode()
    assert "model:1" in page
    assert "hello" in page
    assert 'name="_save"' not in page
    assert client.post(url, {"status": "completed"}).status_code == 403
    assert client.get(reverse("admin:think_fibers_fiber_add")).status_code == 403
    assert client.post(reverse("admin:think_fibers_fiber_delete", args=[fiber.pk]), {"post": "yes"}).status_code == 403


def test_why_a_fiber_stands_there_is_said_in_words_of_the_reader(client: Client, fiber_viewer: User) -> None:
    services.cancel_fiber(services.start_fiber("admin.test", 1).pk, reason="cancelled_by_staff")
    services.cancel_fiber(services.start_fiber("admin.test", 2).pk, reason="a_code_without_words")
    page = client.get(reverse(LIST), headers={"Accept-Language": "en-xa"}).content.decode()
    assert "[ƀý šŧáƒƒ ~~~]" in page
    assert "a code without words" in page


@pytest.mark.parametrize(("action", "code"), [("cancel_fibers", "cancel_fiber"), ("requeue_fibers", "requeue_fiber")])
def test_an_action_needs_its_permission(client: Client, fiber_viewer: User, action: str, code: str) -> None:
    fibers = {"cancel_fibers": services.start_fiber("admin.test", 1), "requeue_fibers": failed()}
    before = selectors.get_fiber(fibers[action].pk).status
    act(client, action, fibers[action])
    assert selectors.get_fiber(fibers[action].pk).status == before
    allow(fiber_viewer, code)
    act(client, action, fibers[action])
    assert selectors.get_fiber(fibers[action].pk).status != before


def test_actions_count_what_they_moved(client: Client, fiber_viewer: User) -> None:
    allow(fiber_viewer, "cancel_fiber")
    response = client.post(
        reverse(LIST),
        {"action": "cancel_fibers", "_selected_action": [failed().pk, services.start_fiber("admin.test", 1).pk]},
        follow=True,
    )
    assert "1 of 2 stopped." in response.content.decode()


def run(command: str, *arguments: Any) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


def test_inspect_fiber_prints_the_row_and_its_steps() -> None:
    fiber = failed()
    text = run("inspect_fiber", fiber.pk)
    for part in (fiber.pk, "failed", "no_key", '{"secret":1}', "step model:1 (attempt 1", '{"text":"hello"}'):
        assert part in text


def test_inspect_fiber_of_an_unknown_id_is_reported() -> None:
    with pytest.raises(CommandError, match="fib_none"):
        run("inspect_fiber", "fib_none")


def test_recover_fibers_sweeps_and_reports_the_counts() -> None:
    fiber = services.start_fiber("admin.test", 1)
    leases.claim(fiber.pk, "w1")
    expire_lease(fiber.pk)
    assert run("recover_fibers") == "recovered 1, ended 0, dispatched 0, pruned 0\n"


def interrupted() -> Fiber:
    fiber = failed()
    Fiber.objects.filter(pk=fiber.pk).update(status="interrupted", reason="worker_lost", error=None)
    return fiber


def test_given_up_ones_are_marked_as_completed_or_stopped_and_others_are_left(
    client: Client, fiber_viewer: User
) -> None:
    allow(fiber_viewer, "cancel_fiber", "requeue_fiber")
    done, unwanted, other = interrupted(), interrupted(), failed()
    act(client, "complete_fibers", done, other)
    act(client, "dismiss_fibers", unwanted, other)
    statuses = [selectors.get_fiber(fiber.pk).status for fiber in (done, unwanted, other)]
    assert statuses == ["completed", "cancelled", "failed"]


def test_a_fiber_that_no_worker_can_run_says_so(client: Client, fiber_viewer: User) -> None:
    fiber = services.start_fiber("admin.gone", 1)
    Fiber.objects.filter(pk=fiber.pk).update(reason="method_missing")
    page = client.get(reverse(LIST), {"status": "pending"}).content.decode()
    assert "no worker has its method now" in page


def test_the_filter_by_work_finds_a_family_with_its_members(client: Client, fiber_viewer: User) -> None:
    fiber = services.start_fiber("chat.agent_fiber:assistant.report", {"instance_id": "ins_none"}, scope="ins_none")
    page = client.get(reverse(LIST), {"name": "chat.agent_fiber"}).content.decode()
    assert reverse("admin:think_fibers_fiber_change", args=[quote(fiber.pk)]) in page
    assert "Background work: assistant.report" in page


def test_effects_are_listed_with_their_rows_and_can_be_told_to_look(client: Client) -> None:
    for name, count in (("shop.greet", 3), ("shop.none", 0)):
        state = EffectState.objects.create(name=name, error="LookupError: no shop", due_at="2100-01-01T00:00:00Z")
        EffectEntry.objects.bulk_create(EffectEntry(effect=state, object_pk=f"{at}") for at in range(count))
    user = User.objects.create_user("staff", is_staff=True)
    allow(user, "view_effectstate")
    client.force_login(user)
    address = reverse("admin:think_fibers_effectstate_changelist")
    with CaptureQueriesContext(connection) as queries:
        page = client.get(address).content.decode()
    assert '<td class="field-rows">3</td>' in page
    assert "no shop" in page
    assert sum("effectentry" in query["sql"] for query in queries) <= 2
    detail = client.get(reverse("admin:think_fibers_effectstate_change", args=[quote("shop.greet")])).content.decode()
    assert "q=effect%3Ashop.greet" in detail
    chosen = {"action": "look_now", "_selected_action": ["shop.greet"]}
    client.post(address, chosen)
    assert not EffectState.objects.filter(due_at__lte=Now()).exists()
    allow(user, "look_effect")
    client.post(address, chosen)
    assert [state.name for state in EffectState.objects.filter(due_at__lte=Now())] == ["shop.greet"]
