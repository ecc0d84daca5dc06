"""Members of a conversation: who is one, what they see of it, and how it ends."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.agent.base import InstanceKey
from chat.errors import InputInvalid
from chat.files import attachments
from chat.instances.rows import ensure_instance, key_of
from chat.members import services
from chat.members.services import add_member
from chat.models import AgentInstance, Membership, Role
from chat.operations.removal import remove_all_of_owner
from tests.db.chat.conftest import ApiClient, say


@pytest.fixture
def shared(conversation: AgentInstance, alice: User, bob: User) -> Membership:
    """Bob's reading role in Alice's conversation."""
    return add_member(conversation, bob.username, Role.READER, by=alice.pk)


def test_people_are_the_owner_and_the_members(as_alice: ApiClient, conversation: AgentInstance, bob: User) -> None:
    path = f"/instances/{conversation.pk}/members"
    made = as_alice.send("POST", path, {"name": bob.username, "role": "writer"})
    assert made.status_code == 201
    found = as_alice.get(path).json()
    assert found["role"] == "owner"
    assert [(each["name"], each["role"], each["is_you"], each["invited_by"]) for each in found["items"]] == [
        ("alice", "owner", True, None),
        (bob.username, "writer", False, "alice"),
    ]
    again = as_alice.send("POST", path, {"name": bob.username, "role": "reader"})  # the same person has one role
    assert again.json() == {"id": made.json()["id"], "instance_id": conversation.pk, "role": "reader"}


@pytest.mark.parametrize(("name", "role"), [("alice", "reader"), ("no-such-person", "reader"), ("bob", "owner")])
def test_who_cannot_be_added(as_alice: ApiClient, conversation: AgentInstance, bob: User, name: str, role: str) -> None:
    reply = as_alice.send("POST", f"/instances/{conversation.pk}/members", {"name": name, "role": role})
    assert reply.status_code == 422
    assert not Membership.objects.exists()


def test_there_is_room_for_so_many(
    as_alice: ApiClient, conversation: AgentInstance, shared: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_MEMBERS", 1)
    User.objects.create_user("carol")
    path = f"/instances/{conversation.pk}/members"
    assert as_alice.send("POST", path, {"name": "carol"}).status_code == 422
    assert as_alice.send("DELETE", f"{path}/{shared.pk}").status_code == 204
    assert as_alice.send("POST", path, {"name": "carol"}).status_code == 201


def test_the_list_shows_what_is_shared_without_what_is_the_owners(
    as_alice: ApiClient,
    as_bob: ApiClient,
    conversation: AgentInstance,
    shared: Membership,
    bob: User,
    make_instance: Callable[..., AgentInstance],
) -> None:
    his = make_instance(bob, "his")
    as_alice.send("PATCH", f"/instances/{conversation.pk}", {"pinned": True})
    found = {item["id"]: item for item in as_bob.get("/instances").json()["items"]}
    assert set(found) == {conversation.pk, his.pk}
    assert (found[his.pk]["role"], found[his.pk]["is_shared"]) == ("owner", False)
    line = found[conversation.pk]
    assert (line["role"], line["is_shared"], line["pinned_at"], line["is_unread"]) == ("reader", True, None, False)
    assert as_bob.get("/instances?pinned=true").json()["items"] == []
    assert [item["id"] for item in as_alice.get("/instances").json()["items"]] == [conversation.pk]
    assert as_bob.send("POST", f"/instances/{conversation.pk}/leave").status_code == 204
    assert [item["id"] for item in as_bob.get("/instances").json()["items"]] == [his.pk]


def test_a_list_of_shared_conversations_costs_no_query_for_each(
    as_bob: ApiClient,
    alice: User,
    bob: User,
    make_instance: Callable[..., AgentInstance],
) -> None:

    counts = []
    for _ in range(2):
        for _ in range(3):
            add_member(make_instance(alice), bob.username, Role.READER, by=alice.pk)
        with CaptureQueriesContext(connection) as asked:
            as_bob.get("/instances")
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_a_sub_agent_has_the_members_of_its_root(
    as_bob: ApiClient, conversation: AgentInstance, shared: Membership, alice: User
) -> None:
    key = key_of(conversation)
    below = ensure_instance(InstanceKey(owner_id=alice.pk, agent="assistant", name="below", parent=key))
    lowest = ensure_instance(InstanceKey(owner_id=alice.pk, agent="assistant", name="lowest", parent=key_of(below)))
    say(lowest, "q2", "a2")
    assert "text of a2" in as_bob.get(f"/instances/{lowest.pk}/messages").content.decode()
    [line] = as_bob.get(f"/instances?parent={below.pk}").json()["items"]
    assert (line["id"], line["role"]) == (lowest.pk, "reader")
    people = as_bob.get(f"/instances/{lowest.pk}/members").json()
    assert [each["name"] for each in people["items"]] == ["alice", "bob"]
    with pytest.raises(InputInvalid):
        add_member(below, "bob", Role.WRITER, by=alice.pk)
    services.remove_member(conversation, shared.pk)
    assert as_bob.get(f"/instances/{lowest.pk}/messages").status_code == 404


def test_a_file_in_a_shared_message_is_its_owners_to_remove(
    as_bob: ApiClient, conversation: AgentInstance, shared: Membership, alice: User
) -> None:
    from chat.files import attachments

    file = attachments.store_bytes(alice.pk, b"words", name="a.txt")
    assert as_bob.get(f"/files/{file.pk}").status_code == 404  # in no message yet
    attachments.claim(alice.pk, [file.pk], conversation)
    assert as_bob.get(f"/files/{file.pk}").status_code == 200
    assert as_bob.send("DELETE", f"/files/{file.pk}").status_code == 403


def test_files_stay_with_everyone_after_a_fork(
    as_alice: ApiClient, as_bob: ApiClient, conversation: AgentInstance, shared: Membership, alice: User, bob: User
) -> None:
    services.change_role(conversation, shared.pk, Role.WRITER)
    file = attachments.store_bytes(bob.pk, b"his words", name="his.txt")
    part = {"type": "file", "url": attachments.url_of(file.pk), "mediaType": "text/plain"}
    sent = as_bob.send("POST", f"/instances/{conversation.pk}/turns", {"message": {"parts": [part]}})
    assert sent.status_code == 202
    [waiting] = as_alice.get(f"/instances/{conversation.pk}/messages").json()["queued"]
    people = as_alice.get(f"/instances/{conversation.pk}/members").json()["items"]
    assert [each["name"] for each in people if each["author"] == waiting["metadata"]["thinkAuthor"]] == ["bob"]
    assert as_alice.get(f"/files/{file.pk}").status_code == 200
    assert attachments.load_for_model(attachments.url_of(file.pk), alice.pk).data == b"his words"
    assert as_alice.send("POST", f"/instances/{conversation.pk}/fork", {"message_id": "a1"}).status_code == 201
    stranger = ApiClient(User.objects.create_user("carol"))
    assert [person.get(f"/files/{file.pk}").status_code for person in (as_alice, as_bob, stranger)] == [200, 200, 404]


def test_membership_ends_with_the_conversation_and_with_the_person(
    conversation: AgentInstance, shared: Membership, alice: User, bob: User
) -> None:
    services.invite(conversation, Role.READER, by=alice.pk, days=1)
    bob.delete()
    assert not Membership.objects.exists()
    remove_all_of_owner(alice.pk)
    assert not AgentInstance.objects.exists()
