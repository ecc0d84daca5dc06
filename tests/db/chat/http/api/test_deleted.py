"""Deleted conversations: nowhere for 30 days, restored with all that is theirs, or removed for good."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.files import attachments
from chat.instances.rows import ensure_instance, key_of
from chat.members.services import add_member
from chat.models import AgentInstance, Attachment, Role, ShareLink, Turn
from chat.operations.deleted import KEPT_DAYS, prune_deleted, put_into_deleted
from chat.operations.retention import POLICIES
from chat.shares.services import NewShare, make_link
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.schedules.timing import ScheduleKind, Timing
from fibers.models import Fiber
from fibers.models.schedules import Schedule
from fibers.schedules.services import ScheduleDraft, create_schedule
from sessions_app.models import Message
from sessions_app.search.query import search
from tests.db.chat.conftest import ApiClient, interrupted_fiber, say
from tests.db.chat.http.api.questions import ask


def delete(client: ApiClient, instance: AgentInstance, query: str = "") -> None:
    assert client.send("DELETE", f"/instances/{instance.pk}{query}").status_code == 204


def restore(client: ApiClient, instance: AgentInstance) -> Any:
    return client.send("POST", f"/instances/{instance.pk}/restore")


def listed(client: ApiClient) -> list[str]:
    return [row["id"] for row in client.get("/instances").json()["items"]]


def deleted(client: ApiClient) -> list[str]:
    return [row["id"] for row in client.get("/deleted").json()]


@pytest.fixture
def sub_agent(conversation: AgentInstance) -> AgentInstance:
    key = InstanceKey(owner_id=conversation.owner_id, agent="assistant", name="below", parent=key_of(conversation))
    return ensure_instance(key)


def test_it_is_nowhere_and_comes_back_as_it_was(
    as_alice: ApiClient, conversation: AgentInstance, sub_agent: AgentInstance, alice: User
) -> None:
    row = attachments.store_bytes(alice.pk, b"hello", name="a.txt")
    attachments.bind(alice.pk, [row.pk], conversation)
    turn = Turn.objects.filter(instance=conversation).get()
    before = as_alice.get(f"/instances/{conversation.pk}/messages").json()["items"]
    paths = [
        f"/instances/{conversation.pk}",
        f"/instances/{conversation.pk}/messages",
        f"/instances/{conversation.pk}/turns",
        f"/instances/{conversation.pk}/sessions",
        f"/instances/{conversation.pk}/shares",
        f"/instances/{sub_agent.pk}",
        f"/sessions/{conversation.session_id}/messages",
        f"/turns/{turn.pk}",
        f"/files/{row.pk}",
    ]
    assert [as_alice.get(path).status_code for path in paths] == [200] * len(paths)
    delete(as_alice, conversation)
    assert [as_alice.get(path).status_code for path in paths] == [404] * len(paths)
    assert as_alice.http.get(f"/c/{conversation.pk}").status_code == 404
    for method, path in (("PATCH", ""), ("POST", "/turns"), ("POST", "/clear"), ("DELETE", "")):
        body: Any = {"message": {"parts": [{"type": "text", "text": "x"}]}} if path == "/turns" else {}
        assert as_alice.send(method, f"/instances/{conversation.pk}{path}", body).status_code == 404
    assert (listed(as_alice), deleted(as_alice)) == ([], [conversation.pk])

    assert restore(as_alice, conversation).status_code == 200
    assert [as_alice.get(path).status_code for path in paths] == [200] * len(paths)
    assert as_alice.get(f"/instances/{conversation.pk}/messages").json()["items"] == before
    assert (listed(as_alice), deleted(as_alice)) == ([conversation.pk], [])
    assert restore(as_alice, conversation).status_code == 200  # twice is once


def test_search_finds_nothing_of_it(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert as_alice.get("/search?q=a1").json()["items"]
    delete(as_alice, conversation)
    assert as_alice.get("/search?q=a1").json()["items"] == []
    assert search("a1", owner_id=conversation.owner_id).hits == []  # as agents look for what was said elsewhere
    restore(as_alice, conversation)
    assert as_alice.get("/search?q=a1").json()["items"]


def test_its_name_is_free_and_it_takes_another_where_it_is_taken(
    as_alice: ApiClient, conversation: AgentInstance, sub_agent: AgentInstance
) -> None:
    delete(as_alice, conversation)
    again = as_alice.send("POST", "/instances", {"agent": conversation.agent, "name": conversation.name}).json()
    assert again["id"] != conversation.pk
    assert as_alice.get(f"/instances/{again['id']}/messages").json()["items"] == []
    assert as_alice.http.get(f"/agents/{conversation.agent}/{conversation.name}/get-messages").json() == []
    back = restore(as_alice, conversation).json()
    assert back["name"] != conversation.name
    assert len(as_alice.get(f"/instances/{conversation.pk}/messages").json()["items"]) == 2
    below = as_alice.get(f"/instances/{sub_agent.pk}").json()
    assert below["path"].startswith(f"{conversation.agent}/{back['name']}/")


def test_members_lose_it_and_have_it_again(
    as_alice: ApiClient, as_bob: ApiClient, conversation: AgentInstance, bob: User, alice: User
) -> None:
    add_member(conversation, bob.username, Role.APPROVER, by=alice.pk)
    assert listed(as_bob) == [conversation.pk]
    assert as_bob.send("DELETE", f"/instances/{conversation.pk}").status_code == 403
    delete(as_alice, conversation)
    assert listed(as_bob) == []
    assert as_bob.get(f"/instances/{conversation.pk}").status_code == 404
    assert as_bob.get("/search?q=a1").json()["items"] == []
    assert deleted(as_bob) == []
    assert restore(as_bob, conversation).status_code == 404
    assert as_bob.send("DELETE", f"/instances/{conversation.pk}?forever=true").status_code == 404
    restore(as_alice, conversation)
    assert listed(as_bob) == [conversation.pk]


def test_what_runs_stops_and_schedules_wait(
    as_alice: ApiClient, conversation: AgentInstance, running: Turn, alice: User
) -> None:
    instance = running.instance
    timing = Timing(kind=ScheduleKind.INTERVAL, spec="3600")
    drafts = [ScheduleDraft(scope=instance.pk, timing=timing, function="x", owner_id=alice.pk) for _ in range(2)]
    kept, held = (create_schedule(draft)[0] for draft in drafts)
    Schedule.objects.filter(pk=held.pk).update(status=ScheduleStatus.PAUSED)
    delete(as_alice, instance)
    fiber = Fiber.objects.get(pk=running.fiber_id)
    assert fiber.cancel_requested_at is not None
    statuses = dict(Schedule.objects.values_list("pk", "status"))
    assert statuses == {kept.pk: ScheduleStatus.PAUSED, held.pk: ScheduleStatus.PAUSED}
    restore(as_alice, instance)
    statuses = dict(Schedule.objects.values_list("pk", "status"))
    assert statuses == {kept.pk: ScheduleStatus.ACTIVE, held.pk: ScheduleStatus.PAUSED}  # as the person left it


def test_its_questions_are_not_asked(as_alice: ApiClient, conversation: AgentInstance) -> None:
    ask(conversation, "c1", lasting=True)
    assert as_alice.get("/approvals").json()["count"] == 1
    delete(as_alice, conversation)
    assert as_alice.get("/approvals").json() == {"items": [], "count": 0, "next_cursor": None}


def test_links_for_readers_end_for_good(as_alice: ApiClient, conversation: AgentInstance) -> None:
    _, secret = make_link(conversation, NewShare(days=1))
    delete(as_alice, conversation)
    assert Client().get(f"/shared/{secret}").status_code == 404
    assert as_alice.get("/shares").json() == []
    restore(as_alice, conversation)
    assert Client().get(f"/shared/{secret}").status_code == 404
    assert ShareLink.objects.filter(revoked_at=None).count() == 0


def test_forever_removes_it_at_once_or_later(
    as_alice: ApiClient, conversation: AgentInstance, sub_agent: AgentInstance
) -> None:
    delete(as_alice, conversation, "?forever=true")
    assert AgentInstance.everything.count() == 0
    assert Message.objects.count() == 0


def test_what_is_in_deleted_can_be_removed_for_good_and_nothing_else_goes(
    as_alice: ApiClient, conversation: AgentInstance, sub_agent: AgentInstance
) -> None:
    delete(as_alice, conversation)
    again = ensure_instance(
        key_of(AgentInstance(owner_id=conversation.owner_id, agent="assistant", name=conversation.name))
    )
    say(again, "q9", "a9")
    delete(as_alice, conversation, "?forever=true")
    assert [row.pk for row in AgentInstance.everything.all()] == [again.pk]
    assert [row.message_id for row in Message.objects.order_by("pk")] == ["q9", "a9"]
    assert deleted(as_alice) == []
    assert restore(as_alice, conversation).status_code == 404


def test_a_sub_agent_is_removed_at_once(
    as_alice: ApiClient, conversation: AgentInstance, sub_agent: AgentInstance
) -> None:
    delete(as_alice, sub_agent)
    assert [row.pk for row in AgentInstance.everything.all()] == [conversation.pk]


def test_it_is_kept_for_thirty_days(as_alice: ApiClient, conversation: AgentInstance) -> None:
    delete(as_alice, conversation)
    (policy,) = [each for each in POLICIES if each.name == "deleted"]
    mine = AgentInstance.everything.filter(pk=conversation.pk)
    mine.update(deleted_at=timezone.now() - timedelta(days=KEPT_DAYS - 1))
    assert (policy.count(), prune_deleted()) == (0, 0)
    mine.update(deleted_at=timezone.now() - timedelta(days=KEPT_DAYS, minutes=1))
    assert (policy.count(), prune_deleted()) == (1, 1)
    assert not mine.exists()
    assert not Message.objects.exists()


def test_quotas_count_it(as_alice: ApiClient, conversation: AgentInstance) -> None:
    delete(as_alice, conversation)
    with override_settings(THINK_INSTANCES_PER_USER=1):
        assert as_alice.send("POST", "/instances", {"agent": "assistant"}).status_code == 429
        delete(as_alice, conversation, "?forever=true")
        assert as_alice.send("POST", "/instances", {"agent": "assistant"}).status_code == 201


def test_nothing_is_left_of_a_person_who_is_gone(
    as_alice: ApiClient, conversation: AgentInstance, sub_agent: AgentInstance, alice: User
) -> None:
    row = attachments.store_bytes(alice.pk, b"hello", name="a.txt")
    attachments.bind(alice.pk, [row.pk], conversation)
    interrupted_fiber(alice, conversation)
    delete(as_alice, conversation)
    alice.delete()
    assert not AgentInstance.everything.exists()
    assert not Message.objects.exists()
    assert not Attachment.objects.exists()


def test_the_list_costs_one_query_and_pages_by_time(as_alice: ApiClient, alice: User, make_instance: Any) -> None:
    rows = [make_instance(alice, f"talk{number}", title=f"Talk {number}") for number in range(3)]
    for row in rows:
        put_into_deleted([row])
    with CaptureQueriesContext(connection) as caught:
        found = as_alice.get("/deleted").json()
    assert [each["title"] for each in found] == ["Talk 2", "Talk 1", "Talk 0"]
    assert len([each for each in caught if "deleted_at" in each["sql"]]) == 1
    rest = as_alice.http.get("/api/v1/deleted", {"before": found[0]["deleted_at"], "limit": 1}).json()
    assert [each["title"] for each in rest] == ["Talk 1"]
