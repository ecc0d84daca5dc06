"""Runs one command apart, and sees to it that nothing of it goes on.

The kernel bounds each process, and with a control group the memory of all together. The disk, and memory where there is
no such group, are looked at again and again. Whatever exceeds a bound ends the command.
"""

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tools_app.errors import SandboxUnavailable
from tools_app.processes.copying import MAX_ENTRIES, disk_use
from tools_app.processes.groups import Group, make_group
from tools_app.processes.isolation import SHARED_BYTES, Bounds, Isolation, Place
from tools_app.processes.memory import children_of, memory_of

MEMORY_CHECK_SECONDS: Final = 0.05
MEMORY_CHECK_SHARE: Final = 4.0
"""How much longer than a look the pause after it is: one at very many mappings takes long."""
DISK_CHECK_SECONDS: Final = 0.5
END_SECONDS: Final = 20.0
MAX_READ_BYTES: Final = 64_000_000
PIECE_BYTES: Final = 64 * 1024


class End(StrEnum):
    """The ways in which a command ends."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DISK = "disk"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a command, and the beginning of its outputs. `code`: as of a shell, 128 and more for signals."""

    end: End
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float


class Running:
    """One command. `run` is called once."""

    def __init__(self, place: Place, bounds: Bounds) -> None:
        self._place = place
        self._bounds = bounds
        self._process: asyncio.subprocess.Process | None = None
        self._isolation: Isolation | None = None
        self._group: Group | None = None
        self._end = End.EXITED
        self._enough = asyncio.Event()

    @property
    def pid(self) -> int:
        """The outermost process; 0 before the start."""
        return self._process.pid if self._process else 0

    async def run(self, isolation: Isolation, command: str) -> Ended:
        """Run a command to its end. Cancelling ends it. Errors: `SandboxUnavailable` where it cannot be started."""
        began = time.monotonic()
        self._isolation = isolation
        words = isolation.command_line(command, self._place, self._bounds)
        if not isolation.is_supervised:  # an engine has groups of its own
            name, memory = self._place.root.parent.name, self._bounds.memory_bytes + SHARED_BYTES
            self._group = await asyncio.to_thread(make_group, name, memory)
        if self._group is not None:
            words = self._group.entering(words)
        try:
            outputs = await self._run(words, isolation)
        finally:
            if self._group is not None:
                await asyncio.to_thread(self._group.remove)
        process = self._process
        assert process is not None
        code = process.returncode if process.returncode is not None else -signal.SIGKILL
        if self._end is End.EXITED and isolation.is_no_start(self._place, code):
            raise SandboxUnavailable(f"The command could not be started: {outputs[1][:300].decode(errors='replace')}")
        return Ended(
            end=self._end,
            code=code if code >= 0 else 128 - code,
            stdout=outputs[0],
            stderr=outputs[1],
            seconds=time.monotonic() - began,
        )

    async def _run(self, words: list[str], isolation: Isolation) -> tuple[bytes, bytes]:
        process = self._process = await _started(words, isolation)
        try:
            outputs = await self._outputs(process)
        finally:
            await self._stop(process)
        if self._end is End.EXITED and self._group is not None and self._group.kills:
            self._end = End.MEMORY
        return outputs

    async def _outputs(self, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
        assert process.stdout is not None
        assert process.stderr is not None
        watching = [asyncio.create_task(self._watch_memory()), asyncio.create_task(self._watch_disk())]
        reading = [asyncio.create_task(self._read(stream)) for stream in (process.stdout, process.stderr)]
        try:
            async with asyncio.timeout(self._bounds.seconds):
                await self._end_or_bound(process)
        except TimeoutError:
            self._kill(End.TIMEOUT)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            await self._stop(process)
            found = await asyncio.gather(*reading)
        return found[0], found[1]

    async def _end_or_bound(self, process: asyncio.subprocess.Process) -> None:
        """Wait until the command has ended or reached a bound."""
        waiting = [asyncio.ensure_future(each) for each in (process.wait(), self._enough.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _read(self, stream: asyncio.StreamReader) -> bytes:
        """The beginning of a stream; the rest is read and dropped."""
        kept = bytearray()
        total = 0
        while piece := await stream.read(PIECE_BYTES):
            total += len(piece)
            kept += piece[: self._bounds.output_bytes - len(kept)]
            if total > MAX_READ_BYTES:
                self._kill(End.OUTPUT)
        return bytes(kept)

    async def _watch_memory(self) -> None:
        while True:
            began = time.monotonic()
            if await asyncio.to_thread(self._has_too_much):
                self._kill(End.MEMORY)
            await asyncio.sleep(max(MEMORY_CHECK_SECONDS, MEMORY_CHECK_SHARE * (time.monotonic() - began)))

    def _has_too_much(self) -> bool:
        most = self._bounds.memory_bytes
        return (self._group is not None and self._group.kills > 0) or memory_of(self._watched(), most=most) > most

    async def _watch_disk(self) -> None:
        while True:
            size, count = await asyncio.to_thread(disk_use, self._place.folder)
            if size > self._bounds.disk_bytes or count > MAX_ENTRIES:
                self._kill(End.DISK)
            await asyncio.sleep(DISK_CHECK_SECONDS)

    def _watched(self) -> int:
        return self._isolation.watched_process(self.pid, self._place) if self._isolation else 0

    def _kill(self, end: End) -> None:
        if self._end is End.EXITED:
            self._end = end
        self._enough.set()
        self._end_command()

    def _end_command(self) -> None:
        """Let the supervisor end it; else kill the first process of the namespace, so that the outermost ends last."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
            return
        inner = children_of(process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            for each in inner:
                os.kill(each, signal.SIGKILL)
            if not inner:  # it has not begun yet
                os.killpg(process.pid, signal.SIGKILL)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """End what still runs, and wait until it is gone."""
        for end in (self._end_command, lambda: os.killpg(process.pid, signal.SIGKILL)):
            if process.returncode is not None:
                return
            end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await process.wait()


async def _started(words: list[str], isolation: Isolation) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE if isolation.is_supervised else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env=dict(isolation.environment()),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable("The command could not be started.") from error
