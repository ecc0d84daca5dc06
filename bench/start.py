"""`make run` on an installed checkout: how long until it says that it is ready, until a page, until turns are taken."""

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.rig import Options
from bench.rows import Row, row
from tests.acceptance.product import ROOT, base_environ

ROUNDS = 2
LIMIT_SECONDS = 200.0
GOAL_SECONDS = 4.0
READY = re.compile(r"^Ready in ", re.MULTILINE)
WORKER_READY = re.compile(r"@\S+ ready\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Seconds from the command on."""

    ready: float
    page: float
    worker: float


@contextlib.contextmanager
def make_run(data_dir: Path, port: int, output: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Say `make run`, as from a terminal; Ctrl-C at the end of the block."""
    kept = {name: value for name, value in base_environ(data_dir).items() if not name.startswith("PYTHON")}
    environ = {**kept, "PORT": str(port), "THINK_SKIP_LOCAL_MODEL": "1"}
    for name in ("DJANGO_SETTINGS_MODULE", "SECRET_KEY", "THINK_APPS", "VIRTUAL_ENV"):
        environ.pop(name, None)
    python = getattr(sys, "_base_executable", sys.executable)
    with output.open("wb") as out:
        process = subprocess.Popen(
            ["make", f"PYTHON={python}", "run"],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(port: int) -> bool:
    """Whether a page is served; waits for the answer of a server that listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def one_start(folder: Path) -> Start:
    """Start and stop once; what is in the folder stays for the next."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    output, logs = folder / "output", folder / "data" / "logs"
    skipped = {path: path.stat().st_size for path in logs.glob("worker*.log")}
    began = time.monotonic()
    seen: dict[str, float] = {}
    with make_run(folder / "data", port, output) as process:
        while len(seen) < 3:
            passed = time.monotonic() - began
            said = output.read_text(encoding="utf-8", errors="replace")
            if process.poll() is not None or passed > LIMIT_SECONDS:
                raise RuntimeError(f"not ready after {passed:.0f} s: {sorted(seen)}\n{said}")
            if "page" not in seen and answers(port):
                seen["page"] = time.monotonic() - began
            if "ready" not in seen and READY.search(said):
                seen["ready"] = passed
            if "worker" not in seen and WORKER_READY.search(_news(logs, skipped)):
                seen["worker"] = passed
            time.sleep(0.02)
    return Start(**seen)


def _news(logs: Path, skipped: dict[Path, int]) -> str:
    """What workers wrote since; there may be several, each with a log of its own."""
    texts = (path.read_bytes()[skipped.get(path, 0) :] for path in sorted(logs.glob("worker*.log")))
    return b"".join(texts).decode(errors="replace")


def run(options: Options) -> list[Row]:
    """Start it once to have everything made, then measure."""
    folder = Path(tempfile.mkdtemp(prefix="thkb"))
    (folder / "data").mkdir(mode=0o700)
    try:
        first = one_start(folder)
        starts = [one_start(folder) for _ in range(1 if options.is_smoke else ROUNDS)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [
        row("make run: to “Ready”", "s", [start.ready for start in starts], goal=GOAL_SECONDS),
        row("make run: to the first page", "s", [start.page for start in starts]),
        row("make run: to a worker that takes turns", "s", [start.worker for start in starts]),
        Row(what="make run with a new data directory: to “Ready”", unit="s", median=first.ready),
    ]
