"""Everything of a person's as one zip: complete, without secrets, nothing of others, and gone after some days."""

import io
import json
import zipfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from chat.access import api_tokens
from chat.conversations.data_records import RECORDS
from chat.files import attachments
from chat.instances.rows import key_of
from chat.instances.workspaces import InstanceWorkspace
from chat.members.services import add_member
from chat.models import AgentInstance, AgentMessage, DataExport, Role
from chat.operations.data_exports import FOLDER, KEPT_DAYS, prune_exports
from chat.people.projects import add_project
from fibers.models import Fiber
from fibers.testing import run_until_idle
from sessions_app.context import store
from sessions_app.context.history import ContextOwner
from sessions_app.core.context.context_blocks import Entry
from sessions_app.transfer.export import export_lines
from tests.db.chat.access_calls import client_of
from tests.db.chat.conftest import finished_export, say
from thinkproject.kernel.object_storage import object_storage
from tools_app.models import PermissionRule

ELSEWHERE = {
    "think_sessions.Session": "each is a file of its conversation",
    "think_sessions.Compaction": "a line of its history",
    "think_sessions.SessionSummary": "a line of its history",
    "think_tools.ToolCallRecord": "calls are parts of messages",
    "think_tools.ApprovalEvent": "decisions are parts of messages",
    "think_tools.Execution": "code and its result are parts of messages",
    "think_tools.ExtensionCall": "a log of what code did, which goes with its extension",
    "think_tools.BannedSource": "a decision of those who look after the site",
    "think_tools.Guard": "a state of a conversation",
    "think_tools.GuardEvent": "a state of a conversation",
    "think_tools.McpSignIn": "secrets of other services",
    "think_tools.StoredWorkspace": "each is a zip of its files",
    "think_chat.DataExport": "the export itself",
    "think_chat.TurnSeen": "a mark of what was looked at",
    "think_chat.ProviderKey": "a secret",
    "think_chat.SignInLink": "a secret",
    "think_chat.MessageCount": "counters of limits",
    "think_chat.StreamSubscription": "addresses of programs, with their secrets",
    "think_chat.SubscriptionLink": "addresses of programs",
    "think_chat.FeedHead": "a counter",
    "think_chat.ImportedConversation": "a mark of what was imported",
    "think_chat.Invitation": "a secret",
    "think_chat.Revert": "what was taken back is in the histories",
    "think_chat.AgentRun": "the runs are conversations",
    "think_fibers.Fiber": "work of the server",
}
"""Tables that name a person and have no list of their own, with the reason."""
AT = "/api/v1/account/exports"
Make = Callable[..., AgentInstance]
pytestmark = pytest.mark.django_db(transaction=True)


def work() -> None:
    async_to_sync(run_until_idle)(skip_delays=True)


def newest(client: Client) -> Any:
    [found] = client.get(AT).json()["items"]
    return found


def download(client: Client, export_id: str) -> Any:
    """The status, the headers and the bytes of a download."""

    reply: Any = client.get(f"{AT}/{export_id}/file")
    content = b"".join(reply.streaming_content) if reply.streaming else reply.content
    return reply.status_code, reply.headers, content


def unzipped(client: Client) -> zipfile.ZipFile:
    assert client.post(AT).status_code == 202
    work()
    found = newest(client)
    assert found["status"] == "ready", found
    status, headers, content = download(client, found["id"])
    assert (status, headers["Content-Type"], len(content)) == (200, "application/zip", found["byte_size"])
    assert headers["Content-Disposition"].startswith('attachment; filename="everything-')
    return zipfile.ZipFile(io.BytesIO(content))


def everything(archive: zipfile.ZipFile) -> bytes:
    """All names and contents."""
    return b"\n".join(each for name in archive.namelist() for each in (name.encode(), archive.read(name)))


def test_everything_of_a_person_is_in_it(alice: User, make_instance: Make) -> None:
    talk = make_instance(alice, "talk", title="Tea")
    say(talk, "question", "answer")
    other = make_instance(alice, "old", title="Put away")
    AgentInstance.objects.filter(pk=other.pk).update(archived_at=timezone.now())
    file = attachments.store_bytes(alice.pk, b"bytes of a file", name="notes: of/tea.txt")
    attachments.claim(alice.pk, [file.id], talk)
    async_to_sync(InstanceWorkspace(key_of(talk)).write_file)("/plan.md", "# Plan")
    store.write_text(ContextOwner(owner_id=alice.pk), "memory", lambda _held: "likes tea")
    store.put_entry(ContextOwner(owner_id=alice.pk), "skills", Entry(key="brew", content="four minutes"))
    PermissionRule.objects.create(level="owner", owner=alice, action="deny", key="shell")
    project = add_project(alice.pk, name="Tea house", instructions="Only green tea.")
    AgentInstance.objects.filter(pk=talk.pk).update(project=project)
    AgentMessage.objects.create(room=talk, target="reader", content="Still waits.", request_id="first")
    _row, secret = api_tokens.create_token(alice, name="ci")
    archive = unzipped(client_of(alice))
    assert archive.testzip() is None
    names = set(archive.namelist())
    assert talk.session_id is not None
    history = archive.read(f"conversations/{talk.pk}/{talk.session_id}.jsonl").decode()
    assert history == "".join(export_lines(talk.session_id))
    titles = {row["title"] for row in json.loads(archive.read("conversations.json"))}
    assert titles == {"Tea", "Put away"}
    [shown] = json.loads(archive.read("projects.json"))
    assert (shown["id"], shown["name"], shown["instructions"]) == (project.pk, "Tea house", "Only green tea.")
    projects = {row["id"]: row["project_id"] for row in json.loads(archive.read("conversations.json"))}
    assert projects == {talk.pk: project.pk, other.pk: None}
    [attached] = [name for name in names if name.startswith("files/")]
    assert archive.read(attached) == b"bytes of a file"
    assert attached.count("/") == 2
    [inner] = [name for name in names if name.startswith("workspaces/")]
    assert zipfile.ZipFile(io.BytesIO(archive.read(inner))).read("plan.md") == b"# Plan"
    assert json.loads(archive.read("memory.json"))[0]["content"] == "likes tea"
    assert json.loads(archive.read("memory-entries.json"))[0]["content"] == "four minutes"
    assert json.loads(archive.read("rules.json"))[0]["key"] == "shell"
    [letter] = json.loads(archive.read("agent-messages.json"))
    assert (letter["room_id"], letter["content"], letter["processed_at"]) == (talk.pk, "Still waits.", None)
    assert json.loads(archive.read("person.json"))["name"] == "alice"
    assert json.loads(archive.read("tokens.json"))[0]["name"] == "ci"
    assert secret.encode() not in everything(archive)
    assert "left-out.txt" not in names


def test_nothing_of_others_is_in_it(alice: User, bob: User, make_instance: Make) -> None:
    his = make_instance(bob, "his", title="Bob's title")
    say(his, "his-question", "his-answer")
    add_member(his, alice.username, Role.WRITER, by=bob.pk)
    sent = attachments.store_bytes(alice.pk, b"sent to him", name="sent.txt")
    attachments.claim(alice.pk, [sent.id], his)
    attachments.claim(bob.pk, [attachments.store_bytes(bob.pk, b"bytes of Bob's", name="b.txt").id], his)
    store.write_text(ContextOwner(owner_id=bob.pk), "memory", lambda _held: "Bob likes coffee")
    AgentMessage.objects.create(room=his, target="reader", content="to-his-agent")
    text = everything(unzipped(client_of(alice)))
    assert b"sent to him" in text  # her own file
    for trace in (b"Bob's title", b"his-question", b"to-his-agent", b"bytes of Bob's", b"coffee"):
        assert trace not in text
    assert his.pk.encode() in text  # she is a member


def test_a_file_that_is_gone_is_named(alice: User, make_instance: Make) -> None:
    file = attachments.store_bytes(alice.pk, b"x", name="gone.txt")
    attachments.claim(alice.pk, [file.id], make_instance(alice, "talk"))
    object_storage().delete(file.storage_name)
    archive = unzipped(client_of(alice))
    assert b"gone.txt: the file is gone" in archive.read("left-out.txt")


def test_only_its_person_gets_it(alice: User, bob: User) -> None:
    export_id = finished_export(alice.pk, b"hers")
    his = client_of(bob)
    assert his.get(AT).json() == {"items": []}
    assert download(his, export_id)[0] == 404
    assert his.delete(f"{AT}/{export_id}").status_code == 404
    assert download(Client(), export_id)[0] == 401
    assert download(client_of(alice), export_id)[2] == b"hers"


def test_one_is_written_at_a_time_and_a_new_one_takes_its_place(alice: User) -> None:
    client = client_of(alice)
    first = client.post(AT).json()
    assert first["status"] == "writing"
    assert client.post(AT).json()["id"] == first["id"]
    assert download(client, first["id"])[0] == 404  # not yet
    assert Fiber.objects.filter(name="chat.export_everything").count() == 1
    work()
    name = DataExport.objects.get().storage_name
    second = client.post(AT).json()
    assert second["id"] != first["id"]
    assert not object_storage().exists(name)
    assert DataExport.objects.count() == 1
    work()
    assert newest(client)["status"] == "ready"


def test_one_that_is_removed_while_it_is_written_leaves_nothing(alice: User) -> None:
    client = client_of(alice)
    made = client.post(AT).json()
    assert client.delete(f"{AT}/{made['id']}").status_code == 204
    work()
    assert client.get(AT).json() == {"items": []}
    assert not DataExport.objects.exists()


def test_it_is_removed_after_some_days(alice: User) -> None:
    finished_export(alice.pk, b"hers")
    assert prune_exports() == 0
    row = DataExport.objects.get()
    DataExport.objects.update(created_at=timezone.now() - timedelta(days=KEPT_DAYS, seconds=1))
    assert prune_exports(dry_run=True) == 1
    assert prune_exports() == 1
    assert not object_storage().exists(row.storage_name)
    assert not DataExport.objects.exists()


def test_the_object_goes_with_the_person(alice: User) -> None:
    finished_export(alice.pk, b"hers")
    name = DataExport.objects.get().storage_name
    alice.delete()
    assert name.startswith(FOLDER)
    assert not object_storage().exists(name)


def test_every_table_that_names_a_person_is_in_a_list_or_has_a_reason() -> None:
    person = get_user_model()
    listed = {record.model._meta.label for record in RECORDS}
    found = {
        model._meta.label
        for model in apps.get_models()
        if model._meta.app_label.startswith("think_")
        and any(field.related_model is person and field.name in {"user", "owner"} for field in model._meta.fields)
    }
    others = {"think_tools.ApprovalEvent", "think_tools.BannedSource", "think_tools.GuardEvent"}
    others |= {
        "think_sessions.Compaction",
        "think_sessions.SessionSummary",
        "think_chat.Invitation",
        "think_chat.Revert",
    }
    assert found - listed == set(ELSEWHERE) - others
    assert not listed & set(ELSEWHERE)
