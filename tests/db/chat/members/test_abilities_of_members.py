"""What members find, take along and decide besides the messages: search, exports, files, undo, questions."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient

from chat.agents import Assistant
from chat.instances.rows import ensure_instance, key_of
from chat.instances.workspaces import InstanceWorkspace, attach_workspace
from chat.members.services import add_member, remove_member
from chat.models import AgentInstance, Role, Turn
from sessions_app.models import ContextBlock, ContextEntry
from tests.db.chat.conftest import ApiClient, say
from tests.db.chat.http.api.questions import ask

FILES = "/api/v1/instances/{}/workspace/content?path=/notes.txt"


def found_by(client: ApiClient, query: str = "") -> set[str]:
    return {item["message_id"] for item in client.get(f"/search?q=text&{query}").json()["items"]}


def test_a_member_finds_what_is_shared_and_nothing_else(
    as_bob: ApiClient, alice: User, bob: User, conversation: AgentInstance, make_instance: Any
) -> None:
    other = make_instance(alice, "other")
    say(other, "q2", "a2")
    below = ensure_instance(key_of(conversation).below("assistant", "child"))
    say(below, "q3", "a3")
    say(make_instance(bob, "his"), "q4", "a4")
    assert found_by(as_bob) == {"q4", "a4"}
    member = add_member(conversation, bob.username, Role.READER, by=alice.pk)
    assert found_by(as_bob) == {"q1", "a1", "q3", "a3", "q4", "a4"}
    assert found_by(as_bob, "agent=assistant") == found_by(as_bob)
    assert found_by(as_bob, f"instance={conversation.pk}") == {"q1", "a1"}
    assert found_by(as_bob, f"session={conversation.session_id}") == {"q1", "a1"}
    assert as_bob.get(f"/search?q=text&instance={other.pk}").status_code == 404
    remove_member(conversation, member.pk)
    assert found_by(as_bob) == {"q4", "a4"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("form", ["jsonl", "markdown", "open-webui", "librechat"])
def test_a_reader_exports_the_messages_without_memory_and_costs(
    alice: User, bob: User, conversation: AgentInstance, form: str
) -> None:
    assert conversation.session_id is not None
    ContextBlock.objects.create(session_id=conversation.session_id, label="notes", content="of hers")
    ContextEntry.objects.create(session_id=conversation.session_id, label="notes", key="k", content="of hers")
    add_member(conversation, bob.username, Role.READER, by=alice.pk)
    hers, his = (_exported(user, conversation.session_id, form) for user in (alice, bob))
    assert "text of a1" in his
    if form == "jsonl":
        kinds = [{json.loads(line)["kind"] for line in text.splitlines()} for text in (hers, his)]
        assert kinds[0] - kinds[1] == {"block", "entry"}
        assert "cost" in json.loads(hers.splitlines()[0])
        assert "cost" not in json.loads(his.splitlines()[0])
    else:
        assert hers == his


def _exported(user: User, session_id: str, form: str) -> str:
    client = AsyncClient()
    client.force_login(user)

    async def read() -> str:
        response: Any = await client.get(f"/api/v1/sessions/{session_id}/export?format={form}")
        assert response.status_code == 200
        return b"".join([piece async for piece in response.streaming_content]).decode()

    return async_to_sync(read)()


@pytest.mark.django_db(transaction=True)
def test_files_that_other_conversations_use_are_the_owners(
    as_bob: ApiClient, alice: User, bob: User, conversation: AgentInstance, make_instance: Any
) -> None:
    async_to_sync(InstanceWorkspace(key_of(conversation)).write_file)("/notes.txt", "hers")
    add_member(conversation, bob.username, Role.WRITER, by=alice.pk)
    client = AsyncClient()
    client.force_login(bob)
    path = FILES.format(conversation.pk)
    assert async_to_sync(client.get)(path).status_code == 200
    below = key_of(conversation).below("assistant", "child")
    attach_workspace(below, key_of(conversation), name="default", can_write=True)
    assert async_to_sync(client.get)(path).status_code == 200  # its own sub-agent
    attach_workspace(key_of(make_instance(alice, "other")), key_of(conversation), name="default", can_write=True)
    for method in ("get", "put"):
        reply = async_to_sync(getattr(client, method))(path, headers={"Origin": "http://testserver"})
        assert (reply.status_code, json.loads(reply.content)["data"]) == (403, {"needs": "owner"})


def test_questions_of_shared_conversations_are_asked_of_approvers(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, bob: User, conversation: AgentInstance
) -> None:
    below = ensure_instance(key_of(conversation).below("assistant", "child"))
    say(below, "q2", "a2")
    ask(conversation, "c1")
    ask(below, "c2")
    for role, count in ((Role.READER, 0), (Role.WRITER, 0), (Role.APPROVER, 2)):
        member = add_member(conversation, bob.username, role, by=alice.pk)
        page = as_bob.get("/approvals").json()
        assert (page["count"], len(page["items"])) == (count, count)
    assert {(item["call_id"], item["instance_id"]) for item in page["items"]} == {
        ("c1", conversation.pk),
        ("c2", below.pk),
    }
    first = as_bob.get("/approvals?limit=1").json()
    assert [item["call_id"] for item in as_bob.get(f"/approvals?cursor={first['next_cursor']}").json()["items"]] == [
        "c1"
    ]
    remove_member(conversation, member.pk)
    assert as_bob.get("/approvals").json()["count"] == 0
    assert as_alice.get("/approvals").json()["count"] == 2


@pytest.fixture
def shared_for_approval(alice: User, bob: User, conversation: AgentInstance) -> AgentInstance:
    """Alice's conversation, with a question and Bob as an approver."""
    add_member(conversation, bob.username, Role.APPROVER, by=alice.pk)
    ask(conversation, "c1")
    return conversation


@pytest.fixture
def rule_of_class(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(Assistant, "approved_by", request.param)
    return str(request.param)


@pytest.mark.parametrize("rule_of_class", ["requester", "another"], indirect=True)
def test_questions_are_asked_of_whom_the_class_lets_answer(
    as_alice: ApiClient, as_bob: ApiClient, shared_for_approval: AgentInstance, bob: User, rule_of_class: str
) -> None:
    counts = []
    for author in ("", str(bob.pk)):
        Turn.objects.filter(instance=shared_for_approval).update(author=author)
        counts.append([client.get("/approvals").json()["count"] for client in (as_alice, as_bob)])
    assert counts == ([[1, 0], [0, 1]] if rule_of_class == "requester" else [[0, 1], [1, 0]])
