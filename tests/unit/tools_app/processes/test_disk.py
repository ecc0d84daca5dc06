"""Files of every kind end a command at its bound, in a file system of its own and measured; no directory stays."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.deep_folders import LEVELS, deep_folder
from tests.house.repository import ROOT
from tests.unit.tools_app.processes.conftest import SMALL, Command
from tests.unit.tools_app.processes.other_processes import until
from tools_app.core.files.workspace import MakeDirectory
from tools_app.processes.folders import PREFIX, sweep
from tools_app.processes.isolation import MAX_ENTRIES, Isolation
from tools_app.processes.rooms import Room
from tools_app.processes.tool import processes_report
from tools_app.workspace.stores.memory import MemoryWorkspace

MEGABYTE = 1 << 20
START = f"""
import mmap, os, time
data, pieces, kept = bytes({MEGABYTE}), 60, []
def make(name):
    kept.append(os.open(name, os.O_RDWR | os.O_CREAT))
    os.write(kept[-1], data)
    return kept[-1]
try:
"""
END = """
except (OSError, ValueError):
    pass
time.sleep(15)
"""
HOLES = {
    "unlinked and open": """
    for _ in range(pieces):
        make("f")
        os.unlink("f")
""",
    "unlinked and mapped": """
    for _ in range(pieces):
        made = make("f")
        kept.append(mmap.mmap(made, len(data)))
        os.unlink("f")
        os.close(made)
""",
    "held by a process that is not its maker": """
    for _ in range(pieces):
        make("f")
        os.unlink("f")
        if len(kept) == 10 and os.fork():
            os.closerange(3, 100)
            time.sleep(15)
""",
    "behind paths that are too long": """
    for number in range(pieces):
        os.mkdir("n" * 200)
        os.chdir("n" * 200)
        os.close(make("f"))
""",
    "deeper than Python recurses": """
    for number in range(1900):
        os.mkdir("n")
        os.chdir("n")
        if number >= 1840:
            os.close(make("f"))
""",
    "where nothing may be read": """
    os.mkdir("d", 0o700)
    os.chdir("d")
    above, here = os.open("..", 0), os.open(".", 0)
    os.fchmod(above, 0)
    os.fchmod(here, 0o300)
    for number in range(pieces):
        os.close(make(f"{number}"))
    os.fchmod(here, 0)
""",
    "preallocated": """
    for number in range(pieces):
        os.posix_fallocate(make(f"{number}"), 0, len(data))
""",
}


@pytest.fixture(params=["of its own", "measured"])
def file_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, isolation: Isolation) -> str:
    """With the file system that can be had here, and without."""
    if request.param == "measured":
        if not isolation.has_room:
            pytest.skip("it is measured either way")
        monkeypatch.setattr(Room, "enter", lambda room, pid: False)
    return str(request.param)


@pytest.mark.long_for("podman", "bwrap")
@pytest.mark.parametrize("name", HOLES)
async def test_no_file_passes_the_bound(name: str, file_way: str, own_folder: str, command: Command) -> None:
    result = await command(f"python3 -c '{START}{HOLES[name]}{END}'")
    assert result["exitCode"] == 137, result
    assert result["stderr"].endswith("killed: too much was written\n")
    assert own_folder not in str(result)
    assert PREFIX not in str(result)
    assert os.listdir(own_folder) == []
    assert (await command("echo alive"))["stdout"] == "alive\n"


@pytest.mark.long_for("podman", "bwrap")
async def test_a_command_that_leaves_deep_folders_ends_as_any_other(
    file_way: str, own_folder: str, workspace: MemoryWorkspace, command: Command
) -> None:
    await workspace.write_file("/here", "1\n")
    deep = f"import os\nfor _ in range({LEVELS}):\n os.mkdir('n'); os.chdir('n')\nopen('f', 'w').write('x')"
    result = await command(f'python3 -c "{deep}"; echo 2 > /workspace/here')
    assert "'/n/n" in result["errors"][0]
    assert await workspace.read_file("/here") == "2\n"
    assert os.listdir(own_folder) == []


async def test_files_beyond_the_number_that_is_kept_take_none_away(
    isolation: Isolation, workspace: MemoryWorkspace, command: Command
) -> None:
    await workspace.apply([MakeDirectory(path="/zz")])
    await workspace.write_file("/zz/kept", "1\n")
    text = f"import os\nfor n in range({MAX_ENTRIES + 500}):\n os.close(os.open(str(n), 65))"
    result = await command(f"python3 -c '{text}'", disk_bytes=100_000_000, seconds=60.0)
    assert result["changedFiles"]["deleted"] == result["changedFiles"]["directoriesDeleted"] == []
    assert f"more than {MAX_ENTRIES} entries" in str(result.get("errors")), (result["exitCode"], result["stderr"])
    assert await workspace.read_file("/zz/kept") == "1\n"


async def test_paths_that_are_too_long_for_the_system_are_left_alone(
    isolation: Isolation, workspace: MemoryWorkspace, command: Command
) -> None:
    path = "".join(f"/{'ä' * 120}" for _ in range(33))
    await workspace.write_file(path, "1\n")
    result = await command("echo 1 > new; find . | wc -l")
    assert result["changedFiles"]["created"] == ["/new"]
    assert result["changedFiles"]["deleted"] == []
    assert path in result["skippedFiles"]
    assert await workspace.read_file(path) == "1\n"


def test_deep_folders_of_a_worker_that_is_gone_are_removed(own_folder: str) -> None:
    for name in "abc":
        top = Path(own_folder, f"{PREFIX}{name}")
        deep_folder(top, b"x")
        (top / "lock").touch()
    sweep()
    assert os.listdir(own_folder) == []


def test_a_folder_that_cannot_be_removed_keeps_no_other(own_folder: str) -> None:
    for name in "abc":
        for inner in ("root", "files/busy"):
            Path(own_folder, f"{PREFIX}{name}", inner).mkdir(parents=True)
        Path(own_folder, f"{PREFIX}{name}", "lock").touch()
    code = "from tools_app.processes.folders import sweep; sweep()"
    script = f'mount -t tmpfs tmpfs "$1" && exec "$2" -c "{code}"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    words += [str(Path(own_folder, f"{PREFIX}b", "files/busy")), sys.executable]
    environment = {**os.environ, "TMPDIR": own_folder, "DJANGO_SETTINGS_MODULE": "thinkproject.settings_test"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    assert "the folder of a command could not be removed" in done.stderr
    assert os.listdir(own_folder) == [f"{PREFIX}b"]


async def test_the_report_says_who_bounds_the_files(isolation: Isolation) -> None:
    [report] = await processes_report()
    wanted = "Files have a bounded file system." if isolation.has_room else "The worker measures files."
    assert wanted in report.reason


async def test_a_command_that_cannot_be_started_names_no_place_of_the_machine(
    isolation: Isolation, own_folder: str, command: Command
) -> None:
    if isolation.is_supervised:
        pytest.skip("of namespaces")
    task = asyncio.ensure_future(command("echo here"))
    async with asyncio.timeout(20):
        await until(lambda: bool(os.listdir(own_folder)))
    os.rmdir(Path(own_folder, os.listdir(own_folder)[0], "root"))
    result = await asyncio.gather(task, return_exceptions=True)
    assert own_folder not in str(result)
    assert tempfile.gettempdir() not in str(result)
    assert os.listdir(own_folder) == []


def test_the_bound_of_these_tests_is_passed_by_each_hole() -> None:
    assert 2 * SMALL["disk_bytes"] < 60 * MEGABYTE
