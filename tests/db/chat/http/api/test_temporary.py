"""Temporary conversations: in no list and no search, without a trace in memory, gone within a day unless kept."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.agent.values.schedules import Work
from chat.conversations.fork import fork_instance
from chat.files import attachments
from chat.instances.rows import ensure_instance, key_of
from chat.models import AgentInstance, Attachment
from chat.operations.retention import POLICIES
from chat.operations.temporary import KEPT_HOURS, prune_temporary
from chat.schedules.service import draft_of
from chat.turns.background.titles import needs_title
from fibers.core.schedules.timing import ScheduleKind, Timing
from fibers.errors import ScheduleInvalid
from sessions_app.context.history import ContextOwner
from sessions_app.context.session_context import SessionContext
from sessions_app.context.store import read_texts
from sessions_app.core.context.context_blocks import StoredText
from sessions_app.core.context.context_setup import ContextSetup
from sessions_app.errors import BlockNotWritable
from sessions_app.models import Message, Session
from sessions_app.search.query import search
from tests.db.chat.conftest import ApiClient, say


def begin(client: ApiClient, **given: Any) -> AgentInstance:
    reply = client.send("POST", "/instances", {"agent": "assistant", "temporary": True, **given})
    assert (reply.status_code, reply.json()["temporary"]) == (201, True)
    return AgentInstance.objects.get(pk=reply.json()["id"])


@pytest.fixture
def temporary(as_alice: ApiClient) -> AgentInstance:
    instance = begin(as_alice, title="Between us", title_is_provisional=True)
    say(instance, "q7", "a7")
    return instance


@pytest.fixture
def helper(temporary: AgentInstance) -> AgentInstance:
    key = InstanceKey(owner_id=temporary.owner_id, agent="assistant", name="below", parent=key_of(temporary))
    return ensure_instance(key)


def found(client: ApiClient, query: str) -> list[str]:
    return [row["message_id"] for row in client.get(f"/search?{query}").json()["items"]]


def listed(client: ApiClient, query: str = "") -> list[str]:
    return [row["id"] for row in client.get(f"/instances{query}").json()["items"]]


def test_no_list_and_no_search_has_it(
    as_alice: ApiClient, conversation: AgentInstance, temporary: AgentInstance, helper: AgentInstance
) -> None:
    assert helper.is_temporary
    say(helper, "q8", "a7 below")
    assert listed(as_alice) == [conversation.pk]
    assert listed(as_alice, "?search=between") == listed(as_alice, "?archived=true") == []
    assert found(as_alice, "q=a7") == []
    assert search("a7", owner_id=temporary.owner_id).hits == []  # as agents look for what was said elsewhere
    assert as_alice.get(f"/instances/{temporary.pk}").json()["temporary"] is True
    assert found(as_alice, f"q=a7&instance={temporary.pk}") == ["a7"]  # within it one may look


def test_what_is_made_of_it_is_temporary_too(temporary: AgentInstance, helper: AgentInstance) -> None:
    fork = fork_instance(temporary, "a7")
    assert fork.is_temporary
    scopes = [temporary.pk, helper.pk, fork.pk]
    assert not Session.objects.filter(scope__in=scopes, hidden_at=None).exists()


def test_only_a_new_one_is_temporary(as_alice: ApiClient, conversation: AgentInstance) -> None:
    body = {"agent": "assistant", "name": conversation.name, "temporary": True}
    assert as_alice.send("POST", "/instances", body).json()["temporary"] is False  # it was there
    assert as_alice.send("PATCH", f"/instances/{conversation.pk}", {"temporary": True}).status_code == 422
    assert as_alice.send("PATCH", f"/instances/{conversation.pk}", {"temporary": False}).status_code == 200
    assert not AgentInstance.objects.filter(is_temporary=True).exists()


@pytest.mark.django_db(transaction=True)
def test_it_reads_memory_and_writes_none(alice: User, temporary: AgentInstance, conversation: AgentInstance) -> None:
    setup = ContextSetup().with_context("memory", provider=StoredText(of="user")).with_context("notes")

    def opened(instance: AgentInstance) -> SessionContext:
        assert instance.session_id is not None
        return SessionContext(instance.session_id, setup)

    async_to_sync(opened(conversation).replace)("memory", "Likes tea.")
    context = opened(temporary)
    memory = async_to_sync(context.block)("memory")
    assert memory is not None
    assert (memory.content, memory.writable) == ("Likes tea.", False)
    for verb in (context.replace, context.append):
        with pytest.raises(BlockNotWritable):
            async_to_sync(verb)("memory", "Likes coffee.")
    async_to_sync(context.replace)("notes", "Of this conversation.")  # it goes with it
    assert read_texts(ContextOwner(owner_id=alice.pk))["memory"].content == "Likes tea."


def test_nothing_that_lasts_longer_is_made_of_it(as_alice: ApiClient, temporary: AgentInstance, bob: User) -> None:
    base = f"/instances/{temporary.pk}"
    for path, body in (
        ("shares", {"days": 1}),
        ("invitations", {"role": "reader", "days": 1}),
        ("members", {"name": bob.username, "role": "reader"}),
    ):
        reply = as_alice.send("POST", f"{base}/{path}", body)
        assert reply.status_code == 422, (path, reply.json())
        assert "temporary conversation" in reply.json()["detail"], path
    timing = Timing(kind=ScheduleKind.INTERVAL, spec="3600")
    with pytest.raises(ScheduleInvalid, match="temporary conversation"):
        draft_of(temporary, timing, Work(prompt="Hello"))


def test_its_usage_has_no_name(as_alice: ApiClient, temporary: AgentInstance, conversation: AgentInstance) -> None:
    report = as_alice.get("/usage?days=1").json()
    assert report["total"]["turn_count"] == 2
    rows = {row["key"]: (row["label"], row["agent"]) for row in report["by_conversation"]}
    assert rows == {"": ("", ""), conversation.pk: ("A talk", "assistant")}
    assert "Between us" not in str(report)


def test_no_model_writes_a_title_for_it(temporary: AgentInstance) -> None:
    assert not needs_title(temporary)
    temporary.is_temporary = False
    assert needs_title(temporary)


def test_it_is_gone_within_a_day_of_its_last_message(
    alice: User, temporary: AgentInstance, helper: AgentInstance
) -> None:
    row = attachments.store_bytes(alice.pk, b"hello", name="a.txt")
    attachments.bind(alice.pk, [row.pk], temporary)
    (policy,) = [each for each in POLICIES if each.name == "temporary"]
    mine = AgentInstance.objects.filter(pk=temporary.pk)
    mine.update(active_at=timezone.now() - timedelta(hours=KEPT_HOURS - 2))
    assert (policy.count(), prune_temporary()) == (0, 0)
    mine.update(active_at=timezone.now() - timedelta(hours=KEPT_HOURS - 1, minutes=1))  # the next round is in an hour
    assert (policy.count(), prune_temporary()) == (1, 1)
    assert not AgentInstance.everything.exists()
    assert not Message.objects.exists()
    assert not Attachment.objects.exists()


def test_deleting_it_leaves_nothing(as_alice: ApiClient, temporary: AgentInstance, helper: AgentInstance) -> None:
    assert as_alice.send("DELETE", f"/instances/{temporary.pk}").status_code == 204
    assert as_alice.get("/deleted").json() == []
    assert not AgentInstance.everything.exists()
    assert not Message.objects.exists()


def test_many_at_once_are_kept_apart(
    as_alice: ApiClient, temporary: AgentInstance, conversation: AgentInstance
) -> None:
    reply = as_alice.send("POST", "/bulk/delete", {"ids": [temporary.pk, conversation.pk]})
    assert [row["outcome"] for row in reply.json()] == ["done", "done"]
    assert [row.pk for row in AgentInstance.everything.all()] == [conversation.pk]


def test_one_that_is_kept_is_as_any_other(as_alice: ApiClient, temporary: AgentInstance, helper: AgentInstance) -> None:
    kept = as_alice.send("PATCH", f"/instances/{temporary.pk}", {"temporary": False})
    assert (kept.status_code, kept.json()["temporary"]) == (200, False)
    assert listed(as_alice) == [temporary.pk]
    assert found(as_alice, "q=a7") == ["a7"]
    AgentInstance.objects.update(active_at=timezone.now() - timedelta(days=3))
    assert prune_temporary() == 0
    assert not AgentInstance.objects.filter(is_temporary=True).exists()
    assert not Session.objects.exclude(hidden_at=None).exists()


def test_a_sub_agent_is_not_kept_alone(as_alice: ApiClient, helper: AgentInstance) -> None:
    reply = as_alice.send("PATCH", f"/instances/{helper.pk}", {"temporary": False})
    assert reply.status_code == 422
    assert AgentInstance.objects.filter(is_temporary=True).count() == 2


def test_others_reach_nothing_of_it(as_bob: ApiClient, temporary: AgentInstance) -> None:
    path = f"/instances/{temporary.pk}"
    assert as_bob.get(path).status_code == 404
    assert as_bob.send("PATCH", path, {"temporary": False}).status_code == 404
    assert as_bob.send("DELETE", path).status_code == 404
    assert AgentInstance.objects.get(pk=temporary.pk).is_temporary
