"""The rest of what every store of workspaces does alike: links, patterns, differences, changes."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.workspace_contract import errno, paths
from tools_app.core.files.workspace import EntryKind, FileChange, Link, MakeDirectory, Operation, Put, Remove, Workspace


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
            ("ENOTEMPTY", Remove(path="/d", recursive=False)),
            ("EISDIR", Link(path="/d", target="x")),
            ("EINVAL", Link(path="/l", target="")),
            ("EEXIST", MakeDirectory(path="/d/f")),
        ]
        for name, operation in refused:
            assert await errno(workspace.apply([Put(path="/new", content=b"x"), operation])) == name
        assert await paths(workspace) == ["/d", "/d/f"]

    async def test_a_directory_may_have_to_be_empty_before_it_is_removed(self, workspace: Workspace) -> None:
        for path in ("/d/f", "/d/e/g", "/other"):
            await workspace.write_file(path, "x")
        inside = [Remove(path=path, recursive=False) for path in ("/d/f", "/d/e/g", "/d/e")]
        assert await errno(workspace.apply([*inside[:2], Remove(path="/d", recursive=False)])) == "ENOTEMPTY"
        added: list[Operation] = [*inside, Put(path="/d/new", content=b""), Remove(path="/d", recursive=False)]
        assert await errno(workspace.apply(added)) == "ENOTEMPTY"
        changes = await workspace.apply([*inside, Remove(path="/d", recursive=False)])
        assert sorted(change.path for change in changes) == ["/d", "/d/e", "/d/e/g", "/d/f"]
        assert await paths(workspace) == ["/other"]

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
