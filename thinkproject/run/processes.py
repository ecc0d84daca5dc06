"""Child processes of the supervisor: started in a session of their own, restarted with back-off, ended for certain.

A child dies with the supervisor, however that ends (Linux: PR_SET_PDEATHSIG). Its output goes to a log file that is
rotated by copying, so that the child needs to know nothing of it. Standard library only.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thinkproject.kernel.retry import RetryPolicy
from thinkproject.run.gate import GateReport
from thinkproject.run.memory_kills import memory_kills

PR_SET_PDEATHSIG = 1
FIRST_BACKOFF_SECONDS = 0.2
LOOK_SECONDS = 1.0
KILLED_WORKER = "THINK_FIBER_KILLED_WORKER"
RESTARTS = RetryPolicy(first_seconds=FIRST_BACKOFF_SECONDS, max_seconds=10.0)
STEADY_SECONDS = 30.0  # a child that ran this long starts over with the first back-off
LOG_MAX_BYTES = 10 * 1024 * 1024
LOG_KEEP = 3

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(parent: int) -> Callable[[], None]:
    """A function a child runs before its program starts: the kernel signals it when its parent ends (Linux)."""

    def arrange() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != parent:  # it ended between fork and prctl
                os._exit(1)

    return arrange


@dataclass(kw_only=True)
class Child:
    """One process that is meant to run as long as the supervisor does."""

    name: str
    command: Sequence[str]
    log_path: Path
    say: Callable[[str], None]
    environ: dict[str, str] = field(default_factory=dict)
    pass_fds: Sequence[int] = ()
    stop_seconds: float = 8.0
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0  # monotonic; when the next start is due
    failures: int = 0  # unexpected ends in a row
    stopping_since: float | None = None
    is_wanted: bool = True
    restarts: int = 0
    reports: bool = False  # it takes `--report FD` and says when it serves
    report: GateReport | None = None
    is_serving: bool = False
    holds_leases: bool = False  # a worker: the next one counts it if memory ran out
    count_kills: Callable[[], int | None] = memory_kills
    kills_seen: int | None = None  # when it was last seen alive
    looked_at: float = 0.0

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start the process now."""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        command, pass_fds = list(self.command), list(self.pass_fds)
        if self.reports:
            self.report = GateReport()
            command += ["--report", str(self.report.writer)]
            pass_fds.append(self.report.writer)
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own commands
                command,
                env={**os.environ, **self.environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=pass_fds,
                preexec_fn=die_with_parent(os.getpid()),  # noqa: PLW1509 - the supervisor has one thread
            )
        finally:
            os.close(log)
            if self.report is not None:
                self.report.started()
        self.started_at = time.monotonic()
        self._watch_memory(self.started_at)
        self.stopping_since = None

    def listen(self) -> list[dict[str, Any]]:
        """Return what the process has reported since the last call; `is_serving` follows from it."""
        said = [] if self.report is None else self.report.read()
        self.is_serving = self.is_serving or any("serves" in words for words in said)
        return said

    def tick(self) -> None:
        """Start, restart or kill as it is due. Called often by the supervisor's loop; never blocks."""
        now = time.monotonic()
        if self.process is None:
            if self.is_wanted and now >= self.start_at:
                self.start()
            return
        code = self.process.poll()
        if code is None:
            if self.stopping_since is not None and now - self.stopping_since > self.stop_seconds:
                self.signal(signal.SIGKILL)
            self._watch_memory(now)
            return
        self._note_memory(code)
        self._bury()
        self.process = None
        was_asked, self.stopping_since = self.stopping_since is not None, None
        if not self.is_wanted:
            return
        self.restarts += 1
        if was_asked:
            self.start()
            return
        if now - self.started_at > STEADY_SECONDS:
            self.failures = 0
        self.start_at = now + self.backoff_seconds
        self.say(
            f"{self.name} ended ({describe_exit(code)}); again in {self.backoff_seconds:.1f} s.{self.last_words()}"
        )
        self.failures += 1

    def _watch_memory(self, now: float) -> None:
        if self.holds_leases and now - self.looked_at >= LOOK_SECONDS:
            self.looked_at, self.kills_seen = now, self.count_kills()

    def _note_memory(self, code: int) -> None:
        """Name a worker that was killed because memory ran out to the one that is started in its place."""
        self.environ.pop(KILLED_WORKER, None)
        if not self.holds_leases or code != -signal.SIGKILL or self.process is None or self.stopping_since is not None:
            return
        kills = self.count_kills()
        if self.kills_seen is not None and kills is not None and kills > self.kills_seen:
            self.environ[KILLED_WORKER] = f"{socket.gethostname()[:60]}:{self.process.pid}"
            self.say(f"{self.name} was killed because memory ran out.")

    @property
    def backoff_seconds(self) -> float:
        """The pause before the next start."""
        return RESTARTS.delay_seconds(self.failures + 1, jitter=0.0)

    def restart(self) -> None:
        """Stop the process; `tick` restarts it. A process in back-off starts immediately."""
        self.failures = 0
        if self.process is None:
            self.start_at = 0.0
        else:
            self.stop(for_good=False)

    def stop(self, *, for_good: bool = True) -> None:
        """Ask the process to end; after `stop_seconds` `tick` insists."""
        if for_good:
            self.is_wanted = False
        if self.process is not None and self.stopping_since is None:
            self.stopping_since = time.monotonic()
            self.signal(signal.SIGTERM, group=False)

    def signal(self, number: signal.Signals, *, group: bool = True) -> None:
        """Send a signal to the process and, by default, to all of its group."""
        if self.process is None:
            return
        try:
            if group:
                os.killpg(self.process.pid, number)
            else:
                os.kill(self.process.pid, number)
        except ProcessLookupError:
            pass

    def rotate_log(self) -> None:
        """Keep the log within bounds: copy it away and empty it (the child appends)."""
        try:
            if self.log_path.stat().st_size <= LOG_MAX_BYTES:
                return
        except FileNotFoundError:
            return
        for number in range(LOG_KEEP - 1, 0, -1):
            older = self.log_path.with_name(f"{self.log_path.name}.{number}")
            if older.exists():
                older.replace(self.log_path.with_name(f"{self.log_path.name}.{number + 1}"))
        shutil.copyfile(self.log_path, self.log_path.with_name(f"{self.log_path.name}.1"))
        os.truncate(self.log_path, 0)

    def _bury(self) -> None:
        self.signal(signal.SIGKILL)  # what it started and left behind
        self.is_serving = False
        if self.report is not None:
            self.report.close()
            self.report = None

    def last_words(self) -> str:
        """Return the last line of the log, as a sentence to append."""
        try:
            with self.log_path.open("rb") as file:
                file.seek(max(0, self.log_path.stat().st_size - 4096))
                lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        except OSError:
            return ""
        return f" It said: {lines[-1][:200]}" if lines else ""


class RestartInTurn:
    """Restarts children one after another, each when the one before it serves again, so that the others serve."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._waiting = list(children)
        self._current: Child | None = None

    def tick(self) -> None:
        """Restart the next one when it is its turn. Called often; never blocks."""
        current = self._current
        if current is not None and (current.stopping_since is not None or not current.is_serving):
            return
        self._current = self._waiting.pop(0) if self._waiting else None
        if self._current is not None:
            self._current.is_serving = False
            self._current.restart()


def describe_exit(code: int) -> str:
    """Describe a process's exit."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def stop_all(children: Sequence[Child], *, hurry: Callable[[], bool]) -> None:
    """Stop the children and wait for them; `hurry` reports whether to kill them now."""
    for child in children:
        child.stop()
    while any(child.process is not None for child in children):
        for child in children:
            if hurry():
                child.signal(signal.SIGKILL)
            child.tick()
        time.sleep(0.02)
