"""What every store of workspaces does alike. Test modules subclass these and give a `workspace`, empty and writable."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tools_app.core.files.workspace import (
    EntryKind,
    Workspace,
    WorkspaceInfo,
)
from tools_app.errors import FileConflict, FileFailed

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20


async def errno(awaitable: Any) -> str:
    """The POSIX name of the error that an operation ends with."""
    with pytest.raises(FileFailed) as caught:
        await awaitable
    return caught.value.errno


async def collected(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def streamed(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def paths(workspace: Workspace, pattern: str = "**/*", **options: Any) -> list[str]:
    return [entry.path for entry in await workspace.glob(pattern, **options)]


class FilesContract:
    """Reading and writing files: A7.22 to A7.26."""

    async def test_a_file_is_read_as_it_was_written(self, workspace: Workspace) -> None:
        entry = await workspace.write_file("/notes/today.md", "grüße\n")
        assert (entry.path, entry.kind, entry.size) == ("/notes/today.md", EntryKind.FILE, 8)
        assert (entry.media_type, entry.name) == ("text/markdown", "today.md")
        assert await workspace.read_file("notes/today.md") == "grüße\n"
        assert await workspace.read_bytes("/notes/./today.md") == "grüße\n".encode()
        assert await workspace.stat("/notes/today.md") == entry

    async def test_an_absent_file_is_none(self, workspace: Workspace) -> None:
        await workspace.write_file("/file", "")
        for path in ("/absent", "/no/such", "/file/below"):
            assert await workspace.read_file(path) is None
            assert await workspace.read_bytes(path) is None
            assert await workspace.stat(path) is None
            assert not await workspace.exists(path)

    async def test_a_directory_is_not_read_or_written_as_a_file(self, workspace: Workspace) -> None:
        await workspace.mkdir("/d")
        assert await errno(workspace.read_file("/d")) == "EISDIR"
        assert await errno(workspace.read_bytes("/")) == "EISDIR"
        assert await errno(workspace.write_file("/d", "x")) == "EISDIR"
        assert await errno(workspace.write_file("/", "x")) == "EISDIR"
        assert await errno(workspace.append_file("/d", "x")) == "EISDIR"
        assert await errno(workspace.delete_file("/d")) == "EISDIR"

    async def test_nothing_is_written_below_a_file(self, workspace: Workspace) -> None:
        await workspace.write_file("/f", "x")
        assert await errno(workspace.write_file("/f/g", "x")) == "ENOTDIR"
        assert await errno(workspace.mkdir("/f/g", recursive=True)) == "ENOTDIR"
        assert await paths(workspace) == ["/f"]

    async def test_bytes_that_are_no_text_are_kept_and_replaced_when_read_as_text(self, workspace: Workspace) -> None:
        entry = await workspace.write_file("/a.png", PNG)
        assert entry.media_type == "image/png"
        await workspace.write_file("/b", b"a\xff")
        assert await workspace.read_bytes("/a.png") == PNG
        assert await workspace.read_file("/b") == "a\ufffd"

    async def test_an_empty_file_is_a_file(self, workspace: Workspace) -> None:
        await workspace.write_file("/empty", b"")
        assert await workspace.read_bytes("/empty") == b""
        assert await collected(workspace.read_stream("/empty")) == b""
        assert await workspace.file_exists("/empty")

    async def test_each_write_has_another_version_and_keeps_the_path_s_only_file(self, workspace: Workspace) -> None:
        versions = [(await workspace.write_file("/f", text)).version for text in ("a", "b", "a")]
        await workspace.delete_file("/f")
        versions.append((await workspace.write_file("/f", "a")).version)
        assert len(set(versions)) == 4
        assert await paths(workspace) == ["/f"]

    async def test_another_version_than_expected_is_a_conflict(self, workspace: Workspace) -> None:
        first = await workspace.write_file("/f", "one", expected_version="")
        second = await workspace.write_file("/f", "two", expected_version=first.version)
        for stale in (first.version, ""):
            with pytest.raises(FileConflict) as caught:
                await workspace.write_file("/f", "three", expected_version=stale)
            assert caught.value.data["version"] == second.version
        with pytest.raises(FileConflict):
            await workspace.write_file("/absent", "x", expected_version=first.version)
        assert await workspace.read_file("/f") == "two"

    async def test_a_stream_is_written_and_read_in_pieces(self, workspace: Workspace) -> None:
        large = bytes(range(256)) * 2_000
        entry = await workspace.write_stream("/d/large", streamed(large[:1000], large[1000:300_000], large[300_000:]))
        assert entry.size == len(large)
        pieces = [piece async for piece in workspace.read_stream("/d/large")]
        assert b"".join(pieces) == large
        assert len(pieces) > 1
        assert await collected(workspace.read_stream("/d/large", start=511_990)) == large[511_990:]
        assert await collected(workspace.read_stream("/d/large", start=10**9)) == b""
        with pytest.raises(FileFailed, match="ENOENT"):
            await collected(workspace.read_stream("/absent"))

    async def test_a_stream_that_breaks_leaves_the_old_file(self, workspace: Workspace) -> None:
        async def broken() -> AsyncIterator[bytes]:
            yield b"new"
            raise ValueError

        await workspace.write_file("/f", "old")
        with pytest.raises(ValueError):
            await workspace.write_stream("/f", broken())
        assert await workspace.read_file("/f") == "old"

    async def test_a_file_above_the_limit_is_refused(self, workspace: Workspace, settings: Any) -> None:
        settings.THINK_WORKSPACE_FILE_MAX_BYTES = 10
        assert await errno(workspace.write_file("/f", "x" * 11)) == "EFBIG"
        assert await errno(workspace.write_stream("/f", streamed(b"x" * 6, b"x" * 6))) == "EFBIG"
        await workspace.write_file("/f", "x" * 10)
        assert await errno(workspace.append_file("/f", "x")) == "EFBIG"
        assert await workspace.read_file("/f") == "x" * 10

    async def test_text_is_added_at_the_end(self, workspace: Workspace, settings: Any) -> None:
        settings.THINK_WORKSPACE_INLINE_BYTES = 8
        for text in ("a", "b\n", "cdefgh", "i"):
            entry = await workspace.append_file("/d/log", text)
        assert entry.size == 10
        assert await workspace.read_file("/d/log") == "ab\ncdefghi"

    async def test_delete_says_whether_there_was_a_file(self, workspace: Workspace) -> None:
        await workspace.write_file("/f", "x")
        assert await workspace.delete_file("/f")
        assert not await workspace.delete_file("/f")
        assert not await workspace.exists("/f")

    async def test_many_files_are_read_in_order(self, workspace: Workspace) -> None:
        for name in "abc":
            await workspace.write_file(f"/{name}", name * 3)
        await workspace.write_file("/long", "x" * 50)
        await workspace.symlink("a", "/link")
        wanted = ["c", "/long", "/absent", "/a", "/link", "/", "/b"]
        found = [(entry.path, data) async for entry, data in workspace.read_many(wanted, max_bytes=10)]
        assert found == [("/c", b"ccc"), ("/long", None), ("/a", b"aaa"), ("/link", b"aaa"), ("/b", b"bbb")]

    async def test_two_writers_of_one_version_lose_nothing(self, workspace: Workspace) -> None:
        first = await workspace.write_file("/f", "0")
        await workspace.write_file("/f", "1", expected_version=first.version)
        with pytest.raises(FileConflict):
            await workspace.write_file("/f", "2", expected_version=first.version)
        assert await workspace.read_file("/f") == "1"


class DirectoriesContract:
    """Directories, removing, copying and moving: A7.27 to A7.30, A7.32."""

    async def test_children_are_directories_first_and_paged(self, workspace: Workspace) -> None:
        for path in ("/b.txt", "/a.txt", "/z/deep/f", "/y/f", "/Z.txt"):
            await workspace.write_file(path, "x")
        await workspace.symlink("a.txt", "/0link")
        every = [entry.path for entry in await workspace.read_dir()]
        assert every == ["/y", "/z", "/Z.txt", "/a.txt", "/b.txt", "/0link"]
        pages = [await workspace.read_dir("/", limit=2, offset=at) for at in (0, 2, 4, 6)]
        assert [entry.path for page in pages for entry in page] == every
        assert await workspace.read_dir("/", limit=0) == []
        assert await workspace.read_dir("/absent") == []
        assert await errno(workspace.read_dir("/a.txt")) == "ENOTDIR"
        assert [entry.size for entry in await workspace.read_dir("/z")] == [0]

    async def test_directories_are_made(self, workspace: Workspace) -> None:
        await workspace.mkdir("/")
        assert await errno(workspace.mkdir("/a/b")) == "ENOENT"
        await workspace.mkdir("/a")
        await workspace.mkdir("/a/b")
        assert await errno(workspace.mkdir("/a/b")) == "EEXIST"
        await workspace.mkdir("/a/b", recursive=True)
        await workspace.mkdir("/x/y/z", recursive=True)
        await workspace.write_file("/f", "x")
        assert await errno(workspace.mkdir("/f")) == "EEXIST"
        assert await errno(workspace.mkdir("/f", recursive=True)) == "EEXIST"
        assert await errno(workspace.mkdir("/f/g")) == "ENOTDIR"
        entry = await workspace.stat("/x/y")
        assert entry is not None
        assert (entry.kind, entry.size) == (EntryKind.DIRECTORY, 0)

    async def test_depth_and_length_end_somewhere(self, workspace: Workspace) -> None:
        deep = "/d" * 100
        await workspace.mkdir(deep, recursive=True)
        assert await errno(workspace.mkdir(f"{deep}/d")) == "ENAMETOOLONG"
        assert await errno(workspace.write_file("/" + "x" * 4096, "")) == "ENAMETOOLONG"
        assert await errno(workspace.write_file("/" + "x" * 256, "")) == "ENAMETOOLONG"
        await workspace.rm("/d", recursive=True)
        assert await paths(workspace) == []

    async def test_names_that_cannot_be_shown_are_refused(self, workspace: Workspace) -> None:
        for name in ("a\0b", "a\nb", "a\u202eb", "a\u2028b", "\ud800", "a\x1bb", "a\u2066b"):
            assert await errno(workspace.write_file(f"/{name}", "x")) == "EINVAL"
            assert await errno(workspace.read_file(f"/{name}")) == "EINVAL"
            assert await errno(workspace.symlink(name, "/link")) == "EINVAL"
        assert await paths(workspace) == []

    async def test_other_names_are_only_names(self, workspace: Workspace) -> None:
        names = ["a b", "ä", "日本", "%", "_", "a%2Fb", "a~b", "a\\b", "c:", "*", "?", "-rf", "'", '"', "~", "..."]
        for name in names:
            await workspace.write_file(f"/{name}", name)
        assert sorted(entry.name for entry in await workspace.read_dir()) == sorted(names)
        assert [await workspace.read_file(f"/{name}") for name in names] == names

    async def test_no_path_leaves_the_root(self, workspace: Workspace) -> None:
        await workspace.write_file("../../etc/passwd", "x")
        assert await paths(workspace) == ["/etc", "/etc/passwd"]
        assert await workspace.read_file("/a/../../etc/./passwd") == "x"

    async def test_remove_refuses_what_was_not_meant(self, workspace: Workspace) -> None:
        await workspace.write_file("/d/f", "x")
        await workspace.mkdir("/empty")
        assert await errno(workspace.rm("/")) == "EPERM"
        assert await errno(workspace.rm("/", recursive=True, force=True)) == "EPERM"
        assert await errno(workspace.rm("/absent")) == "ENOENT"
        await workspace.rm("/absent", force=True)
        assert await errno(workspace.rm("/d")) == "ENOTEMPTY"
        assert await errno(workspace.rm("/d", force=True)) == "ENOTEMPTY"
        await workspace.rm("/empty")
        await workspace.rm("/d", recursive=True)
        assert await paths(workspace) == []

    async def test_remove_leaves_names_alike_alone(self, workspace: Workspace) -> None:
        for path in ("/a%/x", "/ab/x", "/a_/x", "/foo/x", "/foo0", "/foobar/x", "/foo-/x", "/fo"):
            await workspace.write_file(path, "x")
        for path in ("/a%", "/a_", "/foo"):
            await workspace.rm(path, recursive=True)
        assert await paths(workspace, "**/*[x0o]") == ["/ab/x", "/fo", "/foo-/x", "/foo0", "/foobar/x"]

    async def test_a_file_is_copied_and_moved(self, workspace: Workspace) -> None:
        made = await workspace.write_file("/a", "x")
        await workspace.cp("/a", "/new/b")
        await workspace.mv("/a", "/new/c")
        moved = await workspace.stat("/new/c")
        assert moved is not None
        assert moved.version == made.version
        await workspace.write_file("/old", "old")
        await workspace.cp("/new/b", "/old")
        await workspace.mv("/new/b", "/new/c")
        assert [await workspace.read_file(path) for path in ("/old", "/new/c")] == ["x", "x"]
        assert await paths(workspace) == ["/new", "/new/c", "/old"]

    async def test_a_directory_is_copied_and_moved_with_all_below(self, workspace: Workspace) -> None:
        for path in ("/a/f", "/a/b/g", "/a0", "/a%/f"):
            await workspace.write_file(path, path)
        await workspace.symlink("f", "/a/l")
        await workspace.cp("/a", "/copy/c", recursive=True)
        await workspace.mv("/a", "/moved")
        inside = ["", "/b", "/b/g", "/f", "/l"]
        tops = ("/copy/c", "/moved")
        assert await paths(workspace) == sorted(
            ["/a%", "/a%/f", "/a0", "/copy", *(t + i for t in tops for i in inside)]
        )
        assert [await workspace.read_file(f"{top}/b/g") for top in tops] == ["/a/b/g", "/a/b/g"]
        assert [await workspace.readlink(f"{top}/l") for top in tops] == ["f", "f"]

    async def test_copy_and_move_refuse_what_cannot_be(self, workspace: Workspace) -> None:
        await workspace.write_file("/d/f", "x")
        await workspace.write_file("/e/f", "y")
        await workspace.write_file("/file", "z")
        assert await errno(workspace.cp("/d", "/new")) == "EISDIR"
        assert await errno(workspace.cp("/absent", "/new")) == "ENOENT"
        assert await errno(workspace.mv("/absent", "/new")) == "ENOENT"
        assert await errno(workspace.mv("/", "/new")) == "EPERM"
        for operation in (workspace.cp("/d", "/d/sub", recursive=True), workspace.mv("/d", "/d/sub/x")):
            assert await errno(operation) == "EINVAL"
        for source in ("/d", "/file"):
            assert await errno(workspace.cp(source, "/e", recursive=True)) == "EEXIST"
            assert await errno(workspace.mv(source, "/e")) == "EEXIST"
        assert await errno(workspace.mv("/d", "/file")) == "ENOTDIR"
        assert await errno(workspace.cp("/file", "/file")) == "EINVAL"
        await workspace.mv("/file", "/file")
        assert await paths(workspace) == ["/d", "/d/f", "/e", "/e/f", "/file"]

    async def test_nothing_is_copied_or_moved_to_where_its_paths_would_be_too_long(self, workspace: Workspace) -> None:
        deep, long = "/d" * 60, "".join(f"/{'n' * 150}" for _ in range(14))
        await workspace.mkdir(f"/deep{deep}", recursive=True)
        await workspace.mkdir(f"/long{long}", recursive=True)
        await workspace.write_file("/kept", "x")
        before = await paths(workspace)
        for source, target in (("/deep", f"/x{deep}"), ("/long", f"/x{long}")):
            assert await errno(workspace.mv(source, target)) == "ENAMETOOLONG"
            assert await errno(workspace.cp(source, target, recursive=True)) == "ENAMETOOLONG"
        assert await paths(workspace) == before

    async def test_the_totals_count_everything(self, workspace: Workspace) -> None:
        empty = WorkspaceInfo(file_count=0, directory_count=1, byte_count=0, object_count=0)
        assert await workspace.info() == empty
        await workspace.write_file("/d/a", "12345")
        await workspace.write_file("/d/a", "123")
        await workspace.cp("/d", "/e", recursive=True)
        await workspace.mv("/e", "/f")
        await workspace.symlink("d", "/link")
        info = await workspace.info()
        assert (info.file_count, info.directory_count, info.byte_count) == (2, 3, 6)
        for path in ("/d", "/f", "/link"):
            await workspace.rm(path, recursive=True)
        assert await workspace.info() == empty
