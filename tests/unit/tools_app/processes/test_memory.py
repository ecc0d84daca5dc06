"""Memory of every kind ends a command at its bound, with control groups and without, and is counted once."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.unit.tools_app.processes.conftest import SMALL, Command
from tests.unit.tools_app.processes.finishing import finished
from tools_app.processes import groups
from tools_app.processes.child import RunningCommand
from tools_app.processes.folders import command_folders
from tools_app.processes.groups import Group, has_groups, make_group, remove_groups
from tools_app.processes.isolation import CommandBounds, Isolation, MountPlace
from tools_app.processes.memory import memory_of
from tools_app.processes.tool import processes_report

MEGABYTE = 1 << 20
PIECE = 15 * MEGABYTE
"""Smaller than any file that a command may write."""
PIECES = 40
TAKEN = f"""
import ctypes, mmap, os, time
kept, piece, pieces = [], {PIECE}, {PIECES}
"""
END = """
print("REACHED", flush=True)
time.sleep(15)
"""
HOLES = {
    "shared and anonymous": """
for _ in range(pieces):
    kept.append(mmap.mmap(-1, piece))
    kept[-1].write(bytes([1]) * piece)
""",
    "shared, and let go of": """
for _ in range(pieces):
    kept.append(mmap.mmap(-1, piece))
    kept[-1].write(bytes([1]) * piece)
    kept[-1].madvise(mmap.MADV_DONTNEED)
""",
    "shared by processes that end": """
for _ in range(pieces):
    kept.append(mmap.mmap(-1, piece))
    if os.fork() == 0:
        kept[-1].write(bytes([1]) * piece)
        os._exit(0)
    assert os.wait()[1] == 0
""",
    "a file in memory": """
for _ in range(pieces):
    kept.append(os.memfd_create("x"))
    os.write(kept[-1], bytes([1]) * piece)
""",
    "a file in memory that is mapped alone": """
for _ in range(pieces):
    made = os.memfd_create("x")
    os.write(made, bytes([1]) * piece)
    kept.append(mmap.mmap(made, piece))
    os.close(made)
""",
    "System V": """
library = ctypes.CDLL(None, use_errno=True)
for bound in ("shmall", "shmmax", "shmmni"):
    if os.access(f"/proc/sys/kernel/{bound}", os.W_OK):
        open(f"/proc/sys/kernel/{bound}", "w").write("99999999")
library.shmat.restype = ctypes.c_void_p
for _ in range(pieces):
    made = library.shmget(0, piece, 0o1600)
    assert made >= 0, ctypes.get_errno()
    place = library.shmat(made, None, 0)
    ctypes.memset(place, 1, piece)
    library.shmdt(ctypes.c_void_p(place))
""",
    "files in /dev/shm": """
for number in range(pieces):
    with open(f"/dev/shm/{number}", "wb") as file:
        file.write(bytes([1]) * piece)
""",
}
BOUNDED = {"System V", "files in /dev/shm"}
"""What fails in the command before its memory is at the bound."""


@pytest.fixture(params=["with groups", "counted"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the control groups that this machine has, and without any of our own."""
    if request.param == "counted":
        monkeypatch.setattr(groups, "_places", lambda: iter(()))
    return str(request.param)


@pytest.mark.long_for("podman", "bwrap")
@pytest.mark.parametrize("name", HOLES)
async def test_no_memory_passes_the_bound(name: str, way: str, command: Command) -> None:
    result = await command(f"python3 -c '{TAKEN}{HOLES[name]}{END}'")
    assert "REACHED" not in result["stdout"], result
    assert result["exitCode"] != 0
    if name not in BOUNDED:
        assert result["exitCode"] == 137
        assert "killed: out of memory" in result["stderr"]
    assert (await command("echo alive"))["stdout"] == "alive\n"


@pytest.mark.long_for("podman", "bwrap")
async def test_what_processes_share_counts_once(way: str, command: Command) -> None:
    text = f"""
import mmap, os, time
own, shared = bytes([1]) * {40 * MEGABYTE}, mmap.mmap(-1, {60 * MEGABYTE})
shared.write(bytes([1]) * {60 * MEGABYTE})
children = []
for _ in range(5):
    children.append(os.fork())
    if not children[-1]:
        assert sum(shared[::4096]) and sum(own[::4096])
        time.sleep(1)
        os._exit(0)
for each in children:
    assert os.waitpid(each, 0)[1] == 0
print("done")
"""
    result = await command(f"python3 -c '{text}'")
    assert (result["stdout"], result["exitCode"]) == ("done\n", 0), result


async def test_shared_memory_works_within_its_bound(command: Command) -> None:
    text = """
import ctypes, multiprocessing.shared_memory
made = multiprocessing.shared_memory.SharedMemory(create=True, size=1000000)
made.buf[:5] = b"hello"
print(bytes(made.buf[:5]).decode(), ctypes.CDLL(None).shmget(0, 1000000, 0o1600) >= 0)
made.unlink()
"""
    result = await command(f"python3 -c '{text}'")
    assert result["stdout"] == "hello True\n", result


KINDS: dict[str, str] = {
    "its own": "kept.append(bytes([1]) * piece)",
    "shared": HOLES["shared and anonymous"].replace("pieces", "1"),
    "shared, and let go of": HOLES["shared, and let go of"].replace("pieces", "1"),
    "a file in memory": HOLES["a file in memory"].replace("pieces", "1"),
    "mapped twice and open": """
made = os.memfd_create("x")
os.write(made, bytes([1]) * piece)
kept += [made, mmap.mmap(made, piece), mmap.mmap(made, piece)]
assert sum(kept[1][::4096]) and sum(kept[2][::4096])
""",
}


@pytest.mark.parametrize("name", KINDS)
def test_memory_is_counted_as_it_is(name: str) -> None:
    before, after = (counted(f"{TAKEN}{text}") for text in ("", KINDS[name]))
    assert PIECE <= after - before < PIECE + 2 * MEGABYTE


def counted(text: str) -> int:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", f"{text}\nprint(flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    found = memory_of(process.pid)
    process.communicate(b"\n")
    return found


def test_a_process_that_has_gone_has_no_memory() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert memory_of(process.pid) == memory_of(0) == 0


@pytest.fixture
def group() -> Iterator[Group]:
    """A group with 64 MB."""
    if not has_groups():
        pytest.skip("no control group can be made here")
    made = make_group(f"think-command-test-{os.getpid()}", 64 * MEGABYTE)
    assert made is not None
    yield made
    made.remove()


@pytest.mark.parametrize("name", [name for name in HOLES if name != "files in /dev/shm"])
def test_the_kernel_bounds_a_group_by_itself(name: str, group: Group) -> None:
    text = f"{TAKEN}{HOLES[name]}{END}"
    done = subprocess.run(group.entering([sys.executable, "-I", "-c", text]), capture_output=True, check=False)
    assert b"REACHED" not in done.stdout
    assert group.kills >= 1
    group.remove()
    assert not group.folder.exists()


def test_a_group_that_was_left_is_removed_and_one_in_use_is_not(group: Group) -> None:
    process = subprocess.Popen(group.entering(["sleep", "60"]))
    until(lambda: str(process.pid) in (group.folder / "cgroup.procs").read_text().split())
    remove_groups("think-command-", lambda name: name == group.folder.name, seconds=0)
    assert group.folder.exists()
    process.kill()
    process.wait()
    until(lambda: not (group.folder / "cgroup.procs").read_text())
    remove_groups("think-command-", lambda name: name == group.folder.name)
    assert group.folder.exists(), "one that is new may be about to be entered"
    remove_groups("think-command-", lambda name: name == group.folder.name, seconds=0)
    assert not group.folder.exists()


async def test_a_command_leaves_no_group(isolation: Isolation) -> None:
    with command_folders() as (root, files):
        await finished(
            RunningCommand(MountPlace(folder=files, root=root), CommandBounds(**SMALL)), isolation, "echo here"
        )
        assert [place / root.parent.name for place in groups._places() if (place / root.parent.name).exists()] == []


async def test_the_report_says_how_the_memory_is_bounded(isolation: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    [report] = await processes_report()
    if not isolation.is_supervised:
        wanted = "a control group bounds the memory" if has_groups() else "no control group, so the worker counts"
        assert wanted in report.reason
    monkeypatch.setattr(groups, "_places", lambda: iter(()))
    has_groups.cache_clear()
    try:
        [report] = await processes_report()
    finally:
        has_groups.cache_clear()
    assert isolation.is_supervised or "no control group, so the worker counts the memory" in report.reason


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_bound_of_these_tests_is_passed_by_each_hole() -> None:
    assert SMALL["disk_bytes"] > PIECE
    assert 2 * SMALL["memory_bytes"] + 64 * MEGABYTE < PIECE * PIECES
