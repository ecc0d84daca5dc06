"""A copy of the committed tree with an empty home: what a newcomer has after `git clone`."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from tests.house.repository import ROOT, committed

READY = re.compile(r"^Open (http://\S+)", re.MULTILINE)


def free_port() -> int:
    """Return a port that no one listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def base_python() -> str:
    """The interpreter that this test environment was made from."""
    return str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())


def make_copy(folder: Path) -> Path:
    """Copy what is committed (and new files not ignored) into the folder."""
    for path in committed():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target)
    return folder


def pids_of(data_dir: Path) -> dict[int, str]:
    """Every live process whose environment names this data directory, with its command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / "environ").read_bytes().split(b"\0")
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            is_ours = f"THINK_DATA_DIR={data_dir}".encode() in environ  # Valkey's title overwrites its environment
            if command and (is_ours or f"unixsocket:{data_dir}/" in command):
                found[int(entry.name)] = command
    return found


@dataclass
class Run:
    """One `make run`, as from a terminal: a process group of its own that Ctrl-C reaches as a whole."""

    tree: Path
    data_dir: Path
    home: Path
    port: int = field(default_factory=free_port)
    extra: dict[str, str] = field(default_factory=dict)
    popen: subprocess.Popen[str] | None = None

    @property
    def environ(self) -> dict[str, str]:
        """A newcomer's environment: empty, so that nothing set by hand on this machine helps."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "PORT": str(self.port),
            "THINK_DATA_DIR": str(self.data_dir),
            "THINK_SKIP_LOCAL_MODEL": "1",
            **self.extra,
        }

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.popen is not None and self.popen.poll() is None

    @property
    def output_path(self) -> Path:
        """What it printed."""
        return self.tree.with_name(f"{id(self)}.out")

    @property
    def output(self) -> str:
        """What it printed so far."""
        return self.output_path.read_text(encoding="utf-8", errors="replace")

    def start(self) -> "Run":
        """Say `make run`, for the first time or where it has ended."""
        if self.popen is not None:
            self.popen.wait(10)
        with self.output_path.open("w", encoding="utf-8") as out:
            self.popen = subprocess.Popen(
                ["make", f"PYTHON={base_python()}", "run"],
                cwd=self.tree,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )
        return self

    def wait_until_ready(self, *, seconds: float = 90) -> str:
        """Wait for the line with the address and return the address."""
        assert self.popen is not None
        deadline = time.monotonic() + seconds
        while not (found := READY.search(self.output)):
            assert self.popen.poll() is None, f"make run ended:\n{self.output}"
            assert time.monotonic() < deadline, f"not ready after {seconds} s:\n{self.output}"
            time.sleep(0.05)
        return found.group(1)

    def wait(self, *, seconds: float = 60) -> int:
        """Wait until it ends by itself."""
        assert self.popen is not None
        return self.popen.wait(seconds)

    def ctrl_c(self, *, seconds: float = 20) -> float:
        """Press Ctrl-C and return how long it took to end."""
        assert self.popen is not None
        started = time.monotonic()
        os.killpg(self.popen.pid, signal.SIGINT)
        self.popen.wait(seconds)
        return time.monotonic() - started

    def get(self, path: str) -> tuple[int, str]:
        """Fetch a page and return its status and text."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def wait_until_healthy(self, *, seconds: float = 60) -> None:
        """Wait until all its parts are there; fails with what it says instead, and what it printed."""
        deadline = time.monotonic() + seconds
        while (sent := self._health())[0] != 200:
            assert time.monotonic() < deadline, f"not healthy after {seconds} s: {sent}\n{self.output}\n{self._logs()}"
            time.sleep(0.1)  # between two looks, which keep the product from starting

    def _logs(self) -> str:
        """The last of what each of its processes said."""
        ends = {path.name: path.read_bytes()[-3000:] for path in sorted((self.data_dir / "logs").iterdir())}
        return "\n".join(f"--- {name}\n{end.decode(errors='replace')}" for name, end in ends.items())

    def _health(self) -> tuple[int, str]:
        try:
            return self.get("/health/ready")
        except OSError as error:
            return 0, repr(error)

    def child(self, word: str) -> int:
        """Return the process id of the child whose command line holds the word."""
        found = self.children(word)
        assert len(found) == 1, f"{word}: {found}"
        return found[0]

    def children(self, word: str) -> list[int]:
        """Return the process ids of the children whose command line holds the word."""
        return sorted(pid for pid, command in pids_of(self.data_dir).items() if word in command)

    def end(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self.popen is not None and self.is_running:
            try:
                self.ctrl_c()
            except subprocess.TimeoutExpired:
                os.killpg(self.popen.pid, signal.SIGKILL)
        for pid in pids_of(self.data_dir):
            os.kill(pid, signal.SIGKILL)
