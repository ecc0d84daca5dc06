"""Files of a conversation through the API: read, written, moved, deleted, packed; conflicts, limits, errors."""

import io
import zipfile
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient

from chat.agents import Assistant
from chat.instances.rows import key_of
from chat.instances.workspaces import InstanceWorkspace
from chat.models import AgentInstance
from tests.db.chat.conftest import ApiClient
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import Entry
from tools_app.models import StoredWorkspace
from tools_app.workspace.stores.memory import MemoryTree, MemoryWorkspace

pytestmark = pytest.mark.django_db(transaction=True)
MakeInstance = Callable[..., AgentInstance]


class Files:
    """The files of one conversation as its owner's browser reaches them."""

    def __init__(self, client: ApiClient, instance: AgentInstance) -> None:
        self._client = client
        self.base = f"/instances/{instance.pk}/workspace"

    def put(self, path: str, content: bytes, **headers: str) -> Any:
        address = f"/api/v1{self.base}/content?path={quote(path)}"
        return self._client.http.put(address, content, content_type="application/octet-stream", headers=headers)

    def read(self, path: str, query: str = "", **headers: str) -> Any:
        async def get() -> Any:
            browser = AsyncClient()
            browser.cookies = self._client.http.cookies
            reply: Any = await browser.get(
                f"/api/v1{self.base}/content?path={quote(path)}{query}", headers=headers or None
            )
            reply.body = b"".join([piece async for piece in reply]) if reply.streaming else reply.content
            return reply

        return async_to_sync(get)()

    def get(self, path: str) -> Any:
        return self._client.get(self.base + path)

    def send(self, method: str, path: str, body: JSONObject | None = None) -> Any:
        return self._client.send(method, self.base + path, body)

    def names(self, path: str = "/") -> list[str]:
        return [item["path"] for item in self.get(f"/entries?path={quote(path)}").json()["items"]]


@pytest.fixture
def filed_talk(alice: User, make_instance: MakeInstance) -> AgentInstance:
    return make_instance(alice, "talk")


@pytest.fixture
def alices_files(as_alice: ApiClient, filed_talk: AgentInstance) -> Files:
    return Files(as_alice, filed_talk)


def test_an_empty_workspace_is_read_without_being_made(alices_files: Files) -> None:
    body = alices_files.get("").json()
    assert (body["file_count"], body["directory_count"], body["byte_count"], body["can_write"]) == (0, 1, 0, True)
    assert alices_files.get("/entries").json() == {"path": "/", "items": [], "has_more": False}
    assert alices_files.read("/a.txt").status_code == 404
    assert not StoredWorkspace.objects.exists()


def test_a_file_is_written_and_read_with_its_version_as_tag(alices_files: Files) -> None:
    written = alices_files.put("notes/today.md", b"# Today\n")
    assert written.status_code == 201, written.content
    entry = written.json()
    assert (entry["path"], entry["kind"], entry["size"]) == ("/notes/today.md", "file", 8)
    read = alices_files.read("/notes/today.md")
    assert (read.body, read["ETag"]) == (b"# Today\n", f'"{entry["version"]}"')
    assert (read["Content-Security-Policy"], read["X-Content-Type-Options"]) == (
        "default-src 'none'; sandbox",
        "nosniff",
    )
    assert alices_files.read("/notes/today.md", "&download=true")["Content-Disposition"].startswith("attachment")
    assert alices_files.read("/notes/today.md", **{"If-None-Match": read["ETag"]}).status_code == 304
    part = alices_files.read("/notes/today.md", Range="bytes=2-6")
    assert (part.status_code, part.body, part["Content-Range"]) == (206, b"Today", "bytes 2-6/8")
    assert alices_files.read("/notes/today.md", Range="bytes=9-").status_code == 416


def test_a_changed_file_is_not_overwritten_unseen(alices_files: Files) -> None:
    first = alices_files.put("/a.txt", b"one").json()["version"]
    assert alices_files.put("/a.txt", b"two", **{"If-Match": f'"{first}"'}).status_code == 200
    late = alices_files.put("/a.txt", b"three", **{"If-Match": f'"{first}"'})
    assert (late.status_code, late.json()["code"]) == (409, "file_conflict")
    assert late.json()["data"]["version"] == alices_files.get("/entry?path=/a.txt").json()["version"]
    assert alices_files.put("/a.txt", b"four", **{"If-None-Match": "*"}).status_code == 409
    assert alices_files.read("/a.txt").body == b"two"


def test_earlier_versions_of_a_file_are_listed_and_read(
    alices_files: Files, as_bob: ApiClient, filed_talk: AgentInstance
) -> None:
    workspace = InstanceWorkspace(key_of(filed_talk), instance_id=filed_talk.pk)
    alices_files.put("/a.md", b"one")
    assert alices_files.get("/versions?path=/a.md").json() == {"path": "/a.md", "items": []}
    async_to_sync(workspace.in_turn("t1").write_file)("/a.md", "two")
    async_to_sync(workspace.in_turn("t2").write_file)("/a.md", b"\x00\xff")
    async_to_sync(workspace.in_turn("t3").write_file)("/a.md", "four")
    async_to_sync(workspace.in_turn("t3").write_file)("/b.md", "another")
    found = alices_files.get("/versions?path=a.md").json()["items"]
    assert [(each["turn_id"], each["size"], each["is_kept"]) for each in found] == [
        ("t3", 2, True),
        ("t2", 3, True),
        ("t1", 3, True),
    ]
    read = [alices_files.get(f"/versions/{each['id']}?path=/a.md") for each in found]
    assert [reply.status_code for reply in read] == [404, 200, 200]
    assert [reply.json()["text"] for reply in read[1:]] == ["two", "one"]
    assert alices_files.get(f"/versions/{found[2]['id']}?path=/b.md").status_code == 404
    assert [each["id"] for each in alices_files.get("/versions?path=/a.md&limit=1").json()["items"]] == [found[0]["id"]]
    for path in ("/versions?path=/a.md", f"/versions/{found[2]['id']}?path=/a.md"):
        assert as_bob.get(alices_files.base + path).status_code == 404


def test_directories_are_listed_first_and_in_pages(alices_files: Files) -> None:
    for name in ("b.txt", "a.txt", "z/inner.txt"):
        alices_files.put(name, b".")
    assert alices_files.names() == ["/z", "/a.txt", "/b.txt"]
    page = alices_files.get("/entries?path=/&limit=1&offset=1").json()
    assert ([item["name"] for item in page["items"]], page["has_more"]) == (["a.txt"], True)
    assert alices_files.send("POST", "/directories", {"path": "/new/deep"}).status_code == 201
    assert alices_files.send("POST", "/directories", {"path": "/new/deep"}).status_code == 409


def test_entries_are_moved_copied_and_deleted_and_nothing_is_replaced(alices_files: Files) -> None:
    alices_files.put("/a.txt", b"a")
    alices_files.put("/b.txt", b"b")
    assert alices_files.send("POST", "/moves", {"source": "/a.txt", "target": "/c/d.txt"}).status_code in {200, 404}
    alices_files.send("POST", "/directories", {"path": "/c"})
    assert alices_files.send("POST", "/moves", {"source": "/a.txt", "target": "/b.txt"}).status_code == 409
    assert alices_files.send("POST", "/copies", {"source": "/b.txt", "target": "/c/b.txt"}).status_code == 201
    assert alices_files.send("DELETE", "/entries?path=/c").status_code == 409  # not empty
    assert alices_files.send("DELETE", "/entries?path=/c&recursive=true").status_code == 204
    assert alices_files.send("DELETE", "/entries?path=/c").status_code == 404
    assert alices_files.send("DELETE", "/entries?path=/").status_code == 403
    assert "/b.txt" in alices_files.names()


@pytest.mark.parametrize("path", ["/a\nb", "/a\u202eb", "/" + "x" * 300])
def test_paths_that_cannot_be_are_refused(alices_files: Files, path: str) -> None:
    assert alices_files.put(path, b".").status_code == 422
    assert not StoredWorkspace.objects.exists()


def test_a_file_beyond_the_limit_is_refused_and_changes_nothing(alices_files: Files, settings: Any) -> None:
    settings.THINK_WORKSPACE_FILE_MAX_BYTES = 10
    reply = alices_files.put("/a.txt", b"x" * 11)
    assert (reply.status_code, reply.json()["data"]["errno"]) == (413, "EFBIG")
    settings.THINK_WORKSPACE_QUOTA_BYTES = 5
    reply = alices_files.put("/a.txt", b"x" * 6)
    assert (reply.status_code, reply.json()["data"]["errno"]) == (409, "ENOSPC")
    assert alices_files.names() == []


def test_a_zip_file_goes_out_and_comes_in(alices_files: Files, as_alice: ApiClient) -> None:
    alices_files.put("/src/a.py", b"print(1)")
    alices_files.put("/src/deep/b.py", b"print(2)")

    async def export() -> bytes:
        browser = AsyncClient()
        browser.cookies = as_alice.http.cookies
        reply: Any = await browser.get(f"/api/v1{alices_files.base}/archive?path=/src")
        assert reply["Content-Disposition"] == 'attachment; filename="src.zip"'
        return b"".join([piece async for piece in reply])

    packed = async_to_sync(export)()
    assert sorted(zipfile.ZipFile(io.BytesIO(packed)).namelist()) == ["a.py", "deep/", "deep/b.py"]
    upload = SimpleUploadedFile("x.zip", packed, "application/zip")
    reply = as_alice.http.post(f"/api/v1{alices_files.base}/archive?path=/copy", {"file": upload})
    assert reply.status_code == 200, reply.content
    assert {change["path"] for change in reply.json()["changes"]} >= {"/copy/a.py", "/copy/deep/b.py"}
    assert alices_files.read("/copy/deep/b.py").body == b"print(2)"


@pytest.mark.parametrize("path", ["/missing", "/src/missing/deep", "/src/a.py/below"])
def test_what_is_not_there_is_an_error_before_anything_is_sent(alices_files: Files, path: str) -> None:
    alices_files.put("/src/a.py", b"print(1)")
    reply = alices_files.get(f"/archive?path={path}")
    assert (reply.status_code, reply.json()["code"]) == (404, "file_failed")
    assert "Content-Disposition" not in reply
    assert alices_files.read(path).status_code == 404


def test_a_file_that_cannot_be_opened_is_an_error_before_anything_is_sent(
    alices_files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryWorkspace()
    async_to_sync(store.write_file)("/a.txt", "x")

    def gone(_self: MemoryTree, entry: Entry) -> Any:
        raise failed("ENOENT", entry.path)

    monkeypatch.setattr(MemoryTree, "open", gone)
    monkeypatch.setattr(Assistant, "get_workspace", lambda _self: store)
    assert alices_files.read("/a.txt").status_code == 404


def test_files_are_found_by_glob_and_compared(alices_files: Files) -> None:
    alices_files.put("/.gitignore", b"build\n")
    alices_files.put("/build/out.js", b"1")
    alices_files.put("/src/in.js", b"1\n")
    found = alices_files.get("/search?pattern=**/*.js").json()
    assert ([item["path"] for item in found["items"]], found["is_cut"]) == (["/src/in.js"], False)
    everything = alices_files.get("/search?pattern=**/*.js&ignored=true").json()["items"]
    assert [item["path"] for item in everything] == ["/build/out.js", "/src/in.js"]
    diff = alices_files.send("POST", "/diff", {"path": "/src/in.js", "content": "2\n"}).json()["diff"]
    assert "-1\n+2" in diff


def test_entries_are_found_by_a_part_of_their_name_as_far_as_is_asked(alices_files: Files) -> None:
    alices_files.put("/docs/Read me.md", b"1")
    alices_files.put("/docs/deep/unread[1].txt", b"2")
    alices_files.put("/other.txt", b"3")
    found = alices_files.get("/search?name=READ&limit=1").json()
    assert ([item["path"] for item in found["items"]], found["is_cut"]) == (["/docs/Read me.md"], True)
    assert [item["path"] for item in alices_files.get("/search?name=d[1]").json()["items"]] == [
        "/docs/deep/unread[1].txt"
    ]
    assert [item["kind"] for item in alices_files.get("/search?name=dee").json()["items"]] == ["directory"]
    assert alices_files.get("/search").json()["code"] == "input_invalid"
    assert alices_files.get("/search?name=a&pattern=b").status_code == 422


def test_an_agent_may_name_another_workspace_or_none(alices_files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = MemoryWorkspace()
    async_to_sync(shared.write_file)("/shared.txt", "hello")
    monkeypatch.setattr(Assistant, "get_workspace", lambda _agent: shared)
    assert alices_files.names() == ["/shared.txt"]
    monkeypatch.setattr(Assistant, "get_workspace", lambda _agent: False)
    reply = alices_files.get("/entries")
    assert (reply.status_code, reply.json()["code"]) == (404, "workspace_missing")
    monkeypatch.setattr(Assistant, "get_workspace", lambda _agent: "a path")
    assert alices_files.get("/entries").json()["code"] == "turn_config_invalid"


async def test_an_instance_workspace_makes_the_conversation_with_its_first_write(alice: User) -> None:
    from chat.agent.base import InstanceKey

    key = InstanceKey(owner_id=alice.pk, agent="assistant", name="not-yet")
    workspace = InstanceWorkspace(key)
    assert await workspace.read_dir("/") == []
    assert not await AgentInstance.objects.filter(name="not-yet").aexists()
    await workspace.write_file("/a.txt", "a")
    instance = await AgentInstance.objects.aget(name="not-yet")
    again = InstanceWorkspace(key_of(instance), instance_id=instance.pk)
    assert await again.read_file("/a.txt") == "a"


CSV, TXT = "/text?path=/a.csv", "/text?path=/a.txt"
CODECS = {
    "utf-8": b"",
    "utf-8-sig": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "cp1252": b"",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("codec", CODECS)
def test_an_edited_text_keeps_encoding_mark_and_line_ends(alices_files: Files, codec: str, end: str) -> None:
    text = f"Größe für Müller;7,00{end}Käse und Brötchen{end}"
    data = CODECS[codec] + text.encode(codec.removesuffix("-sig"))
    alices_files.put("/a.csv", data)
    read = alices_files.get(CSV).json()
    assert (read["text"], read["can_be_saved"]) == (text, True)
    changed = {"text": read["text"].replace("7,00", "8,00"), "version": read["version"]}
    written = alices_files.send("PUT", CSV, changed)
    assert written.status_code == 200, written.content
    assert alices_files.read("/a.csv").body == data.replace(
        "7,00".encode(codec.removesuffix("-sig")), "8,00".encode(codec.removesuffix("-sig"))
    )
    assert alices_files.send("PUT", CSV, changed).json()["code"] == "file_conflict"


def test_letters_that_an_encoding_does_not_have_are_named_and_change_nothing(alices_files: Files) -> None:
    data = "Größe für Müller".encode("cp1252")
    alices_files.put("/a.txt", data)
    refused = alices_files.send("PUT", TXT, {"text": "Größe → für Łódź →"})
    assert (refused.status_code, refused.json()["code"]) == (422, "input_invalid")
    assert refused.json()["detail"] == (
        "Windows-1252, the encoding of this file, does not have '→' (U+2192), 'Ł' (U+0141), 'ź' (U+017A). "
        "Leave that out, or save the file as UTF-8."
    )
    assert alices_files.read("/a.txt").body == data
    assert alices_files.send("PUT", TXT, {"text": "Größe → für", "encoding": "UTF-8"}).status_code == 200
    assert alices_files.read("/a.txt").body == "Größe → für".encode()


def test_a_text_that_would_not_stay_the_same_is_shown_and_not_changed(alices_files: Files) -> None:
    data = "Größe für Müller und noch viel mehr Wörter ".encode() + b"\xff\xfe."
    alices_files.put("/a.txt", data)
    read = alices_files.get(TXT).json()
    assert (read["can_be_saved"], read["text"][-4:]) == (False, " \ufffd\ufffd.")
    assert alices_files.send("PUT", TXT, {"text": "x"}).status_code >= 400
    alices_files.put("/b.bin", bytes(range(256)))
    assert alices_files.get("/text?path=/b.bin").status_code >= 400
    assert alices_files.get("/text?path=/none").status_code == 404
    assert alices_files.read("/a.txt").body == data
