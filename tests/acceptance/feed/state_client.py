"""The published client of the State Protocol, as a script that Deno runs and as a page: installed by a lock."""

import os
from pathlib import Path

from tests import npm

HERE = Path(__file__).resolve().parent
DIST = Path(os.environ.get("TEST_STATE_DIST", HERE / "dist"))


def _make(folder: Path) -> None:
    npm.install(folder)
    npm.deno(folder, "bundle", "--frozen", "--platform=browser", "--minify", "tab.mjs", "-o", "tab.js")


STATE_CLIENT = npm.Made(DIST, [HERE / name for name in (*npm.INPUTS, "follow.mjs", "tab.mjs")], _make)


def command() -> list[str]:
    """The command that follows the conversation of `STATE_URL`."""
    folder = STATE_CLIENT.get()
    return [npm.DENO, "run", *npm.offline(folder), "-A", str(folder / "follow.mjs")]


def page_script() -> str:
    """The script of a page that can `follow` a conversation."""
    return (STATE_CLIENT.get() / "tab.js").read_text()
