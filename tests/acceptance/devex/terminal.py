"""A program on a pseudo-terminal of its own, as a person has it: keys go in, the screen comes out."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x01|\x02")


class Terminal:
    """Start a command on a terminal. Ended by `close`, whatever it does."""

    def __init__(self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.raw = ""
        self._popen = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**environ, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call: Ctrl-C signals
        )
        os.close(theirs)

    @property
    def screen(self) -> str:
        """What was printed so far, without styles."""
        return _STYLE.sub("", self.raw).replace("\r\n", "\n")

    def keys(self, text: str) -> None:
        """Type."""
        os.write(self._ours, text.encode())

    def wait_for(self, pattern: str, *, seconds: float = 30.0) -> str:
        """Wait until the screen shows it; returns the screen."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.screen, re.DOTALL):
            assert time.monotonic() < deadline, f"no {pattern!r} within {seconds} s:\n{self.screen}"
            assert self._read(0.2), f"it ended without {pattern!r}:\n{self.screen}"
        return self.screen

    def end(self, *, seconds: float = 20.0) -> int:
        """Wait for its end; returns the exit code."""
        deadline = time.monotonic() + seconds
        while self._read(0.2):
            assert time.monotonic() < deadline, f"it did not end within {seconds} s:\n{self.screen}"
        return self._popen.wait(5)

    def close(self) -> None:
        """End it."""
        if self._popen.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        os.close(self._ours)

    def _read(self, seconds: float) -> bool:
        """Read what there is; False when the other side is gone."""
        if not select.select([self._ours], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._ours, 65_536)
        except OSError:  # Linux raises it when the last process has left the terminal
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)
