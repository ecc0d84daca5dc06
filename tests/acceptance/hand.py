"""A Python that stays beside an installation and calls functions there: importing Django takes seconds each time.

`Hand` is the test's side. `python -m tests.acceptance.hand` is the other one: it reads jobs (a JSON object a line) from
its standard input and answers each on its standard output, until that input ends, which it does with the test process.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ANSWER_SECONDS = 120.0


@dataclass
class Hand:
    """Starts with the first call. Any thread may call it."""

    environ: Mapping[str, str] = field(repr=False)
    log_path: Path
    _process: subprocess.Popen[str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, function: str, *arguments: Any) -> Any:
        """Call `module:function` in the installation and return its answer, which is JSON as the arguments are."""
        with self._lock:
            if self._process is None:
                self._process = self._start()
            answer = self._ask(self._process, {"function": function, "arguments": arguments})
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def close(self) -> None:
        """End it."""
        with self._lock:
            if self._process is None:
                return
            with self._process as process:  # waits, and closes what leads to it
                process.kill()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.hand"],
                cwd=ROOT,
                env=dict(self.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def _ask(self, process: subprocess.Popen[str], job: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
        is_there, _, _ = select.select([process.stdout], [], [], ANSWER_SECONDS)
        line = process.stdout.readline() if is_there else ""
        assert line, f"no answer to {job}: {self.log_path.read_text(encoding='utf-8', errors='replace')[-3000:]}"
        answer: dict[str, Any] = json.loads(line)
        return answer


def main() -> None:
    """Do what is asked until no one asks any more."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what a job prints is no answer
        gc.disable()  # imports make much that stays
        import django

        django.setup()
        gc.enable()
        from django.db import connections

        for connection in connections.all():
            connection.settings_dict["OPTIONS"].pop("pool", None)  # a pool would keep what is closed below
        for line in sys.stdin:
            answer = _answer(json.loads(line))
            connections.close_all()  # the database may be copied, counted or killed before the next job
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    module, _, name = job["function"].partition(":")
    try:
        return {"value": getattr(importlib.import_module(module), name)(*job["arguments"])}
    except Exception:  # noqa: BLE001 - whatever it is, the test that asked fails with it
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    main()
