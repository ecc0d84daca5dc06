"""Schedules in the admin: what is seen, and what can be done."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client

from chat.agent.values.schedules import Work
from chat.models import AgentInstance
from chat.schedules.service import draft_of
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.schedules.timing import Timing
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules import services

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/think_fibers/schedule/"


@pytest.fixture
def schedule(alice: User, make_instance: Any, settings: Any) -> Schedule:
    settings.THINK_FIBER_DISPATCH = "manual"
    instance: AgentInstance = make_instance(alice, "talk", title="Garden")
    work = Work(prompt="say: a secret plan")
    draft = draft_of(instance, Timing.cron("0 9 * * *", "Europe/Berlin"), work, created_by="person")
    return services.create_schedule(draft)[0]


def staff(*permissions: str, name: str = "staff") -> Client:
    user = User.objects.create_user(name, password="staff-password", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def act(client: Client, action: str, schedule: Schedule) -> str:
    reply = client.post(LIST, {"action": action, "_selected_action": [schedule.pk]}, follow=True)
    return reply.content.decode()


def test_the_list_and_the_page_show_times_and_runs(admin_client: Client, schedule: Schedule) -> None:
    services.run_now(schedule.pk)
    for page in (LIST, f"{LIST}{schedule.pk}/change/"):
        shown = admin_client.get(page).content.decode()
        assert "a secret plan" in shown
        assert "Garden" in shown
        assert shown.count(", 09:00</div>") == 5
        assert "Waiting" in shown


def test_prompts_are_for_those_who_may_read_messages(schedule: Schedule) -> None:
    shown = staff("view_schedule").get(LIST).content.decode()
    assert "a secret plan" not in shown
    assert "A prompt" in shown


def test_schedules_are_paused_resumed_and_run(admin_client: Client, schedule: Schedule) -> None:
    act(admin_client, "pause", schedule)
    assert Schedule.objects.get().status == ScheduleStatus.PAUSED
    act(admin_client, "resume", schedule)
    assert Schedule.objects.get().status == ScheduleStatus.ACTIVE
    act(admin_client, "run_now", schedule)
    assert ScheduleRun.objects.get().is_test


def test_schedules_are_deleted_but_for_those_of_a_class(schedule: Schedule) -> None:
    looks_on, removes = staff("view_schedule", "run_schedule"), staff("view_schedule", "delete_schedule", name="other")
    act(looks_on, "remove", schedule)
    Schedule.objects.update(declaration="water")
    assert "The agent declares this schedule. Pause it instead." in act(removes, "remove", schedule)
    assert Schedule.objects.count() == 1
    Schedule.objects.update(declaration=None)
    act(removes, "remove", schedule)
    assert not Schedule.objects.exists()
    assert LogEntry.objects.get().get_change_message() == "Deleted."


def test_one_that_is_broken_still_says_so_when_it_is_resumed(admin_client: Client, schedule: Schedule) -> None:
    Schedule.objects.update(status=ScheduleStatus.BROKEN, zone="Europe/Atlantis", error="no zone")
    assert "Atlantis" in act(admin_client, "resume", schedule)
    assert Schedule.objects.get().status == ScheduleStatus.BROKEN
    assert "no zone" in admin_client.get(f"{LIST}?status=broken").content.decode()


def test_who_may_only_look_changes_nothing(schedule: Schedule) -> None:
    client = staff("view_schedule", "view_message")
    act(client, "pause", schedule)
    assert Schedule.objects.get().status == ScheduleStatus.ACTIVE
    assert client.get(f"{LIST}add/").status_code == 403


def test_a_schedule_of_a_person_is_edited(schedule: Schedule) -> None:
    page, url = f"{LIST}{schedule.pk}/change/", f"{LIST}{schedule.pk}/edit/"
    blind = staff("view_schedule", "change_schedule", name="blind")  # the prompt is a message
    for client in (blind, staff("view_schedule", "view_message", name="looks-on")):
        assert url not in client.get(page).content.decode()
        assert client.get(url).status_code == client.post(url, {"prompt": "mine"}).status_code == 403
    client = staff("view_schedule", "change_schedule", "view_message")
    assert url in client.get(page).content.decode()
    form = client.get(url).context["form"]
    assert form.initial["prompt"] == "say: a secret plan"
    before, same = schedule.next_at, {**form.initial, "title": ""}
    assert client.post(url, {**same, "prompt": "say: another"}).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.payload["prompt"], schedule.spec, schedule.next_at) == ("say: another", "0 9 * * *", before)
    assert client.post(url, {**same, "title": "Noon", "spec": "0 12 * * *"}).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.title, schedule.spec, schedule.zone) == ("Noon", "0 12 * * *", "Europe/Berlin")
    assert schedule.next_at != before
    assert [entry.get_change_message() for entry in LogEntry.objects.all()] == ["Edited.", "Edited."]
    for wrong, said in (({"spec": "0 9"}, "five fields"), ({"prompt": ""}, "A prompt has 1 to")):
        assert said in client.post(url, {**same, **wrong}).content.decode()
    schedule.refresh_from_db()
    assert (schedule.title, schedule.spec) == ("Noon", "0 12 * * *")


@pytest.mark.parametrize("columns", [{"created_by": "code"}, {"created_by": "declaration"}, {"payload": {"method": 1}}])
def test_what_code_made_is_not_edited(columns: Any, schedule: Schedule, admin_client: Client) -> None:
    Schedule.objects.update(**columns)
    url = f"{LIST}{schedule.pk}/edit/"
    assert url not in admin_client.get(f"{LIST}{schedule.pk}/change/").content.decode()
    assert admin_client.post(url, {"prompt": "mine", "kind": "delay", "spec": "9"}).status_code == 403
