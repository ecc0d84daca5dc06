"""Messages between supervisor and children at start. Standard library only.

The **gate**: a child loads its code, which takes most of a start, and then waits at the gate until the database is
prepared. The open gate is one byte on a socket pair that everybody looks at and leaves there, so a child that is
started again later passes as well. If the supervisor ends first, the gate never opens.

A **report**: a pipe on which a child writes lines of JSON, such as that it is about to serve.
"""

import contextlib
import json
import os
import socket
from typing import Any


class Gate:
    """The supervisor's side."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._theirs.set_inheritable(True)

    @property
    def fd(self) -> int:
        """The file descriptor that children inherit."""
        return self._theirs.fileno()

    def open(self) -> None:
        """Let everybody pass, now and later."""
        self._ours.sendall(b"1")


def wait_at(fd: int) -> bool:
    """Wait until the gate is open. Returns `False` when the supervisor has ended instead."""
    with socket.socket(fileno=os.dup(fd)) as gate:
        return bool(gate.recv(1, socket.MSG_PEEK))


class GateReport:
    """The reader of a child's reports. `is_over` when the child has closed its side or ended."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_inheritable(self.writer, True)
        self._rest = b""
        self.is_over = False

    def started(self) -> None:
        """The child has its side, so close ours: its end is seen."""
        os.close(self.writer)
        self.writer = -1

    def read(self) -> list[dict[str, Any]]:
        """Return what was reported since the last call. Never waits."""
        while not self.is_over:
            try:
                piece = os.read(self._reader, 65_536)
            except BlockingIOError:
                break
            self.is_over = not piece
            self._rest += piece
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines if line]

    def close(self) -> None:
        """Forget this child."""
        for fd in (self._reader, self.writer):
            if fd >= 0:
                os.close(fd)
        self._reader = self.writer = -1
        self.is_over = True


def report(fd: int, value: dict[str, Any]) -> None:
    """Tell the supervisor, if it still listens."""
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, json.dumps(value).encode() + b"\n")
