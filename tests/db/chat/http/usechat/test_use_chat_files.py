"""`useChat` over plain HTTP with attached files: the SDK sends them as data URLs for as long as the page is open."""

import base64
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chat.models import Attachment
from sessions_app.core.messages.oversized import ROW_MAX_BYTES
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.models import Message as Row
from tests.db.chat.use_chat import TEXT, Json, Page, answer, asks, assistant, end, last_turn, transcript, turns, user

pytestmark = pytest.mark.django_db(transaction=True)
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40


@pytest.fixture(autouse=True)
def _storage_of_this_test(settings: Any, tmp_path: Any) -> None:
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {**settings.STORAGES, "think": {"BACKEND": backend, "OPTIONS": {"location": str(tmp_path)}}}


def attached(data: bytes, name: str, media_type: str) -> Part:
    """A file as the SDK has it in a message of the user's."""
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return {"type": "file", "mediaType": media_type, "filename": name, "url": url}


def asking(message_id: str, *files: Part, text: str = "What is this?") -> Message:
    return {"id": message_id, "role": "user", "parts": [*files, {"type": "text", "text": text}]}


PICTURE = attached(PNG, "pic.png", "image/png")
NOTE = attached(b"hello", "n.txt", "text/html")  # stored as what it is, `text/plain`


async def answered(page: Page, body: Json) -> Any:
    """Post, and let the turn end with an answer; returns the turn."""
    assert (await page.post(body)).status_code == 200
    turn = await last_turn()
    await answer(turn)
    await end(turn, parts=[TEXT])
    return turn


@sync_to_async
def kept() -> tuple[list[str], list[str]]:
    """The texts of all stored questions, and the names of all files."""
    rows = Row.objects.filter(role="user").order_by("id")
    texts = ["".join(str(part.get("text", "")) for part in row.content["parts"]) for row in rows]
    return texts, sorted(Attachment.objects.values_list("name", flat=True))


@pytest.mark.parametrize(
    "files",
    [(PICTURE,), (NOTE,), (PICTURE, NOTE), (PICTURE, PICTURE), ({**PICTURE, "filename": None},)],
    ids=["picture", "another media type", "two files", "the same twice", "without a name"],
)
async def test_a_new_answer_is_no_edit(page: Page, files: tuple[Part, ...]) -> None:
    question = asking("u1", *files)
    first = await answered(page, asks([question]))
    before = await kept()
    for named in ({"messageId": first.assistant_id}, {}):
        turn = await answered(page, asks([question], "regenerate-message", **named))
        assert (turn.trigger, turn.base_id) == ("regenerate-message", "u1")
    assert await kept() == before
    assert len(await turns()) == 3


async def test_a_question_that_is_sent_once_more_is_answered_once_more(page: Page) -> None:
    question = asking("u1", PICTURE)
    await answered(page, asks([question]))
    turn = await answered(page, asks([question], messageId="u1"))
    assert (turn.trigger, turn.base_id) == ("regenerate-message", "u1")
    assert await kept() == (["What is this?"], ["pic.png"])


async def test_an_edit_keeps_the_file_and_is_known_afterwards(page: Page) -> None:
    await answered(page, asks([asking("u1", PICTURE)]))
    edited = asking("u1", PICTURE, text="And this?")
    edit = await answered(page, asks([edited], messageId="u1"))
    again = await answered(page, asks([edited], "regenerate-message", messageId=edit.assistant_id))
    assert (edit.trigger, again.trigger, again.base_id) == ("edit-message", "regenerate-message", edit.input_ids[0])
    assert await kept() == (["What is this?", "And this?"], ["pic.png"])


async def test_another_file_of_the_same_name_is_an_edit(page: Page) -> None:
    await answered(page, asks([asking("u1", PICTURE)]))
    other = asking("u1", attached(PNG + b"\x01", "pic.png", "image/png"))
    edit = await answered(page, asks([other], messageId="u1"))
    again = await answered(page, asks([other], "regenerate-message"))
    assert (edit.trigger, again.trigger, again.base_id) == ("edit-message", "regenerate-message", edit.input_ids[0])
    assert await kept() == (["What is this?", "What is this?"], ["pic.png", "pic.png"])
    [question, _] = await transcript()
    assert question["parts"][0]["url"] != PICTURE["url"]


async def test_a_later_question_with_the_same_file_is_one_of_its_own(page: Page) -> None:
    first = asking("u1", PICTURE)
    turn = await answered(page, asks([first]))
    later = asking("u2", PICTURE)
    path = [first, assistant(turn.assistant_id, TEXT), later]
    await answered(page, asks(path))
    again = await answered(page, asks(path, "regenerate-message"))
    assert (again.trigger, again.base_id) == ("regenerate-message", "u2")
    assert await kept() == (["What is this?"] * 2, ["pic.png"])


async def test_a_file_that_was_uploaded_before_does_not_stand_for_the_one_in_the_message(page: Page) -> None:
    upload = await sync_to_async(Attachment.objects.create)(
        owner=page.user, name="pic.png", media_type="image/png", byte_size=1, sha256="0" * 64, storage_name="none"
    )
    question = asking("u1", PICTURE)
    await answered(page, asks([question]))
    [stored] = [part for part in (await transcript())[0]["parts"] if part["type"] == "file"]
    assert upload.pk not in stored["url"]


async def test_with_no_room_for_files_a_new_answer_is_given(page: Page, settings: Any) -> None:
    settings.THINK_FILES_PER_USER = 1
    question = asking("u1", PICTURE)
    await answered(page, asks([question]))
    turn = await answered(page, asks([question], "regenerate-message"))
    assert turn.trigger == "regenerate-message"
    assert (await page.post(asks([asking("u2", NOTE)]))).status_code == 429  # another file has no room


async def test_a_list_that_was_not_cut_names_the_question_with_its_file(page: Page) -> None:
    question = asking("u1", PICTURE)
    await answered(page, asks([question]))
    shown_elsewhere = assistant("a-of-the-page", TEXT)
    turn = await answered(page, asks([question, shown_elsewhere], "regenerate-message"))
    assert (turn.trigger, turn.base_id) == ("regenerate-message", "u1")
    assert await kept() == (["What is this?"], ["pic.png"])


async def test_a_new_answer_to_a_text_too_large_for_a_row_is_no_edit(page: Page) -> None:
    long = "x" * (ROW_MAX_BYTES + 1000)
    await answered(page, asks([user("u1", long)]))
    edit = await answered(page, asks([user("u1", long + "!")], messageId="u1"))
    again = await answered(page, asks([user("u1", long + "!")], "regenerate-message"))
    assert edit.trigger == "edit-message"
    assert (again.trigger, again.base_id) == ("regenerate-message", edit.input_ids[0])
    first = await answered(page, asks([user("u2", long)]))
    again = await answered(page, asks([user("u2", long)], "regenerate-message", messageId=first.assistant_id))
    assert (again.trigger, again.base_id) == ("regenerate-message", "u2")
