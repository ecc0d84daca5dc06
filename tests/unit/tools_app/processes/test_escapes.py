"""Commands that take all they can get, or try to get out: each is denied or ended, and nothing of it goes on."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.house.repository import ROOT
from tests.open_folders import open_to_all
from tests.unit.tools_app.processes.conftest import SMALL, Command
from tests.unit.tools_app.processes.finishing import finished
from tests.unit.tools_app.processes.other_processes import own_nap, processes_of, until
from tests.unit.tools_app.shell.conftest import CONTEXT, NOTHING
from tools_app.processes.child import RunningCommand
from tools_app.processes.copying import give
from tools_app.processes.folders import PREFIX, sweep
from tools_app.processes.isolation import CommandBounds, Isolation, MountPlace
from tools_app.processes.tool import CommandRunner
from tools_app.workspace.stores.memory import MemoryWorkspace

SECRET = "canary-of-the-command-tests"

GREEDY: dict[str, tuple[str, dict[str, Any]]] = {
    "fork bomb": (":(){ :|:& };:; sleep 30", {"seconds": 2.0}),
    "many processes": ("for i in $(seq 1 200); do sleep 30 & done; wait", {"seconds": 2.0}),
    "memory": ("a=x; while :; do a=$a$a; done", {}),
    "memory of several": ("for i in 1 2 3 4; do head -c 90000000 /dev/zero | tail & done; wait", {}),
    "one large file": ("head -c 1000000000 /dev/zero > f", {}),
    "many large files": ("i=0; while :; do i=$((i + 1)); head -c 1000000 /dev/zero > f$i; done", {}),
    "output": ("yes", {}),
    "output of errors": ("yes >&2", {}),
    "processor": ("while :; do :; done", {"cpu_seconds": 1}),
    "sleeping": ("trap '' TERM INT HUP; sleep 30; sleep 30", {"seconds": 1.0}),
    "in the background": ("setsid nohup sh -c 'sleep 30' > /dev/null 2>&1 & exit 9", {}),
}
OUT = [
    "cat FILE",
    "cat /proc/1/environ /proc/*/environ",
    "cat /proc/1/ro?t/FILE /proc/1/cwd/FILE",
    "ls /proc/1/ro?t/ /proc/1/fd/",
    "cat /etc/shadow /ro?t/.bashrc /ho?e/*/.bashrc /var/log/*",
    "find / -name x.secret 2> /dev/null",
    "ln -s FILE l; cat l",
    "ln FILE hard; cat hard",
    "mount -t proc proc /tmp; mount --bind / /tmp; umount /usr; umount -l /workspace/..",
    "unshare --user --map-root-user --mount true && echo REACHED",
    "unshare --mount true && echo REACHED",
    "nsenter --target 1 --mount cat FILE && echo REACHED",
    "chroot / true && echo REACHED",
    "mknod m b 8 0 && echo REACHED; mknod k c 1 1 && echo REACHED",
    "touch /usr/x && echo REACHED; touch /x && echo REACHED; touch /etc/x && echo REACHED",
    "mkdir /usr/local/x && echo REACHED; rm -f /usr/bin/env && echo REACHED",
    "echo x > /proc/sys/kernel/core_pattern && echo REACHED",
    "echo x > /proc/sys/user/max_user_namespaces && echo REACHED",
    "echo 99999999 > /proc/sys/kernel/shmall && echo REACHED",
    "echo 99999999 > /proc/sys/kernel/shmmax; grep -qx 99999999 /proc/sys/kernel/shmmax && echo REACHED",
    "echo b > /proc/sysrq-trigger && echo REACHED",
    "echo 1 > /sys/fs/cgroup/x && echo REACHED; ls /sys/fs && echo REACHED",
    "cat /dev/sda /dev/vda /dev/mem /dev/kmsg && echo REACHED",
    "dmesg && echo REACHED",
    "hostname changed && echo REACHED",
    "date -s 2000-01-01 && echo REACHED",
    "su -c true && echo REACHED; sudo -n true && echo REACHED",
    "cp /bin/sh s; chmod 4755 s; ./s -c 'grep -q CapEff:.*[1-9a-f] /proc/self/status && echo REACHED'",
    "setpriv --reuid 1000 true && echo REACHED",
    "chown 1 /workspace && echo REACHED",
    "kill -9 1 && kill -0 1 || echo REACHED",
    "kill -9 WORKER_PID && echo REACHED",
    "prlimit --nproc=unlimited true && echo REACHED; ulimit -u unlimited && echo REACHED",
    "grep -q 'CapPrm:.*[1-9a-f]' /proc/self/status && echo REACHED",
    "python3 -c \"import os; print(os.environ.get('SECRET_OF_THE_PARENT'))\"",
    "python3 -c \"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b'x'); print('REACHED')\"",
    "env; cat /proc/self/environ",
]
TRACES = [
    "python3 -c \"import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0 and 'REACHED')\"",
    "exec 3<> /proc/1/mem && echo REACHED",
]
"""Of the first process of the namespace, which is worth something with `unshare` only."""

OUT += TRACES
NETWORK = [
    "python3 -c \"import socket; socket.create_connection(('127.0.0.1', PORT), 2); print('REACHED')\"",
    "exec 3<> /dev/tcp/127.0.0.1/PORT && echo REACHED",
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0SOCKET'); print('REACHED')\"",
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('SOCKET'); print('REACHED')\"",
    "ip link set lo up && echo REACHED",
]
"""All but the last ask for an address."""


ALWAYS = {"fork bomb", "memory", "many large files", "output", "sleeping", "in the background"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.long]) for name in GREEDY]
)
async def test_what_takes_all_is_ended(name: str, workspace: MemoryWorkspace, command: Command) -> None:
    text, bounds = GREEDY[name]
    nap = own_nap()
    result = await command(text.replace("sleep 30", nap), **bounds)
    assert result["exitCode"] != 0
    assert len(result["stdout"].encode()) <= 64_000
    assert len(result["stderr"].encode()) <= 65_000
    assert (await workspace.info()).byte_count <= 25_000_000
    assert (await command("echo alive"))["stdout"] == "alive\n"
    async with asyncio.timeout(10):  # the kernel takes a moment
        await until(lambda: not processes_of(nap))


async def test_nothing_of_the_machine_is_reached(
    isolation: Isolation, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", SECRET)
    secret = tmp_path / "x.secret"
    secret.write_text(f"echo {SECRET}\n")
    open_to_all(secret)
    probes = OUT if isolation.name == "unshare" else [line for line in OUT if line not in TRACES]
    for start in range(0, len(probes), 12):
        some = [
            line.replace("FILE", str(secret)).replace("WORKER_PID", str(os.getpid()))
            for line in probes[start : start + 12]
        ]
        result = await command("\n".join(f"( {line} ) 2>&1; echo; echo done" for line in some))
        assert SECRET not in str(result), some
        assert "REACHED" not in result["stdout"], result["stdout"]
        assert result["stdout"].splitlines().count("done") == len(some)


@asynccontextmanager
async def network_probes() -> AsyncIterator[tuple[list[str], list[bytes]]]:
    """The probes with addresses where something listens, and what reached it."""
    received: list[bytes] = []

    async def hear(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(b"connected")
        writer.close()

    # Ports and names without a file are of the whole machine, on which other tests run.
    address = tempfile.mktemp(prefix="think-test-", suffix=".sock")
    async with AsyncExitStack() as servers:
        tcp = await servers.enter_async_context(await asyncio.start_server(hear, "127.0.0.1", 0))
        await servers.enter_async_context(await asyncio.start_unix_server(hear, f"\0{address}"))
        await servers.enter_async_context(await asyncio.start_unix_server(hear, address))
        servers.callback(os.unlink, address)
        os.chmod(address, 0o666)
        port = str(tcp.sockets[0].getsockname()[1])
        yield [line.replace("PORT", port).replace("SOCKET", address) for line in NETWORK], received


async def test_there_is_no_network(command: Command) -> None:
    async with network_probes() as (some, received):
        result = await command("\n".join(f"( {line} ) 2>&1; echo; echo done" for line in some))
    assert result["stdout"].splitlines().count("done") == len(NETWORK)
    assert "REACHED" not in result["stdout"]
    assert received == []


async def test_without_walls_each_probe_of_an_address_reaches_it() -> None:
    async with network_probes() as (some, received):
        for line in some[:-1]:
            shell = await asyncio.create_subprocess_exec("bash", "-c", line, stdout=asyncio.subprocess.PIPE)
            assert (await shell.communicate())[0] == b"REACHED\n"
    assert len(received) == len(some) - 1


async def test_the_network_is_reached_where_it_is_granted(isolation: Isolation, workspace: MemoryWorkspace) -> None:
    received: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    runner = CommandRunner(workspace=workspace, bounds=CommandBounds(**SMALL), network=True)
    result = await runner.run(CONTEXT, f"exec 3<> /dev/tcp/127.0.0.1/{port}; echo granted >&3; read -r x <&3; id -u")
    server.close()
    assert received == [b"granted\n"]
    assert result["exitCode"] == 0


async def test_links_that_point_out_are_not_followed_when_changes_are_read(
    workspace: MemoryWorkspace, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "host").write_text(SECRET)
    await workspace.write_file("/d/f", "x")
    result = await command(f"rm -r d; ln -s {tmp_path} d; ln -s {tmp_path}/host h")
    assert result["changedFiles"] == {
        **NOTHING,
        "created": ["/d", "/h"],
        "deleted": ["/d/f"],
        "directoriesDeleted": [],
    } or result["changedFiles"]["created"] == ["/h"]
    stored = [data async for _, data in workspace.read_many(["/d/host", "/h"], max_bytes=1000)]
    assert stored == []
    assert (tmp_path / "host").read_text() == SECRET


WORKER = """
import asyncio, os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
import django
django.setup()
from tests.unit.tools_app.processes.conftest import SMALL
from tests.unit.tools_app.processes.test_escapes import processes_of, until
from tests.unit.tools_app.shell.conftest import CONTEXT
from tools_app.processes import tool
from tools_app.processes.isolation import CommandBounds
from tools_app.workspace.stores.memory import MemoryWorkspace
tool._TRIED["", ""] = next(each for each in tool.WALLS if each.name == sys.argv[1])
bounds = CommandBounds(**{**SMALL, "seconds": 60.0})  # it ends with its worker, not by the clock
runner = tool.CommandRunner(workspace=MemoryWorkspace(), bounds=bounds)
nap = sys.argv[2]
text = f"setsid nohup {nap} > /dev/null 2>&1 & ({nap} &); echo ready; {nap}"
async def main():
    task = asyncio.create_task(runner.run(CONTEXT, text))
    await until(lambda: len(processes_of(nap)) == 3)
    print("ready", flush=True)
    await task
asyncio.run(main())
"""


async def test_nothing_goes_on_when_the_worker_is_killed(isolation: Isolation, own_folder: str) -> None:
    nap = own_nap()
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", WORKER, isolation.name, nap),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": own_folder},
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    async with asyncio.timeout(60):
        assert await worker.stdout.readline() == b"ready\n"
        assert processes_of(nap)
        os.kill(worker.pid, signal.SIGKILL)
        await worker.wait()
        await until(lambda: not processes_of(nap))  # the kernel takes a moment
    left = folders()
    assert left
    sweep()
    assert folders() == set()


async def test_what_outlived_its_worker_is_ended_by_the_next_one(isolation: Isolation) -> None:
    nap, top = own_nap(), Path(tempfile.mkdtemp(prefix=PREFIX))
    (top / "lock").touch()  # which no process holds
    for folder in (top / "root", top / "files", top):
        folder.mkdir(exist_ok=True)
        give(folder)
    running = RunningCommand(MountPlace(folder=top / "files", root=top / "root"), CommandBounds(**SMALL))
    task = asyncio.create_task(finished(running, isolation, nap))
    async with asyncio.timeout(30):
        await until(lambda: bool(processes_of(nap)))
        await asyncio.to_thread(sweep)
        ended = await task
    assert ended.code == 137
    assert processes_of(nap) == []
    assert top not in folders()


async def test_a_command_that_is_cancelled_is_gone(command: Command) -> None:
    nap = own_nap()
    task = asyncio.ensure_future(command(nap))
    async with asyncio.timeout(30):
        await until(lambda: bool(processes_of(nap)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert processes_of(nap) == []


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))
