"""Changes of a turn to files: listed by the API, whichever way its tools reached them; gone with the turn."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.models import Turn
from chat.think import Think, Tool, tool
from chat.turns.state.deletion import delete_turns
from tests.db.chat.conftest import ApiClient
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from tools_app.models import FileBackup
from tools_app.workspace.services import create_workspace, open_workspace

from .call_lines import call_line
from .conftest import MakeRoom, Room, status_of

pytestmark = pytest.mark.django_db(transaction=True)

SHARED: dict[str, str] = {}


class Writer(Think):
    """Has the file tools, and a tool of its own that writes."""

    chat_recovery = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        workspace = self.workspace

        @tool
        async def note(text: str) -> str:
            """Note something."""
            await workspace.append_file("/notes", text)
            return "noted"

        return [note]


class SharingWriter(Writer):
    """Works in a workspace that it names itself."""

    def get_workspace(self) -> Any:
        return open_workspace(SHARED["id"])


async def got(room: Room, path: str) -> dict[str, Any]:
    assert room.key.owner_id is not None
    user = await User.objects.aget(pk=room.key.owner_id)
    reply = await sync_to_async(lambda: ApiClient(user).get(path), thread_sensitive=False)()
    assert reply.status_code == 200
    answer: dict[str, Any] = reply.json()
    return answer


async def files_of(room: Room, turn: Turn) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await got(room, f"/turns/{turn.pk}/files"))["items"]
    return items


async def count_of(room: Room, turn: Turn) -> int:
    count: int = (await got(room, f"/turns/{turn.pk}"))["changed_file_count"]
    return count


async def test_a_turn_is_told_with_the_files_that_it_changed(make_room: MakeRoom) -> None:
    room = make_room("writer")
    await room.handle.workspace.write_file("/plan", "one\n")
    turn = await room.say(
        call_line("write", "c1", path="/new", content="x\n")
        + call_line("edit", "c2", path="/plan", old_string="one", new_string="two")
        + call_line("note", "c3", text="n")
        + "say: done"
    )
    assert status_of(turn) == "completed"
    found = await files_of(room, turn)
    assert [(each["path"], each["kind"], each["before"], each["after"]) for each in found] == [
        ("/new", "created", None, "x\n"),
        ("/notes", "created", None, "n"),
        ("/plan", "updated", "one\n", "two\n"),
    ]
    assert (found[2]["added"], found[2]["removed"], found[2]["is_cut"]) == (1, 1, False)
    assert await count_of(room, turn) == 3
    await room.handle.workspace.write_file("/plan", "by hand\n")
    idle = await room.say("say: nothing to do")
    assert await files_of(room, idle) == []
    assert await count_of(room, idle) == 0
    assert await db(FileBackup.objects.filter(turn_id=turn.pk).count) == 3
    assert (await files_of(room, turn))[2]["after"] == "two\n"  # what the person changed does not count as the turn's
    steps = await got(room, f"/turns/{turn.pk}/files?step=0"), await got(room, f"/turns/{turn.pk}/files?step=1")
    assert [len(step["items"]) for step in steps] == [3, 0]


async def test_a_workspace_that_the_agent_names_is_kept_too(make_room: MakeRoom) -> None:
    room = make_room("sharing-writer")
    SHARED["id"] = (await db(create_workspace, room.key.owner_id)).pk
    turn = await room.say(call_line("write", "c1", path="/shared", content="x") + "say: done")
    assert [each["path"] for each in await files_of(room, turn)] == ["/shared"]


async def test_what_was_kept_goes_with_the_turn(make_room: MakeRoom) -> None:
    room = make_room("writer")
    turn = await room.say(call_line("write", "c1", path="/new", content="x") + "say: done")
    assert await db(FileBackup.objects.count) == 1
    await db(delete_turns, Turn.objects.filter(pk=turn.pk))
    assert await db(FileBackup.objects.count) == 0
