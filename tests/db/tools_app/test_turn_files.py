"""Files as they were before a turn: the first state wins, in the transaction of the change, with few statements."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from tests.db.statements import statements
from tests.workspace_contract import errno
from thinkproject.kernel.aio import db
from thinkproject.kernel.object_storage import object_storage
from thinkproject.kernel.statements import Statement
from tools_app.core.files.workspace import Link, MakeDirectory, Put, Remove
from tools_app.models import FileBackup, StoredWorkspace
from tools_app.workspace import services
from tools_app.workspace.objects import sweep_orphans
from tools_app.workspace.stores.backups import count_steps
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.turn_files import (
    COUNT_OF_TURN,
    MAX_SHOWN_BYTES,
    FileDifference,
    changed_in_turn,
    compared,
    count_in_turn,
    forget_backups,
    prune_backups,
)

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = ("0", "1", "2", "link")


async def differences(turn_id: str, limit: int = 100) -> dict[str, FileDifference]:
    found = await db(lambda: changed_in_turn(turn_id, limit=limit))
    return {each.path: each for each in compared(found)}


async def test_nothing_is_kept_outside_of_a_turn(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.write_file("/f", "x")
    await database_workspace.write_file("/f", "y")
    await database_workspace.in_turn("").rm("/f")
    assert not await FileBackup.objects.aexists()


async def test_each_kind_of_change_is_told_with_its_texts(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.apply([Put(path="/old", content=b"one\ntwo\n"), Put(path="/gone", content=b"gone\n")])
    turn = database_workspace.in_turn("t1")
    await turn.write_file("/new", "fresh\n")
    await turn.write_file("/old", "one\n2\n")
    await turn.delete_file("/gone")
    found = await differences("t1")
    assert [(each.path, each.kind, each.before, each.after) for each in found.values()] == [
        ("/gone", "deleted", "gone\n", None),
        ("/new", "created", None, "fresh\n"),
        ("/old", "updated", "one\ntwo\n", "one\n2\n"),
    ]
    assert found["/old"].diff == "--- /old\n+++ /old\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert [(each.added, each.removed) for each in found.values()] == [(0, 1), (1, 0), (1, 1)]


async def test_the_first_state_of_a_turn_wins(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.write_file("/f", "first")
    turn = database_workspace.in_turn("t1")
    await turn.write_file("/f", "second")
    await turn.append_file("/f", " third")
    await turn.rm("/f")
    await turn.write_file("/f", "last")
    await turn.write_file("/passing", "x")
    await turn.rm("/passing")
    await turn.write_file("/same", "x")
    await turn.apply([Remove(path="/same"), Put(path="/same", content=b"y")])
    found = await differences("t1")
    assert (found["/f"].kind, found["/f"].before, found["/f"].after) == ("updated", "first", "last")
    assert "/passing" not in found  # nothing before, nothing after
    assert (found["/same"].kind, found["/same"].after) == ("created", "y")


async def test_the_files_of_a_turn_are_counted_without_those_that_it_removed_again(
    database_workspace: DatabaseWorkspace,
) -> None:
    await database_workspace.apply([Put(path="/old", content=b"one"), Put(path="/gone", content=b"gone")])
    turn = database_workspace.in_turn("t1")
    await turn.apply([Put(path="/old", content=b"two"), Put(path="/new", content=b"new"), Remove(path="/gone")])
    await turn.write_file("/passing", "x")
    await turn.rm("/passing")
    await database_workspace.in_turn("t2").write_file("/another", "x")

    def counted(turn_id: str) -> tuple[int, int]:
        stated = Statement("SELECT :count:", count=COUNT_OF_TURN).one(turn_id)
        assert stated is not None
        return count_in_turn(turn_id), stated[0]

    assert [await db(counted, turn_id) for turn_id in ("t1", "t2", "t3")] == [(3, 3), (1, 1), (0, 0)]


async def test_a_file_that_is_as_it_was_has_not_changed(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.write_file("/f", "same")
    turn = database_workspace.in_turn("t1")
    await turn.write_file("/f", "other")
    await turn.write_file("/f", "same")
    assert await differences("t1") == {}


async def test_each_turn_is_told_what_it_did_itself(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.write_file("/f", "0")
    for turn in ("t1", "t2", "t3"):
        await database_workspace.in_turn(turn).write_file("/f", turn)
    found = [(await differences(turn))["/f"] for turn in ("t1", "t2", "t3")]
    assert [(each.before, each.after) for each in found] == [("0", "t1"), ("t1", "t2"), ("t2", "t3")]


async def test_whole_directories_are_kept_when_they_are_moved_copied_and_removed(
    database_workspace: DatabaseWorkspace,
) -> None:
    await database_workspace.apply([Put(path=f"/d/{at}", content=str(at).encode()) for at in range(3)])
    await database_workspace.apply([Link(path="/d/link", target="0"), MakeDirectory(path="/d/empty")])
    await database_workspace.in_turn("copied").cp("/d", "/copy", recursive=True)
    await database_workspace.in_turn("moved").mv("/copy", "/moved")
    await database_workspace.in_turn("removed").rm("/moved", recursive=True)
    copied, moved, removed = [await differences(turn) for turn in ("copied", "moved", "removed")]
    assert [(each.path, each.kind) for each in copied.values()] == [(f"/copy/{name}", "created") for name in NAMES]
    assert [each.after for each in copied.values()] == ["0", "1", "2", "0"]
    assert [(each.path, each.kind) for each in moved.values()] == [
        *((f"/copy/{name}", "deleted") for name in NAMES),
        *((f"/moved/{name}", "created") for name in NAMES),
    ]
    assert [(each.path, each.before) for each in removed.values()] == [
        (f"/moved/{name}", "0" if name == "link" else name) for name in NAMES
    ]


async def test_a_refused_change_keeps_nothing(database_workspace: DatabaseWorkspace, settings: Any) -> None:
    await database_workspace.write_file("/f", "x")
    settings.THINK_WORKSPACE_QUOTA_BYTES = 10
    turn = database_workspace.in_turn("t1")
    assert await errno(turn.write_file("/f", "y" * 100)) == "ENOSPC"
    assert await errno(turn.mkdir("/f")) == "EEXIST"
    assert not await FileBackup.objects.aexists()


async def test_links_and_directories_are_kept_and_only_links_are_shown(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.apply([Link(path="/link", target="/a"), MakeDirectory(path="/gone")])
    turn = database_workspace.in_turn("t1")
    await turn.apply([Link(path="/link", target="/b"), Remove(path="/gone"), MakeDirectory(path="/made")])
    kept = {row.path: (row.kind, row.target, row.kind_after) async for row in FileBackup.objects.all()}
    assert kept == {
        "/gone": ("directory", "", ""),
        "/link": ("symlink", "/a", "symlink"),
        "/made": ("", "", "directory"),
    }
    found = await differences("t1")
    assert [(each.path, each.before, each.after) for each in found.values()] == [("/link", "/a", "/b")]
    assert await db(count_in_turn, "t1") == 1


async def test_large_files_and_those_in_storage_are_kept_and_only_named(
    database_workspace: DatabaseWorkspace, settings: Any
) -> None:
    await database_workspace.write_file("/large", "x" * (MAX_SHOWN_BYTES + 1))
    settings.THINK_WORKSPACE_INLINE_BYTES = 1_000
    await database_workspace.write_file("/stored", "x" * 2_000)
    turn = database_workspace.in_turn("t1")
    await turn.apply([Put(path="/large", content=b"small"), Put(path="/stored", content=b"small")])
    found = await differences("t1")
    for path, size in (("/large", MAX_SHOWN_BYTES + 1), ("/stored", 2_000)):
        assert (found[path].is_cut, found[path].before, found[path].diff) == (True, None, "")
        row = await FileBackup.objects.aget(path=path)
        assert (row.is_cut, row.size, bool(row.storage_name), row.content is None) == (
            False,
            size,
            *[size == 2_000] * 2,
        )


async def test_more_than_sixteen_mebibytes_in_one_statement_are_kept(database_workspace: DatabaseWorkspace) -> None:
    sent = {f"/d/{at}": bytes([at % 250]) * 64_000 for at in range(300)}  # 18 MiB, in rows
    await database_workspace.apply([Put(path=path, content=content) for path, content in sent.items()])
    await database_workspace.in_turn("t1").rm("/d", recursive=True)
    kept = {row.path: row async for row in FileBackup.objects.filter(kind="file")}
    assert {path: bytes(row.content or b"") for path, row in kept.items()} == sent
    assert not any(row.is_cut or row.storage_name for row in kept.values())


async def test_an_object_stays_as_long_as_a_backup_has_it(database_workspace: DatabaseWorkspace, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 1_000
    for path in ("/first", "/second"):
        await database_workspace.write_file(path, "x" * 2_000)
        await database_workspace.in_turn("t1").rm(path)
    names = [row.storage_name async for row in FileBackup.objects.order_by("path")]
    assert await db(lambda: sweep_orphans()) == 0
    assert [object_storage().exists(name) for name in names] == [True, True]
    await FileBackup.objects.filter(path="/first").aupdate(created_at=timezone.now() - timedelta(days=31))
    assert await db(prune_backups) == 1
    assert [object_storage().exists(name) for name in names] == [False, True]
    await db(services.delete_workspace, (await StoredWorkspace.objects.aget()).pk)
    assert not object_storage().exists(names[1])


async def test_what_one_turn_keeps_has_a_limit(database_workspace: DatabaseWorkspace, settings: Any) -> None:
    await database_workspace.apply([Put(path=f"/d/{at}", content=b"x" * 100) for at in range(5)])
    settings.THINK_WORKSPACE_QUOTA_BYTES = 350 * 8
    turn = database_workspace.in_turn("t1")
    for _ in range(10):  # kept once, and counted once where it matters
        await turn.write_file("/d/0", "y" * 100)
    await turn.rm("/d", recursive=True)
    assert [row.is_cut async for row in FileBackup.objects.exclude(kind="directory").order_by("path")] == [
        *(False, False, False),
        *(True, True),
    ]
    await database_workspace.write_file("/another", "z" * 100)
    await database_workspace.in_turn("t2").rm("/another")
    assert not (await FileBackup.objects.aget(path="/another")).is_cut


async def test_what_people_change_later_does_not_count_as_the_turns(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.apply([Put(path=path, content=b"before") for path in ("/edited", "/gone", "/moved")])
    paths = ("/edited", "/gone", "/moved", "/new")
    await database_workspace.in_turn("t1").apply([Put(path=path, content=b"turn") for path in paths])
    await database_workspace.write_file("/edited", "person")
    await database_workspace.write_file("/edited", "person again")
    await database_workspace.rm("/gone")
    await database_workspace.mv("/moved", "/elsewhere")
    await database_workspace.write_file("/moved", "person")
    found = await differences("t1")
    assert {path: (each.before, each.after) for path, each in found.items()} == {
        **dict.fromkeys(paths[:3], ("before", "turn")),
        "/new": (None, "turn"),
    }
    assert await FileBackup.objects.filter(turn_id="").acount() == 3  # once, of what the turn had left


async def test_each_step_is_told_what_it_did_itself(database_workspace: DatabaseWorkspace) -> None:
    turn, number = database_workspace.in_turn("t1"), 0
    count_steps(lambda: number)
    for number in range(3):
        await turn.write_file("/f", f"a{number}")
        await turn.write_file("/f", f"b{number}")
    steps = [compared(await db(partial(changed_in_turn, "t1", step=at, limit=9))) for at in range(3)]
    assert [[(each.before, each.after) for each in step] for step in steps] == [
        [(None, "b0")],
        [("b0", "b1")],
        [("b1", "b2")],
    ]
    assert (await differences("t1"))["/f"].after == "b2"


async def test_bytes_that_are_no_text_are_named(database_workspace: DatabaseWorkspace) -> None:
    turn = database_workspace.in_turn("t1")
    await turn.write_file("/picture", b"\x89PNG\r\n\x1a\n\xff\x00")
    found = (await differences("t1"))["/picture"]
    assert (found.kind, found.after, found.diff, found.is_cut) == ("created", None, "", False)


async def test_long_paths_and_strange_names_are_found_again(database_workspace: DatabaseWorkspace) -> None:
    long = "/" + "/".join(["d" * 100] * 8)
    await database_workspace.apply([Put(path=f"{long}/ä'%\U0001f600", content=b"old")])
    await database_workspace.in_turn("t1").write_file(f"{long}/ä'%\U0001f600", "new")
    assert (await differences("t1"))[f"{long}/ä'%\U0001f600"].before == "old"


async def test_keeping_takes_few_statements_and_none_where_nothing_changes(
    database_workspace: DatabaseWorkspace,
) -> None:
    puts = [Put(path=f"/d/{at}", content=b"x") for at in range(300)]
    await database_workspace.apply(puts)
    turn = database_workspace.in_turn("t1")
    for most, operation in (
        (1, turn.apply(puts)),
        (1, turn.apply([Put(path=f"/new/{at}", content=b"x") for at in range(300)])),
        (2, turn.rm("/new", recursive=True)),  # the directory, and what is in it
        (1, turn.mkdir("/empty")),
        (0, turn.rm("/nothing", force=True)),
        (0, turn.read_file("/d/1")),
    ):
        with statements() as sent:
            await operation
        assert len([each for each in sent if "think_tools_filebackup" in each]) == most, sent


async def test_a_turns_changes_take_few_queries_however_many_there_are(database_workspace: DatabaseWorkspace) -> None:
    for turn in ("t1", "t2"):
        await database_workspace.in_turn(turn).apply([Put(path=f"/{at}", content=turn.encode()) for at in range(200)])
    with statements() as sent:
        assert len(await differences("t1", limit=50)) == 50
    assert len(sent) <= 4


async def test_what_was_kept_goes_with_its_turn_its_workspace_and_its_time(
    database_workspace: DatabaseWorkspace, settings: Any
) -> None:
    for turn in ("t1", "t2", "t3"):
        await database_workspace.in_turn(turn).write_file("/f", turn)
    await db(forget_backups, ["t1"])
    assert [row.turn_id async for row in FileBackup.objects.order_by("pk")] == ["t2", "t3"]
    await FileBackup.objects.filter(turn_id="t2").aupdate(created_at=timezone.now() - timedelta(days=31))
    settings.THINK_WORKSPACE_BACKUP_DAYS = 0
    assert await db(prune_backups) == 0
    settings.THINK_WORKSPACE_BACKUP_DAYS = 30
    assert await db(prune_backups) == 1
    await db(services.delete_workspace, (await StoredWorkspace.objects.aget()).pk)
    assert not await FileBackup.objects.aexists()
