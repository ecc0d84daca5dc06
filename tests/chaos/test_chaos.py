"""Nothing is lost: turns while processes are killed and connections cut, compared by the oracle."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.product import ROOT, UNLIMITED, Product
from tests.chaos.driver import Score, play

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


@pytest.mark.chaos
@pytest.mark.timeout(3600 if IS_LONG else 600)
def test_nothing_is_lost_while_processes_die(
    make_product: Callable[..., Product], chromium_path: str, clients: str
) -> None:
    environ = UNLIMITED | {"THINK_STREAM_HOT_RETENTION_SECONDS": "7200"}
    product = make_product(webs=2, workers=2, environ=environ | {"THINK_ALLOWED_ORIGINS": clients})
    sys.stdout.write(f"seed {SEED}\n")
    score = Score(turns=TURNS, seed=SEED, min_kills=MIN_KILLS, browser=chromium_path, clients=clients)
    brief = asyncio.run(play(product, score))
    path = product.folder / "brief.json"
    path.write_text(json.dumps(brief), encoding="utf-8")
    code, said = judge(path)
    killed = ", ".join(kill["name"] for kill in brief["kills"])
    turns = f"seed {SEED}: {len(brief['requests'])} requests in {brief['seconds']} s"
    figures = f"{turns}, {len(brief['kills'])} kills ({killed}), {brief['cuts']} cuts"
    done = ", ".join(f"{act} {times}" for act, times in brief["acts"].items())
    sys.stdout.write(f"{figures}\nin tabs: {done}\n{said}")
    if code or brief["problems"]:
        keep(product.folder)
    assert code == 0, f"{figures}\n{said}"
    assert not brief["problems"], f"{figures}\n{brief['problems']}"


def keep(folder: Path) -> None:
    """Keep what was said, so that the failure can be looked at."""
    target = Path(os.environ.get("CHAOS_KEEP") or folder.with_name(f"{folder.name}-failed"))
    shutil.copytree(folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock"))
    sys.stdout.write(f"kept in {target}\n")
