"""Django's SQLite, with a queue for its one writer.

SQLite lets a writer that finds the database locked sleep for longer and longer: in a burst, writers wait for each
other's sleep instead of each other's work. Here a transaction takes its turn before it begins. Threads of a process
wait for a lock, and the first of each process looks every half millisecond for the lock of a file beside the database.
What does not go through this queue (a statement without a transaction, another program) is waited for as before.
"""

import contextlib
import os
import sys
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.db import OperationalError
from django.db.backends.sqlite3 import base

if sys.platform != "win32":
    import fcntl

LOOK_SECONDS: Final = 0.0005
DEFAULT_SECONDS: Final = 5.0
READER: Final = "DEFERRED"
"""The mode of a transaction that only reads."""


class WriteQueue:
    """The turns of one database's writers. One for each file and process."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._handle: int | None = None
        self._pid = os.getpid()

    def take(self, seconds: float) -> None:
        """Wait for the turn to write. Errors: `OperationalError` after so long."""
        if self._pid != os.getpid():  # a fork: the lock's holder is not here, and the file is the parent's
            self.__init__(self._path)  # type: ignore[misc]
        until = time.monotonic() + seconds
        if not self._turn.acquire(timeout=seconds):
            raise OperationalError("database is locked")
        try:
            while not self._is_ours():
                if time.monotonic() > until:
                    raise OperationalError("database is locked")
                time.sleep(LOOK_SECONDS)
        except BaseException:
            self._turn.release()
            raise

    def give_back(self) -> None:
        """Let the next one write."""
        if sys.platform != "win32" and self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self._turn.release()

    def _is_ours(self) -> bool:
        if sys.platform == "win32":  # threads take turns, processes wait for SQLite
            return True
        if self._handle is None:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_queues: dict[str, WriteQueue] = {}
_guard = threading.Lock()


def queue_of(name: str) -> WriteQueue:
    """The queue of a database file. Nothing is created before its first writer."""
    path = _path_of(name)
    with _guard:
        if path not in _queues:
            _queues[path] = WriteQueue(path)
        return _queues[path]


@lru_cache(maxsize=64)  # resolving asks the file system about each folder above
def _path_of(name: str) -> str:
    return f"{Path(name).resolve()}-writer"


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose transactions queue."""

    _queue: WriteQueue | None = None  # while this connection has the turn

    def _start_transaction_under_autocommit(self) -> None:
        name = str(self.settings_dict["NAME"])
        mode = getattr(self, "transaction_mode", None)
        is_reader = mode == READER  # of `consistent_read`: waits for no writer and holds none up
        if not is_reader and ":memory:" not in name and "mode=memory" not in name:
            queue = queue_of(name)
            queue.take(float(self.settings_dict["OPTIONS"].get("timeout", DEFAULT_SECONDS)))
            self._queue = queue
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # not in the stubs
        except BaseException:
            self._leave()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # as above
        self._leave()  # not before: what a failed commit leaves open is rolled back

    def _rollback(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self._leave)
            super()._rollback()  # type: ignore[misc]  # as above

    def _close(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self._leave)
            super()._close()  # type: ignore[misc]  # as above

    def _leave(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.give_back()
