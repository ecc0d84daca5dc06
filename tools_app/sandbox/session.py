"""One run in one guest: the script goes in, its calls are answered, and whatever exceeds a limit ends it.

Reading stops while `concurrent_calls` calls run, so a flood of calls waits in the guest. It never stops for the guest
to read: its unread results are bounded instead, or two full pipes would wait for each other.
"""

import asyncio
import base64
import logging
import signal
import time
from typing import Any, Final

from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, byte_size, dump
from tools_app.sandbox.contract import CallHandler, ConsoleLine, GuestError, Limits, RunResult, SandboxOutcome, Script
from tools_app.sandbox.messages import Call, Done, Log, Pong, Violation, read_message
from tools_app.sandbox.process import Guest

logger = logging.getLogger(__name__)

MEMORY_CHECK_SECONDS: Final = 0.02
IDLE_SECONDS: Final = 5.0
UNREAD_BYTES: Final = 32 * 1024 * 1024
LINES_AT_ONCE: Final = 64

WORDS: Final = {
    SandboxOutcome.TIMEOUT: GuestError(name="TimeoutError", message="Execution timed out"),
    SandboxOutcome.MEMORY: GuestError(name="MemoryError", message="The code used more memory than it may"),
    SandboxOutcome.OUTPUT: GuestError(name="OutputError", message="The code produced more output than it may"),
    SandboxOutcome.CRASHED: GuestError(
        name="SandboxError", message="The process of the code ended before the code did"
    ),
}
TOO_MANY_CALLS: Final = "The code has made as many calls as it may: {limit}"
TOO_LARGE: Final = "The {what} of this call {is_} larger than {limit} bytes"

BY_SIGNAL: Final = {
    signal.SIGXCPU: SandboxOutcome.TIMEOUT,
    signal.SIGTRAP: SandboxOutcome.MEMORY,  # how V8 ends when its heap is full
    signal.SIGABRT: SandboxOutcome.MEMORY,  # how everything else in Deno does
    signal.SIGKILL: SandboxOutcome.MEMORY,  # not by us: the kernel's choice when memory is short
}


class Ended(Exception):
    """The run is over without the script's own end."""

    def __init__(self, outcome: SandboxOutcome) -> None:
        self.outcome = outcome
        super().__init__(outcome)


class SandboxSession:
    """One run. `run` is called once; the guest is the caller's to end."""

    def __init__(self, guest: Guest, calls: CallHandler, limits: Limits) -> None:
        self._guest = guest
        self._calls = calls
        self._limits = limits
        self._console: list[ConsoleLine] = []
        self._output_bytes = 0
        self._made = 0
        self._numbers: set[int] = set()
        self._slots = asyncio.Semaphore(limits.concurrent_calls)
        self._running: set[asyncio.Task[None]] = set()
        self._is_idle = asyncio.Event()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, script: Script) -> RunResult:
        """Run the script. Errors: only what a call raised that is no `Exception`; cancelling cancels its calls."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._limits.seconds):
                done = await self._until_done(script)
            outcome = SandboxOutcome.OK if done.error is None else SandboxOutcome.ERROR
        except TimeoutError:
            done, outcome = Done(error=WORDS[SandboxOutcome.TIMEOUT]), SandboxOutcome.TIMEOUT
        except Ended as ended:
            done, outcome = Done(error=WORDS[ended.outcome]), ended.outcome
        finally:
            await self._stop_calls()
        return RunResult(
            outcome=outcome,
            value=done.value,
            error=done.error,
            console=tuple(self._console),
            duration_ms=round((time.monotonic() - started) * 1000),
        )

    async def _until_done(self, script: Script) -> Done:
        """Until the script has ended and so have its calls, or until one of them ends the run."""
        self._send(_run_message(script))
        reading = asyncio.create_task(self._read())
        watching = asyncio.create_task(self._watch_memory())
        try:
            ends: set[asyncio.Future[Any]] = {reading, watching, self._failure}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()
            if self._failure.done():
                await self._other_calls(reading, watching)
                self._failure.result()
            done = await reading
            await self._calls_ended(watching)
            if self._failure.done():
                self._failure.result()
            return done
        finally:
            for task in (reading, watching):
                task.cancel()
            await asyncio.gather(reading, watching, return_exceptions=True)

    async def _other_calls(self, reading: "asyncio.Task[Done]", watching: "asyncio.Task[None]") -> None:
        """Let what the script does beside the call that ends the run go on until it waits for that call only."""
        while not reading.done():
            made = self._made
            await self._calls_ended(watching)
            self._is_idle.clear()
            self._send({"t": "ping"})
            answered = asyncio.create_task(self._is_idle.wait())
            ends: set[asyncio.Future[Any]] = {answered, reading, watching}
            try:
                await asyncio.wait(ends, timeout=IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                is_idle = answered.done()
            finally:
                answered.cancel()
            if not is_idle or made == self._made:
                break
        await self._calls_ended(watching)

    async def _calls_ended(self, watching: "asyncio.Task[None]") -> None:
        """Wait for the calls that still run: each of them may have an effect, and none is cut short without need."""
        while self._running:
            await asyncio.wait({*self._running, watching}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()

    async def _read(self) -> Done:
        lines = 0
        while True:
            try:
                line = await self._guest.stdout.readline()
            except ValueError:  # longer than any line may be
                raise Ended(SandboxOutcome.OUTPUT) from None
            if not line.endswith(b"\n"):
                raise Ended(_how_it_ended(await self._guest.wait()))
            try:
                message = read_message(line)
                match message:
                    case Log():
                        self._note(message, len(line))
                    case Call():
                        await self._begin(message, len(line))
                    case Done():
                        return self._checked(message, len(line))
                    case Pong():
                        self._is_idle.set()
                    case _:
                        raise Violation("a second greeting")
            except Violation:
                logger.info("sandbox: the code broke the protocol", extra={"action": "sandbox_violation"})
                raise Ended(SandboxOutcome.CRASHED) from None
            lines += 1
            if lines % LINES_AT_ONCE == 0:
                await asyncio.sleep(0)  # a flood leaves the loop to others

    def _note(self, log: Log, size: int) -> None:
        self._output_bytes += size
        if self._output_bytes > self._limits.output_bytes:
            raise Ended(SandboxOutcome.OUTPUT)
        self._console.append(log.line)

    def _checked(self, done: Done, size: int) -> Done:
        if done.error is None and self._output_bytes + size > self._limits.output_bytes:
            raise Ended(SandboxOutcome.OUTPUT)
        return done

    async def _begin(self, call: Call, size: int) -> None:
        if call.number in self._numbers:
            raise Violation("a number of a call used twice")
        self._made += 1
        if self._made > 10 * self._limits.calls + 100:  # it goes on regardless of the errors
            raise Ended(SandboxOutcome.OUTPUT)
        if self._made > self._limits.calls:
            self._refuse(call, TOO_MANY_CALLS.format(limit=self._limits.calls))
            return
        if size > self._limits.call_bytes:
            self._refuse(call, TOO_LARGE.format(what="arguments", is_="are", limit=self._limits.call_bytes))
            return
        self._numbers.add(call.number)
        await self._slots.acquire()
        task = asyncio.create_task(self._answer(call))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, call: Call) -> None:
        try:
            answer = await self._calls(call.name, call.args)
            if byte_size(answer.value) > self._limits.call_bytes:
                self._refuse(call, TOO_LARGE.format(what="result", is_="is", limit=self._limits.call_bytes))
            else:
                self._send({"t": "ret", "id": call.number, "now": answer.now_ms, "ok": True, "value": answer.value})
        except ThinkError as error:
            self._refuse(call, error.message, name=type(error).__name__)
        except Exception as error:  # whatever a call raises is an exception in the code, and no more
            logger.warning(
                "a call of code failed", exc_info=True, extra={"action": "code_call", "call_name": call.name}
            )
            self._refuse(call, str(error) or type(error).__name__)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - what ends the run is raised where the run is awaited
            if not self._failure.done():
                self._failure.set_exception(error)
        finally:
            self._slots.release()

    def _refuse(self, call: Call, text: str, *, name: str = "Error") -> None:
        error = {"name": name, "message": text}
        self._send({"t": "ret", "id": call.number, "now": 0, "ok": False, "error": error})

    def _send(self, message: JSONObject) -> None:
        stdin = self._guest.stdin
        if stdin.is_closing():
            return  # the guest has ended; the reader finds out how
        stdin.write(dump(message).encode() + b"\n")
        if stdin.transport.get_write_buffer_size() > UNREAD_BYTES:
            self._guest.kill()

    async def _watch_memory(self) -> None:
        """Look at the guest's memory again and again: V8's own limit leaves buffers out."""
        while True:
            if self._guest.memory_bytes() > self._limits.memory_bytes:
                self._guest.kill()
                raise Ended(SandboxOutcome.MEMORY)
            await asyncio.sleep(MEMORY_CHECK_SECONDS)

    async def _stop_calls(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._failure.done():
            self._failure.exception()  # it was raised already, or came too late to count


def _run_message(script: Script) -> JSONObject:
    return {
        "t": "run",
        "source": script.source,
        "language": script.language,
        "namespaces": list(script.namespaces),
        "modules": dict(script.modules),
        "files": {path: base64.b64encode(content).decode() for path, content in script.files.items()},
        "seed": script.seed,
        "now": script.now_ms,
    }


def _how_it_ended(code: int) -> SandboxOutcome:
    return BY_SIGNAL.get(signal.Signals(-code), SandboxOutcome.CRASHED) if code < 0 else SandboxOutcome.CRASHED
