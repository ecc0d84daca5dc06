"""Containers as walls of commands: images, filters of system calls, and what outlived its worker."""

import asyncio
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import signals

from tests.unit.tools_app.processes.conftest import SMALL, why_not_here
from tests.unit.tools_app.processes.finishing import finished
from tests.unit.tools_app.processes.other_processes import own_nap, processes_of, until
from tests.unit.tools_app.shell.conftest import CONTEXT
from tools_app.errors import SandboxUnavailable
from tools_app.processes import engines, tool
from tools_app.processes.child import RunningCommand
from tools_app.processes.engines import ENGINES, LABEL, ContainerEngine
from tools_app.processes.filters import WITHHELD, command_filter
from tools_app.processes.folders import command_folders
from tools_app.processes.isolation import CommandBounds, MountPlace
from tools_app.processes.starting import sweep_soon
from tools_app.processes.tool import CommandRunner, tried_isolation, why_not
from tools_app.workspace.stores.memory import MemoryWorkspace

Import = Callable[..., str]


@pytest.fixture(params=ENGINES, ids=lambda each: each.name)
async def engine(request: pytest.FixtureRequest) -> ContainerEngine:
    found: ContainerEngine = request.param
    if reason := await why_not_here(found):
        pytest.skip(f"commands cannot be kept apart by {found.name} here: {reason}")
    return found


@pytest.fixture
def imported(engine: ContainerEngine) -> Iterator[Import]:
    """Makes an image of nothing but a shell and what that needs."""
    name = f"localhost/think-test-{os.getpid()}:latest"

    def make(*changes: str) -> str:
        words = [engine.name, "import", *(f"--change={each}" for each in changes), "-", name]
        subprocess.run(words, input=shell_alone(), check=True, capture_output=True)
        return name

    yield make
    subprocess.run([engine.name, "image", "rm", "--force", name], check=True, capture_output=True)


async def test_commands_have_the_programs_of_the_image_and_none_of_the_machine(
    engine: ContainerEngine, imported: Import, settings: Any
) -> None:
    settings.THINK_PROCESSES_IMAGE = imported()
    settings.THINK_PROCESSES_ISOLATION = engine.name
    workspace = MemoryWorkspace()
    await workspace.write_file("/f", "old\n")
    text = "read -r x < /image; echo $x; [ -e /usr/bin/env ] || echo alone; echo new > f; echo $HOME"
    result = await CommandRunner(workspace=workspace, bounds=CommandBounds(**SMALL)).run(CONTEXT, text)
    assert (result["stdout"], result["stderr"]) == ("an image\nalone\n/workspace\n", "")
    assert await workspace.read_file("/f") == "new\n"
    [report] = await tool.processes_report()
    assert settings.THINK_PROCESSES_IMAGE in report.reason


async def test_an_image_that_is_not_here_is_named_and_not_pulled(engine: ContainerEngine, settings: Any) -> None:
    settings.THINK_PROCESSES_IMAGE = "localhost/think-test-missing:1"
    reason = await why_not(engine)
    assert reason == "there is no image localhost/think-test-missing:1 here, and none is pulled"


async def test_an_image_with_volumes_is_refused(engine: ContainerEngine, imported: Import, settings: Any) -> None:
    settings.THINK_PROCESSES_IMAGE = imported("VOLUME /data")
    assert "has volumes" in await why_not(engine)


async def test_an_image_that_has_gone_is_asked_for_anew(
    engine: ContainerEngine, imported: Import, settings: Any
) -> None:
    settings.THINK_PROCESSES_IMAGE = image = imported()
    settings.THINK_PROCESSES_ISOLATION = engine.name
    runner = CommandRunner(workspace=MemoryWorkspace(), bounds=CommandBounds(**SMALL))
    assert (await runner.run(CONTEXT, "echo here"))["stdout"] == "here\n"
    await asked(engine, "image", "rm", image)
    with pytest.raises(SandboxUnavailable):
        await runner.run(CONTEXT, "echo gone")
    imported()
    assert (await runner.run(CONTEXT, "echo back"))["stdout"] == "back\n"


async def test_an_image_leaves_engines_alone_to_choose_from(settings: Any) -> None:
    settings.THINK_PROCESSES_IMAGE = "localhost/think-test-missing:1"
    assert await tried_isolation("unshare") == "unshare has no images, and THINK_PROCESSES_IMAGE names one."
    assert [wall.name for wall in tool.WALLS] == ["unshare", "bwrap", "podman", "docker"]


async def test_the_report_says_why_an_engine_had_to_be_taken(
    engine: ContainerEngine, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / engine.name).symlink_to(shutil.which(engine.name) or "")
    monkeypatch.setattr(engines, "TRUSTED_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tool, "_TRIED", {})
    [report] = await tool.processes_report()
    assert report.is_available
    assert report.reason.startswith(f"Containers made by {engine.name}, with the programs of this machine; ")
    assert "Not by unshare: unshare, prlimit, setpriv, mount, pivot_root not found. bwrap: bwrap" in report.reason


async def test_an_engine_that_does_not_answer_is_a_reason(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    docker = ENGINES[1]
    if shutil.which(docker.name) is None:
        pytest.skip("docker not found")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    assert "nobody.sock" in await why_not(docker)


async def test_a_container_that_outlived_worker_and_supervisor_is_removed_when_the_engine_is_tried(
    engine: ContainerEngine, tmp_path: Path
) -> None:
    nap = own_nap()
    with command_folders() as (root, files):
        running = RunningCommand(MountPlace(folder=files, root=root), CommandBounds(**SMALL))
        task = asyncio.create_task(finished(running, engine, nap))
        async with asyncio.timeout(60):
            await until(lambda: bool(processes_of(nap)))
            os.killpg(running.pid, signal.SIGKILL)  # of the supervisor and the engine's client
            await asyncio.wait([task])
        assert processes_of(nap)
        await asyncio.to_thread(engine.prepare)
        assert processes_of(nap), "a command whose directory is held is another worker's"
        (root.parent / "lock").unlink()
        await asyncio.to_thread(engine.prepare)
        assert processes_of(nap) == []
        assert await asked(engine, "ps", "--all", "--quiet", f"--filter=label={LABEL}={root.parent}") == b""


@pytest.mark.parametrize("is_made", [False, True], ids=["before it is made", "once it is made"])
async def test_a_command_that_is_cancelled_while_its_container_starts_leaves_none(
    engine: ContainerEngine, is_made: bool
) -> None:
    nap = own_nap()
    with command_folders() as (root, files):
        running = RunningCommand(MountPlace(folder=files, root=root), CommandBounds(**SMALL))
        task = asyncio.create_task(finished(running, engine, nap))
        async with asyncio.timeout(60):
            await until(lambda: (root / f"{engine.name}.id").exists() if is_made else running.pid > 0)
            task.cancel()
            await asyncio.wait([task])
        assert task.cancelled()
        assert await asked(engine, "ps", "--all", "--quiet", f"--filter=label={LABEL}={root.parent}") == b""
    assert processes_of(nap) == []


def test_a_worker_that_starts_removes_what_others_left(own_folder: str) -> None:
    with command_folders() as (root, _):
        held = root.parent
        left = Path(tempfile.mkdtemp(prefix="think-command-"))
        (left / "lock").touch()
        sweep_soon().join()
        assert held.exists()
        assert not left.exists()
    assert any("think_commands_ready" in str(key) for key, _ in signals.worker_ready.receivers)


def test_the_filter_of_podman_loses_what_makes_namespaces(tmp_path: Path) -> None:
    path = tmp_path / "seccomp.json"
    allowed = {"names": ["read", "unshare", "clone", "clone3", "mount"], "action": "SCMP_ACT_ALLOW", "args": []}
    denied = {"names": ["setns"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}
    path.write_text(json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [allowed, denied]}))
    first, second, clone = json.loads(command_filter(str(path)))["syscalls"]
    assert first["names"] == ["read"]
    assert second == denied
    assert clone["names"] == ["clone"]
    assert clone["args"][0]["op"] == "SCMP_CMP_MASKED_EQ"
    assert {"unshare", "mount", "keyctl"} <= WITHHELD


@pytest.mark.parametrize("text", ["", "{}", '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}'])
def test_a_filter_that_cannot_be_used_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "seccomp.json"
    path.write_text(text)
    assert command_filter(str(path)) == ""
    assert command_filter(str(tmp_path / "missing")) == ""


async def asked(engine: ContainerEngine, *words: str) -> bytes:
    return (await asyncio.to_thread(subprocess.run, [engine.name, *words], check=True, capture_output=True)).stdout


def shell_alone() -> bytes:
    """A root with a shell, the libraries that it needs, and a file that tells it from this machine."""
    shell = Path("/bin/sh").resolve()
    listed = subprocess.run(["ldd", str(shell)], capture_output=True, text=True, check=True).stdout
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path in re.findall(r"(/\S+) \(0x", listed):
            archive.add(Path(path).resolve(), arcname=path)
        archive.add(shell, arcname="bin/sh")
        entry = tarfile.TarInfo("image")
        entry.size = len(b"an image\n")
        archive.addfile(entry, io.BytesIO(b"an image\n"))
    return made.getvalue()
