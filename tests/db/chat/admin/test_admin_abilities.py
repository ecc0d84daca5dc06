"""What staff have an agent do, in the admin: methods, runs, agents below, schedules, workspaces; skills and code."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from chat.agent import declared
from chat.agents import Assistant
from chat.models import AgentInstance, AgentRun
from fibers.models.schedules import Schedule
from tests.db.chat.counting_agent import CounterBase
from tests.db.chat.staff import staff
from tools_app.models import Execution, WorkspaceAttachment
from tools_app.workspace.services import create_workspace

pytestmark = pytest.mark.django_db(transaction=True)

Make = Callable[..., AgentInstance]
HOURLY = {"kind": "interval", "spec": "3600"}
SENT: dict[str, tuple[str, dict[str, str]]] = {
    "call": ("change_agentinstance", {"method": "add", "arguments": "[4]"}),
    "run": ("add_agentrun", {"agent": "staff-counter", "task": "say: x"}),
    "sub-agent": ("add_agentinstance", {"agent": "staff-counter", "name": "two"}),
    "schedule": ("add_schedule", {"prompt": "say: x", **HOURLY}),
    "workspaces": ("add_workspaceattachment", {"name": "shared", "conversation": "{other}"}),
}
"""Page: the permission that it takes, and what is sent there."""


@pytest.fixture(autouse=True)
def _staff_counter(settings: Any) -> Iterator[None]:
    class StaffCounter(CounterBase):
        """Counts."""

        sub_agents = ("staff-counter",)

    settings.THINK_FIBER_DISPATCH = "manual"
    yield
    declared.unregister(StaffCounter)


@pytest.fixture
def counted(alice: User, make_instance: Make) -> AgentInstance:
    return make_instance(alice, "one", agent="staff-counter")


def url_of(instance: AgentInstance, page: str) -> str:
    return f"/admin/think_chat/agentinstance/{instance.pk}/{page}/"


def noted() -> list[str]:
    return [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]


def rows() -> tuple[int, ...]:
    counted = (AgentInstance, AgentRun, Schedule, WorkspaceAttachment)
    return tuple(model._default_manager.count() for model in counted)


@pytest.mark.parametrize("page", SENT)
def test_each_page_takes_its_own_permission(
    page: str, counted: AgentInstance, alice: User, make_instance: Make
) -> None:
    other = make_instance(alice, "files")
    permission, sent = SENT[page]
    data = {name: value.format(other=other.pk) for name, value in sent.items()}
    others = {each for each, _sent in SENT.values()} - {permission}
    user, client = staff("view_agentinstance", *others)
    url, before = url_of(counted, page), rows()
    assert client.get(url).status_code == client.post(url, data).status_code == 403
    assert url not in client.get(url_of(counted, "change")).content.decode()
    assert rows() == before
    User.objects.filter(pk=user.pk).delete()
    client = staff("view_agentinstance", permission)[1]
    assert url in client.get(url_of(counted, "change")).content.decode()
    assert client.get(url).status_code == 200
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="staff"))
    assert strict.post(url, data).status_code == 403
    assert (rows(), noted()) == (before, [])  # looking does nothing, and a page of others cannot send it
    assert client.post(url, data).status_code in {200, 302}
    assert len(noted()) == 1
    assert client.get(url.replace(counted.pk, "unknown")).status_code == 404


def test_a_method_is_called_and_its_result_is_shown(counted: AgentInstance) -> None:
    client, url = staff("view_agentinstance", "change_agentinstance")[1], url_of(counted, "call")
    assert "add(by: int = 1)" in client.get(url).content.decode()
    reply = client.post(url, {"method": "add", "arguments": "[4]"})
    assert json.loads(reply.context["result"]) == {"count": 4}
    counted.refresh_from_db()
    assert (counted.state, noted()) == ({"count": 4}, ["Called the method add."])
    streamed = client.post(url, {"method": "countTo", "arguments": "[2]"}).context["result"]
    assert json.loads(streamed) == {"items": [0, 1], "result": "done"}
    for arguments, said in (
        ('["x"]', "Method add: argument"),
        ("[1, 2]", "expects by: int = 1; got 2"),
        ("{}", "Write a list of at most 100 values"),
        ("[NaN]", "This is no JSON"),
    ):
        reply = client.post(url, {"method": "add", "arguments": arguments})
        assert said in reply.content.decode()
        assert reply.context["result"] is None
    failed = client.post(url, {"method": "fails"}).content.decode()
    assert "The agent&#x27;s own code failed." in failed
    assert "secret" not in failed
    assert "Select a valid choice" in client.post(url, {"method": "get_model"}).content.decode()
    counted.refresh_from_db()
    assert counted.state == {"count": 4}


def test_agents_below_are_opened_and_set_to_work_by_staff(counted: AgentInstance) -> None:
    client = staff("view_agentinstance", "add_agentinstance", "add_agentrun")[1]
    assert client.post(url_of(counted, "sub-agent"), {"agent": "staff-counter", "name": "two"}).status_code == 302
    child = AgentInstance.objects.get(parent=counted)
    assert (child.name, child.owner_id) == ("two", counted.owner_id)
    closed = client.post(url_of(counted, "sub-agent"), {"agent": "staff-counter", "name": "closed"})
    assert "There is no agent of this name." in closed.content.decode()
    data = {"agent": "staff-counter", "task": '{"a": 1}', "is_json": "on"}
    assert client.post(url_of(counted, "run"), data).status_code == 302
    run = AgentRun.objects.get()
    assert (run.input_preview, run.parent_id, run.outcome) == ({"a": 1}, counted.pk, None)
    assert "This is no JSON" in client.post(url_of(counted, "run"), {**data, "task": "{"}).content.decode()
    assert noted() == [f"Opened the sub-agent {child.pk}.", f"Started the run {run.pk}."]


def test_a_run_of_staff_counts_for_the_owner(counted: AgentInstance, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 1
    client = staff("view_agentinstance", "add_agentrun")[1]
    data = {"agent": "staff-counter", "task": "say: x"}
    assert client.post(url_of(counted, "run"), data).status_code == 302
    assert "messages within a minute" in client.post(url_of(counted, "run"), data).content.decode()


def test_a_schedule_is_made_for_a_prompt_or_a_method(counted: AgentInstance) -> None:
    client, url = staff("view_agentinstance", "add_schedule")[1], url_of(counted, "schedule")
    cron = {"kind": "cron", "spec": "0 9 * * *", "zone": "Europe/Berlin", "title": "Morning"}
    assert client.post(url, {"prompt": "say: x", **cron}).status_code == 302
    made = Schedule.objects.get()
    assert (made.title, made.spec, made.zone, made.created_by) == ("Morning", "0 9 * * *", "Europe/Berlin", "person")
    assert (made.payload["prompt"], made.scope, made.owner_id) == ("say: x", counted.pk, counted.owner_id)
    assert noted() == [f"Made the schedule {made.pk}."]
    assert client.post(url, {"method": "add", "arguments": "[2]", **HOURLY}).status_code == 302
    assert Schedule.objects.exclude(pk=made.pk).get().payload["arguments"] == [2]
    for data, said in (
        (HOURLY, "a method or a prompt, one of the two"),
        ({"prompt": "a", "method": "add", **HOURLY}, "a method or a prompt, one of the two"),
        ({"method": "add", "arguments": "[1, 2]", **HOURLY}, "got 2 argument(s)"),
        ({"prompt": "a", "kind": "cron", "spec": "0 9 * * *"}, "zone"),
        ({"prompt": "a", "kind": "delay", "spec": "soon"}, "is no time of this kind"),
        ({"prompt": "a", "kind": "interval", "spec": "1"}, "seconds at most"),
        ({"prompt": "a", "kind": "instant", "spec": "2001-01-01T00:00Z"}, "is over"),
    ):
        assert said in client.post(url, data).content.decode()
    assert Schedule.objects.count() == 2


def test_a_workspace_is_attached_and_detached(
    counted: AgentInstance, alice: User, bob: User, make_instance: Make
) -> None:
    user, client = staff("view_agentinstance", "add_workspaceattachment")
    url, hers, his = url_of(counted, "workspaces"), make_instance(alice, "files"), make_instance(bob, "his")
    foreign = create_workspace(bob.pk, name="his").pk
    for data, said in (
        ({"name": "a", "conversation": his.pk}, "There is no such conversation"),
        ({"name": "a", "workspace": foreign}, "There is no such workspace"),
        ({"name": "a"}, "Name either a conversation or a workspace."),
        ({"name": "a", "conversation": hers.pk, "workspace": foreign}, "Name either a conversation or a workspace."),
        ({"name": "default", "conversation": hers.pk}, "own workspace"),
    ):
        assert said in client.post(url, data).content.decode()
    assert not WorkspaceAttachment.objects.filter(scope=counted.pk).exists()
    assert client.post(url, {"name": "a", "conversation": hers.pk, "can_write": "on"}).status_code == 302
    row = WorkspaceAttachment.objects.get(scope=counted.pk)
    assert (row.name, row.can_write, row.workspace.owner_id) == ("a", True, alice.pk)
    assert row.workspace_id in client.get(url).content.decode()
    assert client.post(url, {"end": "a"}).status_code == 403  # it takes the permission to delete
    user.user_permissions.clear()
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    assert client.post(url, {"end": "a"}).status_code == 302
    assert "There is no such workspace" in client.post(url, {"end": "a"}, follow=True).content.decode()
    assert not WorkspaceAttachment.objects.filter(scope=counted.pk).exists()
    assert noted() == ["Let it use the workspace a.", "Ended the use of the workspace a."]


def test_skills_and_code_that_ran_are_found_from_the_conversation(counted: AgentInstance, admin_client: Client) -> None:
    Execution.objects.create(key="k", scope=counted.pk, turn_id="t", call_id="c", code="1 + 1", seed="s", clock_ms=0)
    Execution.objects.create(key="o", scope="other", turn_id="t", call_id="c", code="2 + 2", seed="s", clock_ms=0)
    page = admin_client.get(url_of(counted, "change")).content.decode()
    found = f"/admin/think_tools/execution/?q={counted.pk}"
    assert found in page
    listed = admin_client.get(found).content.decode()
    assert "1 + 1" in listed
    assert "2 + 2" not in listed
    assert url_of(counted, "skills") in page
    skills = admin_client.get(url_of(counted, "skills")).content.decode()
    assert "How to tidy up." in skills
    assert "It cannot be loaded:" in skills


def test_a_page_is_there_for_what_the_class_offers_alone(
    alice: User, make_instance: Make, admin_client: Client
) -> None:
    talk = make_instance(alice, "talk")
    assert not Assistant.sub_agents
    shown = admin_client.get(url_of(talk, "change")).content.decode()
    for page in ("run", "sub-agent"):
        assert url_of(talk, page) not in shown
        assert admin_client.get(url_of(talk, page)).status_code == 404
    AgentInstance.objects.filter(pk=talk.pk).update(agent="an-agent-that-is-gone")
    shown = admin_client.get(url_of(talk, "change")).content.decode()
    for page in (*SENT, "skills"):
        assert url_of(talk, page) not in shown
        assert admin_client.get(url_of(talk, page)).status_code == 404
