"""A script over the published State Protocol client, run by Deno: installed once by a lock with hashes."""

import os
from pathlib import Path

from tests import npm

HERE = Path(__file__).resolve().parent
DIST = Path(os.environ.get("TEST_STATE_DIST", HERE / "dist"))
STATE_CLIENT = npm.installed(HERE, DIST, "follow.mjs")


def command() -> list[str]:
    """The command that follows the conversation of `STATE_URL`."""
    folder = STATE_CLIENT.get()
    return [npm.DENO, "run", *npm.offline(folder), "-A", str(folder / "follow.mjs")]
