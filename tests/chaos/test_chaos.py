"""Nothing is lost: turns while processes are killed and connections cut, compared by the oracle."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.product import ROOT, Product
from tests.chaos.driver import Score, play
from tests.clients.bundle import BundleFailed, served_bundles

IS_LONG = os.environ.get("TEST_CHAOS") == "long"  # make chaos
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
MIN_KILLS = 20 if IS_LONG else 3
TURNS = int(os.environ.get("CHAOS_TURNS") or (200 if IS_LONG else 25))


def judge(brief_path: Path) -> tuple[int, str]:
    """Run the oracle in a process of its own; returns its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.oracle", str(brief_path), "--keep", str(brief_path.with_suffix(".world"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def do_without(what: str) -> None:
    """Go on without browsers: a failure in CI, and loud elsewhere."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(what)
    warnings.warn(what, stacklevel=2)


def find_browser() -> str:
    """Path of a Chromium, with the web page built for it."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        do_without("NO CHROMIUM: no browsers took part in the chaos run. Install one or set CHROMIUM.")
        return ""
    build = subprocess.run([sys.executable, str(ROOT / "static" / "build.py")], cwd=ROOT, check=False, timeout=300)
    assert build.returncode == 0, "the page could not be built"
    return found


@pytest.fixture
def browser() -> str:
    """Path of a Chromium, or nothing."""
    return find_browser()


@pytest.fixture
def clients(browser: str) -> Iterator[str]:
    """Address of the pages with the published clients, or nothing."""
    with ExitStack() as stack:
        address = ""
        if browser:
            try:
                address = stack.enter_context(served_bundles())
            except BundleFailed as error:
                do_without(f"NO PUBLISHED CLIENTS took part in the chaos run: {error}")
        yield address


@pytest.mark.chaos
@pytest.mark.database
@pytest.mark.timeout(3600 if IS_LONG else 600)
def test_nothing_is_lost_while_processes_die(make_product: Callable[..., Product], browser: str, clients: str) -> None:
    environ = {"THINK_TURNS_PER_MINUTE": "0", "THINK_STREAM_HOT_RETENTION_SECONDS": "7200"}
    product = make_product(webs=2, workers=2, environ=environ | {"THINK_ALLOWED_ORIGINS": clients})
    sys.stdout.write(f"seed {SEED}\n")
    score = Score(turns=TURNS, seed=SEED, min_kills=MIN_KILLS, browser=browser, clients=clients)
    brief = asyncio.run(play(product, score))
    path = product.folder / "brief.json"
    path.write_text(json.dumps(brief), encoding="utf-8")
    code, said = judge(path)
    killed = ", ".join(kill["name"] for kill in brief["kills"])
    turns = f"seed {SEED}: {len(brief['requests'])} requests in {brief['seconds']} s"
    figures = f"{turns}, {len(brief['kills'])} kills ({killed}), {brief['cuts']} cuts"
    sys.stdout.write(f"{figures}\n{said}")
    if code or brief["problems"]:
        keep(product.folder)
    assert code == 0, f"{figures}\n{said}"
    assert not brief["problems"], f"{figures}\n{brief['problems']}"


def keep(folder: Path) -> None:
    """Keep what was said, so that the failure can be looked at."""
    target = Path(os.environ.get("CHAOS_KEEP") or folder.with_name(f"{folder.name}-failed"))
    shutil.copytree(folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock"))
    sys.stdout.write(f"kept in {target}\n")
