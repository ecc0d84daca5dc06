"""Imports in the admin: how far each is, what was left out, and no titles; stopping and removing."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.models import AgentInstance, ArchiveImport
from tests import archives
from tests.db.chat.conftest import ApiClient
from tests.db.chat.http.api.archive_calls import imported, looked_through, upload
from tests.db.chat.staff import staff

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/admin/think_chat/archiveimport/"


def shown(client: Client, path: str = "") -> str:
    reply = client.get(URL + path)
    assert reply.status_code == 200
    return reply.content.decode()


def act(client: Client, action: str, row_id: str, *, is_sure: bool = False) -> None:
    sure = {"confirmed": "yes"} if is_sure else {}
    client.post(URL, {"action": action, "_selected_action": [row_id], **sure}, follow=True)


def test_each_state_is_seen_in_few_queries(as_alice: ApiClient, as_bob: ApiClient) -> None:
    imported(as_alice, archives.chatgpt_zip(), "all.zip")
    looked_through(as_alice, archives.claude_zip(), "claude.zip")
    looked_through(as_bob, b'{"a": 1}', "none.json")
    upload(as_bob, archives.claude_zip(), "fresh.zip")
    _, client = staff("view_archiveimport")
    with CaptureQueriesContext(connection) as first:
        page = shown(client)
    for words in ("all.zip", "Imported", "claude.zip", "Waits for the person", "none.json", "Failed", "Being read"):
        assert words in page
    upload(as_bob, archives.claude_zip(), "more.zip")
    upload(as_alice, archives.claude_zip(), "another.zip")
    with CaptureQueriesContext(connection) as second:
        shown(client)
    assert len(second) == len(first)


def test_a_row_shows_counts_and_no_title_of_a_conversation(as_alice: ApiClient) -> None:
    done = imported(as_alice, archives.chatgpt_zip(), "all.zip")
    _, client = staff("view_archiveimport")
    page = shown(client, f"{done['id']}/change/")
    assert "added_count" in page
    assert "unreadable_count" in page
    assert "Nothing" not in page  # the title of the one that cannot be read
    assert "Trip" not in page


def test_who_may_look_may_not_stop_or_remove(as_alice: ApiClient, alice: User) -> None:
    row_id = upload(as_alice, archives.claude_zip()).json()["id"]
    user, client = staff("view_archiveimport")
    act(client, "stop_imports", row_id)
    act(client, "remove_imports", row_id, is_sure=True)
    assert as_alice.get(f"/archives/{row_id}").json()["status"] == "reading"
    user.is_superuser = True
    user.save()
    act(client, "stop_imports", row_id)
    assert as_alice.get(f"/archives/{row_id}").json()["status"] == "failed"
    act(client, "remove_imports", row_id)
    assert ArchiveImport.objects.filter(owner=alice).exists(), "it asks first"
    act(client, "remove_imports", row_id, is_sure=True)
    assert not ArchiveImport.objects.exists()


def test_conversations_stay_when_an_import_is_removed(as_alice: ApiClient) -> None:
    done = imported(as_alice, archives.claude_zip())
    user, client = staff()
    user.is_superuser = True
    user.save()
    act(client, "remove_imports", done["id"], is_sure=True)
    assert not ArchiveImport.objects.exists()
    assert AgentInstance.objects.count() == 2
