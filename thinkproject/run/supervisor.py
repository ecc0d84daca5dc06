"""`make run`: starts everything on this machine, keeps it running, and ends all of it on Ctrl-C.

The embedded Redis, web processes, Celery workers, Celery beat and, when it answers, the small local model are children
of this one process (`services.py`). It owns the listening socket, so that a restarted web server loses no connection,
and the lock of the data directory, so that no second one starts on the same data.

A start is mostly loading code, so the first web process and the first worker load theirs at the same time and wait at a
gate (`gate.py`) until the database is prepared, which the web process does before it serves. The others follow when
the first page answers.
"""

import fcntl
import http.client
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from thinkproject.config.env import EnvError
from thinkproject.config.paths import PRIVATE_UMASK, close_files, private_data_directory
from thinkproject.run import bootstrap, embedded
from thinkproject.run.bootstrap import ROOT, SetupError, say
from thinkproject.run.gate import Gate
from thinkproject.run.processes import Child, RestartInTurn, stop_all
from thinkproject.run.services import Services
from thinkproject.run.watcher import Watcher

TICK_SECONDS = 0.1
POLL_SECONDS = 0.01  # while it starts
WATCH_SECONDS = 1.0
ROTATE_SECONDS = 60.0
READY_SECONDS = 60.0
BACKLOG = 2048
MODEL_CHOICE = "model.json"
SKIPPED_HINT = (
    "No model answers: none is configured and THINK_SKIP_LOCAL_MODEL is set. Set THINK_MODEL (for example "
    "openai/gpt-5-mini) with OPENAI_API_KEY, or OPENAI_BASE_URL for any server that speaks Chat Completions."
)


class Supervisor:
    """One run of the product. `settings` is the settings module, read without starting Django."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.data_dir: Path = settings.DATA_DIR
        self.children: dict[str, Child] = {}
        self.stop_signals = 0
        self.lock_handle = -1
        self.gate = Gate()
        self.listener: socket.socket | None = None
        self.services: Services | None = None
        self.reload = RestartInTurn([])
        self.model_choice: dict[str, Any] = {}
        self.watcher: Watcher | None = None

    # --- Life -----------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Start, watch, stop. Returns the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self.lock_handle = lock_data_dir(self.data_dir, f"process {os.getpid()}, port {self.settings.PORT}")
        self.listener = listen(self.settings.BIND, self.settings.PORT)
        started = time.monotonic()
        try:
            self._start_redis()
            self.watcher = self._open_watcher()  # before they read the code: what is edited from here on restarts them
            services = self.services = Services(self.settings, listener=self.listener.fileno(), gate=self.gate.fd)
            for name in services.first:
                self._add_service(services, name, prepares=name == services.webs[0])
            discovery = start_discovery(self.settings, self.data_dir / MODEL_CHOICE)  # while the database is prepared
            outcome = self._prepared(self.children[services.webs[0]])
            self.gate.open()
            self._start_model(discovery)
            is_ready = self._wait_until_ready()
            for name in [] if self.stop_signals else services.further:
                self._add_service(services, name)
            if is_ready:
                self._greet(outcome, time.monotonic() - started)
            self._watch()
            return 0
        finally:
            self._stop()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_signals += 1
        if self.stop_signals == 1:
            say("\nStopping (again to hurry)")

    def _check_stop(self) -> None:
        if self.stop_signals:
            raise KeyboardInterrupt

    def _stop(self) -> None:
        redis = self.children.pop("redis", None)
        stop_all(list(self.children.values()), hurry=lambda: self.stop_signals > 1)
        if redis is not None:
            stop_all([redis], hurry=lambda: False)  # it has writes to finish

    def _start_redis(self) -> None:
        if not self.settings.USES_EMBEDDED_REDIS:
            return
        if not embedded.wait_until(False, self.data_dir, seconds=10):
            raise SetupError(f"a Redis of a former run still answers for {self.data_dir}; end that process first.")
        try:
            command = embedded.redis_command(self.data_dir)
        except OSError as error:
            raise SetupError(f"the embedded Redis cannot keep its data: {error}.") from error
        self._add("redis", command)
        if not embedded.wait_until(True, self.data_dir, seconds=READY_SECONDS):
            raise SetupError(f"the embedded Redis does not start; see {self._log('redis')}.")

    def _prepared(self, web: Child) -> dict[str, Any]:
        """Wait until the first web process has prepared the database; return what it reports."""
        said: list[dict[str, Any]] = []
        while not said and web.report is not None and not web.report.is_over:
            self._check_stop()
            time.sleep(POLL_SECONDS)
            said = web.listen()
        self._check_stop()
        if said and "refused" in said[0]:
            raise SetupError(said[0]["refused"])
        if not said:
            raise SetupError(f"preparing the database failed; see {web.log_path}.{web.last_words()}")
        web.command = [word for word in web.command if word != "--prepare"]  # not again when it is restarted
        outcome: dict[str, Any] = said[0]["prepared"]
        if outcome["migrations"]:
            say(f"Database: {outcome['migrations']} migrations applied")
        return outcome

    # --- Children -------------------------------------------------------------------------------------------------

    def _start_model(self, discovery: subprocess.Popen[str]) -> None:
        """Take what discovery found; install and start the small model when nothing else answers."""
        path = self.data_dir / MODEL_CHOICE
        choice = read_discovery(discovery)
        self._check_stop()
        skip = self.settings.SKIPS_LOCAL_MODEL
        if choice.get("kind") == "none" and not skip and not bootstrap.installed("local-model"):
            say("No model is configured or running here; the small local one will answer.")
            try:
                bootstrap.install(["local-model"])
            except SetupError as error:
                say(f"note: {error} Until then there is no model.")
            self._check_stop()
            choice = read_discovery(start_discovery(self.settings, path))
        if choice.get("kind") == "local" and skip:
            choice |= {"name": "", "kind": "none", "base_url": "", "is_small": False, "hint": SKIPPED_HINT}
            write_json(path, choice)
        elif choice.get("kind") == "local":
            port = free_port()  # the same for each restart, since everybody reads the address once
            choice["base_url"] = f"http://127.0.0.1:{port}/v1"
            write_json(path, choice)
            self._add("model", [sys.executable, "-m", "chat.llm.local_server", "--port", str(port)])
        self.model_choice = choice

    def _add_service(self, services: Services, name: str, *, prepares: bool = False) -> None:
        command = [*services.command(name), *(["--prepare"] if prepares else [])]
        self._add(name, command, pass_fds=services.file_descriptors(name), reports=name in services.webs)

    def _add(self, name: str, command: list[str], *, pass_fds: Sequence[int] = (), reports: bool = False) -> None:
        child = Child(name=name, command=command, log_path=self._log(name), say=say, pass_fds=pass_fds, reports=reports)
        child.holds_leases = name.startswith("worker")
        child.environ = {"DJANGO_SETTINGS_MODULE": self.settings.SETTINGS_MODULE, "PYTHONUNBUFFERED": "1"}
        self.children[name] = child
        child.start()

    def _log(self, name: str) -> Path:
        return self.data_dir / "logs" / f"{name}.log"

    # --- Watching -------------------------------------------------------------------------------------------------

    def _wait_until_ready(self) -> bool:
        deadline = time.monotonic() + READY_SECONDS
        while not self.stop_signals:
            self._tick()
            if self._is_ready():
                return True
            if time.monotonic() > deadline:
                say(f"Web server or model do not answer yet; their logs are in {self.data_dir / 'logs'}.")
                return False
            time.sleep(POLL_SECONDS)
        return False

    def _is_ready(self) -> bool:
        assert self.services is not None
        web = self.children[self.services.webs[0]]
        web.listen()
        if not web.is_serving or not answers_http(self.settings.BIND, self.settings.PORT, "/health/live"):
            return False
        port = urlsplit(self.model_choice.get("base_url") or "").port if "model" in self.children else None
        return port is None or answers_http("127.0.0.1", port, "/v1/models")

    def _greet(self, outcome: dict[str, Any], seconds: float) -> None:
        say(f"Ready in {seconds:.1f} s. Data and logs: {self.data_dir}. Ctrl-C stops everything.")
        if hint := str(self.model_choice.get("hint", "")):
            say(f"Model: {hint}")
        if caution := outcome.get("walls"):
            say(f"Sandbox: {caution}")
        address = outcome["link"] or f"http://127.0.0.1:{self.settings.PORT}/"
        say(f"Open {address}")

    def _watch(self) -> None:
        next_look = next_rotation = time.monotonic()
        while not self.stop_signals:
            self._tick()
            now = time.monotonic()
            if self.watcher is not None and now >= next_look:
                next_look = now + WATCH_SECONDS
                if changed := self.watcher.poll():
                    self._reload(changed)
            if now >= next_rotation:
                next_rotation = now + ROTATE_SECONDS
                for child in self.children.values():
                    child.rotate_log()
            time.sleep(TICK_SECONDS)

    def _open_watcher(self) -> Watcher | None:
        if self.settings.NO_RELOAD:
            return None
        try:
            return Watcher(watched_folders(self.settings.THINK_APPS))
        except OSError as error:  # the system allows no more watches
            say(f"Edits will not restart anything: {error}")
            return None

    def _tick(self) -> None:
        for child in self.children.values():
            child.listen()
            child.tick()
        self.reload.tick()

    def _reload(self, changed: set[str]) -> None:
        names = sorted(Path(path).name for path in changed)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        say(f"{', '.join(names[:3])}{more} changed: restarting web and worker")
        assert self.services is not None
        for name in self.services.workers:
            self.children[name].restart()
        self.reload = RestartInTurn([self.children[name] for name in self.services.webs])


def lock_data_dir(path: Path, who: str) -> int:
    """Create the data directory and lock it; the operating system releases the lock with this process.

    Errors: `SetupError` when it cannot be written or the lock is taken.
    """
    try:
        private_data_directory(path)
        (path / "logs").mkdir(mode=0o700, exist_ok=True)
        (path / "files").mkdir(mode=0o700, exist_ok=True)
        close_files(path)
        handle = os.open(path / "run.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SetupError(
            f"the data directory {path} cannot be written: {error.strerror}. THINK_DATA_DIR names another."
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(handle, 100, 0).decode(errors="replace").strip() or "another process"
        raise SetupError(
            f"already running on {path} ({holder}). Stop it, or start with another THINK_DATA_DIR and PORT."
        ) from error
    os.ftruncate(handle, 0)
    os.pwrite(handle, who.encode(), 0)
    return handle


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket that web processes inherit. Errors: `SetupError`, for a port in use above all."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise SetupError(
            f"port {port} on {host} cannot be used: {error.strerror}. Start on another: PORT={port + 1} make run"
        ) from error
    listener.set_inheritable(True)
    return listener


def start_python(*words: str, **environ: str) -> subprocess.Popen[str]:
    """Start a module of ours that ends by itself."""
    return subprocess.Popen(  # noqa: S603 - our own modules
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end of a process; return its code, output and errors."""
    output, errors = process.communicate()
    return process.returncode, output, errors


def start_discovery(settings: Any, path: Path) -> subprocess.Popen[str]:
    """Ask which model stands behind `default`; the answer is also kept in `path`, where all processes read it."""
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "THINK_MODEL")
    environ = {name: str(getattr(settings, name)) for name in names}
    return start_python("-m", "chat.llm.discovery", "--write", str(path), **environ)


def read_discovery(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what discovery found; a hint alone when it failed."""
    code, output, errors = finish(process)
    choice: dict[str, Any] = json.loads(output) if code == 0 else {"hint": errors.strip()[-300:]}
    return choice


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace a file; readers see the old or the new one, never half of it."""
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def answers_http(host: str, port: int, path: str) -> bool:
    """Return whether a server answers, and not with a server error."""
    connection = http.client.HTTPConnection(host, port, timeout=0.5)
    try:
        connection.request("GET", path, headers={"Host": f"127.0.0.1:{port}"})
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def watched_folders(apps: list[str]) -> list[Path]:
    """Return the folders whose edits restart web and worker: this project and the further apps."""
    folders = [ROOT]
    for app in apps:
        spec = importlib.util.find_spec(app.partition(".apps.")[0])
        places = [Path(place).resolve() for place in (spec.submodule_search_locations or [])] if spec else []
        folders.extend(place for place in places if not place.is_relative_to(ROOT))
    return folders


def main() -> int:
    """Run until a signal. Errors are one line and exit code 2."""
    os.umask(PRIVATE_UMASK)  # children inherit it: database, logs, the append-only file of Redis
    try:
        from thinkproject import settings  # noqa: PLC0415 - reading the environment is the first thing that may fail

        return Supervisor(settings).run()
    except (SetupError, EnvError) as error:
        say(f"error: {error}")
        return bootstrap.EXIT_SETUP
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
