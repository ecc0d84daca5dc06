"""The schemas of the published package `@ag-ui/core`, run by Deno: installed once, by a lock with hashes."""

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests import npm

HERE = Path(__file__).resolve().parent
DIST = Path(os.environ.get("TEST_AG_UI_DIST", HERE / "dist"))
SCHEMAS = npm.installed(HERE, DIST, "check.mjs")


def wrong_events(lists: Iterable[list[Any]]) -> list[Any]:
    """The events that the published schemas refuse, with their reasons."""
    folder = SCHEMAS.get()
    done = subprocess.run(
        [npm.DENO, "run", *npm.offline(folder), "-A", str(folder / "check.mjs")],
        input="\n".join(map(json.dumps, lists)),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: list[Any] = json.loads(done.stdout)
    return found
