"""Statements of the database store: few of them, ranges instead of patterns, and paths of any length."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tests.db.costs import cost, take_statistics
from tests.db.statements import statements
from thinkproject.kernel.aio import db
from tools_app.core.files.workspace import EntryKind, Put, Remove
from tools_app.models import StoredWorkspace, WorkspaceEntry
from tools_app.workspace import services
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.stores.keys import MAX_KEY_CHARS, key_of
from tools_app.workspace.stores.rows import DatabaseTree

pytestmark = pytest.mark.django_db(transaction=True)


async def test_opening_sends_no_statement(alice: User) -> None:
    with statements() as sent:
        services.open_for_scope("ins_1", alice.pk)
    assert sent == []


async def test_small_things_take_few_statements(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.write_file("/d/f", "x")
    for most, operation in (
        (8, database_workspace.write_file("/d/g", "x")),
        (8, database_workspace.write_file("/d/f", "y")),
        (2, database_workspace.stat("/d/f")),
        (3, database_workspace.read_file("/d/f")),
        (3, database_workspace.read_dir("/d")),
        (2, database_workspace.info()),
    ):
        with statements() as sent:
            await operation
        assert len(sent) <= most, sent


async def test_many_files_take_few_statements(database_workspace: DatabaseWorkspace) -> None:
    files = [Put(path=f"/src/{at % 20}/{at}.py", content=b"x" * 100) for at in range(1_000)]
    names = [each.path for each in files]
    counts: dict[str, int] = {}
    for name, operation in (
        ("write", database_workspace.apply(files)),
        ("write again", database_workspace.apply(files)),
        ("copy", database_workspace.cp("/src", "/copy", recursive=True)),
        ("move", database_workspace.mv("/copy", "/moved")),
        ("remove files", database_workspace.apply([Remove(path=path) for path in names])),
        ("remove", database_workspace.rm("/moved", recursive=True)),
    ):
        with statements() as sent:
            await operation
        counts[name] = len(sent)
    assert counts["write"] <= 40
    assert counts["write again"] <= 40
    assert max(counts["copy"], counts["move"], counts["remove"]) <= 12, counts
    assert counts["remove files"] <= 20
    assert (await database_workspace.info()).file_count == 0


async def test_many_files_are_read_with_few_statements(database_workspace: DatabaseWorkspace) -> None:
    files = [Put(path=f"/{at}", content=str(at).encode()) for at in range(400)]
    await database_workspace.apply(files)
    with statements() as sent:
        read = [data async for _, data in database_workspace.read_many([each.path for each in files], max_bytes=100)]
    assert read == [each.content for each in files]
    assert len(sent) <= 10


async def test_a_page_of_a_large_directory_reads_only_its_entries(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.apply([Put(path=f"/d/{at:05}", content=b"") for at in range(3_000)])
    row = await StoredWorkspace.objects.aget()

    def page() -> tuple[int, list[str]]:
        take_statistics()
        with cost() as read:
            names = [entry.name for entry in DatabaseTree(row).children("/d", limit=10)]
            return read(), names

    read, names = await db(page)
    assert names == [f"{at:05}" for at in range(10)]
    assert read < (100 if connection.vendor == "postgresql" else 300)


async def test_a_pattern_reads_only_its_directory(database_workspace: DatabaseWorkspace) -> None:
    await database_workspace.apply([Put(path=f"/d{at % 30}/{at}", content=b"") for at in range(3_000)])
    row = await StoredWorkspace.objects.aget()

    def scan() -> tuple[int, int]:
        take_statistics()
        with cost() as read:
            count = len(list(DatabaseTree(row).scan("/d7/")))
            return read(), count

    read, count = await db(scan)
    assert count == 100
    assert read < (450 if connection.vendor == "postgresql" else 900)


def long_paths() -> Iterator[str]:
    """Paths around each length at which keys change, and the longest there is, in characters of four bytes."""
    for length in (359, 360, 361, 399, 400, 401, 402, 700):
        path = "".join(f"/{chr(97 + at % 26) * 49}" for at in range(length // 50 + 1))[:length]
        yield path[:-1] + "z"
    yield "/" + "/".join("\U0001f600" * 40 for _ in range(99))


async def test_paths_of_any_length_can_be_kept_listed_copied_and_moved(database_workspace: DatabaseWorkspace) -> None:
    for path in long_paths():
        await database_workspace.write_file(path, path[-50:])
    every = [entry.path for entry in await database_workspace.glob("**/*")]
    assert every == sorted(every)
    assert set(long_paths()) <= set(every)
    for top in [entry.path for entry in await database_workspace.read_dir("/")]:
        await database_workspace.mv(top, f"/m{top}")
    await database_workspace.cp("/m", "/c", recursive=True)
    for path in long_paths():
        assert await database_workspace.read_file(f"/m{path}") == path[-50:]
        assert await database_workspace.read_file(f"/c{path}") == path[-50:]
        parent = path.rpartition("/")[0]
        assert f"/c{path}" in [entry.path for entry in await database_workspace.read_dir(f"/c{parent}")]
    rows = WorkspaceEntry.objects.values_list("path", "path_key", "parent_key", "name")
    async for path, path_key, parent_key, name in rows:
        assert path_key == key_of(path)
        assert parent_key == key_of(path.rpartition("/")[0] or "/")
        assert name == path.rpartition("/")[2]
        assert len(path_key) <= MAX_KEY_CHARS
    await database_workspace.rm("/m", recursive=True)
    await database_workspace.rm("/c", recursive=True)
    assert not await WorkspaceEntry.objects.aexists()


async def test_what_is_below_a_long_directory_is_not_confused_with_its_siblings(
    database_workspace: DatabaseWorkspace,
) -> None:
    deep = "".join(f"/{'d' * 99}" for _ in range(5))
    for name in ("a", "a0", "a%", "b"):
        await database_workspace.write_file(f"{deep}/{name}/f", name)
    await database_workspace.rm(f"{deep}/a", recursive=True)
    await database_workspace.mv(f"{deep}/a%", f"{deep}/moved")
    found = [entry.path for entry in await database_workspace.glob(f"{deep}/**/*") if entry.kind is EntryKind.FILE]
    assert found == [f"{deep}/{name}/f" for name in ("a0", "b", "moved")]


async def test_names_sort_by_code_points(database_workspace: DatabaseWorkspace) -> None:
    names = ["Z", "a", "B", "ä", "_", "-", "é", "z", "\U0001f600", "日"]
    await database_workspace.apply([Put(path=f"/{name}", content=b"") for name in names])
    assert [entry.name for entry in await database_workspace.read_dir()] == sorted(names)
    assert [entry.name for entry in await database_workspace.glob("*")] == sorted(names)


async def test_a_copy_shares_its_object_until_one_of_both_changes(
    database_workspace: DatabaseWorkspace, settings: Any
) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 10

    async def objects() -> dict[str, str]:
        return {each.path: each.storage_name async for each in WorkspaceEntry.objects.filter(kind="file")}

    await database_workspace.write_file("/large", "x" * 20)
    await database_workspace.cp("/large", "/copy")
    shared = await objects()
    assert shared["/large"] == shared["/copy"] != ""
    assert "large" not in shared["/copy"]  # no path is in the name, so no two files meet in it
    await database_workspace.write_file("/copy", "y" * 20)
    parted = await objects()
    assert parted["/large"] == shared["/large"] != parted["/copy"] != ""
    assert [await database_workspace.read_file(path) for path in ("/large", "/copy")] == ["x" * 20, "y" * 20]


async def test_the_totals_of_the_row_are_those_of_the_entries(
    database_workspace: DatabaseWorkspace, settings: Any
) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 10
    await database_workspace.write_file("/a/b/f", "x" * 5)
    await database_workspace.write_file("/a/large", "x" * 20)
    await database_workspace.symlink("f", "/a/b/l")
    await database_workspace.cp("/a", "/copy", recursive=True)
    await database_workspace.write_file("/copy/large", "small")
    await database_workspace.write_file("/copy/b/f", "x" * 30)
    await database_workspace.mv("/copy/b", "/b")
    await database_workspace.rm("/a/b", recursive=True)
    row = await StoredWorkspace.objects.aget()
    entries = [each async for each in WorkspaceEntry.objects.all()]
    assert row.file_count == sum(each.kind == EntryKind.FILE for each in entries) == 4 - 1
    assert row.directory_count == sum(each.kind == EntryKind.DIRECTORY for each in entries) + 1
    assert row.link_count == sum(each.kind == EntryKind.SYMLINK for each in entries) == 1
    assert row.byte_count == sum(each.size for each in entries if each.kind == EntryKind.FILE) == 55
    assert row.object_count == sum(bool(each.storage_name) for each in entries) == 2


async def test_a_search_of_many_files_finds_what_reading_each_finds(
    database_workspace: DatabaseWorkspace, settings: Any
) -> None:
    """Dense and sparse, ignored, long paths, large files in storage: few statements, and the same in the same order."""
    settings.THINK_WORKSPACE_INLINE_BYTES = 3_000
    chance = random.Random(7)
    sizes = [0, 10, 200, 2_000, 5_000]
    paths = [*(f"/src/{at % 7}/{at}.{'py' if at % 3 else 'md'}" for at in range(600)), *long_paths()]
    puts = [Put(path=path, content=chance.randbytes(chance.choice(sizes))) for path in paths]
    ignored = [Put(path=f"/src/3/node_modules/{at}.py", content=b"x" * 2_000) for at in range(200)]
    await database_workspace.apply([*puts, *ignored, Put(path="/.gitignore", content=b"node_modules/\n")])
    await database_workspace.symlink("/src/1", "/src/link.py")
    for pattern in ("**/*", "/src/**/*.py", "/src/{1,5}/*", "/src/3/**"):
        for with_ignored in (True, False):
            entries = await database_workspace.glob(pattern, ignored=with_ignored)
            with statements() as sent:
                found = await database_workspace.find_brief(pattern, ignored=with_ignored)
            assert len(sent) <= 6
            assert [(each.path, each.kind, each.size) for each in found] == [
                (each.path, each.kind, each.size) for each in entries
            ]
            files = [each for each in found if each.kind is EntryKind.FILE]
            parts = database_workspace.read_found(files, max_bytes=4_000)
            read = [pair async for part in parts for some in part for pair in some.each()]
            asked = database_workspace.read_many([each.path for each in files], max_bytes=4_000)
            assert read == [(entry.path, data) async for entry, data in asked if data is not None]


async def test_files_that_change_while_they_are_searched_are_left_out_and_the_others_found(
    database_workspace: DatabaseWorkspace, settings: Any
) -> None:
    """Random workspaces with long paths among short ones: each file is the one that it is, by itself."""
    settings.THINK_WORKSPACE_INLINE_BYTES = 900
    for seed in range(12):
        chance = random.Random(seed)
        root = f"/{seed}"
        names = [f"{at:03}" for at in range(chance.choice((1, 63, 64, 65, 130, 200)))]
        paths = [
            f"{root}/{name}{''.join('/' + name * 60 for _ in range(chance.choice((0, 0, 0, 3))))}" for name in names
        ]
        sizes = [0, 1, 50, 300] + [1_000] * (seed % 3 == 0)
        contents = {path: chance.choice((b"a\n", b"\n", b"\0\xff", b"b")) * chance.choice(sizes) for path in paths}
        await database_workspace.apply([Put(path=path, content=data) for path, data in contents.items()])
        found = await database_workspace.find_brief(f"{root}/**")
        files = [each for each in found if each.kind is EntryKind.FILE]
        assert [(each.path, each.size) for each in files] == sorted(
            (path, len(data)) for path, data in contents.items()
        )
        gone = chance.sample(paths, len(paths) // 9)
        grown = [path for path in chance.sample(paths, len(paths) // 9) if path not in gone]
        between = [Put(path=f"{root}/{chance.choice(names)}-new", content=b"not listed") for _ in range(seed % 2 * 3)]
        await database_workspace.apply(
            [
                *(Remove(path=path) for path in gone),
                *(Put(path=path, content=b"g" * 70_000) for path in grown),
                *between,
            ]
        )
        left_out = {*gone, *grown, *chance.sample(paths, seed % 4 == 0)}
        wanted = [each for each in files if each.path not in left_out or each.path in (*gone, *grown)]
        parts = database_workspace.read_found(wanted, max_bytes=60_000)
        groups = [group async for part in parts for group in part]
        assert [pair for group in groups for pair in group.each()] == [
            (each.path, contents[each.path]) for each in wanted if each.path not in left_out
        ]
        assert all(group.data == b"\n".join(data for _, data in group.each()) for group in groups)


async def test_a_late_page_of_a_large_directory_is_the_same_page(
    database_workspace: DatabaseWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools_app.workspace.stores.rows.BATCH_ROWS", 5)
    for at in range(12):
        await database_workspace.mkdir(f"/d/dir{at}", recursive=True)
    await database_workspace.apply([Put(path=f"/d/{at:03}", content=b"") for at in range(30)])
    await database_workspace.symlink("x", "/d/link")
    everything = [entry.name for entry in await database_workspace.read_dir("/d")]
    for offset in range(46):
        page = await database_workspace.read_dir("/d", limit=7, offset=offset)
        assert [entry.name for entry in page] == everything[offset : offset + 7]
