"""Bundles the page with the published clients, for a browser, with the Deno of the wheel: no Node, no build server.

Each line (`sdk7`, `sdk6`) has its own package.json and a lock with hashes. The packages come from the npm registry into
`dist/LINE/`, which is never committed; a bundle is made again when one of its inputs has changed.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from deno import find_deno_bin

HERE = Path(__file__).resolve().parent
DIST = HERE / "dist"
INPUTS = ("package.json", "deno.json", "deno.lock")
PAGE = (
    '<!doctype html><meta charset="utf-8"><title>Clients</title><div id="root"></div><script src="app.js"></script>\n'
)
SECONDS = 300.0


class BundleFailed(Exception):
    """The page could not be bundled; says what Deno said."""


def make_bundle(line: str) -> Path:
    """Return the folder with `index.html` and `app.js` of a line, built if needed. Errors: `BundleFailed`."""
    folder = DIST / line
    stamp = folder / "stamp"
    wanted = _stamp(line)
    if not (stamp.exists() and stamp.read_text() == wanted):
        folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        for name in INPUTS:
            shutil.copy(HERE / line / name, folder / name)
        shutil.copy(HERE / "app.tsx", folder / "app.tsx")
        _deno(folder, "install", "--frozen")
        _deno(folder, "bundle", "--frozen", "--platform=browser", "app.tsx", "-o", "app.js")
        (folder / "index.html").write_text(PAGE)
        stamp.write_text(wanted)
    return folder


def _stamp(line: str) -> str:
    digest = hashlib.sha256()
    for path in [Path(__file__), HERE / "app.tsx", *(HERE / line / name for name in INPUTS)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _deno(folder: Path, *arguments: str) -> None:
    environ = {**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
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
