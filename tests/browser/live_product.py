"""The product as processes: what `make run` starts, in a directory of the run, answered by the scripted provider."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = 200
START_SECONDS = 90

_MAKE_PEOPLE = f"""
import json, sys, django
django.setup()
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from importlib import import_module
store = import_module(settings.SESSION_ENGINE).SessionStore
people = []
for number in range({PEOPLE}):
    user = get_user_model().objects.create(username=f"person{{number}}")
    session = store()
    session.update({{SESSION_KEY: str(user.pk), BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend",
                    HASH_SESSION_KEY: user.get_session_auth_hash()}})
    session.create()
    people.append([user.pk, settings.SESSION_COOKIE_NAME, session.session_key])
print(json.dumps(people))
"""

_SEED = """
import json, sys, django
django.setup()
from chat.models import AgentInstance
from sessions_app.services import append_messages, create_session
job = json.load(sys.stdin)
instance = AgentInstance(owner_id=job["user"], agent=job["agent"], name=job["name"], title=job["title"])
instance.session = create_session(owner_id=job["user"], scope=instance.id)
instance.save(force_insert=True)
append_messages(instance.session_id, job["messages"])
print(json.dumps(instance.id))
"""

_RUNNING = """
import json, sys, django
django.setup()
from chat.models import Turn
print(Turn.objects.filter(instance__owner_id=json.load(sys.stdin), finished_at=None).count())
"""


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
    environ: dict[str, str]
    people: list[list[Any]] = field(default_factory=list)
    user_id: int = 0
    supervisor_pid: int = 0

    def sign_in(self) -> list[dict[str, Any]]:
        """Cookies of a fresh user, who is `user_id` from now on."""
        self.user_id, name, key = self.people.pop()
        return [{"name": name, "value": key, "domain": "127.0.0.1", "path": "/", "httpOnly": True, "sameSite": "Lax"}]

    def seed(self, title: str, messages: list[dict[str, Any]], *, agent: str = "assistant") -> str:
        """Store a conversation of the present user's; returns its id. Faster than chatting 400 times."""
        job = {
            "user": self.user_id,
            "name": f"seeded-{time.time_ns()}",
            "title": title,
            "messages": messages,
            "agent": agent,
        }
        return str(self.run(_SEED, job))

    def wait_until_idle(self) -> None:
        """Wait until no turn of the present user's runs."""
        deadline = time.monotonic() + 60
        while self.run(_RUNNING, self.user_id):
            assert time.monotonic() < deadline, "the turn does not end"
            time.sleep(0.2)

    def kill_worker(self) -> None:
        """End the worker at once, as a crash does; the supervisor starts another."""
        children = Path(f"/proc/{self.supervisor_pid}/task/{self.supervisor_pid}/children").read_text().split()
        command = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in children}
        (worker,) = [pid for pid, words in command.items() if b"celery" in words and b"worker" in words]
        os.kill(worker, signal.SIGKILL)

    def run(self, code: str, job: object = None) -> Any:
        """Run Python beside the product, in its environment; its last line of output is JSON."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(job),
            cwd=ROOT,
            env=self.environ,
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.strip().splitlines()[-1])


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
        "DJANGO_SETTINGS_MODULE": "thinkproject.settings",
    }
    for name in ("DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "SECRET_KEY", "CI"):
        environ.pop(name, None)
    build = subprocess.run([sys.executable, str(ROOT / "static" / "build.py")], cwd=ROOT, check=False)
    assert build.returncode == 0, "the page could not be built"
    scripted = [sys.executable, "-m", "chat.llm.scripted", "--port", str(provider_port), "--rate", "60"]
    processes = [_start(scripted, environ, folder / "provider.log")]
    try:
        processes.append(_start([sys.executable, "-m", "thinkproject.supervisor"], environ, folder / "product.log"))
        _wait(f"http://127.0.0.1:{port}/health/ready", processes, folder / "product.log")
        product = LiveProduct(port, environ, supervisor_pid=processes[-1].pid)
        product.people = product.run(_MAKE_PEOPLE)
        yield product
    finally:
        for process in reversed(processes):
            _end(process)


def _start(command: list[str], environ: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=output, stderr=output, start_new_session=True)


def _wait(url: str, processes: list["subprocess.Popen[bytes]"], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        ended = [process for process in processes if process.poll() is not None]
        assert not ended, log.read_text()[-3000:]
        with suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise AssertionError(f"the product did not start: {log.read_text()[-3000:]}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(5)
