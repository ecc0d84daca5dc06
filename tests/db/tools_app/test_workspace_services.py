"""Workspaces of scopes: made by the first write, attached, forgotten; and the room of one user."""

import asyncio
import io
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.unit.tools_app.core.files.calling import call
from tests.workspace_contract import errno, streamed
from thinkproject.kernel.aio import db
from thinkproject.kernel.object_storage import object_storage
from tools_app.core.files.workspace import Put
from tools_app.errors import FileFailed, WorkspaceExists, WorkspaceNameInvalid, WorkspaceNotFound
from tools_app.file_tools.searching import create_grep_tool
from tools_app.models import StoredWorkspace, WorkspaceAttachment, WorkspaceEntry
from tools_app.workspace import objects, selectors, services
from tools_app.workspace.archive import export_zip
from tools_app.workspace.quotas import usage
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.unpacking import import_archive

pytestmark = pytest.mark.django_db(transaction=True)


def object_names() -> set[str]:
    try:
        return {f"{objects.FOLDER}/{name}" for name in object_storage().listdir(objects.FOLDER)[1]}
    except FileNotFoundError:
        return set()


async def test_reading_makes_no_workspace(database_workspace: DatabaseWorkspace) -> None:
    assert await database_workspace.read_file("/f") is None
    assert await database_workspace.read_dir() == []
    assert await database_workspace.glob("**/*") == []
    assert (await database_workspace.info()).directory_count == 1
    assert not await database_workspace.delete_file("/f")
    await database_workspace.rm("/f", force=True)
    assert await database_workspace.workspace_id() is None
    assert not await StoredWorkspace.objects.aexists()


async def test_the_first_write_makes_it_and_others_find_it(database_workspace: DatabaseWorkspace, alice: User) -> None:
    await database_workspace.write_file("/f", "x")
    row = await StoredWorkspace.objects.aget()
    assert (row.owner_id, row.name, row.file_count, row.byte_count) == (alice.pk, "default", 1, 1)
    assert row.pk.startswith("wsp_")
    assert await services.open_for_scope("ins_1", alice.pk).read_file("/f") == "x"
    assert await services.open_workspace(row.pk).read_file("/f") == "x"
    assert await services.open_for_scope("ins_2", alice.pk).read_file("/f") is None
    assert await services.open_for_scope("ins_1", alice.pk, "other").read_file("/f") is None


async def test_two_first_writers_make_one_workspace(alice: User) -> None:
    doors = [services.open_for_scope("ins_1", alice.pk) for _ in range(6)]
    await asyncio.gather(*(door.write_file(f"/{at}", str(at)) for at, door in enumerate(doors)))
    assert await StoredWorkspace.objects.acount() == 1
    assert [entry.path for entry in await doors[0].read_dir()] == [f"/{at}" for at in range(6)]


async def test_the_pieces_of_a_stream_are_never_gathered_in_memory(alice: User) -> None:
    workspace, piece, count = services.open_for_scope("ins_1", alice.pk), 64 * 1024, 512

    async def large() -> AsyncIterator[bytes]:
        for at in range(count):
            yield bytes([at % 256]) * piece

    await workspace.write_file("/warm", "up")
    tracemalloc.start()
    try:
        await workspace.write_stream("/large", large())
        size = 0
        async for read in workspace.read_stream("/large"):
            size += len(read)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == count * piece
    assert peak < size / 4


@pytest.mark.parametrize("line", [b"hay\n", b"x"], ids=["many lines", "one line behind a short one"])
async def test_large_and_many_files_are_searched_within_bounded_memory(alice: User, line: bytes) -> None:
    workspace = services.open_for_scope("ins_1", alice.pk)
    size = 20 * 1024 * 1024
    await workspace.write_file("/large", b"needle\n" + line * (size // len(line)) + b"\nneedle")
    for number in range(8):
        await workspace.write_file(f"/many/{number}", line * (900_000 // len(line)) + b"\nneedle")
    tracemalloc.start()
    try:
        found = await call(create_grep_tool(workspace), query="needle")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found["totalMatches"], found["filesSearched"]) == (10, 9)
    assert peak < size


async def test_additions_of_many_writers_are_all_there(alice: User) -> None:
    doors = [services.open_for_scope("ins_1", alice.pk) for _ in range(4)]
    await asyncio.gather(*(doors[at % 4].append_file("/log", f"{at}\n") for at in range(24)))
    text = await doors[0].read_file("/log")
    assert text is not None
    assert sorted(map(int, text.split())) == list(range(24))


async def test_only_one_of_two_writers_of_a_version_wins(alice: User) -> None:
    doors = [services.open_for_scope("ins_1", alice.pk) for _ in range(2)]
    first = await doors[0].write_file("/f", "0")
    ends = await asyncio.gather(
        *(door.write_file("/f", str(at), expected_version=first.version) for at, door in enumerate(doors, 1)),
        return_exceptions=True,
    )
    assert sorted(type(end).__name__ for end in ends) == ["Entry", "FileConflict"]


@pytest.mark.parametrize("name", ["", "1a", "a-b", "ä", "a b", "a\n", "x" * 65])
def test_names_are_checked(name: str, db: None) -> None:
    with pytest.raises(WorkspaceNameInvalid):
        services.create_workspace(None, name)
    with pytest.raises(WorkspaceNameInvalid):
        services.open_for_scope("ins_1", None, name)


async def test_a_workspace_serves_several_scopes(alice: User) -> None:
    shared = await db(services.create_workspace, None, "Shared_1")
    await db(services.attach, shared.pk, "ins_1", name="team")
    await db(lambda: services.attach(shared.pk, "ins_2", name="team", can_write=False))
    writer = services.open_for_scope("ins_1", alice.pk, "team")
    reader = services.open_for_scope("ins_2", alice.pk, "team")
    await writer.write_file("/f", "x")
    assert await reader.read_file("/f") == "x"
    for refused in (
        reader.write_file("/f", "y"),
        reader.rm("/f"),
        reader.cp("/f", "/g"),
        reader.mv("/f", "/g"),
        reader.mkdir("/d"),
    ):
        assert await errno(refused) == "EPERM"
    assert await errno(services.open_workspace(shared.pk, can_write=False).write_file("/f", "y")) == "EPERM"
    await db(lambda: services.attach(shared.pk, "ins_2", name="team", can_write=True))
    await reader.write_file("/f", "z")
    assert await writer.read_file("/f") == "z"


def test_attaching_says_what_is_wrong(db: None) -> None:
    one, two = services.create_workspace(None), services.create_workspace(None)
    services.attach(one.pk, "ins_1")
    with pytest.raises(WorkspaceExists):
        services.attach(two.pk, "ins_1")
    with pytest.raises(WorkspaceNotFound):
        services.attach("wsp_absent", "ins_1")
    assert services.detach(one.pk, "ins_1")
    assert not services.detach(one.pk, "ins_1")


async def test_forgetting_scopes_deletes_what_nothing_else_uses(alice: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 4
    shared = await db(services.create_workspace, None, "shared")
    await db(services.attach, shared.pk, "ins_1", name="team")
    await db(services.attach, shared.pk, "ins_2", name="team")
    kept_before = object_names()
    await services.open_for_scope("ins_1", alice.pk).write_file("/large", "own!")
    await services.open_workspace(shared.pk).write_file("/large", "shared")
    assert await db(services.forget_workspaces_of, ["ins_1", "ins_9"]) == 1
    assert [row.pk async for row in StoredWorkspace.objects.all()] == [shared.pk]
    assert len(object_names() - kept_before) == 1
    assert await db(services.forget_workspaces_of, ["ins_2"]) == 1
    assert not await WorkspaceAttachment.objects.aexists()
    assert not await WorkspaceEntry.objects.aexists()
    assert object_names() == kept_before


async def test_a_deleted_workspace_is_not_written_to(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.write_file("/f", "x")
    workspace_id = await database_workspace.workspace_id()
    assert workspace_id is not None
    door = services.open_workspace(workspace_id)
    assert await db(services.delete_workspace, workspace_id)
    assert not await db(services.delete_workspace, workspace_id)
    assert await errno(door.write_file("/f", "x")) == "ENOENT"
    assert await door.read_file("/f") is None


async def test_a_user_has_so_many_bytes_over_all_workspaces(alice: User, bob: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_QUOTA_BYTES = 100
    settings.THINK_WORKSPACE_INLINE_BYTES = 30
    one, two = (services.open_for_scope(scope, alice.pk) for scope in ("ins_1", "ins_2"))
    before = object_names()
    await one.write_file("/a", "x" * 60)
    await two.write_file("/b", "x" * 20)
    for refused in (
        two.write_file("/c", "x" * 21),
        two.write_stream("/c", streamed(b"x" * 35)),
        one.append_file("/a", "x" * 21),
        one.cp("/a", "/copy"),
        two.apply([Put(path=f"/{at}", content=b"x" * 7) for at in range(3)]),
    ):
        assert await errno(refused) == "ENOSPC"
    assert len(object_names() - before) == 1
    await one.mv("/a", "/moved")
    await one.write_file("/moved", "x" * 50)
    await two.write_file("/c", "x" * 30)
    await services.open_for_scope("ins_3", bob.pk).write_file("/mine", "x" * 90)
    assert (await db(usage, alice.pk)).byte_count == 100
    settings.THINK_WORKSPACE_QUOTA_BYTES = 10
    await one.write_file("/moved", "x" * 40)
    await one.rm("/moved")
    assert (await db(usage, alice.pk)).byte_count == 50


async def test_a_user_has_so_many_entries(database_workspace: DatabaseWorkspace, alice: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_QUOTA_ENTRIES = 3
    await database_workspace.write_file("/d/f", "x")
    await database_workspace.symlink("f", "/d/l")
    for refused in (
        database_workspace.mkdir("/e"),
        database_workspace.symlink("x", "/l"),
        database_workspace.write_file("/g", ""),
    ):
        assert await errno(refused) == "ENOSPC"
    await database_workspace.write_file("/d/f", "y" * 1000)
    assert (await db(usage, alice.pk)).entry_count == 3
    await database_workspace.rm("/d/l")
    await database_workspace.mkdir("/e")
    with pytest.raises(FileFailed, match="3 files and directories"):
        await database_workspace.mkdir("/f")


async def test_parallel_writers_of_one_user_stay_within_the_quota(alice: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_QUOTA_BYTES = 50
    doors = [services.open_for_scope(f"ins_{at}", alice.pk) for at in range(8)]
    await asyncio.gather(*(door.write_file("/f", "x" * 10) for door in doors), return_exceptions=True)
    assert (await db(usage, alice.pk)).byte_count == 50


async def test_lists_have_sizes(database_workspace: DatabaseWorkspace, alice: User) -> None:
    await database_workspace.write_file("/d/f", "12345")
    [row] = await db(lambda: list(StoredWorkspace.objects.filter(owner_id=alice.pk)))
    assert (row.byte_count, row.file_count, row.directory_count) == (5, 1, 2)
    assert await db(lambda: [each.path for each in selectors.entries_of(row.pk)]) == ["/d", "/d/f"]


async def test_an_archive_is_imported_and_exported(database_workspace: DatabaseWorkspace, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 1000
    large = bytes(range(256)) * 100
    await database_workspace.write_file("/a/large", large)
    await database_workspace.write_file("/a/small", "x")
    data = b"".join([piece async for piece in export_zip(database_workspace, "/a")])
    changes = await import_archive(database_workspace, io.BytesIO(data), "/b")
    assert [change.path for change in changes] == ["/b", "/b/large", "/b/small"]
    assert await database_workspace.read_bytes("/b/large") == large
    assert (await database_workspace.info()).object_count == 2
