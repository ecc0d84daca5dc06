"""Files that a person brings by hand to where an agent works are their own text; all others are strangers'."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from chat.access.api_tokens import create_token
from chat.files import attachments
from chat.members.services import add_member
from chat.models import AgentInstance, Role
from tests.db.chat.conftest import ApiClient
from tests.db.chat.strangers_files import LETTER, PAGE, zipped
from tools_app.core.origins import Origin
from tools_app.models import WorkspaceEntry

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = b"Tea at five."


def put(http: Client, address: str, content: bytes, **headers: str) -> Any:
    reply: Any = http.put(f"/api/v1{address}", content, content_type="application/octet-stream", headers=headers)
    assert reply.status_code in (200, 201), reply.content
    return reply.json()


def put_file(http: Client, instance: AgentInstance, path: str, content: bytes, **headers: str) -> Any:
    return put(http, f"/instances/{instance.pk}/workspace/content?path={quote(path)}", content, **headers)


def origin_of(name: str) -> str:
    return WorkspaceEntry.objects.get(path__endswith=name).origin


@pytest.fixture
def own_talk(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    return make_instance(alice, "own-talk")


def token_of(user: User) -> str:
    return create_token(user, name="script")[1]


@pytest.mark.parametrize("name", ["notes.txt", "deep/notes.md", "table.csv"])
def test_what_one_uploads_in_a_browser_is_ones_own(as_alice: ApiClient, own_talk: AgentInstance, name: str) -> None:
    put_file(as_alice.http, own_talk, f"/{name}", TEXT)
    assert origin_of(name) == ""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("page.html", PAGE),
        ("letter.eml", LETTER),
        ("all.zip", zipped()),
        ("all.tar.gz", b"\x1f\x8b\x08\x00" + bytes(40)),
        ("unknown.bin", b"\x00\x01\x02" * 20),
    ],
)
def test_pages_mails_and_archives_are_of_strangers(
    as_alice: ApiClient, own_talk: AgentInstance, name: str, content: bytes
) -> None:
    put_file(as_alice.http, own_talk, f"/{name}", content)
    assert origin_of(name) == "file"


def test_what_a_program_brings_is_of_strangers(alice: User, own_talk: AgentInstance) -> None:
    put_file(Client(), own_talk, "/notes.txt", TEXT, authorization=f"Bearer {token_of(alice)}")
    assert origin_of("notes.txt") == "file"


def test_with_others_in_the_conversation_files_are_of_strangers(
    as_alice: ApiClient, as_bob: ApiClient, own_talk: AgentInstance, bob: User, alice: User
) -> None:
    add_member(own_talk, bob.username, Role.WRITER, by=alice.pk)
    put_file(as_alice.http, own_talk, "/hers.txt", TEXT)
    put_file(as_bob.http, own_talk, "/his.txt", TEXT)
    assert (origin_of("hers.txt"), origin_of("his.txt")) == ("file", "file")


def test_a_larger_file_arrives_whole(as_alice: ApiClient, own_talk: AgentInstance) -> None:
    content = b"line of text\n" * 500_000  # more than what is looked at
    assert put_file(as_alice.http, own_talk, "/long.txt", content)["size"] == len(content)
    assert origin_of("long.txt") == ""


def test_an_archive_that_is_unpacked_has_texts_of_strangers(as_alice: ApiClient, own_talk: AgentInstance) -> None:
    chosen = SimpleUploadedFile("all.zip", zipped(), content_type="application/zip")
    reply = as_alice.http.post(f"/api/v1/instances/{own_talk.pk}/workspace/archive?path=/", {"file": chosen})
    assert reply.status_code == 200, reply.content
    assert origin_of("a.txt") == "file"


def test_a_change_by_hand_leaves_a_text_to_who_wrote_it(as_alice: ApiClient, own_talk: AgentInstance) -> None:
    texts = f"/instances/{own_talk.pk}/workspace/text?path="
    for name, origin in (("mine.txt", ""), ("theirs.txt", Origin.FILE.value)):
        entry = put_file(as_alice.http, own_talk, f"/{name}", TEXT)
        WorkspaceEntry.objects.filter(path__endswith=name).update(origin=origin)
        reply = as_alice.send("PUT", f"{texts}/{name}", {"text": "Tea at six.", "version": entry["version"]})
        assert reply.status_code == 200, reply.content
    assert (origin_of("mine.txt"), origin_of("theirs.txt")) == ("", "file")


def test_a_copy_of_ones_own_attachment_is_ones_own(
    as_alice: ApiClient, own_talk: AgentInstance, alice: User, bob: User
) -> None:
    def copied(name: str, content: bytes, *, by_hand: bool) -> str:
        row = attachments.store_upload(alice.pk, SimpleUploadedFile(name, content), is_by_hand=by_hand)
        attachments.bind(alice.pk, [row.pk], own_talk)
        body = {"file_id": row.pk, "directory": "/"}
        assert as_alice.send("POST", f"/instances/{own_talk.pk}/workspace/attachments", body).status_code == 201
        return origin_of(name)

    assert copied("own.txt", TEXT, by_hand=True) == ""
    assert copied("brought.txt", TEXT, by_hand=False) == "file"
    assert copied("page.html", PAGE, by_hand=True) == "file"


def test_files_of_a_project_are_told_apart_alike(as_alice: ApiClient, alice: User) -> None:
    project = as_alice.send("POST", "/projects", {"name": "Garden"}).json()
    at = f"/projects/{project['id']}/files/content?path="
    put(as_alice.http, f"{at}own.txt", TEXT)
    put(as_alice.http, f"{at}page.html", PAGE)
    put(Client(), f"{at}brought.txt", TEXT, authorization=f"Bearer {token_of(alice)}")
    assert [origin_of(name) for name in ("own.txt", "page.html", "brought.txt")] == ["", "file", "file"]
