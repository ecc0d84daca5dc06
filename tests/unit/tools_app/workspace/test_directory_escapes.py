"""A directory on disk with hostile content: nothing outside of the root is read, written or removed."""

import asyncio
import contextlib
import itertools
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.workspace_contract import errno
from tools_app.core.files.workspace import Put
from tools_app.errors import FileFailed
from tools_app.workspace.stores.directory import DirectoryWorkspace

SECRET = "outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    return folder


@pytest.fixture
def workspace_root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def is_untouched(outside: Path) -> bool:
    return os.listdir(outside) == ["secret"] and (outside / "secret").read_text() == SECRET


async def test_links_on_the_disk_lead_to_paths_of_the_workspace(workspace_root: Path, outside: Path) -> None:
    (workspace_root / "absolute").symlink_to(outside)
    (workspace_root / "relative").symlink_to("../outside")
    (workspace_root / "file").symlink_to(outside / "secret")
    workspace = DirectoryWorkspace(workspace_root)
    for path in ("/absolute/secret", "/relative/secret", "/file"):
        assert await workspace.read_file(path) in {None, "mine"}
        await workspace.write_file(path, "mine")
        assert await workspace.read_file(path) == "mine"
    assert await workspace.read_dir("/absolute") != []
    await workspace.cp("/absolute/", "/copy", recursive=True)
    await workspace.rm("/absolute", recursive=True)
    await workspace.rm("/relative", recursive=True)
    assert is_untouched(outside)
    inside = await workspace.realpath("/file")
    assert (workspace_root / inside.lstrip("/")).read_text() == "mine"


async def test_removing_a_directory_leaves_what_its_links_lead_to(workspace_root: Path, outside: Path) -> None:
    (workspace_root / "d").mkdir()
    (workspace_root / "d" / "l").symlink_to(outside)
    workspace = DirectoryWorkspace(workspace_root)
    assert [entry.path for entry in await workspace.glob("**/*")] == ["/d", "/d/l"]
    await workspace.rm("/d", recursive=True)
    assert is_untouched(outside)


async def test_pipes_and_odd_names_are_not_shown_and_are_removed(workspace_root: Path) -> None:
    (workspace_root / "d").mkdir()
    os.mkfifo(workspace_root / "d" / "pipe")
    (workspace_root / "d" / "a\nb").write_text("x")
    (workspace_root / "d" / ".think-tmp-left").write_text("x")
    os.mkdir(os.fsencode(workspace_root / "d") + b"/\xff")
    workspace = DirectoryWorkspace(workspace_root)
    assert await workspace.read_dir("/d") == []
    assert await workspace.read_file("/d/pipe") is None
    assert await errno(workspace.rm("/d")) == "ENOTEMPTY"
    await workspace.rm("/d", recursive=True)
    assert os.listdir(workspace_root) == []


async def test_a_program_stays_one_and_no_temporary_file_is_left(workspace_root: Path) -> None:
    (workspace_root / "run").write_text("old")
    (workspace_root / "run").chmod(0o755)
    workspace = DirectoryWorkspace(workspace_root)
    await workspace.write_file("/run", "new")
    assert (workspace_root / "run").stat().st_mode & 0o777 == 0o755
    assert os.listdir(workspace_root) == ["run"]


async def test_a_change_from_outside_is_another_version(workspace_root: Path) -> None:
    workspace = DirectoryWorkspace(workspace_root)
    made = await workspace.write_file("/f", "mine")
    (workspace_root / "f").write_text("theirs")
    with pytest.raises(FileFailed, match="has changed"):
        await workspace.write_file("/f", "mine again", expected_version=made.version)


async def test_two_objects_of_one_root_take_turns(workspace_root: Path) -> None:
    doors = [DirectoryWorkspace(workspace_root) for _ in range(4)]
    await asyncio.gather(*(doors[at % 4].append_file("/log", f"{at}\n") for at in range(24)))
    text = await doors[0].read_file("/log")
    assert text is not None
    assert sorted(map(int, text.split())) == list(range(24))


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """Let `root/d` be a directory, and a link that leads outside, in turns and as quickly as can be."""
    end = threading.Event()

    def swap() -> None:
        for at in itertools.count():
            if end.is_set():
                return
            with contextlib.suppress(OSError):
                os.unlink(root / "d")
            with contextlib.suppress(OSError):
                os.mkdir(root / "d")
            with contextlib.suppress(OSError):
                os.rename(root / "d", root / f"aside{at}")
            with contextlib.suppress(OSError):
                os.symlink(outside, root / "d")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


async def test_a_directory_that_becomes_a_link_meanwhile_leads_nowhere(workspace_root: Path, outside: Path) -> None:
    workspace = DirectoryWorkspace(workspace_root)
    seen: set[str | None] = set()
    with swapping(workspace_root, outside):
        for at in range(40):
            for operation in (
                workspace.write_file("/d/secret", "inside"),
                workspace.apply([Put(path=f"/d/sub/{at}", content=b"x")]),
                workspace.mv("/d/secret", "/d/moved"),
                workspace.rm("/d/sub", recursive=True, force=True),
            ):
                try:
                    await operation
                except FileFailed:
                    continue
            try:
                seen.add(await workspace.read_file("/d/secret"))
            except FileFailed:
                continue
    assert seen <= {None, "inside"}
    assert is_untouched(outside)


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("name", ["read", "write", "append", "remove", "remove all", "move", "copy", "link", "make"])
async def test_a_link_put_in_the_way_at_any_step_is_an_error(
    name: str, nth: int, workspace_root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = DirectoryWorkspace(workspace_root)
    await workspace.write_file("/d/secret", "inside")
    await workspace.write_file("/other", "x")
    opened, real = itertools.count(1), os.open

    def swapping_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "d" and next(opened) == nth:
            os.rename(workspace_root / "d", workspace_root / "aside")
            os.symlink(outside, workspace_root / "d")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapping_open)
    operations: dict[str, Callable[[], Awaitable[Any]]] = {
        "read": lambda: workspace.read_file("/d/secret"),
        "write": lambda: workspace.write_file("/d/secret", "mine"),
        "append": lambda: workspace.append_file("/d/secret", "mine"),
        "remove": lambda: workspace.delete_file("/d/secret"),
        "remove all": lambda: workspace.rm("/d", recursive=True),
        "move": lambda: workspace.mv("/d/secret", "/d/moved"),
        "copy": lambda: workspace.cp("/other", "/d/copy"),
        "link": lambda: workspace.symlink("/other", "/d/l"),
        "make": lambda: workspace.mkdir("/d/sub"),
    }
    with contextlib.suppress(FileFailed):
        assert await operations[name]() != SECRET
    assert is_untouched(outside)
