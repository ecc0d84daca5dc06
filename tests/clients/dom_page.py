"""A page without a browser: the same bundles of the published clients, in Deno with a document of happy-dom's.

Has what `Tab` uses of a page of Playwright. Every load is a process of its own; it ends with the test process.
"""

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deno import find_deno_bin

from tests import npm
from thinkproject.run.processes import die_with_parent

SECONDS = 30.0


class DomSocket:
    """A socket that the page opened."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: dict[str, Callable[[str], None]] = {}

    def on(self, event: str, call: Callable[[str], None]) -> None:
        """Call for each `framesent` or `framereceived`."""
        self.received[event] = call


class DomPage:
    """A page; nothing is open before `goto`. Callbacks run in the thread that waits or evaluates."""

    def __init__(self, dist: Path, log: Path) -> None:
        self._dist = dist
        self._log = log
        self._url = ""
        self._process: subprocess.Popen[str] | None = None
        self._said: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._callbacks: dict[str, Callable[[Any], None]] = {}
        self._sockets: dict[int, DomSocket] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._is_loaded = False
        self._jobs = 0

    def on(self, event: str, call: Callable[[Any], None]) -> None:
        """Call for each `websocket` or `pageerror`."""
        self._callbacks[event] = call

    def goto(self, url: str) -> None:
        """Load a page of the bundles and wait until its script has run."""
        self.close()
        self._url = url
        self._said, self._sockets, self._is_loaded = queue.SimpleQueue(), {}, False
        line, _, page = urlsplit(url).path.strip("/").partition("/")
        script = self._dist / line / {"index.html": "app.js"}.get(page, page.replace(".html", ".js"))
        options = [*npm.offline(self._dist / "dom"), "--no-check", "-A", "--location", url]
        command = [find_deno_bin(), "run", *options, "load.ts", script.as_uri()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._dist / "dom",
                env={**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=die_with_parent(os.getpid()),  # noqa: PLW1509 - one system call, no locks
            )
        threading.Thread(target=_read, args=(self._process, self._said), daemon=True).start()
        self._until(lambda: self._is_loaded)

    def reload(self) -> None:
        """Load the page again."""
        self.goto(self._url)

    def close(self) -> None:
        """End the page, as when a tab is closed."""
        if self._process is not None:
            with self._process as process:
                process.kill()
            self._process = None

    def evaluate(self, code: str, argument: Any = None) -> Any:
        """Call a function of JavaScript in the page and return what it gives."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._jobs += 1
        job = self._jobs
        self._process.stdin.write(json.dumps({"id": job, "code": code, "argument": argument}) + "\n")
        self._process.stdin.flush()
        self._until(lambda: job in self._answers)
        answer = self._answers.pop(job)
        assert "error" not in answer, answer["error"]
        return answer.get("value")

    def wait_for_function(self, code: str, *, polling: float, timeout: float) -> None:
        """Wait until a function of JavaScript gives something true; as a browser's page, in milliseconds."""
        deadline = time.monotonic() + timeout / 1000
        while not self.evaluate(code):
            if time.monotonic() > deadline:
                raise TimeoutError(code)
            self.wait_for_timeout(polling)  # between two looks

    def wait_for_timeout(self, milliseconds: float) -> None:
        """Let the page go on for a while."""
        end = time.monotonic() + milliseconds / 1000
        while (left := end - time.monotonic()) > 0:
            self._take(left)
        while not self._said.empty():
            self._take(0)

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"the page does not answer:\n{self._log.read_text()[-2000:]}"
            self._take(0.1)

    def _take(self, seconds: float) -> None:
        try:
            said = self._said.get(timeout=seconds) if seconds else self._said.get_nowait()
        except queue.Empty:
            return
        assert said is not None, f"the page ended:\n{self._log.read_text()[-2000:]}"
        if "opened" in said:
            socket = self._sockets[said["socket"]] = DomSocket(said["opened"])
            self._callbacks["websocket"](socket)
        elif "socket" in said:
            event = "framesent" if "sent" in said else "framereceived"
            self._sockets[said["socket"]].received[event](str(said.get("sent") or said.get("received")))
        elif "failed" in said:
            self._callbacks["pageerror"](said["failed"])
        elif "loaded" in said:
            self._is_loaded = True
        else:
            self._answers[said["id"]] = said


def _read(process: subprocess.Popen[str], said: "queue.SimpleQueue[dict[str, Any] | None]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.put(json.loads(line))
    said.put(None)
