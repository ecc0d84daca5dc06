"""A run that could not test something reports it: what cannot be fetched fails, and what is missing is named."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.chromium import MISSING
from tests.house.repository import ROOT


def run_tests(tmp_path: Path, *names: str, **environ: str) -> tuple[int, str, dict[str, int]]:
    """Run tests as `make test` does. Returns exit code, output, and what was skipped for which reason."""
    report = tmp_path / "report"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TEST_", "PYTEST_", "CI"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names],
        cwd=ROOT,
        env={**kept, "TEST_REPORT": str(report), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    [record] = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    return done.returncode, done.stdout, record["skipped"]


def test_clients_that_cannot_be_fetched_fail_the_run(tmp_path: Path) -> None:
    code, output, skipped = run_tests(
        tmp_path,
        "tests/clients/test_checks.py",
        "-x",
        TEST_CLIENTS_DIST=str(tmp_path / "dist"),
        DENO_DIR=str(tmp_path / "deno"),
        NPM_CONFIG_REGISTRY="http://127.0.0.1:9/",
    )
    assert code == 1
    assert "NpmFailed" in output
    assert skipped == {}


def test_a_missing_browser_is_named_at_the_end(tmp_path: Path) -> None:
    python = Path(sys.executable).parent
    code, _output, skipped = run_tests(tmp_path, "tests/browser/test_load.py", PATH=str(python), CHROMIUM="")
    assert code == 0
    assert list(skipped) == [MISSING]


def test_a_missing_browser_fails_in_ci(tmp_path: Path) -> None:
    python = Path(sys.executable).parent
    code, output, skipped = run_tests(tmp_path, "tests/browser/test_load.py", PATH=str(python), CHROMIUM="", CI="1")
    assert code == 1
    assert MISSING in output
    assert skipped == {}
