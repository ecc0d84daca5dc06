"""Bundles the page with the published clients, for a browser, with the Deno of the wheel: no Node, no build server.

The same bundles also run without a browser (`dom/`, `dom_page.py`).

Each line (`sdk7`, `sdk6`) has its own package.json and a lock with hashes. The packages come from the npm registry into
`dist/LINE/`, which is never committed; a bundle is made again when one of its inputs has changed.

With `TEST_CLIENTS=newest` the newest published versions are taken in place of the pinned ones (`make clients-newest`),
once a day; the line of the older AI SDK stays within its major version. They are in `dist/newest/LINE/`.
"""

import datetime as dt
import functools
import http.server
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import npm

HERE = Path(__file__).resolve().parent
IS_NEWEST = os.environ.get("TEST_CLIENTS") == "newest"
DIST = Path(os.environ.get("TEST_CLIENTS_DIST", HERE / "dist")) / ("newest" if IS_NEWEST else "")
SOURCES = ("app.tsx", "use-chat.tsx", "harness.tsx")
PAGES = {"index.html": "app", "use-chat.html": "use-chat"}
PAGE = (
    '<!doctype html><meta charset="utf-8"><title>Clients</title><div id="root"></div>'
    '<script type="module" src="{}.js"></script>\n'
)

LINES = ("sdk7", "sdk6")
DOM = "dom"
WITHIN_MAJOR = {"sdk6": ("ai", "@ai-sdk/react")}


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def served_bundles() -> Iterator[str]:
    """Address of the bundled pages, on a port of their own as in development. Errors: `NpmFailed`."""
    for line in (*LINES, DOM):
        make_bundle(line)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(DIST)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def make_bundle(line: str) -> Path:
    """Return the folder with the pages of a line, or with what runs them without a browser. Errors: `NpmFailed`."""
    return bundle_of(line).get()


def bundle_of(line: str) -> npm.Made:
    """The folder of a line, which may not be there yet."""
    inputs = [*(HERE / line / name for name in npm.INPUTS), *_sources(line)]
    salt = dt.date.today().isoformat() if IS_NEWEST else ""  # noqa: DTZ011 - any day
    return npm.Made(DIST / line, inputs, functools.partial(_make, line), salt=salt + PAGE)


def _make(line: str, folder: Path) -> None:
    if IS_NEWEST and line != DOM:
        (folder / "deno.lock").unlink()
        (folder / "package.json").write_text(json.dumps(_unpinned(line), indent=2))
        npm.deno(folder, "install")
    else:
        npm.install(folder)
    for page, entry in PAGES.items() if line in LINES else ():
        npm.deno(folder, "bundle", "--frozen", "--platform=browser", "--minify", f"{entry}.tsx", "-o", f"{entry}.js")
        (folder / page).write_text(PAGE.format(entry))


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


if __name__ == "__main__":
    for each in LINES:
        make_bundle(each)
        for package_name, pinned, bundled in versions(each):
            what = "as pinned" if pinned == bundled else f"pinned: {pinned}"
            sys.stdout.write(f"{each}  {package_name} {bundled}  ({what})\n")
