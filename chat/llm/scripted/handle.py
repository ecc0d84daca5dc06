"""`ScriptedServer`: start and stop a scripted provider from Python, and read its log. For tests and benchmarks."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from chat.llm.scripted.server import Provider, ServerOptions, start_server
from thinkproject.kernel.jsonvalue import JSONObject

_START_SECONDS: Final = 20.0


class ScriptedServer:
    """A scripted provider on a loopback port: in a thread of this process, or in a process of its own.

    `base_url` ends in `/v1`, as OPENAI_BASE_URL wants it. Use it as a context manager, or call `start` and `stop`.
    """

    def __init__(
        self, options: ServerOptions | None = None, *, log_path: Path | None = None, process: bool = False
    ) -> None:
        self._options = options or ServerOptions()
        self._folder = None if log_path else tempfile.TemporaryDirectory(prefix="scripted-")
        self.log_path = log_path or Path(self._folder.name if self._folder else "") / "log.jsonl"
        self._in_process = not process
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._provider: Provider | None = None
        self._ready = threading.Event()
        self.port = 0

    @property
    def base_url(self) -> str:
        """The base URL for adapters."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def pid(self) -> int:
        """The process that serves: a child's or this one's."""
        return self._child.pid if self._child is not None else os.getpid()

    def start(self) -> Self:
        """Listen; returns when requests are answered. Errors: `RuntimeError` when it does not come up."""
        if self._in_process:
            self._thread = threading.Thread(target=self._run_thread, name="scripted-provider", daemon=True)
            self._thread.start()
            if not self._ready.wait(_START_SECONDS) or not self.port:
                raise RuntimeError("the scripted provider did not start")
        else:
            self._start_child()
        return self

    def stop(self) -> None:
        """Close every connection and free the port; safe to call twice. The log stays readable until `__exit__`."""
        if self._loop is not None and self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_START_SECONDS)
            self._loop = None
        if self._child is not None:
            self._child.terminate()
            self._child.wait(_START_SECONDS)
            if self._child.stdout is not None:
                self._child.stdout.close()
            self._child = None

    def script(self, match: str, script: str) -> None:
        """Answer user messages that contain `match` with `script`; the latest registration wins."""
        body = json.dumps({"match": match, "script": script}).encode()
        url = f"http://127.0.0.1:{self.port}/_scripted/scripts"
        headers = {"Authorization": f"Bearer {self._options.api_key}"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=5):
            pass

    def log(self, kind: str = "") -> list[JSONObject]:
        """The log so far, oldest first; only lines of `kind` if it is given."""
        if self._loop is not None and self._provider is not None:
            asyncio.run_coroutine_threadsafe(self._flush(), self._loop).result(5)
        if not self.log_path.exists():
            return []
        lines = [json.loads(line) for line in self.log_path.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if not kind or line["kind"] == kind]

    def requests(self) -> list[JSONObject]:
        """The request bodies received, oldest first."""
        return [line["body"] for line in self.log("request")]

    def answer(self, marker: str = "", *, round_number: int = 0) -> str:
        """The text a reader must have seen of one answer, pieced together over its continuations: the oracle.

        `marker` is the conversation's (empty: the only one). Errors: `AssertionError` when a continuation was asked for
        with a partial answer that is not what was sent.
        """
        return answer_in(self.log(), marker, round_number=round_number)

    async def _flush(self) -> None:
        if self._provider is not None:
            self._provider.log.flush()

    def _run_thread(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server, self._provider, self.port = await start_server(self._options, log_path=self.log_path)
        self._ready.set()
        await self._stop.wait()
        server.close()
        await self._provider.close()

    def _start_child(self) -> None:
        options = self._options
        command = [sys.executable, "-m", "chat.llm.scripted", "--log", str(self.log_path)]
        command += ["--rate", str(options.defaults.rate), "--tokens", str(options.defaults.tokens)]
        command += [part for name in options.models for part in ("--model", name)]
        command += [part for key in options.rejects for part in ("--reject", key)]
        command += ["--api-key", options.api_key] if options.api_key else []
        command += [] if options.log_bodies else ["--no-bodies"]
        command += ["--recordings", str(options.recordings)]
        self._child = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own module
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError("the scripted provider did not start")
        self.port = json.loads(line)["port"]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._folder is not None:
            self._folder.cleanup()


def answer_in(lines: list[JSONObject], marker: str = "", *, round_number: int = 0) -> str:
    """As `ScriptedServer.answer`, from the lines of a log."""
    wanted = [
        line
        for line in lines
        if line["kind"] == "request" and line["round"] == round_number and marker in ("", line["marker"])
    ]
    text = ""
    for request in wanted:
        assert not request["mismatch"], f"request {request['request']} sent back a partial answer that was never given"
        assert request["continues"] <= len(text), "a continuation claims more than was sent"
        text = text[: request["continues"]] + "".join(
            line["text"]
            for line in lines
            if line["kind"] == "chunk" and line["request"] == request["request"] and line["unit"] in ("text", "refusal")
        )
    return text
