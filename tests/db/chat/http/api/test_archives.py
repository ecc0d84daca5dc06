"""Archives of other products through the API: upload, preview, import, report; crashes, limits, other people's."""

import io
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from chat.files.attachments import attachment_id, read_bytes
from chat.models import AgentInstance, ArchiveImport, Attachment, ImportedConversation
from chat.operations import archives as operations
from chat.operations.archives import FOLDER, prune_archives
from fibers.models import Fiber
from fibers.testing import crash_after
from sessions_app.models import Message, Session
from tests import archives
from tests.db.chat.conftest import ApiClient
from tests.db.chat.http.api.archive_calls import imported, looked_through, start, upload, work
from thinkproject.kernel.object_storage import object_storage

pytestmark = pytest.mark.django_db(transaction=True)


def texts(client: ApiClient, title: str) -> list[tuple[str, list[str]]]:
    """The shown path of a conversation, each message by its role and the texts or kinds of its parts."""
    instance = AgentInstance.objects.get(title=title)
    items = client.get(f"/instances/{instance.pk}/messages").json()["items"]
    return [(item["role"], [part.get("text", part["type"]) for part in item["parts"]]) for item in items]


def stored_objects() -> list[str]:
    store = object_storage()
    return store.listdir(FOLDER)[1] if store.exists(FOLDER) else []


def test_chatgpt_comes_in_whole(as_alice: ApiClient, alice: User) -> None:
    before = stored_objects()
    ready = looked_through(as_alice, archives.chatgpt_zip())
    assert ready["preview"] == {
        "products": {"chatgpt": 2},
        "conversation_count": 2,
        "known_count": 0,
        "grown_count": 0,
        "message_count": 9,
        "file_count": 2,
        "unreadable_count": 1,
        "unreadable": [{"name": "Nothing", "reason": "It has no messages."}],
        "left_out": {"empty": 3, "hidden": 1, "unknown": 1},
    }
    assert not AgentInstance.objects.exists()
    start(as_alice, ready["id"])
    assert start(as_alice, ready["id"]).json()["status"] == "importing"
    work()
    done = as_alice.get(f"/archives/{ready['id']}").json()
    report = done["report"]
    assert (done["status"], report["added_count"], report["message_count"], report["file_count"]) == ("done", 2, 9, 2)
    assert report["unreadable"] == ready["preview"]["unreadable"]
    assert texts(as_alice, "Trip") == [("user", ["file", "Where is this?"]), ("assistant", ["Perhaps Linz."])]
    trip = AgentInstance.objects.get(title="Trip")
    assert Message.objects.filter(session_id=trip.session_id).count() == 3
    assert (trip.active_at.timestamp(), trip.created_at.timestamp()) == (1767000900.25, 1767000000.5)
    assert AgentInstance.objects.get(title="Sum").archived_at is not None
    file = as_alice.get(f"/instances/{trip.pk}/messages").json()["items"][0]["parts"][0]
    row = Attachment.objects.get(pk=attachment_id(file["url"]))
    assert (row.owner_id, row.instance_id, row.name, row.media_type) == (alice.pk, trip.pk, "beach.png", "image/png")
    assert read_bytes(row) == archives.PNG
    assert stored_objects() == before


@pytest.mark.parametrize(
    ("data", "count", "messages"),
    [
        (archives.chatgpt_parts_zip(), 11, 36),
        (archives.claude_zip(), 2, 7),
        (archives.encoded(archives.claude_list()), 2, 7),
        (archives.encoded(archives.open_webui_list()), 2, 7),
        (archives.encoded(archives.open_webui_list()[0]), 1, 5),
        (archives.encoded(archives.librechat_flat()), 1, 5),
        (archives.zipped({"a.json": archives.librechat_tree(), "b.json": archives.librechat_flat()}), 2, 9),
    ],
    ids=["chatgpt-parts", "claude-zip", "claude-json", "open-webui", "open-webui-one", "librechat", "librechat-zip"],
)
def test_the_same_archive_twice_adds_nothing(as_alice: ApiClient, data: bytes, count: int, messages: int) -> None:
    first = imported(as_alice, data)
    assert (first["status"], first["report"]["added_count"], first["report"]["message_count"]) == (
        "done",
        count,
        messages,
    )
    rows = (AgentInstance.objects.count(), Session.objects.count(), Message.objects.count())
    assert rows == (count, count, messages)
    again = looked_through(as_alice, data)
    assert again["preview"]["known_count"] == count
    start(as_alice, again["id"])
    work()
    report = as_alice.get(f"/archives/{again['id']}").json()["report"]
    assert (report["added_count"], report["known_count"]) == (0, count)
    assert (AgentInstance.objects.count(), Session.objects.count(), Message.objects.count()) == rows


def test_branches_calls_and_reasoning_are_stored(as_alice: ApiClient) -> None:
    imported(as_alice, archives.encoded(archives.open_webui_list()), "chats.json")
    weather = AgentInstance.objects.get(title="Weather")
    assert weather.pinned_at is not None
    rows = {row.message_id: row for row in Message.objects.filter(session_id=weather.session_id)}
    assert {key: row.parent and row.parent.message_id for key, row in rows.items()} == {
        "u1": None,
        "b1": "u1",
        "b2": "u1",
        "u3": "b1",
        "b4": "u3",
    }
    kinds = [part["type"] for part in rows["b1"].content["parts"]]
    assert kinds == ["reasoning", "dynamic-tool", "text"]
    assert [path[0] for path in texts(as_alice, "Weather")] == ["user", "assistant", "user", "assistant"]
    files = [part["filename"] for part in rows["u1"].content["parts"] if part["type"] == "file"]
    assert files == ["image", "a.txt"]


def test_missing_files_stand_in_the_text_and_in_the_report(as_alice: ApiClient) -> None:
    done = imported(as_alice, archives.chatgpt_parts_zip())
    assert done["report"]["left_out"]["file"] == 11
    assert texts(as_alice, "Sum")[-1][0] == "assistant"
    assert texts_of_first(as_alice)[0] == "[beach.png]"


def texts_of_first(client: ApiClient) -> list[str]:
    instance = AgentInstance.objects.filter(title="Trip").earliest("pk")
    items = client.get(f"/instances/{instance.pk}/messages").json()["items"]
    return [part.get("text", "") for part in items[0]["parts"]]


def test_a_newer_archive_says_what_has_grown(as_alice: ApiClient) -> None:
    imported(as_alice, archives.encoded([archives.gpt_trip()]), "conversations.json")
    longer = archives.gpt_trip()
    key, node = archives.gpt_node("n6", "n5", role="user", content="Sure?")
    longer["mapping"][key] = node
    again = looked_through(as_alice, archives.encoded([longer]), "conversations.json")
    assert (again["preview"]["known_count"], again["preview"]["grown_count"]) == (1, 1)


def test_what_was_removed_can_be_imported_again(as_alice: ApiClient) -> None:
    data = archives.encoded([archives.gpt_trip()])
    imported(as_alice, data)
    as_alice.send("DELETE", f"/instances/{AgentInstance.objects.get().pk}")
    assert not ImportedConversation.objects.exists()
    assert imported(as_alice, data)["report"]["added_count"] == 1


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("point", ["conversation:conv-3", "conversation:conv-0", "ending"])
def test_a_worker_that_dies_loses_and_doubles_nothing(as_alice: ApiClient, point: str, times: int) -> None:
    ready = looked_through(as_alice, archives.chatgpt_parts_zip())
    start(as_alice, ready["id"])
    with crash_after(point, times=times):
        work()
    done = as_alice.get(f"/archives/{ready['id']}").json()
    assert (done["status"], done["report"]["added_count"], done["report"]["message_count"]) == ("done", 11, 36)
    assert AgentInstance.objects.count() == ImportedConversation.objects.count() == 11
    assert Session.objects.exclude(scope__startswith="import:").count() == 11


def test_a_worker_that_dies_while_it_looks_begins_again(as_alice: ApiClient) -> None:
    made = upload(as_alice, archives.chatgpt_zip()).json()
    with crash_after("ending"):
        work()
    assert as_alice.get(f"/archives/{made['id']}").json()["preview"]["conversation_count"] == 2


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"hello", "notes.txt"),
        (b"[]", "conversations.json"),
        (b"", "conversations.json"),
        (archives.zipped({"user.json": {"id": 1}}), "export.zip"),
        (archives.encoded([{"mapping": {}}]), "conversations.json"),
    ],
    ids=["text", "empty-list", "empty", "no-list", "empty-mapping"],
)
def test_nothing_to_import_is_no_success(as_alice: ApiClient, data: bytes, name: str) -> None:
    made = upload(as_alice, data or b" ", name)
    work()
    found = as_alice.get(f"/archives/{made.json()['id']}").json()
    assert found["status"] == "failed"
    assert found["error"] == "There are no conversations in this file that can be read."
    refused = start(as_alice, found["id"])
    assert (refused.status_code, AgentInstance.objects.count()) == (422, 0)


@pytest.mark.parametrize("name", ["../conversations.json", "/conversations.json"])
def test_bad_names_are_refused_at_the_door(as_alice: ApiClient, name: str) -> None:
    before = stored_objects()
    refused = upload(as_alice, archives.zipped({name: [archives.gpt_trip()]}))
    assert (refused.status_code, ArchiveImport.objects.count(), stored_objects()) == (422, 0, before)
    assert "not allowed" in refused.json()["detail"]


def test_a_bomb_is_refused_at_the_door(as_alice: ApiClient) -> None:
    refused = upload(as_alice, archives.zipped({"conversations.json": b"[" + b" " * 50_000_000 + b"]"}))
    assert (refused.status_code, ArchiveImport.objects.count()) == (422, 0)


def test_the_size_is_limited_and_said_before(as_alice: ApiClient, settings: Any) -> None:
    settings.THINK_ARCHIVE_MAX_BYTES = 1024 * 1024
    assert as_alice.get("/archives").json() == {"items": [], "max_bytes": 1024 * 1024}
    refused = upload(as_alice, b"[" + b" " * 1024 * 1024)
    assert (refused.status_code, refused.json()["detail"]) == (422, "An archive has at most 1 MB.")


def test_a_user_has_a_few_uploads_at_a_time(as_alice: ApiClient, settings: Any) -> None:
    settings.THINK_ARCHIVES_PER_USER = 1
    first = upload(as_alice, archives.chatgpt_zip())
    assert upload(as_alice, archives.chatgpt_zip()).status_code == 429
    assert as_alice.send("DELETE", f"/archives/{first.json()['id']}").status_code == 204
    assert upload(as_alice, archives.chatgpt_zip()).status_code == 201


@pytest.mark.parametrize("limit", ["THINK_INSTANCES_PER_USER", "THINK_MESSAGES_PER_USER"])
def test_a_quota_stops_the_import_with_what_is_there_and_it_goes_on_later(
    as_alice: ApiClient, settings: Any, limit: str
) -> None:
    ready = looked_through(as_alice, archives.chatgpt_parts_zip())
    setattr(settings, limit, 7)
    start(as_alice, ready["id"])
    work()
    stopped = as_alice.get(f"/archives/{ready['id']}").json()
    added = AgentInstance.objects.count()
    assert (stopped["status"], stopped["report"]["added_count"]) == ("stopped", added)
    assert 0 < added < 11
    assert stopped["report"]["stopped"] == stopped["error"]
    setattr(settings, limit, 0)
    start(as_alice, ready["id"])
    work()
    done = as_alice.get(f"/archives/{ready['id']}").json()
    assert (done["status"], done["report"]["added_count"], AgentInstance.objects.count()) == ("done", 11, 11)


def test_the_limit_of_a_minute_does_not_hold_an_import_back(as_alice: ApiClient, settings: Any) -> None:
    settings.THINK_MESSAGES_PER_MINUTE = 5
    assert imported(as_alice, archives.chatgpt_parts_zip())["report"]["added_count"] == 11


def test_it_can_be_stopped_and_started_again(as_alice: ApiClient) -> None:
    ready = looked_through(as_alice, archives.chatgpt_zip())
    start(as_alice, ready["id"])
    assert as_alice.send("POST", f"/archives/{ready['id']}/stop").json()["status"] == "stopped"
    work()
    assert not AgentInstance.objects.exists()
    start(as_alice, ready["id"])
    work()
    assert as_alice.get(f"/archives/{ready['id']}").json()["status"] == "done"


def test_another_users_import_is_not_there(as_alice: ApiClient, as_bob: ApiClient) -> None:
    ready = looked_through(as_alice, archives.chatgpt_zip())
    address = f"/archives/{ready['id']}"
    answers = [
        as_bob.get(address),
        as_bob.send("POST", f"{address}/start", {"agent": "assistant"}),
        as_bob.send("POST", f"{address}/stop"),
        as_bob.send("DELETE", address),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert as_bob.get("/archives").json()["items"] == []
    assert [item["id"] for item in as_alice.get("/archives").json()["items"]] == [ready["id"]]
    assert as_alice.get(address).json()["status"] == "ready"


def test_two_users_have_the_same_archive_each_for_themselves(as_alice: ApiClient, as_bob: ApiClient) -> None:
    for client in (as_alice, as_bob):
        assert imported(client, archives.chatgpt_zip())["report"]["added_count"] == 2


def test_an_unknown_agent_is_refused(as_alice: ApiClient) -> None:
    ready = looked_through(as_alice, archives.chatgpt_zip())
    refused = as_alice.send("POST", f"/archives/{ready['id']}/start", {"agent": "no-such"})
    assert (refused.status_code, AgentInstance.objects.count()) == (404, 0)


def test_uploads_that_wait_too_long_are_removed(as_alice: ApiClient, monkeypatch: Any) -> None:
    ready = looked_through(as_alice, archives.chatgpt_zip())
    name = ArchiveImport.objects.get().storage_name
    assert prune_archives() == 0
    monkeypatch.setattr(operations, "ORPHAN_HOURS", 0)
    assert prune_archives(dry_run=True) > 0
    assert object_storage().exists(name)
    assert (prune_archives() > 0, prune_archives(), object_storage().exists(name)) == (True, 0, False)
    assert start(as_alice, ready["id"]).status_code == 422


def test_the_command_previews_and_imports(as_alice: ApiClient, alice: User, tmp_path: Any) -> None:
    path = tmp_path / "export.zip"
    path.write_bytes(archives.chatgpt_zip())
    out = io.StringIO()
    call_command("import_archive", str(path), "--user", "alice", "--preview", stdout=out)
    assert "2 conversations in the archive, 0 are here already, 1 cannot be read" in out.getvalue()
    assert (AgentInstance.objects.count(), ArchiveImport.objects.count()) == (0, 0)
    out = io.StringIO()
    call_command("import_archive", str(path), "--user", "alice", stdout=out)
    assert "2 conversations added" in out.getvalue()
    assert "cannot be read: Nothing: It has no messages." in out.getvalue()
    assert AgentInstance.objects.filter(owner=alice).count() == 2
    path.write_bytes(b"hello")
    with pytest.raises(CommandError, match="no conversations"):
        call_command("import_archive", str(path), "--user", "alice", stdout=out)


def test_no_work_is_left(as_alice: ApiClient) -> None:
    imported(as_alice, archives.chatgpt_zip())
    assert not Fiber.objects.filter(finished_at=None).exists()
