"""The reference implementation as a process of its own: its agent on its own runtime, with a scripted provider.

The packages come from the npm registry by a lock with hashes, about 75 MB once, into `dist`; the runtime is most of it.
The runtime reads the bundle and its configuration there and keeps what is durable in a temporary folder.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.rig import Meter
from tests import npm
from tests.acceptance.product import Process, base_environ, wait_for

HERE = Path(__file__).resolve().parent
LOG_TAIL = 3_000
BUNDLING = (
    "worker.js",
    "--bundle",
    "--minify",
    "--format=esm",
    "--platform=browser",
    "--target=es2024",
    "--conditions=workerd,worker,browser",
    "--external:node:*",
    "--external:cloudflare:*",
    "--external:just-bash",  # an optional package, which nothing of this worker uses
    *(f"--alias:{name}=node:{name}" for name in ("async_hooks", "crypto", "path")),
    '--banner:js=import { createRequire } from "node:module"; const require = createRequire("/");',
    "--outfile=bundle.js",
)
"""What the runtime's own tools tell esbuild."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The reference implementation, running. It has the methods of a product that the driver calls."""

    runtime: Process
    provider: Process
    provider_log: Path

    @property
    def webs(self) -> list[Process]:
        """The one process there is."""
        return [self.runtime]

    def url(self, path: str = "/", *, web: int = 0) -> str:
        """Address on it."""
        return f"http://127.0.0.1:{self.webs[web].port}{path}"

    def token(self, name: str) -> str:
        """Its agent lets in everyone, and ignores this."""
        return name

    def meter(self) -> Meter:
        """Measures it and the provider."""
        return Meter({"runtime": [self.runtime.pid], "provider": [self.provider.pid]})


def bundle(folder: Path) -> None:
    """Fetch the packages and bundle the worker. Errors: `NpmFailed`."""
    npm.install(folder)
    done = subprocess.run(
        [binary(folder, "@esbuild", "esbuild"), *BUNDLING], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise npm.NpmFailed(f"esbuild:\n{done.stderr[-LOG_TAIL:]}")


def binary(folder: Path, scope: str, name: str) -> str:
    """The program for this machine, of which npm has a package each. Errors: `NpmFailed` where there is none."""
    for found in sorted(folder.glob(f"node_modules/.deno/{scope}+*/node_modules/{scope}/*/bin/{name}")):
        return str(found)
    raise npm.NpmFailed(f"{name} has no program for this machine")


MADE = npm.Made(
    HERE / "dist",
    [HERE / name for name in (*npm.INPUTS, "worker.js", "config.capnp")],
    bundle,
    salt=" ".join(BUNDLING),
)


@contextlib.contextmanager
def running_reference() -> Iterator[Reference]:
    """Start it with nothing stored; everything ends with the block. Errors: `NpmFailed`."""
    made = MADE.get()
    folder = Path(tempfile.mkdtemp(prefix="thkr"))
    environ, log = base_environ(folder), folder / "provider.jsonl"
    (folder / "storage").mkdir()
    scripted = [sys.executable, "-m", "chat.llm.scripted", "--port", "0", "--log", str(log), "--no-bodies"]
    places = ["--socket-addr=http=127.0.0.1:0", f"--directory-path=storage={folder / 'storage'}"]
    command = [binary(made, "@cloudflare", "workerd"), "serve", "--control-fd=1", *places, str(made / "config.capnp")]
    provider = Process("provider", scripted, environ, folder)
    runtime = Process("runtime", command, environ, folder)
    try:
        provider.start()
        environ["PROVIDER_URL"] = wait_for(lambda: said(provider, "base_url"), what="the provider starting")
        runtime.start()
        runtime.port = wait_for(lambda: said(runtime, "port"), what="the reference starting")
        yield Reference(runtime=runtime, provider=provider, provider_log=log)
    except BaseException:
        print(f"--- {runtime.name}\n{runtime.log[-LOG_TAIL:]}", file=sys.stderr)
        raise
    finally:
        for process in (runtime, provider):
            if process.is_running:
                process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def versions() -> str:
    """The packages that a figure depends on, with their versions."""
    packages = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return ", ".join(f"{name} {packages[name]}" for name in ("@cloudflare/think", "agents", "ai", "workerd"))


def said(process: Process, key: str) -> Any:
    """What a process says of itself in a line of JSON, once it does."""
    assert process.is_running, f"{process.name} ended"
    lines = [line for line in process.log.splitlines() if line.startswith("{") and f'"{key}"' in line]
    return json.loads(lines[0])[key] if lines else None
