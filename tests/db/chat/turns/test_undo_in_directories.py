"""Undo in a directory on the disk that holds a repository: files go back, and the repository stays as it is."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.instances.rows import find_instance
from chat.instances.workspaces import attach_directory
from chat.members.services import add_member
from chat.models import AgentInstance, Role, Turn
from chat.think import Think
from chat.tools.files import DirectoryWorkspace
from chat.turns.state.deletion import delete_turns
from tests.db.chat.conftest import ApiClient
from tests.db.chat.turns.agents.everyday import MODELS
from tests.git_commands import git
from thinkproject.kernel.aio import db
from tools_app.errors import FileFailed
from tools_app.models import FileBackup
from tools_app.workspace.stores.directory_backups import DirectoryBackups

from .call_lines import call_line
from .conftest import MakeRoom, Room
from .undo_requests import asked, redo, undo

pytestmark = pytest.mark.django_db(transaction=True)
CLONES: dict[str, Path] = {}


class Cloner(Think):
    """Works in a clone on the disk."""

    def get_workspace(self) -> Any:
        return DirectoryWorkspace(CLONES["current"])

    def get_model(self) -> Any:
        return MODELS["current"]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A repository with a commit, which the agent works in."""
    folder = tmp_path / "clone"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print(1)\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "large.bin").write_bytes(os.urandom(400_000))
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    (folder / "notes.log").write_text("ignored")
    CLONES["current"] = folder
    yield folder
    del CLONES["current"]


async def preview_of(room: Room, turn: Turn) -> Any:
    return (await asked(room, "GET", f"/turns/{turn.pk}/undo")).json()


async def test_a_turn_in_a_repository_is_undone_and_redone(make_room: MakeRoom, clone: Path) -> None:
    room = make_room("cloner")
    head = git(clone, "log", "--all", "--format=%H")
    turn = await room.say(
        call_line("edit", "c1", path="/src/main.py", old_string="1", new_string="2")
        + call_line("write", "c2", path="/docs/new.md", content="x")
        + call_line("write", "c3", path="/run", content="#!/bin/sh\ntrue\n")
        + call_line("write", "c4", path="/large.bin", content="small")
        + call_line("write", "c5", path="/notes.log", content="written")
        + "say: done"
    )
    status = git(clone, "status", "--porcelain")
    assert status == " M large.bin\n M run\n M src/main.py\n?? docs/\n"
    preview = await preview_of(room, turn)
    assert (preview["keeps_files"], preview["file_count"], preview["conflict_count"]) == (True, 5, 0)
    changed = (await asked(room, "GET", f"/turns/{turn.pk}/files")).json()["items"]
    assert {each["path"]: each["diff"].splitlines()[3:] for each in changed}["/src/main.py"] == [
        "-print(1)",
        "+print(2)",
    ]
    assert (await undo(room, turn)).json()["left"] == []
    assert (git(clone, "status", "--porcelain"), (clone / "notes.log").read_text()) == ("", "ignored")
    assert not (clone / "docs").exists()
    assert os.access(clone / "run", os.X_OK)
    assert git(clone, "log", "--all", "--format=%H") == head  # nothing was written into the repository
    assert (await redo(room)).status_code == 201
    assert git(clone, "status", "--porcelain") == status
    await db(delete_turns, Turn.objects.filter(pk=turn.pk))
    assert await db(FileBackup.objects.filter(turn_id=turn.pk).count) == 0


async def test_what_differs_from_the_last_commit_comes_from_git(make_room: MakeRoom, clone: Path, bob: User) -> None:
    """The turn's work and a person's are one difference, a commit ends it, and an undo is that of the turn alone."""
    room = make_room("cloner")
    turn = await room.say(call_line("edit", "c1", path="/src/main.py", old_string="1", new_string="2") + "say: done")
    (clone / "by hand").write_text("mine\n")
    found = (await asked(room, "GET", f"/instances/{turn.instance_id}/repository")).json()
    assert found["commit"] == git(clone, "rev-parse", "HEAD").strip()
    assert found["branch"] == git(clone, "branch", "--show-current").strip()
    assert [(each["path"], each["kind"], each["is_tracked"]) for each in found["changes"]] == [
        ("/by hand", "created", False),
        ("/src/main.py", "updated", True),
    ]
    assert [each["staged"] for each in found["changes"]] == ["none", "none"]
    address = f"/instances/{turn.instance_id}/repository/difference?path="
    shown = (await asked(room, "GET", f"{address}/src/main.py")).json()
    assert (shown["diff"], shown["added"], shown["removed"]) == ("@@ -1 +1 @@\n-print(1)\n+print(2)\n", 1, 1)
    assert shown["diff"] == (await room.handle.review.repository_difference("/src/main.py")).diff
    assert (await asked(room, "GET", f"{address}/run")).status_code == 404  # as it was committed
    reply = await asked(room, "GET", f"/instances/{turn.instance_id}/repository/patch")
    assert reply["Content-Disposition"] == 'attachment; filename="changes.patch"'
    assert reply.content == await room.handle.review.repository_patch()
    assert (b"+print(2)" in reply.content, b"+mine" in reply.content) == (True, True)
    assert b"+mine" not in await room.handle.review.patch()
    await undo(room, turn, messages=False)
    assert [each.path for each in (await room.handle.review.repository()).changes] == ["/by hand"]
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "mine")
    assert not (await room.handle.review.repository()).changes
    instance = await db(AgentInstance.objects.get, pk=turn.instance_id)
    await db(lambda: add_member(instance, bob.username, Role.APPROVER, by=instance.owner_id))
    theirs = await sync_to_async(lambda: ApiClient(bob).get(f"/instances/{instance.pk}/repository"))()
    assert theirs.status_code == 403


async def test_a_directory_that_was_attached_has_its_repository_and_rows_have_none(
    make_room: MakeRoom, clone: Path
) -> None:
    room = make_room("assistant")
    await room.handle.add_messages("Hello.")
    with pytest.raises(FileFailed):
        await room.handle.review.repository()
    instance = await db(find_instance, room.key)
    assert instance is not None
    workspace = f"/instances/{instance.pk}/workspace"
    assert not (await asked(room, "GET", workspace)).json()["has_repository"]
    await db(attach_directory, room.key, clone)
    assert (await asked(room, "GET", workspace)).json()["has_repository"]
    (clone / "run").unlink()
    assert [(each.path, each.kind) for each in (await room.handle.review.repository()).changes] == [("/run", "deleted")]


async def test_what_another_program_changed_is_a_conflict(make_room: MakeRoom, clone: Path) -> None:
    room = make_room("cloner")
    first = await room.say(
        call_line("write", "c1", path="/src/main.py", content="print(2)\n")
        + call_line("write", "c2", path="/run", content="")
        + "say: done"
    )
    git(clone, "checkout", "run")  # to what it was: nothing is left to do
    (clone / "src" / "main.py").write_text("print(3)\n")
    [found] = (await preview_of(room, first))["files"]
    assert (found["path"], found["hindrance"]) == ("/src/main.py", "changed")
    assert (found["changes"]["before"], found["changes"]["after"]) == ("print(3)\n", "print(1)\n")
    refused = await undo(room, first, messages=False)
    assert refused.json()["code"] == "undo_impossible"
    assert (clone / "src" / "main.py").read_text() == "print(3)\n"
    chosen = [{"id": found["id"], "version": found["version"]}]
    assert (await undo(room, first, messages=False, overwrite=chosen)).json()["left"] == []
    assert git(clone, "status", "--porcelain") == ""
    assert (await redo(room)).status_code == 201
    assert (clone / "src" / "main.py").read_text() == "print(3)\n"


async def test_of_a_process_that_died_in_a_change_the_file_is_asked_about(
    make_room: MakeRoom, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room("cloner")
    turn = await room.say("say: begin")
    workspace = DirectoryWorkspace(clone).in_turn(turn.pk)
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryBackups, "_settle", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await workspace.write_file("/run", "half")
    [found] = (await preview_of(room, turn))["files"]
    assert (found["path"], found["hindrance"]) == ("/run", "changed")
    await workspace.write_file("/run", "again")  # the first state is the one that counts
    chosen = (await preview_of(room, turn))["files"][0]
    body = {"overwrite": [{"id": chosen["id"], "version": chosen["version"]}]}
    assert (await undo(room, turn, messages=False, **body)).json()["left"] == []
    assert git(clone, "status", "--porcelain") == ""


async def test_an_undo_does_not_wait_for_a_writer_for_ever(make_room: MakeRoom, clone: Path) -> None:
    room = make_room("cloner")
    turn = await room.say(call_line("write", "c1", path="/run", content="") + "say: done")
    handle = os.open(clone, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        refused = await undo(room, turn)
    finally:
        os.close(handle)
    assert (refused.status_code, refused.json()["code"]) == (409, "file_failed")
    assert (clone / "run").read_text() == ""
    assert (await undo(room, turn)).status_code == 201
    assert (clone / "run").read_text() == "#!/bin/sh\n"


async def test_without_a_turn_nothing_is_kept(clone: Path) -> None:
    await DirectoryWorkspace(clone).write_file("/run", "mine")
    assert await db(FileBackup.objects.count) == 0
    with pytest.raises(FileFailed):
        await DirectoryWorkspace(clone).in_turn("t").rm("/nothing")
    assert await db(FileBackup.objects.count) == 0
