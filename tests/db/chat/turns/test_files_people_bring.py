"""Files that people bring: uploaded, sent, and in the provider's request as text, picture, or a sentence."""

import base64
import io
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient
from PIL import Image

from chat.files import attachments
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Attachment
from chat.operations.removal import delete_instance
from chat.turns.admission.intake import Submit
from sessions_app.core.messages.shapes import Part
from tests.db.chat.turns.agents.everyday import MODELS
from tests.files_people_bring import DOCUMENTS, PICTURES, REFUSED, Brought
from thinkproject.kernel.aio import db
from thinkproject.kernel.object_storage import object_storage
from tools_app.core.files.kinds import kind_name
from tools_app.documents.converting import View, convert

from .conftest import MakeRoom, Room, status_of

ENCODINGS = {
    "customers.csv": ", in Windows-1252 (assumed: its bytes do not say)",
    "contacts.csv": ", in UTF-16 LE with BOM",
}


class WithoutDocuments(ScriptedModel):
    """Sees pictures, and takes no PDF."""

    accepts_documents = False


class TextAlone(WithoutDocuments):
    """Sees nothing."""

    accepts_images = False


@pytest.fixture(autouse=True)
def _files_of_their_own(settings: Any, tmp_path: Path) -> None:
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {**settings.STORAGES, "think": {"BACKEND": backend, "OPTIONS": {"location": str(tmp_path)}}}


class Desk:
    """A person with a browser, and the room where the files are sent."""

    def __init__(self, room: Room, model: type[ScriptedModel]) -> None:
        self.room = room
        self.model = MODELS["current"] = room.model = model()
        self.http = AsyncClient()

    async def upload(self, brought: Brought) -> Any:
        return await self.upload_bytes(brought.name, brought.data)

    async def upload_bytes(self, name: str, data: bytes) -> Any:
        user = await db(User.objects.get)
        await self.http.aforce_login(user)
        return await self.http.post("/api/v1/files", {"file": SimpleUploadedFile(name, data)})

    async def send(self, file: dict[str, Any]) -> list[dict[str, Any]]:
        """The last content of the user's in the provider's request."""
        part: Part = {"type": "file", "url": file["url"], "mediaType": file["media_type"], "filename": file["name"]}
        text: Part = {"type": "text", "text": "say: read"}
        turn = await self.room.say(Submit(message={"role": "user", "parts": [text, part]}))
        assert status_of(turn) == "completed", turn.error_text
        content = self.model.requests[-1]["messages"][-1]["content"]
        return content if isinstance(content, list) else [{"type": "text", "text": content}]

    async def see(self, file: dict[str, Any]) -> tuple[str, bytes]:
        """The type and the bytes of what the person is shown."""
        reply = await self.http.get(f"{file['url']}/view")
        assert reply.status_code == 200
        assert reply["Content-Disposition"].startswith("inline")
        assert reply["Content-Security-Policy"] == "default-src 'none'; sandbox"
        return reply["Content-Type"], reply.getvalue()


@pytest.mark.parametrize("brought", DOCUMENTS, ids=str)
async def test_a_document_is_text_for_model_and_person(make_room: MakeRoom, brought: Brought) -> None:
    desk = Desk(make_room("plain"), WithoutDocuments)
    file = (await desk.upload(brought)).json()
    assert file["media_type"] == brought.media_type
    sent = "\n".join(item["text"] for item in await desk.send(file))
    expected = brought.expected
    title = f'[The user attached "{brought.name}" ({kind_name(brought.media_type)})'
    assert f"{title}{ENCODINGS.get(brought.name, '')}:]\n{expected}" in sent.replace("\r", "")
    kind, shown = await desk.see(file)
    assert kind == "text/plain; charset=utf-8"
    assert shown.decode().replace("\r", "").removesuffix("\n") == expected
    assert file["note"] == (expected[1:-1] if expected.startswith("(") else "")
    assert "base64" not in sent
    assert "octet-stream" not in sent


async def test_a_picture_within_a_text_is_named_for_model_and_person(make_room: MakeRoom) -> None:
    desk = Desk(make_room("plain"), WithoutDocuments)
    picture = base64.b64encode(bytes(range(256)) * 20)
    note = b"# Plan\n\n![plan](data:image/png;base64," + picture + b")\n"
    file = (await desk.upload_bytes("plan.md", note)).json()
    sent = "\n".join(item["text"] for item in await desk.send(file))
    assert "![plan]([image/png, 5,137 bytes])" in sent
    assert await desk.see(file) == ("text/plain; charset=utf-8", b"# Plan\n\n![plan]([image/png, 5,137 bytes])\n")


@pytest.mark.parametrize("brought", PICTURES, ids=str)
async def test_a_picture_is_one_that_providers_take(make_room: MakeRoom, brought: Brought) -> None:
    desk = Desk(make_room("plain"), WithoutDocuments)
    file = (await desk.upload(brought)).json()
    assert (file["media_type"], file["note"]) == (brought.media_type, "")
    [item] = [item for item in await desk.send(file) if item["type"] == "image_url"]
    head, _, body = item["image_url"]["url"].partition(",")
    data = base64.b64decode(body)
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.size == brought.sides
        assert head == f"data:image/{str(picture.format).lower()};base64"
    assert await desk.see(file) == (head.removeprefix("data:").removesuffix(";base64"), data)
    assert await desk.send(file), "the conversation goes on"
    assert body in str(desk.model.requests[-1]), "and the picture is the same"


@pytest.mark.parametrize("brought", REFUSED, ids=str)
async def test_what_cannot_be_read_is_refused_with_a_way_on(make_room: MakeRoom, brought: Brought) -> None:
    reply = await Desk(make_room("plain"), ScriptedModel).upload(brought)
    assert (reply.status_code, reply.json()["detail"]) == (422, brought.expected)
    assert not await db(Attachment.objects.exists)


async def test_a_model_that_reads_documents_gets_the_document(make_room: MakeRoom) -> None:
    desk = Desk(make_room("plain"), ScriptedModel)
    letter = next(brought for brought in DOCUMENTS if brought.name == "invoice.pdf")
    sent = await desk.send((await desk.upload(letter)).json())
    assert base64.b64encode(letter.data).decode() in str(sent)
    assert "Lovelace" not in str(sent)


async def test_a_model_without_eyes_gets_the_name_of_a_picture(make_room: MakeRoom) -> None:
    desk = Desk(make_room("plain"), TextAlone)
    photo = next(brought for brought in PICTURES if brought.name == "iphone.heic")
    sent = await desk.send((await desk.upload(photo)).json())
    assert "You cannot see its content" in str(sent)


async def test_a_file_is_read_once_and_its_view_goes_with_it(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(make_room("plain"), WithoutDocuments)
    table = next(brought for brought in DOCUMENTS if brought.name == "budget.xlsx")
    reads: list[str] = []

    def counted(data: bytes, media_type: str) -> View:
        reads.append(media_type)
        return convert(data, media_type)

    monkeypatch.setattr("chat.files.views.convert", counted)
    file = (await desk.upload(table)).json()
    first = await desk.send(file)
    assert await desk.send(file)
    assert first[-1]["text"] in desk.model.requests[-1]["messages"][-3]["content"]
    assert reads == [table.media_type]
    assert object_storage().listdir(attachments.VIEW_FOLDER)[1] == [file["id"]]
    await db(delete_instance, await db(AgentInstance.objects.get))
    assert object_storage().listdir(attachments.VIEW_FOLDER)[1] == []


async def test_a_file_that_was_too_slow_is_tried_again(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(make_room("plain"), WithoutDocuments)
    table = next(brought for brought in DOCUMENTS if brought.name == "budget.xlsx")
    monkeypatch.setattr("chat.files.views.convert", partial(convert, seconds=0.01))
    file = (await desk.upload(table)).json()
    assert file["note"].startswith("This file takes too long to read.")
    assert "takes too long to read" in str(await desk.send(file))
    monkeypatch.setattr("chat.files.views.convert", convert)
    await desk.send(file)
    assert "Sheet: Budget 2026" in str(desk.model.requests[-1])
