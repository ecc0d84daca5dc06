"""The product as real processes, for acceptance tests: Redis, scripted provider, web servers, workers.

Each process is a handle that a test may kill with signal 9 and start again. Web servers share a listening socket that
the test holds, so that a restarted one has the same port. Everything ends with the test, killed or not.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.acceptance import prepared
from tests.acceptance.hand import Hand
from tests.acceptance.proxy import CuttingProxy
from thinkproject.config import paths
from thinkproject.run import embedded
from thinkproject.run.processes import die_with_parent
from thinkproject.run.supervisor import listen

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0

UNLIMITED = {"THINK_TURNS_PER_MINUTE": "0", "THINK_RUNNING_TURNS_PER_USER": "0"}
"""For tests in which one person has more turns than a person would."""


def wait_for(condition: Callable[[], Any], *, seconds: float = START_SECONDS, what: str = "it") -> Any:
    """Wait until the condition gives something true and return it; fail with `what` otherwise."""
    begun = time.monotonic()
    while not (found := condition()):
        passed = time.monotonic() - begun
        assert passed < seconds, f"{what} did not happen within {seconds} s"
        time.sleep(0.02 if passed < 0.5 else 0.1)  # who asks all the time slows down what is waited for
    return found


_STARTER = ThreadPoolExecutor(1, thread_name_prefix="starter")
"""Starts all processes: one ends with the thread that started it, and a test may call from a thread that is short."""


@dataclass
class Process:
    """One process of the product."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)
    folder: Path
    pass_fds: Sequence[int] = ()
    popen: subprocess.Popen[bytes] | None = None
    port: int = 0

    @property
    def log_path(self) -> Path:
        """Where its output goes."""
        return self.folder / f"{self.name}.log"

    @property
    def log(self) -> str:
        """What it said so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.popen is not None, f"{self.name} was never started"
        return self.popen.pid

    @property
    def is_running(self) -> bool:
        """Whether it lives."""
        return self.popen is not None and self.popen.poll() is None

    def start(self) -> None:
        """Start it (again)."""
        assert not self.is_running, f"{self.name} runs already"
        self.popen = _STARTER.submit(self._spawn).result()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                list(self.command),
                cwd=ROOT,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=tuple(self.pass_fds),
                preexec_fn=die_with_parent(os.getpid()),  # noqa: PLW1509 - one system call, no locks
            )

    def kill(self) -> None:
        """End it at once, as a crash does, with all that it started."""
        self._send(signal.SIGKILL)

    def stop(self, *, seconds: float = 15.0) -> int:
        """End it as an operator does; kill it when that takes too long. Returns its exit code."""
        if self.popen is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.popen.wait()

    def restart(self) -> None:
        """Kill it and start it again."""
        if self.is_running:
            self.kill()
        self.start()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let it stand still for a moment: what it would do waits."""
        os.killpg(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.pid, signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self.popen is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, number)
        self.popen.wait()


@dataclass
class Person:
    """A user with an account: a session cookie (whole `Cookie` header) and a bearer token."""

    name: str
    cookie: str
    token: str


@dataclass
class Product:
    """A running installation. `webs` and `workers` are handles; `proxy` is there when it was asked for."""

    folder: Path
    environ: dict[str, str] = field(repr=False)
    redis: Process
    provider: Process
    hand: Hand
    webs: list[Process] = field(default_factory=list)
    workers: list[Process] = field(default_factory=list)
    proxy: CuttingProxy | None = None
    provider_url: str = ""
    people: dict[str, Person] = field(default_factory=dict)
    listeners: list[socket.socket] = field(default_factory=list)

    @property
    def provider_log(self) -> Path:
        """What the provider says it sent: the oracle (JSON lines)."""
        return self.folder / "provider.jsonl"

    def url(self, path: str = "/", *, web: int = 0) -> str:
        """Address on one of the web servers, not through the proxy."""
        return f"http://127.0.0.1:{self.webs[web].port}{path}"

    def sign_in(self, name: str) -> str:
        """Return the `Cookie` header of a signed-in session; the person appears when first named."""
        return self.person(name).cookie

    def token(self, name: str) -> str:
        """Return a bearer token of the person's."""
        return self.person(name).token

    def person(self, name: str) -> Person:
        """Return a user with an account."""
        if name not in self.people:
            self.meet(self.call("tests.acceptance.people:make_person", name))
        return self.people[name]

    def meet(self, found: Mapping[str, str]) -> None:
        """Take in a user who is in the database."""
        cookie = f"{session_cookie(self.folder)}={found['session']}"
        self.people[found["name"]] = Person(found["name"], cookie, found["token"])

    def call(self, function: str, *arguments: Any) -> Any:
        """Call `module:function` within this installation and return its answer, which is JSON as the arguments are."""
        return self.hand.call(function, *arguments)

    def wait_until_ready(self) -> None:
        """Wait until every web server answers and every worker has connected."""
        for web in self.webs:
            wait_for(partial(self.answers, web), what=f"{web.name} answering")
        for worker in self.workers:
            wait_for(partial(_is_connected, worker), what=f"{worker.name} being ready")

    def revive(self) -> None:
        """Start again what does not run, and wait until all is ready."""
        for process in [self.redis, *self.webs, *self.workers]:
            if not process.is_running:
                process.start()
        self.wait_until_ready()

    def answers(self, web: Process) -> bool:
        """Whether a web server answers; fails when it has ended."""
        assert web.is_running, f"{web.name} ended:\n{web.log[-3000:]}"
        connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=1)
        try:
            connection.request("GET", "/health/live")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def close(self) -> None:
        """End everything."""
        if self.proxy is not None:
            self.proxy.close()
        self.hand.close()
        for process in [*self.webs, *self.workers, self.provider, self.redis]:
            if process.is_running:
                process.kill()
        for listener in self.listeners:
            listener.close()


def _is_connected(worker: Process) -> bool:
    assert worker.is_running, f"{worker.name} ended:\n{worker.log[-3000:]}"
    return " ready." in worker.log


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to start. `environ` adds to the environment of every process."""

    webs: int = 1
    workers: int = 1
    worker_threads: int = 50
    database: str = "sqlite"
    is_proxied: bool = False
    provider_options: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict)


def base_environ(folder: Path) -> dict[str, str]:
    """The environment of a new installation: ours without anything that configures the product."""
    prefixes = ("THINK_", "OPENAI_", "DJANGO_", "TEST_", "PYTEST_")
    names = {"REDIS_URL", "DATABASE_URL", "SECRET_KEY", "ALLOWED_HOSTS", "PORT", "PYTHONDONTWRITEBYTECODE"}
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes) and key not in names}
    return {
        **kept,
        "DJANGO_SETTINGS_MODULE": "thinkproject.settings",
        "PYTHONUNBUFFERED": "1",
        "SECRET_KEY": "acceptance",
        "THINK_DATA_DIR": str(folder),
        "THINK_APPS": "tests.acceptance.desk",
        "THINK_TITLE_MODEL": "none",  # a script answers what was said, and nothing else
        "THINK_WEB_SERVER": os.environ.get("TEST_WEB_SERVER", ""),  # the default, unless a run asks for the other one
    }


def start_product(folder: Path, plan: Plan) -> Product:
    """Start an installation in an empty folder and wait until it is ready."""
    environ = base_environ(folder) | dict(plan.environ)
    python = [sys.executable, "-m"]
    redis = Process("redis", embedded.redis_command(folder), environ, folder)
    provider_command = [*python, "chat.llm.scripted", "--port", "0", "--log", str(folder / "provider.jsonl")]
    provider = Process("provider", [*provider_command, *plan.provider_options], environ, folder)
    product = Product(folder, environ, redis, provider, Hand(environ, folder / "hand.log"))
    try:
        _start(product, plan)
    except BaseException:
        product.close()
        raise
    return product


def _start(product: Product, plan: Plan) -> None:
    folder, environ = product.folder, product.environ
    product.redis.start()
    product.provider.start()
    said = wait_for(lambda: product.provider.log.partition("\n")[0], what="the provider starting")
    product.provider_url = json.loads(said)["base_url"]
    defaults = {"OPENAI_BASE_URL": product.provider_url, "OPENAI_API_KEY": "scripted", "THINK_MODEL": "openai/scripted"}
    defaults["THINK_MODELS"] = "default,openai/another"
    for name, value in defaults.items():
        environ.setdefault(name, value)
    _add_database(product, plan)
    assert embedded.wait_until(True, folder, seconds=START_SECONDS), product.redis.log
    for number in range(plan.webs):
        listener = listen("127.0.0.1", 0)
        product.listeners.append(listener)
        command = [sys.executable, "-m", "thinkproject.run.server", "--fd", str(listener.fileno())]
        web = Process(f"web{number}", command, environ, folder, pass_fds=[listener.fileno()])
        web.port = listener.getsockname()[1]
        web.start()
        product.webs.append(web)
    for number in range(plan.workers):
        options = [
            "--pool",
            "threads",
            "--concurrency",
            str(plan.worker_threads),
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "--loglevel",
            "INFO",
        ]
        celery = [sys.executable, "-m", "celery", "--app", "thinkproject.celery", "worker", *options]
        worker = Process(f"worker{number}", [*celery, "--hostname", f"worker{number}@%h"], environ, folder)
        worker.start()
        product.workers.append(worker)
    if plan.is_proxied:
        product.proxy = CuttingProxy([web.port for web in product.webs])
    product.wait_until_ready()


def _add_database(product: Product, plan: Plan) -> None:
    """A copy of a prepared one, with people, unless it has to be made with what the plan says."""
    folder, environ = product.folder, product.environ
    if prepared.OWN_DATABASE & plan.environ.keys():
        if plan.database == "postgres":
            environ["DATABASE_URL"] = prepared.new_postgres()
        elif "DATABASE_URL" not in environ:
            prepared.copy_migrated(base_environ(folder), folder / prepared.FILE)
        prepared.prepare(environ)
        return
    plain = base_environ(folder)
    if plan.database == "postgres":
        environ["DATABASE_URL"], people = prepared.copy_postgres(plain)
    else:
        people = prepared.copy_sqlite(plain, folder / prepared.FILE)
    for found in people:
        product.meet(found)


def session_cookie(folder: Path) -> str:
    """What the settings call the session's cookie: copies of the product on one machine must not share it."""
    return f"think_session_{paths.directory_hash(folder)}"


def redis_socket(folder: Path) -> Path:
    """Where the Redis of an installation listens."""
    return paths.redis_socket(folder)
