"""Examples as people run them, each by its one command, answered by the scripted provider."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance import prepared
from tests.acceptance.product import ROOT, base_environ
from tests.browser.live_product import free_port

START_SECONDS = 120
ADDRESS = "Open the example: "


@dataclass
class Examples:
    """The running ones. `processes`: by name of the example."""

    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    addresses: dict[str, str] = field(default_factory=dict)
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str) -> str:
        """Run one, if it does not run yet; returns the address that it prints."""
        if name not in self.addresses:
            (self.folder / name).mkdir(mode=0o700)
            prepared.copy_sqlite(
                base_environ(self.folder), self.folder / name / "think.sqlite3"
            )  # migrating it takes seconds
            command = [sys.executable, "examples/run.py", name, "--data-dir", str(self.folder / name)]
            with self.log(name).open("w") as output:
                self.processes[name] = subprocess.Popen(
                    command, cwd=ROOT, env=dict(self.environ), stdout=output, stderr=subprocess.STDOUT
                )
            self.addresses[name] = self._wait_for_address(name)
        return self.addresses[name]

    def log(self, name: str) -> Path:
        """What it says."""
        return self.folder / f"{name}.log"

    def kill_workers(self, name: str) -> int:
        """End its workers at once, as a crash does; the product starts others. Returns how many."""
        [product] = [
            pid for pid, words in _children(self.processes[name].pid) if b"thinkproject.run.supervisor" in words
        ]
        workers = [pid for pid, words in _children(product) if b"worker" in words]
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        return len(workers)

    def _wait_for_address(self, name: str) -> str:
        deadline = time.monotonic() + START_SECONDS
        log, process = self.log(name), self.processes[name]
        while time.monotonic() < deadline:
            for line in log.read_text().splitlines():
                if line.startswith(ADDRESS):
                    return line.removeprefix(ADDRESS)
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        raise AssertionError(f"no address came:\n{log.read_text()}")


@contextmanager
def running_examples(folder: Path, **more: str) -> Iterator[Examples]:
    """Run a provider, and the examples that are asked for, until the end; with these variables besides."""
    port = free_port()
    environ = {
        **os.environ,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "OPENAI_API_KEY": "scripted",
        "THINK_MODEL": "openai/scripted",
        "THINK_TITLE_MODEL": "none",
        **more,
    }
    for name in ("DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "SECRET_KEY", "CI"):
        environ.pop(name, None)
    scripted = [sys.executable, "-m", "chat.llm.scripted", "--port", str(port), "--rate", "60"]
    provider = subprocess.Popen(scripted, cwd=ROOT, env=environ)
    examples = Examples(folder, environ)
    try:
        yield examples
    finally:
        stuck = [process.args for process in examples.processes.values() if not _end(process, signal.SIGINT)]
        _end(provider, signal.SIGTERM)
    assert stuck == []  # what one of them started would live on


def _end(process: "subprocess.Popen[bytes]", number: signal.Signals) -> bool:
    process.send_signal(number)
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()
        return False
    return True


def _children(pid: int) -> list[tuple[int, list[bytes]]]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [(int(child), Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")) for child in found]
