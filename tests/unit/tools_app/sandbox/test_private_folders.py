"""An installation in a folder that its owner alone can enter: code runs as another user there, or not at all."""

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.house.repository import ROOT
from tests.unit.tools_app.sandbox.conftest import echo
from tools_app.errors import SandboxUnavailable
from tools_app.sandbox.contract import DEFAULT_LIMITS, Answer, Script
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.process import RUNNER, SandboxProgram, command, deno_path, spawn
from tools_app.sandbox.walls import NOBODY, Wall, candidates, is_root

PACKAGES = ("thinkproject", "tools_app")
INSTALLED = """
import asyncio, json, sys
from pathlib import Path
from django.conf import settings
settings.configure(THINK_SANDBOX_COPIES_DIR=sys.argv[1])
from tools_app.sandbox.contract import Answer, Script
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.process import SandboxProgram, deno_path
from tools_app.shell.bundling import RUNNER

async def main():
    users = []
    sandbox = DenoSandbox()
    async def look(name, args):
        users.append(Path(f"/proc/{sandbox.running[0]}/status").read_text().split("Uid:")[1].split()[:4])
        return Answer(value=1)
    script = Script(source="async () => await tools.look()", namespaces=("tools",))
    results = [await sandbox.run(script, calls=look) for _ in range(2)]
    shell = DenoSandbox(program=SandboxProgram(script=RUNNER / "bash_runner.js", folder=RUNNER))
    walls = [await sandbox.walls(), await shell.walls()]
    await sandbox.close()
    print(json.dumps({
        "users": users, "values": [result.value for result in results], "deno": deno_path(),
        "without": [sorted(each.lacks) for each in walls], "code": sys.modules[DenoSandbox.__module__].__file__,
    }))

asyncio.run(main())
"""


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A folder that its owner alone can enter, and an empty one that all can."""
    private = tmp_path / "home"
    private.mkdir(mode=0o700)
    with tempfile.TemporaryDirectory(prefix="think-test-") as name:
        Path(name).chmod(0o755)
        yield private, Path(name)


def user_of_guests() -> str:
    return NOBODY if is_root() else str(os.geteuid())


def user_of(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text().split("Uid:")[1].split()[0]


def test_an_installation_in_a_private_folder_runs_code_as_another_user(folders: tuple[Path, Path]) -> None:
    private, place = folders
    for name in PACKAGES:
        shutil.copytree(ROOT / name, private / name)
    venv.create(private / ".venv", symlinks=True)
    linked(Path(deno_path()), private / ".venv" / "bin" / "deno")
    done = subprocess.run(
        [private / ".venv" / "bin" / "python", "-c", INSTALLED, str(place / "copies")],
        cwd=private,
        env={**os.environ, "PYTHONPATH": f"{private}:{sysconfig.get_path('purelib')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["code"].startswith(str(private))
    assert found["deno"].startswith(str(private))
    assert found["values"] == [1, 1]
    assert found["users"] == [[user_of_guests()] * 4] * 2  # the second one was started in advance
    assert all((Wall.USER in lacks) is not is_root() for lacks in found["without"])


def linked(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


async def test_folders_that_code_may_read_are_lent_as_well(folders: tuple[Path, Path], settings: Any) -> None:
    private, place = folders
    settings.THINK_SANDBOX_COPIES_DIR = str(place / "copies")
    (private / "data").mkdir()
    (private / "data" / "words").write_text("of a private folder")
    script = private / "reads.js"
    script.write_text("console.log(await Deno.readTextFile(`${Deno.args[0]}/words`))")
    strongest = await DenoSandbox(program=SandboxProgram(script=private_runner(private)), spare=False).walls()
    words = command(strongest, DEFAULT_LIMITS, SandboxProgram(script=script, reads=private / "data"))
    guest = await spawn(words, 1_000)
    assert await guest.stdout.readline() == b"of a private folder\n"
    await guest.end()


def private_runner(private: Path) -> Path:
    """The runner of JavaScript, in a private folder."""
    return Path(shutil.copy(RUNNER, private / "runner.js"))


@pytest.fixture
def private_sandbox(folders: tuple[Path, Path], settings: Any) -> DenoSandbox:
    """A sandbox whose runner no other user can read, not in a copy either."""
    private, _ = folders
    settings.THINK_SANDBOX_COPIES_DIR = str(private / "copies")
    return DenoSandbox(program=SandboxProgram(script=private_runner(private)), spare=False)


SCRIPT = Script(source="() => 42")


async def test_code_does_not_run_where_a_wall_is_missing_that_has_to_be_there(
    private_sandbox: DenoSandbox, settings: Any
) -> None:
    settings.THINK_SANDBOX_MAY_LACK = "" if is_root() else "none"
    with pytest.raises(SandboxUnavailable, match=r"a wall is missing \(another user\).*THINK_SANDBOX_MAY_LACK"):
        await private_sandbox.run(SCRIPT, calls=echo)
    settings.THINK_SANDBOX_MAY_LACK = "network, rights"
    with pytest.raises(SandboxUnavailable, match="another user"):
        await private_sandbox.run(SCRIPT, calls=echo)
    assert private_sandbox.running == []


async def test_code_runs_without_a_wall_where_the_operator_says_so(private_sandbox: DenoSandbox, settings: Any) -> None:
    settings.THINK_SANDBOX_MAY_LACK = "user, network, rights"
    users = []

    async def look(name: str, args: list[Any]) -> Answer:
        users.append(user_of(private_sandbox.running[0]))
        return Answer(value=42)

    result = await private_sandbox.run(Script(source="() => tools.look()", namespaces=("tools",)), calls=look)
    assert result.value == 42
    assert users == [str(os.geteuid())]
    assert Wall.USER in (await private_sandbox.walls()).lacks


async def test_a_setting_that_names_no_wall_runs_nothing(private_sandbox: DenoSandbox, settings: Any) -> None:
    settings.THINK_SANDBOX_MAY_LACK = "users"
    with pytest.raises(SandboxUnavailable, match="THINK_SANDBOX_MAY_LACK: 'users'"):
        await private_sandbox.run(SCRIPT, calls=echo)


def test_the_walls_of_root_are_the_same_whatever_is_missing_of_the_others() -> None:
    weaker = [walls for walls in candidates(root=True) if Wall.USER not in walls.lacks]
    assert [walls.lacks for walls in weaker] == [frozenset(), {Wall.NETWORK}]
    for walls in weaker:
        assert {"--reuid", "--regid", "--clear-groups", "--no-new-privs", "--bounding-set=-all"} <= set(walls.prefix)
