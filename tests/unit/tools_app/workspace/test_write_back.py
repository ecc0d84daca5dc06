"""Writing a script's changes back: all at once, and nothing that others wrote is lost."""

import pytest

from tools_app.core.files.differences import differences
from tools_app.core.files.workspace import (
    EntryKind,
    FileChange,
    Link,
    MakeDirectory,
    Operation,
    Put,
    Remove,
)
from tools_app.workspace.stores.memory import MemoryWorkspace
from tools_app.workspace.write_back import WrittenBack, write_back

FILE, DIRECTORY, SYMLINK = EntryKind.FILE, EntryKind.DIRECTORY, EntryKind.SYMLINK


async def filled() -> MemoryWorkspace:
    workspace = MemoryWorkspace()
    for path in ("/a", "/b", "/d/one", "/d/two"):
        await workspace.write_file(path, "old")
    return workspace


async def version(workspace: MemoryWorkspace, path: str) -> str:
    entry = await workspace.lstat(path)
    assert entry is not None
    return entry.version


async def test_everything_is_one_change(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = await filled()
    heard: list[list[FileChange]] = []
    workspace.on_change(lambda changes: heard.append(list(changes)))
    operations: list[Operation] = [
        Remove(path="/a", expected_version=await version(workspace, "/a"), recursive=False),
        MakeDirectory(path="/e"),
        Remove(path="/l", expected_version="", recursive=False),
        Link(path="/l", target="/b"),
        Put(path="/b", content=b"new", expected_version=await version(workspace, "/b")),
        Put(path="/e/f", content=b"new", expected_version=""),
    ]
    written = await write_back(workspace, operations)
    assert written.errors == []
    assert written.to_json() == {
        "created": ["/e/f", "/l"],
        "updated": ["/b"],
        "deleted": ["/a"],
        "directoriesCreated": ["/e"],
        "directoriesDeleted": [],
    }
    assert len(heard) == 1


async def test_a_file_that_is_the_same_is_not_written() -> None:
    workspace = await filled()
    before = await version(workspace, "/a")
    written = await write_back(workspace, [Put(path="/a", content=b"old", expected_version=before)])
    assert written == WrittenBack()
    assert await version(workspace, "/a") == before


async def test_what_hangs_on_a_lost_change_is_lost_with_it() -> None:
    workspace = await filled()
    base = {entry.path: entry for entry in await workspace.glob("/**/*")}
    kinds = {"/a": DIRECTORY, "/a/x": FILE, "/b": FILE, "/new": FILE}
    operations = differences(base, kinds, {"/a/x": b"1", "/new": b"1"}, {})
    await workspace.write_file("/a", "theirs")
    await workspace.write_file("/d/one", "theirs")
    written = await write_back(workspace, operations)
    assert sorted(line.split(":")[0] for line in written.errors) == ["/a", "/d/one"]
    assert [(each.kind, each.path) for each in written.changes] == [("deleted", "/d/two"), ("created", "/new")]
    assert await workspace.read_file("/a") == "theirs"
    assert await workspace.read_file("/d/one") == "theirs"


async def test_a_directory_in_which_somebody_wrote_stays() -> None:
    workspace = await filled()
    base = {entry.path: entry for entry in await workspace.glob("/**/*")}
    operations = differences(base, {"/a": FILE, "/b": FILE}, {}, {})
    await workspace.write_file("/d/deep/three", "theirs")
    written = await write_back(workspace, operations)
    assert [line.split(":")[0] for line in written.errors] == ["/d"]
    assert {entry.path for entry in await workspace.glob("/**/*")} == {"/a", "/b", "/d", "/d/deep", "/d/deep/three"}


async def test_a_link_that_appeared_where_one_was_to_be_is_kept() -> None:
    workspace = await filled()
    operations = differences({}, {"/l": SYMLINK}, {}, {"/l": "/a"})
    await workspace.symlink("/b", "/l")
    written = await write_back(workspace, operations)
    assert len(written.errors) == 1
    assert await workspace.readlink("/l") == "/b"


async def test_a_file_that_the_workspace_refuses_is_named(settings: object) -> None:
    workspace = await filled()
    settings.THINK_WORKSPACE_FILE_MAX_BYTES = 10  # type: ignore[attr-defined]
    operations = [Put(path="/new", content=b"1", expected_version=""), Put(path="/big", content=b"x" * 11)]
    written = await write_back(workspace, operations)
    assert [each.path for each in written.changes] == ["/new"]
    assert len(written.errors) == 1
    assert "EFBIG" in written.errors[0]


async def test_too_many_names_are_counted() -> None:
    changes = [FileChange(kind="created", path=f"/f{number:04}", entry_kind=FILE) for number in range(250)]
    created = WrittenBack(changes=changes).to_json()["created"]
    assert len(created) == 201
    assert created[-1] == "(50 more)"
