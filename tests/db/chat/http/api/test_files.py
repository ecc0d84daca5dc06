"""Files: the type is in the bytes, limits hold, only the owner reads, a browser runs nothing, no orphans stay."""

import hashlib
from collections.abc import AsyncIterable, Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, ClassVar, cast

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError
from django.test import AsyncClient
from django.utils import timezone

from chat.errors import AttachmentInvalid, AttachmentNotFound, QuotaExceeded
from chat.files import attachments
from chat.files.serving import PIECE_BYTES
from chat.models import AgentInstance, Attachment
from sessions_app.core.messages.shapes import NewMessage
from tests.db.chat.conftest import ApiClient
from thinkproject.kernel.object_storage import object_storage

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40
Capture = Callable[..., AbstractContextManager[list[Callable[[], Any]]]]


@pytest.fixture(autouse=True)
def _own_folder(settings: Any, tmp_path: Any) -> None:
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {
        **settings.STORAGES,
        "think": {"BACKEND": backend, "OPTIONS": {"location": str(tmp_path)}},
    }


def upload(client: ApiClient, data: bytes, name: str, content_type: str = "text/html") -> Any:
    return client.http.post("/api/v1/files", {"file": SimpleUploadedFile(name, data, content_type)})


def test_an_upload_is_named_typed_and_hashed(as_alice: ApiClient, alice: User) -> None:
    reply = upload(as_alice, PNG, "../../etc/pic.html")
    assert reply.status_code == 201, reply.content
    body = reply.json()
    assert (body["name"], body["media_type"], body["byte_size"]) == ("pic.html", "image/png", len(PNG))
    assert body["sha256"] == hashlib.sha256(PNG).hexdigest()
    assert body["url"] == f"/api/v1/files/{body['id']}"
    row = Attachment.objects.get(pk=body["id"])
    assert (row.owner, row.claimed_at) == (alice, None)


@pytest.mark.parametrize(("data", "name"), [(b"", "a.txt"), (b"MZ\x00\x00", "a.txt"), (b"\xff\xfe", "a.png")])
def test_what_is_not_allowed_is_refused_and_leaves_no_object(as_alice: ApiClient, data: bytes, name: str) -> None:
    assert upload(as_alice, data, name).status_code == 422
    assert not Attachment.objects.exists()
    with pytest.raises(FileNotFoundError):
        object_storage().listdir(attachments.FOLDER)


def test_size_count_quota_and_pace_are_bounded(as_alice: ApiClient, settings: Any) -> None:
    settings.THINK_FILE_MAX_BYTES = 10
    assert upload(as_alice, b"x" * 11, "a.txt").status_code == 422
    settings.THINK_FILES_QUOTA_BYTES = 15
    assert upload(as_alice, b"x" * 10, "a.txt").status_code == 201
    assert upload(as_alice, b"x" * 10, "a.txt").status_code == 429
    settings.THINK_FILES_QUOTA_BYTES = 0
    settings.THINK_FILES_PER_USER = 1
    assert upload(as_alice, b"x", "a.txt").status_code == 429
    settings.THINK_FILES_PER_USER = 0
    settings.THINK_FILES_PER_MINUTE = 1
    reply = upload(as_alice, b"x", "a.txt")
    assert (reply.status_code, reply["Retry-After"]) == (429, "60")


def test_an_object_without_its_row_is_taken_back(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_fields: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(Attachment.objects, "create", fail)
    with pytest.raises(DatabaseError):
        attachments.store_bytes(alice.pk, b"hello", name="a.txt")
    assert object_storage().listdir(attachments.FOLDER)[1] == []


def test_html_and_svg_come_back_as_inert_text(as_alice: ApiClient) -> None:
    for name in ("page.html", "icon.svg"):
        body = upload(as_alice, b"<svg onload='alert(1)'></svg><script>alert(1)</script>", name).json()
        reply = as_alice.get(f"/files/{body['id']}")
        assert reply["Content-Type"] == "text/plain; charset=utf-8"
        assert reply["Content-Disposition"].startswith("attachment")
        assert reply["X-Content-Type-Options"] == "nosniff"
        assert reply["Content-Security-Policy"] == "default-src 'none'; sandbox"


def test_an_image_shows_in_the_page(as_alice: ApiClient) -> None:
    body = upload(as_alice, PNG, "pic.png").json()
    reply = as_alice.get(f"/files/{body['id']}")
    assert reply["Content-Disposition"] == 'inline; filename="pic.png"'
    assert reply.getvalue() == PNG


def test_a_pdf_opens_in_the_browser_s_viewer_and_reaches_nothing(as_alice: ApiClient) -> None:
    for name in ("paper.pdf", "page.html"):  # by its bytes, whatever it is called
        reply = as_alice.get(f"/files/{upload(as_alice, b'%PDF-1.7 <script>alert(1)</script>', name).json()['id']}")
        assert reply["Content-Type"] == "application/pdf"
        assert reply["Content-Disposition"].startswith("inline")
        assert reply["X-Content-Type-Options"] == "nosniff"
        policy = reply["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "script-src" not in policy
        assert "frame-ancestors 'none'" in policy


def test_ranges_and_etags_are_honoured(as_alice: ApiClient) -> None:
    path = f"/files/{upload(as_alice, b'0123456789', 'a.txt').json()['id']}"
    whole = as_alice.get(path)
    etag = whole["ETag"]
    assert as_alice.get(path, **{"If-None-Match": etag}).status_code == 304
    piece = as_alice.get(path, Range="bytes=2-4")
    assert (piece.status_code, piece.getvalue(), piece["Content-Range"]) == (206, b"234", "bytes 2-4/10")
    assert as_alice.get(path, Range="bytes=-3").getvalue() == b"789"
    assert as_alice.get(path, Range="bytes=7-").getvalue() == b"789"
    over = as_alice.get(path, Range="bytes=10-")
    assert (over.status_code, over["Content-Range"]) == (416, "bytes */10")
    assert as_alice.get(path, Range="bytes=2-4", **{"If-Range": '"other"'}).status_code == 200


def test_a_deleted_file_is_gone_with_its_bytes(
    as_alice: ApiClient, django_capture_on_commit_callbacks: Capture
) -> None:
    body = upload(as_alice, b"hello", "a.txt").json()
    name = Attachment.objects.get().storage_name
    with django_capture_on_commit_callbacks(execute=True):
        assert as_alice.send("DELETE", f"/files/{body['id']}").status_code == 204
    assert as_alice.get(f"/files/{body['id']}").status_code == 404
    assert not object_storage().exists(name)


def test_a_message_binds_its_files_to_the_conversation(as_alice: ApiClient, conversation: AgentInstance) -> None:
    body = upload(as_alice, PNG, "pic.png").json()
    part = {"type": "file", "url": body["url"], "mediaType": "text/html", "filename": "pic.png"}
    reply = as_alice.send("POST", f"/instances/{conversation.id}/turns", {"message": {"parts": [part]}})
    assert reply.status_code == 202, reply.content
    row = Attachment.objects.get()
    assert row.instance == conversation
    stored = as_alice.get(f"/instances/{conversation.id}/messages").json()["queued"][0]["parts"][0]
    assert (stored["mediaType"], stored["url"]) == ("image/png", body["url"])


def test_a_data_url_goes_to_storage(as_alice: ApiClient, conversation: AgentInstance) -> None:
    part = {"type": "file", "url": "data:text/html;base64,aGVsbG8=", "mediaType": "text/html", "filename": "n.txt"}
    reply = as_alice.send("POST", f"/instances/{conversation.id}/turns", {"message": {"parts": [part]}})
    assert reply.status_code == 202, reply.content
    row = Attachment.objects.get()
    assert (row.name, row.media_type, attachments.read_bytes(row)) == ("n.txt", "text/plain", b"hello")
    stored = as_alice.get(f"/instances/{conversation.id}/messages").json()["queued"][0]["parts"][0]
    assert stored["url"] == attachments.url_of(row.id)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "//evil.example/api/v1/files/att_000000000000000000000000",
        "https://evil.example/api/v1/files/att_000000000000000000000000",
        "data:text/plain;base64,%%%",
        "data:",
        "",
        7,
        None,
    ],
)
def test_foreign_urls_are_refused_and_never_fetched(
    as_alice: ApiClient, conversation: AgentInstance, url: object
) -> None:
    part = {"type": "file", "url": url, "mediaType": "text/plain"}
    reply = as_alice.send("POST", f"/instances/{conversation.id}/turns", {"message": {"parts": [part]}})
    assert (reply.status_code, reply.json()["code"]) == (422, "attachment_invalid")


def test_no_user_claims_or_loads_anothers_file(
    alice: User, bob: User, conversation: AgentInstance, make_instance: Callable[..., AgentInstance]
) -> None:
    his = attachments.store_bytes(bob.pk, b"secret", name="s.txt")
    with pytest.raises(AttachmentInvalid):
        attachments.claim(alice.pk, [his.id], conversation)
    message: NewMessage = {"parts": [{"type": "file", "url": attachments.url_of(his.id)}]}
    with pytest.raises(AttachmentInvalid):
        attachments.adopt_files(alice.pk, message)
    with pytest.raises(AttachmentNotFound):
        attachments.load_for_model(attachments.url_of(his.id), alice.pk)
    assert attachments.load_for_model(attachments.url_of(his.id), bob.pk).data == b"secret"
    with pytest.raises(AttachmentNotFound):
        attachments.load_for_model(attachments.url_of(his.id), None)


def test_a_file_belongs_to_one_conversation(
    alice: User, conversation: AgentInstance, make_instance: Callable[..., AgentInstance]
) -> None:
    row = attachments.store_bytes(alice.pk, b"hello", name="a.txt")
    attachments.claim(alice.pk, [row.id], conversation)
    attachments.claim(alice.pk, [row.id], conversation)
    with pytest.raises(AttachmentInvalid):
        attachments.claim(alice.pk, [row.id], make_instance(alice))


def test_orphans_are_swept_and_the_young_and_the_claimed_stay(
    alice: User, conversation: AgentInstance, django_capture_on_commit_callbacks: Capture
) -> None:
    young, old, claimed = (attachments.store_bytes(alice.pk, b"x", name="a.txt") for _ in range(3))
    attachments.claim(alice.pk, [claimed.id], conversation)
    long_ago = timezone.now() - timedelta(days=2)
    Attachment.objects.filter(pk__in=[old.pk, claimed.pk]).update(created_at=long_ago)
    store = object_storage()
    store.save(f"{attachments.FOLDER}/att_stray", ContentFile(b"x"))
    assert attachments.sweep_orphans(dry_run=True) == 1
    with django_capture_on_commit_callbacks(execute=True):
        assert attachments.sweep_orphans() == 1
    assert set(Attachment.objects.values_list("id", flat=True)) == {young.pk, claimed.pk}
    assert not store.exists(old.storage_name)
    assert store.exists(f"{attachments.FOLDER}/att_stray")  # too young: perhaps its row is about to come


def test_only_types_of_the_setting_are_taken(alice: User, settings: Any) -> None:
    settings.THINK_FILE_TYPES = ["text/plain"]
    attachments.store_bytes(alice.pk, b"words", name="a.txt")
    with pytest.raises(AttachmentInvalid) as refused:
        attachments.store_bytes(alice.pk, b'{"a": 1}', name="a.json")
    assert refused.value.data["allowed"] == ["text/plain"]


def test_stray_objects_are_swept_when_they_are_old(alice: User, monkeypatch: Any) -> None:
    store = object_storage()
    kept = attachments.store_bytes(alice.pk, b"x", name="a.txt")
    store.save(f"{attachments.FOLDER}/att_stray", ContentFile(b"x"))
    monkeypatch.setattr(attachments, "ORPHAN_HOURS", -1)
    Attachment.objects.update(claimed_at=timezone.now())
    assert attachments.sweep_orphans() == 1
    assert store.listdir(attachments.FOLDER)[1] == [kept.id]


def test_quota_counts_only_ones_own(alice: User, bob: User, settings: Any) -> None:
    settings.THINK_FILES_PER_USER = 1
    attachments.store_bytes(alice.pk, b"x", name="a.txt")
    attachments.store_bytes(bob.pk, b"x", name="a.txt")
    with pytest.raises(QuotaExceeded):
        attachments.store_bytes(alice.pk, b"x", name="a.txt")


class Watched(ContentFile):  # type: ignore[type-arg]  # not a generic at run time
    """A file that notes how much is read at a time."""

    reads: list[int]

    def read(self, *size: int) -> bytes:
        data: bytes = self.file.read(*size)
        self.reads.append(len(data))
        return data

    def close(self) -> None:
        self.file.close()


class WatchedStorage(FileSystemStorage):
    """A folder whose files note what is read of them."""

    reads: ClassVar[list[int]] = []
    opened: ClassVar[list[Watched]] = []

    def _open(self, name: str, mode: str = "rb") -> Any:
        file = Watched(super()._open(name, mode).read())  # type: ignore[misc]  # the stubs lack it
        file.reads = self.reads
        self.opened.append(file)
        return file


async def test_a_file_is_read_and_sent_in_pieces(
    transactional_db: None, settings: Any, tmp_path: Any, async_client: AsyncClient
) -> None:
    user = await sync_to_async(User.objects.create_user)("carol", password="carol-password")
    data = b"0123456789" * 60_000
    options = {"location": str(tmp_path)}
    backend = f"{__name__}.WatchedStorage"
    settings.STORAGES = {**settings.STORAGES, "think": {"BACKEND": backend, "OPTIONS": options}}
    row = await sync_to_async(attachments.store_bytes)(user.pk, data, name="a.txt")
    WatchedStorage.reads.clear()
    WatchedStorage.opened.clear()
    await async_client.aforce_login(user)
    reply = await async_client.get(f"/api/v1/files/{row.id}")
    assert reply["Content-Length"] == str(len(data))
    pieces = [piece async for piece in cast("AsyncIterable[bytes]", reply)]
    assert b"".join(pieces) == data
    assert max(WatchedStorage.reads) <= PIECE_BYTES < len(data)
    unread = await async_client.get(f"/api/v1/files/{row.id}", headers={"Range": "bytes=5-"})
    for each in (reply, unread):
        await sync_to_async(each.close)()  # as a server does at the end, and when the client has gone
    assert len(WatchedStorage.opened) == 2
    assert all(file.closed for file in WatchedStorage.opened)
