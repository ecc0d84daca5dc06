"""Runs an example: `make example-usechat` and its like, or `python examples/run.py NAME`. Ctrl-C ends it.

Bundles the page with the Deno of the wheel (packages from the npm registry, pinned by `deno.lock`), starts the product
on a free port of this machine (or `PORT`) for pages of another one, and serves the page there; an example without a
page is the product itself with settings of its own. Data lie in `var/examples/NAME`.
"""

import argparse
import functools
import hashlib
import http.server
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

from deno import find_deno_bin

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGES = ("usechat", "react", "assistantui", "orchestrator")
"""Those with a page of their own."""
NAMES = (*PAGES, "assistant")
START_SECONDS = 180.0
STOP_SECONDS = 30.0


class ExampleFailed(Exception):
    """The example cannot run; the message says why."""


class _Pages(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def main() -> int:
    """Run one example until it is interrupted."""
    parser = argparse.ArgumentParser(description="Run an example and print the address of its page.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--data-dir", type=Path, help="where the product keeps its data")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell has what it starts in the background ignore the first
        signal.signal(number, _interrupt)
    try:
        run(options.name, options.data_dir or ROOT / "var" / "examples" / options.name)
    except ExampleFailed as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def run(name: str, data_dir: Path) -> None:
    """Start the product and what belongs to the example, print the address to open, wait. Errors: `ExampleFailed`."""
    port = int(os.environ.get("PORT") or _free_port())
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "thinkproject.settings",
        "PORT": str(port),
        "THINK_DATA_DIR": str(data_dir),
        **_served(name),
    }
    if name in PAGES:
        _run_page(name, f"http://127.0.0.1:{port}", environ)
    else:
        _run_site(name, f"http://127.0.0.1:{port}", environ)


def _run_page(name: str, server: str, environ: dict[str, str]) -> None:
    # The example is a page of another origin than the product.
    folder = build(name)
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Pages, directory=str(folder)))
    page = f"http://127.0.0.1:{pages.server_address[1]}"
    product = _start(["thinkproject.run.supervisor"], {**environ, "THINK_ALLOWED_ORIGINS": page})
    try:
        _wait_ready(product, f"{server}/health/ready")
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        # Browsers send what stands behind the # to no one.
        _say(f"\nOpen the example: {page}/#{urlencode({'server': server, 'token': _make_token(name, environ)})}")
        product.wait()
    finally:
        pages.server_close()
        _end(product)


def _run_site(name: str, server: str, environ: dict[str, str]) -> None:
    # The example is the product's own page with settings of the example's; people sign in at a provider.
    environ |= {"THINK_SETTINGS": f"{name}.settings"}
    environ.setdefault("THINK_MCP_PRIVATE_NETWORKS", "127.0.0.0/8")  # servers of this machine may be added
    started = []
    try:
        if not environ.get("ASSISTANT_ISSUER"):
            port = _free_port()
            environ |= {
                "ASSISTANT_ISSUER": f"http://127.0.0.1:{port}",
                "ASSISTANT_CLIENT_ID": name,
                "ASSISTANT_CLIENT_SECRET": secrets.token_urlsafe(24),
                "ASSISTANT_PROVIDER_NAME": "the provider of this example",
            }
            started.append(_start([f"{name}.provider", "--port", str(port)], environ))
        product = _start(["thinkproject.run.supervisor"], environ)
        started.append(product)
        _wait_ready(product, f"{server}/health/ready")
        _say(f"\nOpen the example: {server}/")
        product.wait()
    finally:
        for process in reversed(started):
            _end(process)


def _start(module: list[str], environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", *module], cwd=ROOT, env=environ)  # noqa: S603 - our own


def _served(name: str) -> dict[str, str]:
    # An example with agents is a Django app of its own, beside this file.
    if not (HERE / name / "agents.py").exists():
        return {}
    apps = filter(None, [name, os.environ.get("THINK_APPS")])
    paths = filter(None, [str(HERE), os.environ.get("PYTHONPATH")])
    return {"THINK_APPS": ",".join(apps), "PYTHONPATH": os.pathsep.join(paths)}


def is_built(name: str) -> bool:
    """Whether the page is bundled and none of its sources has changed since."""
    stamp = HERE / "dist" / name / "stamp"
    return stamp.exists() and stamp.read_text() == _stamp(HERE / name)


def build(name: str) -> Path:
    """Return the folder of the bundled page, built when its sources changed. Errors: `ExampleFailed`."""
    source, folder = HERE / name, HERE / "dist" / name
    if is_built(name):
        return folder
    _say("Bundling the page; the first time about 30 MB come from the npm registry.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stamp").unlink(missing_ok=True)
    for path in _sources(source):
        shutil.copy(path, folder / path.name)
    shutil.copytree(HERE / "shared", folder / "shared", dirs_exist_ok=True)
    for page_file in ("index.html", "style.css"):
        shutil.copy(HERE / "shared" / page_file, folder / page_file)
    _deno(folder, "install", "--frozen")
    _deno(folder, "bundle", "--frozen", "--platform=browser", "--minify", "main.tsx", "-o", "app.js")
    (folder / "stamp").write_text(_stamp(source))
    return folder


def _sources(folder: Path) -> list[Path]:
    # Of the page; an example's Python is none of it.
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix != ".py")


def _stamp(source: Path) -> str:
    digest = hashlib.sha256()
    for path in [Path(__file__), *_sources(source), *_sources(HERE / "shared")]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _deno(folder: Path, *arguments: str) -> None:
    environ = {"DENO_TLS_CA_STORE": "mozilla,system", **os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    command = [find_deno_bin(), *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - our own tools
    if done.returncode != 0:
        raise ExampleFailed(f"the page could not be bundled. Deno says:\n{done.stderr.strip()}")


def _make_token(name: str, environ: dict[str, str]) -> str:
    # The first account, which the product made when it started; safe to ask for again.
    prepared = json.loads(_output(["-m", "thinkproject.run.prepare"], environ).splitlines()[-1])
    user = prepared["username"]
    if not user:
        raise ExampleFailed("there is no account to sign in with; run the example without ALLOWED_HOSTS.")
    words = ["manage.py", "create_api_token", user, "--name", f"example {name}", "--days", "1"]
    return _output(words, environ).strip()


def _output(words: list[str], environ: dict[str, str]) -> str:
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - our own tools
    if done.returncode != 0:
        raise ExampleFailed(done.stderr.strip())
    return done.stdout.strip()


def _wait_ready(product: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if product.poll() is not None:
            raise ExampleFailed("the product did not start; what went wrong stands above.")
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own address
                return
        except OSError:
            time.sleep(0.2)
    raise ExampleFailed(f"the product did not become ready within {START_SECONDS:.0f} s.")


def _end(product: subprocess.Popen[bytes]) -> None:
    if product.poll() is None:
        product.send_signal(signal.SIGINT)
    try:
        product.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        product.kill()
        product.wait()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
