"""The product as processes: what `make run` starts, in a directory of the run, answered by the scripted provider."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance import prepared
from tests.acceptance.hand import Hand
from tests.acceptance.product import ROOT, base_environ, session_cookie
from thinkproject.run.processes import die_with_parent

PEOPLE = 50
START_SECONDS = 90


def free_port() -> int:
    """A port of this machine that is free at the moment."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@dataclass
class LiveProduct:
    """A running product. `people`: rows of [user id, cookie name, session key] that no test has used yet."""

    port: int
    hand: Hand
    folder: Path
    people: list[list[Any]] = field(default_factory=list)
    user_id: int = 0
    supervisor_pid: int = 0

    def sign_in(self) -> list[dict[str, Any]]:
        """Cookies of a fresh user, who is `user_id` from now on."""
        if not self.people:
            self.invite()
        self.user_id, name, key = self.people.pop()
        return [{"name": name, "value": key, "domain": "127.0.0.1", "path": "/", "httpOnly": True, "sameSite": "Lax"}]

    def invite(self) -> None:
        """Make further people, many at once: each test takes one."""
        name = session_cookie(self.folder)
        self.people += [[user, name, key] for user, key in self.hand.call("tests.acceptance.people:make_many", PEOPLE)]

    def seed(self, title: str, messages: list[dict[str, Any]], *, agent: str = "assistant") -> str:
        """Store a conversation of the present user's; returns its id. Faster than chatting 400 times."""
        job = {
            "user": self.user_id,
            "name": f"seeded-{time.time_ns()}",
            "title": title,
            "messages": messages,
            "agent": agent,
        }
        return str(self.call("seed", job))

    def wait_until_idle(self) -> None:
        """Wait until no turn of the present user's runs."""
        deadline = time.monotonic() + 60
        while self.call("running", self.user_id):
            assert time.monotonic() < deadline, "the turn does not end"
            time.sleep(0.2)  # between two looks, which keep the product from its work

    def kill_workers(self) -> None:
        """End the workers at once, as a crash does; the supervisor starts others."""
        for pid in self._worker_pids():
            os.kill(pid, signal.SIGKILL)

    @contextmanager
    def paused_workers(self) -> Iterator[None]:
        """Nothing that is accepted meanwhile begins."""
        pids = self._worker_pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def _worker_pids(self) -> list[int]:
        children = Path(f"/proc/{self.supervisor_pid}/task/{self.supervisor_pid}/children").read_text().split()
        command = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in children}
        workers = [pid for pid, words in command.items() if b"worker" in words]
        assert workers, command
        return workers

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of `beside.py` in the product's environment; arguments and answer are JSON."""
        return self.hand.call(f"tests.browser.beside:{name}", *arguments)


def start_product(folder: Path) -> Iterator[LiveProduct]:
    """Start provider and product; end them, and only them, afterwards."""
    provider_port, port = free_port(), free_port()
    environ = {
        **os.environ,
        "PORT": str(port),
        "THINK_DATA_DIR": str(folder / "var"),
        "OPENAI_BASE_URL": f"http://127.0.0.1:{provider_port}/v1",
        "OPENAI_API_KEY": "scripted",
        "THINK_MODEL": "openai/scripted",
        "THINK_MODELS": "openai/scripted,openai/gpt-5,openai/gpt-5-mini,openai/gpt-4o",
        "THINK_PROVIDERS": '{"openai": {"own_keys": true}}',
        "THINK_APPS": "tests.acceptance.desk",
        "THINK_TITLE_MODEL": "none",
        "THINK_MADE_UP_LANGUAGES": "1",
        "THINK_MCP_PRIVATE_NETWORKS": "127.0.0.0/8",
        "DJANGO_SETTINGS_MODULE": "thinkproject.settings",
    }
    for name in ("DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "SECRET_KEY", "CI"):
        environ.pop(name, None)
    build = subprocess.run([sys.executable, str(ROOT / "static" / "build.py")], cwd=ROOT, check=False)
    assert build.returncode == 0, "the page could not be built"
    prepared.copy_migrated(base_environ(folder), folder / "var" / prepared.FILE)
    hand = Hand(environ, folder / "hand.log")
    scripted = [sys.executable, "-m", "chat.llm.scripted", "--port", str(provider_port), "--rate", "60"]
    processes = [_start(scripted, environ, folder / "provider.log")]
    try:
        processes.append(_start([sys.executable, "-m", "thinkproject.run.supervisor"], environ, folder / "product.log"))
        _wait(f"http://127.0.0.1:{port}/health/ready", processes, folder / "product.log")
        yield LiveProduct(port, hand, folder / "var", supervisor_pid=processes[-1].pid)
    finally:
        hand.close()
        for process in reversed(processes):
            _end(process)


def _start(command: list[str], environ: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environ,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent(os.getpid()),  # noqa: PLW1509 - one system call, no locks
        )


def _wait(url: str, processes: list["subprocess.Popen[bytes]"], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        ended = [process for process in processes if process.poll() is not None]
        assert not ended, log.read_text()[-3000:]
        with suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)  # between two looks, which keep the product from starting
    raise AssertionError(f"the product did not start: {log.read_text()[-3000:]}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(5)
