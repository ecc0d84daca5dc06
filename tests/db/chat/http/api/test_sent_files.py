"""The files of messages beside the workspace: listed, and copied into it without replacing anything."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.files import attachments
from chat.members.services import add_member
from chat.models import AgentInstance, Attachment, Role
from tests.db.chat.conftest import ApiClient

pytestmark = pytest.mark.django_db(transaction=True)


def send(client: ApiClient, instance: AgentInstance, row: Attachment) -> None:
    part = {"type": "file", "url": attachments.url_of(row.pk), "filename": row.name}
    reply = client.send("POST", f"/instances/{instance.pk}/turns", {"message": {"parts": [part]}})
    assert reply.status_code == 202, reply.content


@pytest.fixture
def sent(as_alice: ApiClient, alice: User, conversation: AgentInstance) -> Attachment:
    """A file in a message of Alice's."""
    row = attachments.store_bytes(alice.pk, b"tea", name="notes.txt")
    send(as_alice, conversation, row)
    return row


def test_files_of_messages_are_listed_the_newest_first(
    as_alice: ApiClient, alice: User, conversation: AgentInstance, sent: Attachment, django_assert_max_num_queries: Any
) -> None:
    for number in range(3):
        send(as_alice, conversation, attachments.store_bytes(alice.pk, b"x" * (number + 1), name=f"{number}.txt"))
    unsent = attachments.store_bytes(alice.pk, b"unsent", name="unsent.txt")
    with django_assert_max_num_queries(8):  # sign-in, conversation, two of the window, the rows
        listed = as_alice.get(f"/instances/{conversation.pk}/files").json()
    assert [each["name"] for each in listed] == ["2.txt", "1.txt", "0.txt", "notes.txt"]
    assert listed[-1] == {
        "id": sent.pk,
        "url": attachments.url_of(sent.pk),
        "name": "notes.txt",
        "media_type": "text/plain",
        "byte_size": 3,
        "message_id": listed[-1]["message_id"],
        "role": "user",
    }
    assert unsent.pk not in [each["id"] for each in listed]


def test_a_copy_goes_to_the_workspace_and_replaces_nothing(
    as_alice: ApiClient, conversation: AgentInstance, sent: Attachment
) -> None:
    base = f"/instances/{conversation.pk}/workspace"
    paths = []
    for directory in ("/", "/", "/in/here"):
        made = as_alice.send("POST", f"{base}/attachments", {"file_id": sent.pk, "directory": directory})
        assert made.status_code == 201, made.content
        paths.append(made.json()["path"])
    assert paths == ["/notes.txt", "/notes (2).txt", "/in/here/notes.txt"]
    assert as_alice.get(f"{base}/text?path=/notes (2).txt").json()["text"] == "tea"


def test_there_has_to_be_room_a_role_and_a_file_of_ones_own(
    as_alice: ApiClient, bob: User, conversation: AgentInstance, sent: Attachment, alice: User, settings: Any
) -> None:
    address = f"/instances/{conversation.pk}/workspace/attachments"
    foreign = attachments.store_bytes(bob.pk, b"his", name="his.txt")
    assert as_alice.send("POST", address, {"file_id": foreign.pk}).status_code == 404
    membership = add_member(conversation, bob.username, Role.READER, by=alice.pk)
    his = ApiClient(bob)
    refused = his.send("POST", address, {"file_id": sent.pk})
    assert refused.json()["code"] == "role_needed"
    assert [each["id"] for each in his.get(f"/instances/{conversation.pk}/files").json()] == [sent.pk]
    membership.role = Role.WRITER
    membership.save()
    assert his.send("POST", address, {"file_id": sent.pk}).status_code == 201
    settings.THINK_WORKSPACE_QUOTA_BYTES = 4
    full = as_alice.send("POST", address, {"file_id": sent.pk})
    assert (full.status_code, full.json()["code"]) == (409, "file_failed")
    entries = as_alice.get(f"/instances/{conversation.pk}/workspace/entries").json()["items"]
    assert [each["name"] for each in entries] == ["notes.txt"]
