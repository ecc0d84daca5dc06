"""What every store of workspaces does alike. Test modules subclass these and give a `workspace`, empty and writable."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tools_app.core.files.workspace import (
    EntryKind,
    FileChange,
    Link,
    MakeDirectory,
    Put,
    Remove,
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


class LinksContract:
    """Symbolic links: A7.31."""

    async def test_links_are_followed_along_the_whole_path(self, workspace: Workspace) -> None:
        await workspace.write_file("/real/deep/f", "x")
        await workspace.symlink("/real", "/absolute")
        await workspace.symlink("../real/deep", "/links/relative")
        await workspace.symlink("/absolute/deep/f", "/f")
        for path in ("/absolute/deep/f", "/links/relative/f", "/f"):
            assert await workspace.read_file(path) == "x"
            assert await workspace.realpath(path) == "/real/deep/f"
        await workspace.write_file("/links/relative/new", "y")
        await workspace.write_file("/f", "z")
        assert await workspace.read_file("/real/deep/new") == "y"
        assert await workspace.read_file("/real/deep/f") == "z"
        assert [entry.path for entry in await workspace.read_dir("/absolute")] == ["/real/deep"]

    async def test_stat_follows_a_link_and_lstat_does_not(self, workspace: Workspace) -> None:
        await workspace.write_file("/f", "x")
        await workspace.symlink("f", "/l")
        followed, link = await workspace.stat("/l"), await workspace.lstat("/l")
        assert followed is not None
        assert link is not None
        assert (followed.path, followed.kind) == ("/f", EntryKind.FILE)
        assert (link.path, link.kind, link.target) == ("/l", EntryKind.SYMLINK, "f")
        assert await workspace.readlink("/l") == "f"

    async def test_a_link_that_leads_nowhere_exists(self, workspace: Workspace) -> None:
        await workspace.symlink("/nowhere", "/l")
        assert await workspace.exists("/l")
        assert not await workspace.file_exists("/l")
        assert await workspace.stat("/l") is None
        assert await workspace.read_file("/l") is None
        assert await errno(workspace.realpath("/l")) == "ENOENT"
        await workspace.write_file("/l", "made")
        assert await workspace.read_file("/nowhere") == "made"

    async def test_links_never_leave_the_root(self, workspace: Workspace) -> None:
        await workspace.symlink("../../../etc/hostname", "/d/l")
        await workspace.symlink("/../..", "/up")
        assert await workspace.read_file("/d/l") is None
        await workspace.write_file("/d/l", "mine")
        assert await workspace.read_file("/etc/hostname") == "mine"
        assert await workspace.realpath("/up/d") == "/d"

    async def test_a_circle_ends(self, workspace: Workspace) -> None:
        await workspace.symlink("/b", "/a")
        await workspace.symlink("/a", "/b")
        assert await errno(workspace.read_file("/a")) == "ELOOP"
        assert await errno(workspace.realpath("/a/x")) == "ELOOP"
        assert not await workspace.file_exists("/a")
        assert await workspace.exists("/a")

    async def test_forty_links_are_followed_and_no_more(self, workspace: Workspace) -> None:
        await workspace.write_file("/0", "x")
        await workspace.apply([Link(path=f"/{at + 1}", target=str(at)) for at in range(41)])
        assert await workspace.read_file("/40") == "x"
        assert await errno(workspace.read_file("/41")) == "ELOOP"

    async def test_links_are_made_only_where_nothing_is(self, workspace: Workspace) -> None:
        await workspace.write_file("/f", "x")
        assert await errno(workspace.symlink("x", "/f")) == "EEXIST"
        for target in ("", "  ", "x" * 4097, "a\0"):
            assert await errno(workspace.symlink(target, "/l")) == "EINVAL"
        assert await errno(workspace.readlink("/f")) == "EINVAL"
        assert await errno(workspace.readlink("/absent")) == "ENOENT"

    async def test_removing_and_moving_a_link_leaves_its_target(self, workspace: Workspace) -> None:
        await workspace.write_file("/d/f", "x")
        for name in ("a", "b", "c"):
            await workspace.symlink("/d", f"/{name}")
        await workspace.rm("/a", recursive=True)
        assert await workspace.delete_file("/b")
        await workspace.mv("/c", "/e")
        assert await workspace.readlink("/e") == "/d"
        assert await paths(workspace) == ["/d", "/d/f", "/e"]


class SearchContract:
    """Patterns, ignored files, differences: A7.33, A7.34, A7.37."""

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("*.md", ["/a.md"]),
            ("**/*.md", ["/a.md", "/src/b.md", "/src/x/c.md"]),
            ("/src/*", ["/src/b.md", "/src/x"]),
            ("src/**/*.{md,py}", ["/src/b.md", "/src/x/c.md", "/src/x/d.py"]),
            ("/src/x/[!c]*", ["/src/x/d.py"]),
            ("/src/?/c.md", ["/src/x/c.md"]),
            ("/absent/**", []),
            ("/link/*", []),
            ("/l*", ["/link"]),
            ("/a.md/**", []),
        ],
    )
    async def test_patterns(self, workspace: Workspace, pattern: str, expected: list[str]) -> None:
        for path in ("/a.md", "/src/b.md", "/src/x/c.md", "/src/x/d.py", "/src0/e.md~"):
            await workspace.write_file(path, "x")
        await workspace.symlink("/src", "/link")
        assert await paths(workspace, pattern) == expected

    async def test_the_first_matches_of_many(self, workspace: Workspace) -> None:
        await workspace.apply([Put(path=f"/d/{number:03}", content=b"") for number in range(50)])
        assert await paths(workspace, "/d/*", limit=3) == ["/d/000", "/d/001", "/d/002"]

    async def test_ignored_files_are_left_out_on_demand(self, workspace: Workspace) -> None:
        await workspace.write_file("/.gitignore", "*.log\nbuild/\n")
        await workspace.write_file("/app/.gitignore", "secret\n!keep.log\n")
        for path in ("/a.log", "/app/b.log", "/app/keep.log", "/app/secret", "/secret", "/app/build/x/y", "/app/z"):
            await workspace.write_file(path, "x")
        left = ["/.gitignore", "/app", "/app/.gitignore", "/app/keep.log", "/app/z", "/secret"]
        assert await paths(workspace, "**/*", ignored=False) == left
        assert await paths(workspace, "/app/**/*", ignored=False, limit=2) == ["/app/.gitignore", "/app/keep.log"]
        assert "/app/build/x/y" in await paths(workspace, "**/*")

    async def test_differences_are_unified(self, workspace: Workspace) -> None:
        await workspace.write_file("/a", "1\n2\n3\n4\n5\n6\n")
        await workspace.write_file("/b", "1\n2\n3\n4\n5\nsix")
        patch = await workspace.diff("/a", "b")
        assert patch.splitlines()[:3] == ["--- /a", "+++ /b", "@@ -3,4 +3,4 @@"]
        assert patch.endswith("-6\n+six\n\\ No newline at end of file\n")
        assert await workspace.diff("/a", "/a") == ""
        assert await workspace.diff_content("/a", "1\n") != ""
        assert await errno(workspace.diff("/a", "/absent")) == "ENOENT"
        assert await errno(workspace.diff_content("/a", "x\n" * 10_001)) == "EFBIG"


class ChangesContract:
    """Change events and operations that belong together: A7.35."""

    async def test_each_operation_reports_its_changes_once(
        self, workspace: Workspace, reported: list[list[tuple[str, str, str]]]
    ) -> None:
        await workspace.write_file("/d/f", "x")
        await workspace.write_file("/d/f", "y")
        await workspace.append_file("/d/f", "z")
        await workspace.mkdir("/e")
        await workspace.mkdir("/e", recursive=True)
        await workspace.symlink("d", "/l")
        await workspace.mv("/d", "/m")
        await workspace.cp("/m/f", "/g")
        await workspace.rm("/m", recursive=True)
        await workspace.rm("/m", force=True)
        await workspace.delete_file("/g")
        assert reported == [
            [("created", "/d", "directory"), ("created", "/d/f", "file")],
            [("updated", "/d/f", "file")],
            [("updated", "/d/f", "file")],
            [("created", "/e", "directory")],
            [("created", "/l", "symlink")],
            [
                ("deleted", "/d", "directory"),
                ("deleted", "/d/f", "file"),
                ("created", "/m", "directory"),
                ("created", "/m/f", "file"),
            ],
            [("created", "/g", "file")],
            [("deleted", "/m", "directory"), ("deleted", "/m/f", "file")],
            [("deleted", "/g", "file")],
        ]

    async def test_a_failed_operation_reports_nothing(self, workspace: Workspace, reported: list[Any]) -> None:
        assert await errno(workspace.rm("/absent")) == "ENOENT"
        await workspace.read_file("/absent")
        assert reported == []

    async def test_a_listener_can_leave(self, workspace: Workspace) -> None:
        seen: list[Any] = []
        end: Callable[[], None] = workspace.on_change(seen.append)
        end()
        end()
        await workspace.write_file("/f", "x")
        assert seen == []

    async def test_several_operations_are_done_at_once(
        self, workspace: Workspace, reported: list[list[tuple[str, str, str]]]
    ) -> None:
        await workspace.write_file("/old/f", "x")
        await workspace.write_file("/kept", "x")
        reported.clear()
        changes = await workspace.apply(
            [
                Put(path="/new/f", content=b"1"),
                Put(path="/new/f", content=b"2"),
                Remove(path="/old"),
                Put(path="/old", content=b"now a file"),
                Put(path="/kept", content=b"3"),
                MakeDirectory(path="/dir/sub"),
                Link(path="/dir/link", target="/new"),
                Put(path="/dir/link/g", content=b"4"),
                Remove(path="/absent"),
                Put(path="/gone", content=b""),
                Remove(path="/gone"),
            ]
        )
        assert [(each.kind, each.path, each.entry_kind.value) for each in changes] == reported[0]
        assert sorted(reported[0]) == [
            ("created", "/dir", "directory"),
            ("created", "/dir/link", "symlink"),
            ("created", "/dir/sub", "directory"),
            ("created", "/new", "directory"),
            ("created", "/new/f", "file"),
            ("created", "/new/g", "file"),
            ("deleted", "/old/f", "file"),
            ("updated", "/kept", "file"),
            ("updated", "/old", "file"),
        ]
        assert [await workspace.read_file(path) for path in ("/new/f", "/old", "/kept", "/new/g")] == [
            "2",
            "now a file",
            "3",
            "4",
        ]
        assert len(reported) == 1

    async def test_operations_are_checked_before_the_first_is_done(self, workspace: Workspace) -> None:
        await workspace.write_file("/d/f", "x")
        refused: list[tuple[str, Any]] = [
            ("EISDIR", Put(path="/d", content=b"")),
            ("ENOTDIR", Put(path="/new/x", content=b"")),
            ("EEXIST", Put(path="/d/f", content=b"", expected_version="stale")),
            ("EEXIST", Remove(path="/d/f", expected_version="stale")),
            ("EPERM", Remove(path="/")),
            ("EISDIR", Link(path="/d", target="x")),
            ("EINVAL", Link(path="/l", target="")),
            ("EEXIST", MakeDirectory(path="/d/f")),
        ]
        for name, operation in refused:
            assert await errno(workspace.apply([Put(path="/new", content=b"x"), operation])) == name
        assert await paths(workspace) == ["/d", "/d/f"]

    async def test_a_link_takes_the_place_of_a_file(self, workspace: Workspace) -> None:
        await workspace.write_file("/f", "x")
        [change] = await workspace.apply([Link(path="/f", target="/g")])
        assert change == FileChange(kind="updated", path="/f", entry_kind=EntryKind.SYMLINK)
        assert await workspace.readlink("/f") == "/g"


@pytest.fixture
def reported(workspace: Workspace) -> list[list[tuple[str, str, str]]]:
    """What listeners are called with."""
    calls: list[list[tuple[str, str, str]]] = []
    workspace.on_change(lambda changes: calls.append([(c.kind, c.path, c.entry_kind.value) for c in changes]))
    return calls
