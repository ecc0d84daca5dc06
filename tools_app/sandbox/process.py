"""The process that a script runs in: how it is started, walled in and ended.

Deno gets no permission at all; that is the first wall. The others hold when it has a hole: limits of the kernel, no
network, no user, no way to more rights. They are set by small programs that replace themselves by the next one
(`sh`, `unshare`, `setpriv`), since code between fork and exec is unsafe in a process with threads.

The process dies with the thread that started it, by a signal of the kernel where there is one (`--pdeathsig`); else it
ends when its standard input does, or at the latest after its seconds of the processor.
"""

import asyncio
import contextlib
import functools
import os
import resource
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools_app.errors import SandboxUnavailable
from tools_app.sandbox.contract import Limits
from tools_app.sandbox.messages import Ready, Violation, read_message
from tools_app.sandbox.readable import readable
from tools_app.sandbox.walls import Wall, Walls

RUNNER: Final = Path(__file__).parent / "runner" / "runner.js"
START_SECONDS: Final = 60.0
END_SECONDS: Final = 5.0
LINE_SLACK: Final = 64_000
V8_BYTES: Final = 1 << 30
"""Data memory that V8 needs to start at all, whatever its heap may grow to."""

FLAGS: Final = ("--quiet", "--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock", "--cached-only")
ENVIRONMENT: Final = {
    "DENO_DIR": "/dev/null/none",
    "DENO_NO_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
    "PATH": "/usr/bin:/bin",
}
"""All of it. No cache can be made below a device, so nothing is ever written."""

SET_LIMITS: Final = (
    'ulimit -c 0 && ulimit -f 0 && ulimit -n "$1" && ulimit -d "$2" && ulimit -S -t "$3" && ulimit -H -t "$4" '
    '&& shift 4 && exec "$@"'
)
OPEN_FILES: Final = 64
_finding = threading.Lock()
"""Python 3.11 reads its own configuration, of which the wheel asks, without one: a second thread finds it half read."""


def deno_path() -> str:
    """Find the Deno program. Errors: `SandboxUnavailable`."""
    try:
        from deno import find_deno_bin  # noqa: PLC0415 - a wheel that not every platform has

        with _finding:
            return str(find_deno_bin())
    except (ImportError, FileNotFoundError) as error:
        raise SandboxUnavailable("Code cannot run here: the package deno is not installed.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxProgram:
    """A trusted script for a guest, with flags of Deno.

    `folder`: where the script and all that it imports lie; without one it stands alone. `reads`: a folder that it may
    read, which is its argument.
    """

    script: Path = RUNNER
    flags: tuple[str, ...] = ()
    folder: Path | None = None
    reads: Path | None = None


JAVASCRIPT: Final = SandboxProgram()


def command(walls: Walls, limits: Limits, program: SandboxProgram = JAVASCRIPT) -> list[str]:
    """The command line of a guest. May block, where the guest is another user.

    Errors: `SandboxUnavailable`; `NotStarted` where that user could not read what it needs.
    """
    megabytes = max(16, limits.memory_bytes >> 20)
    kilobytes = (V8_BYTES + limits.memory_bytes) >> 10
    cpu = max(1, limits.cpu_seconds)
    bounds = (
        _allowed(resource.RLIMIT_NOFILE, OPEN_FILES),
        _allowed(resource.RLIMIT_DATA, kilobytes << 10) >> 10,
        _allowed(resource.RLIMIT_CPU, cpu),
        _allowed(resource.RLIMIT_CPU, cpu + 1),
    )
    heap = f"--v8-flags=--max-old-space-size={megabytes}"
    deno, script, flags, words = _files(walls, program)
    guest = [deno, "run", *FLAGS, *program.flags, *flags, heap, script, *words]
    return ["/bin/sh", "-c", SET_LIMITS, "sh", *(str(bound) for bound in bounds), *walls.prefix, *guest]


def _files(walls: Walls, program: SandboxProgram) -> tuple[str, str, list[str], list[str]]:
    """The program Deno, the script, flags and arguments, where the guest can read them."""
    deno, script, reads = Path(deno_path()), program.script, program.reads
    if Wall.USER not in walls.lacks:
        try:
            deno = readable(deno)
            folder = program.folder
            script = readable(script) if folder is None else readable(folder) / script.relative_to(folder)
            reads = None if reads is None else readable(reads)
        except OSError as error:
            raise NotStarted(f"The process for code did not start: {error}.") from error
    flags, words = ([], []) if reads is None else ([f"--allow-read={reads}"], [str(reads)])
    return str(deno), str(script), flags, words


def _allowed(kind: int, wanted: int) -> int:
    """A limit may only be lowered."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


class NotStarted(SandboxUnavailable):
    """The process for code ended before it could begin."""

    code = SandboxUnavailable.code


class Guest:
    """A process that waits for a script, or runs one. Made by `start`; ended by `end`, always."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._process = process

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """Its process id, which is that of its process group too."""
        return self._process.pid

    def memory_bytes(self) -> int:
        """Memory of its own, in bytes, without what it shares with its program file; 0 where that is unknown."""
        try:
            fields = Path(f"/proc/{self.pid}/statm").read_text().split()
        except OSError:
            return 0
        return (int(fields[1]) - int(fields[2])) * _page_bytes()

    def kill(self) -> None:
        """End it now, with all of its group."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> int | None:
        """Kill it and wait until it is gone. Returns how it ended, as `returncode`."""
        self.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                return await self.wait()
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until it has ended, dropping what it still says."""
        with contextlib.suppress(OSError):
            while await self.stdout.read(1 << 16):
                pass
        self.stdin.close()
        return await self._process.wait()


@functools.cache
def _page_bytes() -> int:
    return resource.getpagesize()


async def start(walls: Walls, limits: Limits, program: SandboxProgram = JAVASCRIPT) -> Guest:
    """Start a guest and wait until it asks for its script.

    Errors: `NotStarted` where it ended by itself, `SandboxUnavailable` where it takes too long.
    """
    line_bytes = max(limits.call_bytes, limits.output_bytes) + LINE_SLACK
    guest = await spawn(await asyncio.to_thread(command, walls, limits, program), line_bytes)
    try:
        async with asyncio.timeout(START_SECONDS):
            line = await guest.stdout.readline()
        if not isinstance(read_message(line), Ready):
            raise Violation("no greeting")
    except TimeoutError as error:
        await guest.end()
        raise SandboxUnavailable(f"The process for code did not start within {START_SECONDS:g} s.") from error
    except (Violation, ValueError) as error:
        code = await guest.end()
        raise NotStarted(f"The process for code did not start (it ended with {code}).") from error
    except BaseException:
        await guest.end()
        raise
    return guest


async def spawn(arguments: list[str], line_bytes: int) -> Guest:
    """Start a program as a guest: a session of its own, an empty environment, no file of ours. Errors: as `start`."""
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env=ENVIRONMENT,
            start_new_session=True,
            limit=line_bytes,
        )
    except OSError as error:
        raise SandboxUnavailable("The process for code could not be started.") from error
    return Guest(process)
