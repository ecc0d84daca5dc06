"""Undo and redo of turns: files, messages, effects; conflicts are shown, and nothing is overwritten or half done."""

from typing import Any

import pytest

from chat.models import AgentInstance, Revert, Turn
from chat.operations.removal import delete_instance
from chat.think import Think, Tool, Undo, action, compensation, tool
from chat.turns.state.deletion import delete_turns
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from tools_app.core.files.workspace import Link, MakeDirectory, Put
from tools_app.core.tool_calls import CallStatus
from tools_app.models import FileBackup, ToolCallRecord
from tools_app.workspace.services import create_workspace

from .call_lines import call_line
from .conftest import MakeRoom, Room, status_of
from .undo_requests import asked, instance_id, redo, undo

pytestmark = pytest.mark.django_db(transaction=True)


class Scribe(Think):
    """Has the file tools, and one that changes many kinds of entries at once."""

    chat_recovery = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        workspace = self.workspace

        @tool
        async def tidy() -> str:
            """Tidy up."""
            await workspace.rm("/old", recursive=True)
            await workspace.apply([Link(path="/link", target="/plan"), MakeDirectory(path="/made/inside")])
            await workspace.mv("/from", "/to")
            return "tidied"

        return [tidy]


BOOKED: list[str] = []


@compensation
def unbook(undo: Undo) -> str:
    """Take a booking back."""
    BOOKED.remove(undo.input["place"])
    return f"{undo.input['place']} is free"


@action(undo=unbook)
def book(place: str) -> str:
    """Book a place."""
    BOOKED.append(place)
    return f"booked {place}"


@action
def ring(place: str) -> str:
    """Ring, which nothing takes back."""
    return f"rang {place}"


class Host(Scribe):
    """Books, and has another one write into its files."""

    def get_tools(self) -> list[Tool]:
        return [*super().get_tools(), book, ring, self.agent_tool(Scribe, workspace="shared")]


async def marks(room: Room) -> list[Any]:
    """The undo that can be redone, as the conversation and the list of conversations name it."""
    [listed] = (await asked(room, "GET", "/instances")).json()["items"]
    return [(await asked(room, "GET", f"/instances/{listed['id']}")).json()["undone"], listed["undone"]]


async def files_of(room: Room) -> dict[str, str]:
    """All entries: texts of files, targets of links, an empty text for directories."""
    workspace = room.handle.workspace
    found = {}
    for entry in await workspace.glob("/**"):
        found[entry.path] = (
            entry.target or (await workspace.read_file(entry.path) if entry.kind == "file" else "") or ""
        )
    return found


async def test_files_and_messages_are_taken_back_together_and_brought_back(make_room: MakeRoom) -> None:
    room = make_room("scribe")
    await room.handle.workspace.apply(
        [Put(path="/old/a", content=b"a"), Put(path="/plan", content=b"one"), Put(path="/from/f", content=b"f")]
    )
    await room.handle.workspace.apply([MakeDirectory(path="/old/empty"), Link(path="/old/link", target="a")])
    before = await files_of(room)
    first = await room.say("say: first")
    told = await room.texts()
    turn = await room.say(
        call_line("edit", "c1", path="/plan", old_string="one", new_string="two")
        + call_line("write", "c2", path="/new", content="x")
        + call_line("tidy", "c3")
        + "say: done"
    )
    assert status_of(turn) == "completed"
    calls = await db(lambda: list(ToolCallRecord.objects.filter(turn_id=turn.pk).values("call_id", "status", "output")))
    assert [call for call in calls if call["status"] != CallStatus.SUCCEEDED] == []
    after, said = await files_of(room), await room.texts()
    preview = (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()
    assert {each["path"]: each["fate"] for each in preview["files"]} == {
        **dict.fromkeys(("/new", "/to/f", "/link"), "deleted"),
        **dict.fromkeys(("/from/f", "/old/a", "/old/link"), "created"),
        "/plan": "updated",
    }
    assert (preview["conflict_count"], preview["left_count"], preview["turn_count"]) == (0, 0, 1)
    assert preview["question"].startswith("call tool edit")
    made = await undo(room, turn)
    assert (made.status_code, made.json()["left"]) == (201, [])
    assert await files_of(room) == before
    assert await room.texts() == told
    mark = {"id": made.json()["revert"]["id"], "file_count": 7, "includes_messages": True}
    assert await marks(room) == [mark, mark]  # a page that is opened anew offers to redo it
    again = await redo(room)
    assert again.status_code == 201
    assert (await files_of(room), await room.texts()) == (after, said)
    assert await marks(room) == [None, None]
    assert (await undo(room, first)).status_code == 201
    assert (await files_of(room), await room.texts()) == (before, [])
    assert (await redo(room)).status_code == 201
    assert (await files_of(room), await room.texts()) == (after, said)
    assert (await asked(room, "GET", f"/instances/{await instance_id(room)}/redo")).json() == {
        "revert": None,
        "preview": None,
    }
    changes = (await asked(room, "GET", f"/instances/{await instance_id(room)}/changes")).json()["items"]
    assert {each["path"]: each["kind"] for each in changes}["/plan"] == "updated"
    listed = (await asked(room, "GET", f"/instances/{await instance_id(room)}/reverts")).json()["items"]
    assert [each["redoes"] is not None for each in listed] == [True, False, True, False]


async def test_messages_are_taken_back_alone_and_so_are_files(make_room: MakeRoom) -> None:
    room = make_room("scribe")
    turn = await room.say(call_line("write", "c1", path="/f", content="agent") + "say: done")
    said = await room.texts()
    assert (await undo(room, turn, files=False)).status_code == 201
    assert (await files_of(room), await room.texts()) == ({"/f": "agent"}, [])
    assert (await redo(room)).status_code == 201
    assert (await files_of(room), await room.texts()) == ({"/f": "agent"}, said)
    assert (await undo(room, turn, messages=False)).status_code == 201
    assert (await files_of(room), await room.texts()) == ({}, said)
    assert (await redo(room)).status_code == 201
    assert (await files_of(room), await room.texts()) == ({"/f": "agent"}, said)
    assert (await undo(room, turn, files=False, messages=False)).status_code == 422


async def test_what_a_person_changed_is_a_conflict_and_stays_unless_it_is_chosen(make_room: MakeRoom) -> None:
    room = make_room("scribe")
    await room.handle.workspace.write_file("/plan", "one\n")
    turn = await room.say(
        call_line("write", "c1", path="/plan", content="two\n")
        + call_line("write", "c2", path="/new", content="x")
        + "say: done"
    )
    await room.handle.workspace.write_file("/plan", "mine\n")
    preview = (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()
    [conflict] = [each for each in preview["files"] if each["hindrance"]]
    assert (conflict["path"], conflict["hindrance"], preview["conflict_count"]) == ("/plan", "changed", 1)
    assert (conflict["changes"]["before"], conflict["changes"]["after"]) == ("mine\n", "one\n")
    made = (await undo(room, turn, messages=False)).json()
    assert [each["path"] for each in made["left"]] == ["/plan"]
    assert await files_of(room) == {"/plan": "mine\n"}
    assert len(await room.texts()) == 2  # messages were not asked for
    choice = {"id": conflict["id"], "version": conflict["version"]}
    await room.handle.workspace.write_file("/plan", "mine again\n")
    stale = await undo(room, turn, messages=False, overwrite=[choice])
    assert stale.json()["code"] == "undo_impossible"  # it changed once more, and nothing else is left to do
    [fresh] = (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()["files"]
    chosen = [{"id": fresh["id"], "version": fresh["version"]}]
    assert (await undo(room, turn, messages=False, overwrite=chosen)).json()["left"] == []
    assert await files_of(room) == {"/plan": "one\n"}
    assert (await redo(room)).status_code == 201
    assert await files_of(room) == {"/plan": "mine again\n"}


async def test_a_change_in_between_two_of_the_agents_is_a_conflict(make_room: MakeRoom) -> None:
    room = make_room("scribe")
    first = await room.say(call_line("write", "c1", path="/f", content="agent") + "say: done")
    await room.handle.workspace.write_file("/f", "person")
    await room.say(call_line("write", "c2", path="/f", content="agent again") + "say: done")
    [found] = (await asked(room, "GET", f"/turns/{first.pk}/undo")).json()["files"]
    assert found["hindrance"] == "changed"
    assert (await undo(room, first)).json()["left"][0]["path"] == "/f"
    assert await files_of(room) == {"/f": "agent again"}


async def test_while_the_agent_works_nothing_is_undone(make_room: MakeRoom) -> None:
    room = make_room("scribe")
    turn = await room.say(call_line("write", "c1", path="/f", content="agent") + "say: done")
    await room.admit("say: later")
    refused = await undo(room, turn)
    assert (refused.status_code, refused.json()["code"]) == (409, "undo_busy")
    assert (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()["is_busy"] is True
    assert await files_of(room) == {"/f": "agent"}


async def test_after_another_turn_nothing_is_redone(make_room: MakeRoom) -> None:
    room = make_room("scribe")
    turn = await room.say(call_line("write", "c1", path="/f", content="agent") + "say: done")
    made = (await undo(room, turn)).json()["revert"]
    assert await db(Turn.objects.filter(pk=turn.pk).exists)  # nothing is deleted
    assert [mark["id"] for mark in await marks(room)] == [made["id"]] * 2
    await room.say("say: something else")
    assert await marks(room) == [None, None]
    body = {"revert_id": made["id"]}
    assert (await asked(room, "POST", f"/instances/{await instance_id(room)}/redo", body)).json()[
        "code"
    ] == "undo_impossible"


async def test_what_was_too_large_to_be_kept_is_named(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_WORKSPACE_QUOTA_BYTES = 800
    room = make_room("scribe")
    await room.handle.workspace.write_file("/large", "x" * 200)
    turn = await room.say(
        call_line("write", "c1", path="/large", content="")
        + call_line("write", "c2", path="/f", content="")
        + "say: done"
    )
    preview = (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()
    assert {each["path"]: each["hindrance"] for each in preview["files"]} == {"/large": "too_large", "/f": ""}
    assert [each["hindrance"] for each in (await undo(room, turn)).json()["left"]] == ["too_large"]
    assert await files_of(room) == {"/large": ""}


async def test_undos_go_with_their_conversation_and_leave_no_backups(make_room: MakeRoom) -> None:
    room = make_room("scribe")
    turn = await room.say(call_line("write", "c1", path="/f", content="agent") + "say: done")
    await undo(room, turn)
    assert await db(FileBackup.objects.count) == 2
    await db(delete_turns, Turn.objects.filter(pk=turn.pk))
    assert await db(FileBackup.objects.count) == 1
    await db(delete_instance, await AgentInstance.objects.aget())
    assert (await db(FileBackup.objects.count), await db(Revert.objects.count)) == (0, 0)


async def test_effects_are_shown_with_an_undo_and_undone_one_by_one(make_room: MakeRoom) -> None:
    BOOKED.clear()
    room = make_room("host")
    calls = [call_line("book", "c1", place="A"), call_line("ring", "c2", place="A"), call_line("book", "c3", place="B")]
    turn = await room.say("say: on.\n".join(calls) + "say: done")  # each in a step of its own
    preview = (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()
    assert [(each["action"], each["input"]["place"], each["can_undo"]) for each in preview["effects"]] == [
        ("book", "B", True),
        ("ring", "A", False),
        ("book", "A", True),
    ]
    newest, lasting, _ = preview["effects"]
    path = f"/turns/{turn.pk}/undo/effects"
    assert (await asked(room, "POST", f"{path}/{newest['id']}")).json() == {"output": "B is free"}
    assert BOOKED == ["A"]  # nothing else is undone by it
    assert (await asked(room, "POST", f"{path}/{newest['id']}")).status_code == 409
    assert (await asked(room, "POST", f"{path}/{lasting['id']}")).status_code == 409
    later = await room.say("say: later")
    strange = await asked(room, "POST", f"/turns/{later.pk}/undo/effects/{preview['effects'][2]['id']}")
    assert (strange.json()["code"], BOOKED) == ("undo_impossible", ["A"])  # it is no effect of that turn
    assert (await undo(room, turn)).status_code == 201
    assert BOOKED == ["A"]  # effects are undone by a decision about each, and by nothing else


async def test_what_sub_agents_did_for_a_turn_is_taken_back_with_it(make_room: MakeRoom) -> None:
    room = make_room("host")
    await room.handle.workspace.write_file("/f", "before")
    task = (
        call_line("write", "w1", path="/f", content="below")
        + call_line("write", "w2", path="/g", content="x")
        + "say: written"
    )
    turn = await room.say(call_line("scribe", "c1", task=task) + "say: done")
    after = await files_of(room)
    assert after == {"/f": "below", "/g": "x"}
    preview = (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()
    assert (preview["file_count"], preview["turn_count"]) == (2, 1)
    assert (await undo(room, turn)).json()["left"] == []
    assert await files_of(room) == {"/f": "before"}
    assert (await redo(room)).status_code == 201
    assert await files_of(room) == after


async def test_files_of_a_shared_workspace_stay_where_it_may_only_be_read(make_room: MakeRoom) -> None:
    room = make_room("scribe")
    shared = await db(create_workspace, None, "team")
    await room.handle.attach_workspace(shared.pk, name="default")
    turn = await room.say(call_line("write", "c1", path="/f", content="agent") + "say: done")
    await room.handle.attach_workspace(shared.pk, name="default", can_write=False)
    preview = (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()
    assert [(each["path"], each["hindrance"]) for each in preview["files"]] == [("/f", "no_access")]
    assert (preview["file_count"], preview["left_count"]) == (0, 1)
    made = (await undo(room, turn)).json()
    assert [each["hindrance"] for each in made["left"]] == ["no_access"]
    assert (await files_of(room), await room.texts()) == ({"/f": "agent"}, [])
    await room.handle.attach_workspace(shared.pk, name="default", can_write=True)
    assert (await undo(room, turn, messages=False)).json()["left"] == []
    assert await files_of(room) == {}
