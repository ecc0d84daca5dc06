"""Workspaces, files and code in the admin: titles first, few queries, and bytes that no browser runs."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.instances.rows import key_of
from chat.instances.workspaces import InstanceWorkspace
from chat.models import AgentInstance
from tests.db.chat.conftest import say
from thinkproject.kernel.object_storage import object_storage
from tools_app.core.files.workspace import Link, Put
from tools_app.models import Execution, ExecutionCall, StoredWorkspace, WorkspaceAttachment, WorkspaceEntry

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/admin/think_tools/"
LOOKS = ("view_storedworkspace", "view_workspaceentry", "view_workspaceattachment", "view_agentinstance")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def staff(*codenames: str, name: str = "staff") -> Client:
    user = User.objects.create_user(name, password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def instance_with_files(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    made = make_instance(alice, "talk", title="Planning the garden")
    files = InstanceWorkspace(key_of(made), instance_id=made.pk)
    async_to_sync(files.apply)(
        [
            Put(path="/notes/plan.md", content="<script>alert(1)</script> Änderung".encode()),
            Put(path="/page.html", content=b"<script>alert(1)</script>"),
            Put(path="/sky.png", content=PNG),
            Put(path="/data.bin", content=b"\0\1\2\xff"),
            Link(path="/link", target="sky.png"),
        ]
    )
    return made


def entry(path: str) -> WorkspaceEntry:
    return WorkspaceEntry.objects.get(path=path)


def page(client: Client, path: str) -> str:
    reply = client.get(URL + path)
    assert reply.status_code == 200, path
    return reply.content.decode()


# --- workspaces ------------------------------------------------------------------------------------------------------


def test_a_workspace_is_called_by_its_conversation(instance_with_files: AgentInstance, alice: User) -> None:
    other = WorkspaceAttachment.objects.create(
        workspace=StoredWorkspace.objects.get(), scope="another", name="theirs", can_write=False
    )
    client = staff(*LOOKS)
    listed = page(client, "storedworkspace/")
    for shown in ("Planning the garden", "and 1 other", "alice", "default", ">4</a>"):
        assert shown in listed
    opened = page(client, f"storedworkspace/{other.workspace_id}/change/")
    assert f"/admin/think_chat/agentinstance/{instance_with_files.pk}/change/" in opened
    assert "theirs" in opened
    assert "Planning the garden" in page(client, f"storedworkspace/?q={instance_with_files.pk}")
    assert "Planning the garden" not in page(client, "storedworkspace/?q=nothing")


def test_the_files_of_a_workspace_are_listed_by_their_paths(instance_with_files: AgentInstance) -> None:
    client = staff(*LOOKS)
    workspace = StoredWorkspace.objects.get()
    listed = page(client, f"workspaceentry/?workspace__id__exact={workspace.pk}")
    places = [listed.index(path) for path in ("/data.bin", "/link", "/notes", "/notes/plan.md", "/page.html")]
    assert places == sorted(places)
    assert "Planning the garden" in listed
    links = page(client, "workspaceentry/?kind=symlink")
    assert "/link" in links
    assert "/data.bin" not in links


@pytest.mark.parametrize("table", ["storedworkspace", "workspaceentry", "execution"])
def test_lists_take_no_query_for_each_row(
    instance_with_files: AgentInstance, make_instance: Callable[..., AgentInstance], alice: User, table: str
) -> None:
    client = staff(*LOOKS, "view_execution", "view_message")
    counts = []
    for begin, end in ((0, 1), (1, 12)):
        for number in range(begin, end):
            made = make_instance(alice, f"more-{number}")
            turn = say(made, f"q{number}", f"a{number}")
            async_to_sync(InstanceWorkspace(key_of(made), instance_id=made.pk).write_file)("/f", "x")
            execute(turn.pk, alice, key=f"key-{number}")
        with CaptureQueriesContext(
            connection,
        ) as sent:
            page(client, f"{table}/")
        counts.append(len(sent))
    assert counts[0] == counts[1], sent.captured_queries
    assert not any('"content"' in query["sql"] for query in sent.captured_queries)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def reader(instance_with_files: AgentInstance) -> Client:
    return staff(*LOOKS, "view_message")


def content(client: Client, path: str, query: str = "") -> Any:
    reply = client.get(f"{URL}workspaceentry/{entry(path).pk}/content/{query}")
    if reply.status_code == 200:
        reply.body = reply.getvalue()  # type: ignore[attr-defined] # once, as it is a stream
    return reply


def test_a_text_is_shown_and_never_run(reader: Client) -> None:
    shown = page(reader, f"workspaceentry/{entry('/notes/plan.md').pk}/change/")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; Änderung" in shown
    assert "<script>alert(1)" not in shown
    for path, media_type in (("/notes/plan.md", "text/markdown"), ("/page.html", "text/plain")):
        reply = content(reader, path)
        assert reply["Content-Type"] == f"{media_type}; charset=utf-8"
        assert reply["Content-Disposition"].startswith("attachment")
        assert reply["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert (reply["X-Content-Type-Options"], reply["Cross-Origin-Resource-Policy"]) == ("nosniff", "same-origin")
    assert content(reader, "/page.html").body == b"<script>alert(1)</script>"


def test_a_picture_is_shown_in_its_page_and_can_be_saved(reader: Client) -> None:
    pk = entry("/sky.png").pk
    assert f'<img class="think-preview" src="/admin/think_tools/workspaceentry/{pk}/content/"' in page(
        reader, f"workspaceentry/{pk}/change/"
    )
    reply = content(reader, "/sky.png")
    assert (reply["Content-Type"], reply.body) == ("image/png", PNG)
    assert reply["Content-Disposition"].startswith("inline")
    assert content(reader, "/sky.png", "?download=1")["Content-Disposition"].startswith("attachment")


def test_bytes_are_only_named(reader: Client) -> None:
    assert "This is no text and no picture." in page(reader, f"workspaceentry/{entry('/data.bin').pk}/change/")
    assert content(reader, "/data.bin").body == b"\0\1\2\xff"


def test_of_a_long_text_the_beginning_is_shown(reader: Client, instance_with_files: AgentInstance) -> None:
    files = InstanceWorkspace(key_of(instance_with_files), instance_id=instance_with_files.pk)
    async_to_sync(files.write_file)("/long.txt", "x" * 70_000 + "the end")
    shown = page(reader, f"workspaceentry/{entry('/long.txt').pk}/change/")
    assert "Only the beginning is shown." in shown
    assert "the end" not in shown


def test_a_file_in_storage_is_read_from_there(
    reader: Client, instance_with_files: AgentInstance, settings: Any
) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 100
    files = InstanceWorkspace(key_of(instance_with_files), instance_id=instance_with_files.pk)
    async_to_sync(files.write_file)("/large.txt", "large " * 100)
    assert content(reader, "/large.txt").body == b"large " * 100
    object_storage().delete(entry("/large.txt").storage_name)
    page(reader, f"workspaceentry/{entry('/large.txt').pk}/change/")  # what is lost reads as empty


def test_what_is_no_file_has_no_bytes(reader: Client) -> None:
    for path in ("/notes", "/link"):
        assert content(reader, path).status_code == 404
        page(reader, f"workspaceentry/{entry(path).pk}/change/")
    assert reader.get(f"{URL}workspaceentry/999999/content/").status_code == 404


def test_only_who_may_read_messages_reads_files(instance_with_files: AgentInstance) -> None:
    pk = entry("/notes/plan.md").pk
    looker = staff(*LOOKS)
    shown = page(looker, f"workspaceentry/{pk}/change/")
    assert "Only who may read messages may read files." in shown
    assert "Änderung" not in shown
    assert looker.get(f"{URL}workspaceentry/{pk}/content/").status_code == 403
    stranger = staff("view_message", name="stranger")
    for path in ("", f"{pk}/change/", f"{pk}/content/"):
        assert stranger.get(f"{URL}workspaceentry/{path}").status_code == 403
    assert Client().get(f"{URL}workspaceentry/{pk}/content/").status_code == 302


# --- code ------------------------------------------------------------------------------------------------------------


def execute(turn_id: str, owner: User, *, key: str = "key") -> Execution:
    made = Execution.objects.create(
        key=key,
        scope="scope",
        owner=owner,
        turn_id=turn_id,
        call_id="c1",
        code="const x = await tools.look({});\n<b>x</b>",
        seed="0",
        clock_ms=0,
        status="succeeded",
        value={"answer": 42},
        console=[{"level": "warn", "text": "careful <i>"}],
        duration_ms=1_500,
    )
    ExecutionCall.objects.create(
        execution=made,
        ordinal=1,
        name="tools.look",
        input=[{"path": "/f"}],
        input_hash="",
        status="succeeded",
        output={"text": "y" * 5_000},
        settled_as=1,
        duration_ms=321,
    )
    Execution.objects.filter(pk=made.pk).update(ended_at=made.created_at)
    return made


def test_code_is_shown_with_its_calls_and_what_came_of_it(instance_with_files: AgentInstance, alice: User) -> None:
    turn = say(instance_with_files, "q1", "a1")
    row = execute(turn.pk, alice)
    client = staff("view_execution", "view_executioncall", "view_agentinstance", "change_execution")
    listed = page(client, "execution/")
    for shown in ("const x = await tools.look({});", "Planning the garden", "alice", "Done", "took 1,500 ms"):
        assert shown in listed
    opened = page(client, f"execution/{row.pk}/change/")
    for shown in ("Code in “Planning the garden”", "&lt;b&gt;x&lt;/b&gt;", "answer", "warn: careful &lt;i&gt;"):
        assert shown in opened
    for shown in ("tools.look", "321 ms", f"/admin/think_chat/agentinstance/{instance_with_files.pk}/change/"):
        assert shown in opened
    assert "y" * 2_500 not in opened  # long results are cut
    assert 'name="_save"' not in opened
    assert "Planning the garden" not in page(client, "execution/?status=failed")
    assert "Planning the garden" in page(client, f"execution/?q={turn.pk}")
