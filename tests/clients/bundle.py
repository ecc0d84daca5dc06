"""Bundles the page with the published clients, for a browser, with the Deno of the wheel: no Node, no build server.

The same bundles also run without a browser (`dom/`, `dom_page.py`).

Each line (`sdk7`, `sdk6`) has its own package.json and a lock with hashes. The packages come from the npm registry into
`dist/LINE/`, which is never committed; a bundle is made again when one of its inputs has changed.

With `TEST_CLIENTS=newest` the newest published versions are taken in place of the pinned ones (`make clients-newest`),
once a day; the line of the older AI SDK stays within its major version. They are in `dist/newest/LINE/`.
"""

import datetime as dt
import fcntl
import functools
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deno import find_deno_bin

from thinkproject.run.bootstrap import trusting_this_machine

HERE = Path(__file__).resolve().parent
IS_NEWEST = os.environ.get("TEST_CLIENTS") == "newest"
DIST = Path(os.environ.get("TEST_CLIENTS_DIST", HERE / "dist")) / ("newest" if IS_NEWEST else "")
INPUTS = ("package.json", "deno.json", "deno.lock")
SOURCES = ("app.tsx", "use-chat.tsx", "harness.tsx")
PAGES = {"index.html": "app", "use-chat.html": "use-chat"}
PAGE = (
    '<!doctype html><meta charset="utf-8"><title>Clients</title><div id="root"></div>'
    '<script type="module" src="{}.js"></script>\n'
)
SECONDS = 300.0

LINES = ("sdk7", "sdk6")
DOM = "dom"
WITHIN_MAJOR = {"sdk6": ("ai", "@ai-sdk/react")}


class BundleFailed(Exception):
    """The page could not be bundled; says what Deno said."""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def served_bundles() -> Iterator[str]:
    """Address of the bundled pages, on a port of their own as in development. Errors: `BundleFailed`."""
    for line in (*LINES, DOM):
        make_bundle(line)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(DIST)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def make_bundle(line: str) -> Path:
    """Return the folder with the pages of a line, or with what runs them without a browser. Errors: `BundleFailed`."""
    folder = DIST / line
    folder.mkdir(parents=True, exist_ok=True)
    with (DIST / f"{line}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want it at once
        _make_if_needed(line, folder)
    return folder


def _make_if_needed(line: str, folder: Path) -> None:
    stamp = folder / "stamp"
    wanted = _stamp(line)
    if not (stamp.exists() and stamp.read_text() == wanted):
        stamp.unlink(missing_ok=True)
        for name in INPUTS:
            shutil.copy(HERE / line / name, folder / name)
        for path in _sources(line):
            shutil.copy(path, folder / path.name)
        if IS_NEWEST and line != DOM:
            (folder / "deno.lock").unlink()
            (folder / "package.json").write_text(json.dumps(_unpinned(line), indent=2))
            _deno(folder, "install")
        else:
            _deno(folder, "install", "--frozen")
        for page, entry in PAGES.items() if line in LINES else ():
            _deno(folder, "bundle", "--frozen", "--platform=browser", "--minify", f"{entry}.tsx", "-o", f"{entry}.js")
            (folder / page).write_text(PAGE.format(entry))
        stamp.write_text(wanted)


def _sources(line: str) -> list[Path]:
    return [HERE / DOM / "load.ts"] if line == DOM else [HERE / name for name in SOURCES]


def _package(line: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((HERE / line / "package.json").read_text())
    return found


def _unpinned(line: str) -> dict[str, dict[str, str]]:
    package = _package(line)
    for name, version in package["dependencies"].items():
        package["dependencies"][name] = f"^{version}" if name in WITHIN_MAJOR.get(line, ()) else "latest"
    return package


def versions(line: str) -> list[tuple[str, str, str]]:
    """Each package with its pinned version and the one that was bundled."""
    lock = json.loads((DIST / line / "deno.lock").read_text())
    specifiers = lock["specifiers"].items()
    bundled = {key.removeprefix("npm:").rpartition("@")[0]: value.partition("_")[0] for key, value in specifiers}
    return [(name, pinned, bundled[name]) for name, pinned in _package(line)["dependencies"].items()]


def _stamp(line: str) -> str:
    digest = hashlib.sha256(dt.date.today().isoformat().encode() if IS_NEWEST else b"")  # noqa: DTZ011 - any day
    for path in [Path(__file__), *_sources(line), *(HERE / line / name for name in INPUTS)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _deno(folder: Path, *arguments: str) -> None:
    environ = {**trusting_this_machine(), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            [find_deno_bin(), *arguments],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise BundleFailed(f"deno {arguments[0]} took more than {SECONDS:.0f} s") from error
    if done.returncode != 0:
        raise BundleFailed(f"deno {arguments[0]}:\n{done.stderr.strip()}")


if __name__ == "__main__":
    for each in LINES:
        make_bundle(each)
        for package_name, pinned, bundled in versions(each):
            what = "as pinned" if pinned == bundled else f"pinned: {pinned}"
            sys.stdout.write(f"{each}  {package_name} {bundled}  ({what})\n")
