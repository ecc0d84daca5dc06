"""Runs one command apart, and sees to it that nothing of it goes on.

The kernel bounds each process, with a control group the memory of all together, and the files where they have a file
system of their own. All of that is looked at again and again. Whatever exceeds a bound ends the command.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from sessions_app.core.messages.truncation import END_SHARE, NOTICE
from tools_app.errors import SandboxUnavailable
from tools_app.processes.groups import Group, make_group
from tools_app.processes.isolation import MAX_ENTRIES, SHARED_BYTES, CommandBounds, Isolation, MountPlace
from tools_app.processes.memory import children_of, memory_of
from tools_app.processes.rooms import FOLDER, ROOM, Room

MEMORY_CHECK_SECONDS: Final = 0.05
CHECK_SHARE: Final = 4.0
"""How much longer than a look the pause after it is: one at very many mappings or files takes long."""
DISK_CHECK_SECONDS: Final = 0.1
BEGIN_SECONDS: Final = 20.0
END_SECONDS: Final = 20.0
MAX_REASON_BYTES: Final = 300
MAX_READ_BYTES: Final = 64_000_000
PIECE_BYTES: Final = 64 * 1024
NOTICE_BYTES: Final = 64


class ProcessEnd(StrEnum):
    """The ways in which a command ends."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DISK = "disk"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedCommand:
    """The end of a command, and its outputs: of long ones the beginning and the end.

    `code`: as of a shell, 128 and more for signals.
    """

    end: ProcessEnd
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float


class RunningCommand:
    """One command. `begun` and `finish` are called once, in this order."""

    def __init__(self, place: MountPlace, bounds: CommandBounds) -> None:
        self._place = place
        self._bounds = bounds
        self._room = Room(place.folder)
        self._process: asyncio.subprocess.Process | None = None
        self._isolation: Isolation | None = None
        self._group: Group | None = None
        self._end = ProcessEnd.EXITED
        self._enough = asyncio.Event()
        self._words: list[str] = []

    @property
    def pid(self) -> int:
        """The outermost process; 0 before the start."""
        return self._process.pid if self._process else 0

    @property
    def has_bounded_files(self) -> bool:
        """Whether the kernel bounds the files, once it has begun."""
        return self._room.is_bounded

    @contextlib.asynccontextmanager
    async def begun(self, isolation: Isolation, command: str) -> AsyncIterator[Path]:
        """Prepare a command, which waits for `finish`. Gives the directory of its files, empty and there until the end.

        Leaving ends it. Errors: `SandboxUnavailable` where it cannot be started.
        """
        self._isolation = isolation
        self._words = isolation.command_line(command, self._place, self._bounds)
        if not isolation.is_supervised:  # an engine has groups of its own
            name = self._place.root.parent.name
            memory = self._bounds.memory_bytes + SHARED_BYTES + self._bounds.disk_bytes
            self._group = await asyncio.to_thread(make_group, name, memory)
        if self._group is not None:
            self._words = self._group.entering(self._words)
        try:
            if isolation.has_room:
                self._process = await _started(self._words, isolation)
                await self._enter_room(self._process)
            yield self._room.path
        finally:
            if self._process is not None:
                await self._stop(self._process)
            self._room.close()
            if self._group is not None:
                await asyncio.to_thread(self._group.remove)

    async def finish(self) -> EndedCommand:
        """Run the command to its end. Errors: `SandboxUnavailable` where it cannot be started."""
        isolation = self._isolation
        assert isolation is not None
        began = time.monotonic()
        if self._process is None:
            self._process = await _started(self._words, isolation)
        elif self._process.stdin is not None:
            self._process.stdin.write(f"{ROOM if self._room.is_bounded else FOLDER}\n".encode())
            self._process.stdin.close()
        outputs = await self._outputs(self._process)
        if self._end is ProcessEnd.EXITED and self._group is not None and self._group.kills:
            self._end = ProcessEnd.MEMORY
        code = self._process.returncode if self._process.returncode is not None else -signal.SIGKILL
        if self._end is ProcessEnd.EXITED and isolation.is_no_start(self._place, code):
            raise no_start(outputs[1])
        return EndedCommand(
            end=self._end,
            code=code if code >= 0 else 128 - code,
            stdout=outputs[0],
            stderr=outputs[1],
            seconds=time.monotonic() - began,
        )

    async def _enter_room(self, process: asyncio.subprocess.Process) -> None:
        """Wait until the first process is where the command will be, and take the file system that it has made."""
        assert process.stdout is not None
        assert process.stderr is not None
        line = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEGIN_SECONDS):
                line = await process.stdout.readline()
        if line not in {b"room\n", b"folder\n"}:
            await self._stop(process)
            raise no_start(line + await process.stderr.read(MAX_REASON_BYTES))
        if line == b"room\n":
            await asyncio.to_thread(self._room.enter, process.pid)

    async def _outputs(self, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
        assert process.stdout is not None
        assert process.stderr is not None
        watching = [asyncio.create_task(self._watch_memory()), asyncio.create_task(self._watch_disk())]
        reading = [asyncio.create_task(self._read(stream)) for stream in (process.stdout, process.stderr)]
        try:
            async with asyncio.timeout(self._bounds.seconds):
                await self._end_or_bound(process)
        except TimeoutError:
            self._kill(ProcessEnd.TIMEOUT)
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
        """A stream; of a long one the beginning and the end, with a notice for what is read and dropped."""
        most = self._bounds.output_bytes
        end_bytes = max((most - NOTICE_BYTES) // END_SHARE, 1)
        head, tail, total = bytearray(), bytearray(), 0
        while piece := await stream.read(PIECE_BYTES):
            total += len(piece)
            room = max(most - len(head), 0)
            head += piece[:room]
            tail = (tail + piece)[-end_bytes:]
            if total > MAX_READ_BYTES:
                self._kill(ProcessEnd.OUTPUT)
        if total <= most:
            return bytes(head)
        kept = _without_halves(head[: most - NOTICE_BYTES - end_bytes], tail)
        return NOTICE.format(count=total - sum(map(len, kept))).encode().join(kept)

    async def _watch_memory(self) -> None:
        while True:
            began = time.monotonic()
            if await asyncio.to_thread(self._has_too_much):
                self._kill(ProcessEnd.MEMORY)
            await asyncio.sleep(max(MEMORY_CHECK_SECONDS, CHECK_SHARE * (time.monotonic() - began)))

    def _has_too_much(self) -> bool:
        most = self._bounds.memory_bytes
        return (self._group is not None and self._group.kills > 0) or memory_of(self._watched(), most=most) > most

    async def _watch_disk(self) -> None:
        while True:
            began = time.monotonic()
            size, count = await asyncio.to_thread(self._room.use, self._watched)
            if size > self._bounds.disk_bytes or count > MAX_ENTRIES:
                self._kill(ProcessEnd.DISK)
            await asyncio.sleep(max(DISK_CHECK_SECONDS, CHECK_SHARE * (time.monotonic() - began)))

    def _watched(self) -> int:
        return self._isolation.watched_process(self.pid, self._place) if self._isolation else 0

    def _kill(self, end: ProcessEnd) -> None:
        if self._end is ProcessEnd.EXITED:
            self._end = end
        self._enough.set()
        self._end_command()

    def _end_command(self) -> None:
        """Let the supervisor end it; else kill the first process of the namespace, so that the outermost ends last."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if self._isolation is not None and self._isolation.is_supervised:
            assert process.stdin is not None
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


def _without_halves(head: bytearray, tail: bytearray) -> tuple[bytearray, bytearray]:
    """The same without the pieces of a character that was cut at the end of the one or the beginning of the other."""
    while head and head[-1] & 0xC0 == 0x80:
        head.pop()
    if head and head[-1] & 0x80:
        head.pop()
    return head, tail.lstrip(bytes(range(0x80, 0xC0)))


def no_start(outputs: bytes) -> SandboxUnavailable:
    """Make the error of a command that was not started. The reason may name places of this machine: it is its cause."""
    error = SandboxUnavailable("The command could not be started.")
    error.__cause__ = OSError(outputs[:MAX_REASON_BYTES].decode(errors="replace"))
    return error


async def _started(words: list[str], isolation: Isolation) -> asyncio.subprocess.Process:
    is_answered = isolation.is_supervised or isolation.has_room
    try:
        return await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE if is_answered else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env=dict(isolation.environment()),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable("The command could not be started.") from error
