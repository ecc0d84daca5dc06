"""Conversations in the formats of other products: what is written comes back through our own importers as it was."""

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import AsyncClient

from chat.conversations.exporting import ExportFormat, export_all, export_conversation
from chat.files.attachments import attachment_id, read_bytes
from chat.models import AgentInstance, AgentMessage, Attachment
from sessions_app.models import Message
from tests import archives
from tests.db.chat.conftest import ApiClient
from tests.db.chat.http.api.archive_calls import imported

pytestmark = pytest.mark.django_db(transaction=True)
PRODUCTS = [ExportFormat.OPEN_WEBUI, ExportFormat.LIBRECHAT]
SOURCES = {
    "chatgpt": archives.chatgpt_zip(),
    "claude": archives.claude_zip(),
    "open-webui": archives.encoded(archives.open_webui_list()),
    "librechat": archives.encoded(archives.librechat_flat()),
}


def kept_parts(parts: Iterable[Any], form: ExportFormat) -> Iterator[Any]:
    """The parts that a format has a place for: texts, thoughts, calls with results, and files where it takes them."""
    for part in parts:
        match part["type"]:
            case "text" | "reasoning":
                yield part["type"], part["text"]
            case "file":
                row = Attachment.objects.get(pk=attachment_id(part["url"]))
                is_kept = form is ExportFormat.OPEN_WEBUI or row.media_type.startswith("text/")
                yield (row.name, read_bytes(row)) if is_kept else ("text", f"[{row.name}]")
            case kind if kind == "dynamic-tool":
                output = part.get("output", part.get("errorText"))
                text = output if isinstance(output, str) or output is None else json.dumps(output)
                yield part["toolName"], part["input"], text and text.replace(" ", "")


def trees(owner: User, form: ExportFormat) -> dict[str, Any]:
    """Each conversation by its title: the shown leaf, and every message by its id."""
    found: dict[str, Any] = {}
    for instance in AgentInstance.objects.filter(owner=owner).select_related("session__active_leaf"):
        assert instance.session is not None
        messages = {}
        for row in Message.objects.filter(session_id=instance.session_id).order_by("depth", "pk"):
            parts = [*kept_parts(row.content["parts"], form)]
            files = [part for part in parts if isinstance(part[1], bytes)]
            others = [part for part in parts if part not in files] or [("text", "[…]")]
            if row.role == "user":
                others = ["\n\n".join(part[1] for part in others)]
            messages[row.message_id] = (row.role, row.parent and row.parent.message_id, files, others)
        leaf = instance.session.active_leaf
        facts = (instance.archived_at is not None, instance.pinned_at is not None) * (form is ExportFormat.OPEN_WEBUI)
        found[instance.title] = (leaf and leaf.message_id, facts, messages)
    return found


@pytest.mark.parametrize("form", PRODUCTS)
@pytest.mark.parametrize("source", SOURCES)
def test_an_export_comes_back_with_its_branches_leaf_and_files(
    as_alice: ApiClient, alice: User, as_bob: ApiClient, bob: User, source: str, form: ExportFormat
) -> None:
    imported(as_alice, SOURCES[source])
    data = b"".join(export_all(alice.pk, form))
    report = imported(as_bob, data)["report"]
    before = trees(alice, form)
    assert before
    assert trees(bob, form) == before
    assert (report["added_count"], report["unreadable_count"]) == (len(before), 0)
    again = imported(as_bob, data)["report"]
    assert (again["added_count"], again["known_count"]) == (0, len(before))


def downloaded(user: User, path: str) -> tuple[str, str, bytes]:
    """Media type, name and bytes of a file that is made while it is sent."""

    async def read() -> tuple[str, str, bytes]:
        client = AsyncClient()
        await client.aforce_login(user)
        reply: Any = await client.get(f"/api/v1{path}")
        assert reply.status_code == 200, reply.content
        body = b"".join([piece async for piece in reply.streaming_content])
        return reply["Content-Type"], reply["Content-Disposition"], body

    return async_to_sync(read)()


@pytest.mark.parametrize("form", PRODUCTS)
def test_one_conversation_is_a_file_that_the_product_imports(
    as_alice: ApiClient, alice: User, form: ExportFormat
) -> None:
    imported(as_alice, SOURCES["open-webui"])
    weather = AgentInstance.objects.get(title="Weather")
    media_type, name, body = downloaded(alice, f"/sessions/{weather.session_id}/export?format={form.value}")
    assert (media_type, name) == ("application/json", f'attachment; filename="{weather.session_id}.json"')
    value = json.loads(body)
    if form is ExportFormat.LIBRECHAT:
        assert (value["conversationId"], value["currentMessageId"]) == (weather.pk, "b4")
        assert value["left_out"] == {"hidden": 1, "file": 1}
        first = next(each for each in value["messages"] if each["messageId"] == "u1")
        assert first["parentMessageId"] == archives.NO_PARENT
        assert first["text"] == "[image]\n\nWeather?"
        return
    [record] = value
    assert record["chat"]["history"]["currentId"] == "b4"
    assert [each["id"] for each in record["chat"]["messages"]] == ["u1", "b1", "u3", "b4"]
    assert record["meta"] == {"left_out": {"hidden": 1}}
    answer = record["chat"]["history"]["messages"]["b1"]
    assert [item["type"] for item in answer["output"]] == [
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert answer["content"].startswith('<details type="reasoning" done="true">')
    picture = record["chat"]["history"]["messages"]["u1"]["files"][0]
    assert (picture["type"], picture["url"][:22]) == ("image", "data:image/png;base64,")


@pytest.mark.parametrize("form", [ExportFormat.JSONL, ExportFormat.MARKDOWN, ExportFormat.LIBRECHAT])
def test_all_conversations_are_a_zip_with_one_file_each(as_alice: ApiClient, alice: User, form: ExportFormat) -> None:
    imported(as_alice, SOURCES["open-webui"])
    media_type, name, body = downloaded(alice, f"/exports?format={form.value}")
    assert (media_type, name) == ("application/zip", f'attachment; filename="conversations-{form.value}.zip"')
    archive = zipfile.ZipFile(io.BytesIO(body))
    rows = AgentInstance.objects.order_by("-active_at")
    names = [f"{row.pk}.{form.extension}" for row in rows]
    has_note = form is ExportFormat.LIBRECHAT
    assert archive.namelist() == [*names, *["left-out.txt"] * has_note]
    for row in rows:
        whole = "".join(export_conversation(row, str(row.session_id), form))
        assert archive.read(f"{row.pk}.{form.extension}").decode() == whole
    if has_note:
        assert archive.read("left-out.txt").decode() == (
            "Weather: 1 hidden texts, 1 files that the format has no place for, or that are too large\n"
        )


def test_messages_between_agents_are_in_the_zip_and_make_none_anew(
    as_alice: ApiClient, alice: User, as_bob: ApiClient, bob: User
) -> None:
    imported(as_alice, SOURCES["open-webui"])
    room, *others = AgentInstance.objects.filter(owner=alice)
    AgentMessage.objects.create(room=room, sender="lead", target="reader", content="Read it.", request_id="one")
    his = AgentInstance.objects.create(owner=bob, agent="assistant", name="his")
    AgentMessage.objects.create(room=his, target="reader", content="His.")
    data = b"".join(export_all(alice.pk, ExportFormat.JSONL))
    lines = zipfile.ZipFile(io.BytesIO(data)).read("agent-messages.jsonl").decode().splitlines()
    [line] = map(json.loads, lines)
    assert (line["room_id"], line["sender"], line["target"], line["content"]) == (room.pk, "lead", "reader", "Read it.")
    without = b"".join(export_all(alice.pk, ExportFormat.JSONL, only=[others[0].pk]))
    assert "agent-messages.jsonl" not in zipfile.ZipFile(io.BytesIO(without)).namelist()
    with_list = b"".join(export_all(alice.pk, ExportFormat.LIBRECHAT))
    assert "agent-messages.jsonl" in zipfile.ZipFile(io.BytesIO(with_list)).namelist()
    assert imported(as_bob, with_list)["report"]["unreadable_count"] == 0
    assert AgentMessage.objects.count() == 2


def test_nothing_to_export_is_an_empty_file(as_alice: ApiClient, alice: User) -> None:
    assert downloaded(alice, "/exports?format=open-webui")[2] == b"[]"
    assert zipfile.ZipFile(io.BytesIO(downloaded(alice, "/exports")[2])).namelist() == []
    assert as_alice.get("/exports?format=pdf").status_code == 422


def test_another_users_conversations_are_not_in_it(as_alice: ApiClient, bob: User) -> None:
    imported(as_alice, SOURCES["claude"])
    assert downloaded(bob, "/exports?format=open-webui")[2] == b"[]"


def test_files_beyond_the_limit_stand_as_names(
    as_alice: ApiClient, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chat.conversations.exporting.MAX_FILES_BYTES", len(archives.PNG) - 1)
    imported(as_alice, SOURCES["open-webui"])
    records = json.loads(b"".join(export_all(alice.pk, ExportFormat.OPEN_WEBUI)))
    [weather] = [record for record in records if record["title"] == "Weather"]
    first = weather["chat"]["history"]["messages"]["u1"]
    assert first["content"].startswith("[image]")
    assert [file["name"] for file in first["files"]] == ["a.txt"]
    assert weather["meta"]["left_out"]["file"] == 1


def test_the_command_writes_all_and_says_what_is_left_out(as_alice: ApiClient, alice: User, tmp_path: Any) -> None:
    imported(as_alice, SOURCES["open-webui"])
    out, path = io.StringIO(), tmp_path / "all.zip"
    call_command("export_conversations", path, user=alice.username, format="librechat", stdout=out)
    assert out.getvalue().splitlines()[-1] == "2 conversations"
    assert "Weather: without 1 hidden texts, 1 files" in out.getvalue()
    assert zipfile.ZipFile(path).testzip() is None
    with pytest.raises(CommandError, match="exists"):
        call_command("export_conversations", path, user=alice.username)
