"""Review of changed files: by file and by hunk, kept or taken back; conflicts stay; the patch is what git takes."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.models import KeptChange, Turn
from chat.runtime.review import ReviewChoice
from chat.think import Think
from tests.db.chat.conftest import ApiClient
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from tools_app.errors import FileConflict

from .call_lines import call_line
from .conftest import MakeRoom, Room
from .undo_requests import asked, instance_id, redo, undo

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = "".join(f"line {number}\n" for number in range(30))
AFTER = BEFORE.replace("line 2\n", "line two\n").replace("line 25\n", "")


class Editor(Think):
    """Has the file tools."""

    def get_model(self) -> Any:
        return MODELS["current"]


@pytest.fixture
def editing_room(make_room: MakeRoom) -> Room:
    return make_room("editor")


async def begun(room: Room) -> Turn:
    """A turn that changed two places of a text, made a file, removed one and moved one."""
    workspace = room.handle.workspace
    for path, text in (("/plan", BEFORE), ("/old", "old\n"), ("/logo", b"\0\1")):
        await workspace.write_file(path, text)
    return await room.say(
        call_line("write", "c1", path="/plan", content=AFTER)
        + call_line("write", "c2", path="/new", content="new\n")
        + call_line("delete", "c3", path="/old")
        + call_line("write", "c4", path="/logo", content="text\n")
        + call_line("write", "c5", path="/.git/HEAD", content="ref: refs/heads/main\n")
        + "say: done"
    )


async def review_of(room: Room, query: str = "") -> dict[str, dict[str, Any]]:
    found = (await asked(room, "GET", f"/instances/{await instance_id(room)}/review{query}")).json()
    return {each["path"]: each for each in found["files"]}


async def decide(room: Room, action: str, file: dict[str, Any], *hunks: str, **more: Any) -> Any:
    body = {"action": action, "file_id": file["id"], "version": file["version"], "hunks": hunks, **more}
    return await asked(room, "POST", f"/instances/{await instance_id(room)}/review", body)


async def test_hunks_are_kept_and_taken_back_one_by_one_and_brought_back(editing_room: Room) -> None:
    room = editing_room
    await begun(room)
    workspace = room.handle.workspace
    found = await review_of(room)
    assert {path: each["kind"] for path, each in found.items()} == {
        "/plan": "updated",
        "/new": "created",
        "/old": "deleted",
        "/logo": "updated",
    }
    first, second = found["/plan"]["hunks"]
    assert first["lines"][2:4] == ["-line 2", "+line two"]
    assert found["/logo"]["hunks"] == []
    kept = (await decide(room, "keep", found["/plan"], first["id"])).json()
    assert [[hunk["is_kept"] for hunk in each["hunks"]] for each in kept["files"] if each["path"] == "/plan"] == [
        [True, False]
    ]
    assert (await decide(room, "undo", found["/plan"], second["id"])).status_code == 200
    assert await workspace.read_file("/plan") == BEFORE.replace("line 2\n", "line two\n")
    plan = (await review_of(room))["/plan"]
    assert (plan["is_kept"], [each["id"] for each in plan["hunks"]]) == (True, [first["id"]])
    await redo(room)
    assert await workspace.read_file("/plan") == AFTER
    plan = (await review_of(room))["/plan"]
    assert [each["is_kept"] for each in plan["hunks"]] == [True, False]
    assert (await decide(room, "undo", plan)).status_code == 200
    for path in ("/new", "/old", "/logo"):
        assert (await decide(room, "undo", found[path])).status_code == 200
    assert [await workspace.read_bytes(path) for path in ("/plan", "/new", "/old", "/logo")] == [
        BEFORE.encode(),
        None,
        b"old\n",
        b"\0\1",
    ]
    assert await review_of(room) == {}


async def test_a_change_that_is_kept_is_looked_at_again_once_it_changes(editing_room: Room) -> None:
    room = editing_room
    await begun(room)
    found = await review_of(room)
    for path in found:
        assert (await decide(room, "keep", found[path])).status_code == 200
    assert {each["is_kept"] for each in (await review_of(room)).values()} == {True}
    await decide(room, "reopen", found["/new"])
    await room.say(call_line("edit", "c9", path="/plan", old_string="line two", new_string="line 2nd") + "say: done")
    found = await review_of(room)
    assert {path: each["is_kept"] for path, each in found.items()} == {
        "/plan": False,
        "/new": False,
        "/old": True,
        "/logo": True,
    }
    assert [each["is_kept"] for each in found["/plan"]["hunks"]] == [False, True]
    assert await db(KeptChange.objects.count) == 4  # two of the text, one each of the others; one was taken away


async def test_what_another_hand_changed_is_a_conflict_and_stays(editing_room: Room) -> None:
    room = editing_room
    turn = await begun(room)
    seen = (await review_of(room))["/plan"]
    await room.handle.workspace.write_file("/plan", "mine\n")
    by_hand = (await review_of(room))["/plan"]
    assert (by_hand["standing"], len(by_hand["hunks"])) == ("changed", 2)
    for file in (seen, by_hand):
        for hunks in ([], [file["hunks"][0]["id"]]):
            refused = await decide(room, "undo", file, *hunks)
            assert (refused.status_code, refused.json()["code"]) == (409, "file_conflict")
    assert await room.handle.workspace.read_file("/plan") == "mine\n"
    first = (await review_of(room, f"?turn={turn.pk}"))["/new"]
    await room.say(call_line("write", "c8", path="/new", content="newer\n") + "say: done")
    later = (await review_of(room, f"?turn={turn.pk}"))["/new"]
    assert later["standing"] == "changed"  # a later turn has changed it
    for file in (first, later):
        assert (await decide(room, "undo", file, turns=[turn.pk])).status_code == 409
    assert await room.handle.workspace.read_file("/new") == "newer\n"


async def test_a_single_turn_is_reviewed_by_itself(editing_room: Room) -> None:
    room = editing_room
    await begun(room)
    turn = await room.say(call_line("write", "c7", path="/plan", content=AFTER + "end") + "say: done")
    [file] = (await review_of(room, f"?turn={turn.pk}")).values()
    assert [each["lines"][-1] for each in file["hunks"]] == ["+end"]
    assert file["hunks"][0]["ends_open"]
    assert (await decide(room, "undo", file, file["hunks"][0]["id"], turns=[turn.pk])).json()["files"] == []
    assert await room.handle.workspace.read_file("/plan") == AFTER
    other = await asked(room, "GET", f"/instances/{await instance_id(room)}/review?turn=trn_other")
    assert (other.status_code, other.json()["code"]) == (409, "undo_impossible")
    plan = next(each for each in (await room.handle.review.read()).files if each.difference.path == "/plan")
    with pytest.raises(FileConflict):
        await room.handle.review.undo(ReviewChoice(file_id=plan.id, version=plan.version + 1))
    await room.handle.review.undo(ReviewChoice(file_id=plan.id, version=plan.version, hunks=[plan.hunks[1].id]))
    assert await room.handle.workspace.read_file("/plan") == BEFORE.replace("line 2\n", "line two\n")


def applied(patch: bytes, folder: Path) -> dict[str, bytes]:
    subprocess.run(["git", "apply", "-"], cwd=folder, input=patch, check=True)
    return {each.name: each.read_bytes() for each in folder.iterdir()}


async def test_the_patch_of_a_conversation_is_applied_by_git(editing_room: Room, tmp_path: Path) -> None:
    room = editing_room
    turn = await begun(room)
    await room.handle.workspace.write_file("/plan", "by hand\n")  # does not count as the turn's
    for path, content in (("plan", BEFORE.encode()), ("old", b"old\n"), ("logo", b"\0\1")):
        (tmp_path / path).write_bytes(content)
    assert room.key.owner_id is not None
    user = await User.objects.aget(pk=room.key.owner_id)
    address = f"/api/v1/instances/{await instance_id(room)}/patch?turn={turn.pk}"
    reply = await sync_to_async(lambda: ApiClient(user).http.get(address), thread_sensitive=False)()
    assert reply["Content-Disposition"] == 'attachment; filename="changes.patch"'
    assert applied(reply.content, tmp_path) == {"plan": AFTER.encode(), "new": b"new\n", "logo": b"text\n"}
    assert await room.handle.review.patch() == reply.content
    await undo(room, turn, messages=False)
    assert b"plan" in await room.handle.review.patch()  # the conflict stayed
