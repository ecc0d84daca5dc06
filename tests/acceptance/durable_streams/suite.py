"""The published conformance suite, run by Deno: installed once by a lock with hashes; nothing is fetched afterwards."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests import npm

HERE = Path(__file__).resolve().parent
DIST = Path(os.environ.get("TEST_STREAMS_DIST", HERE / "dist"))
SUITE = npm.installed(HERE, DIST, "conformance.test.mjs")
LONG_POLL_SECONDS = 2.0
ENVIRON = {
    "THINK_DURABLE_STREAMS": json.dumps(
        {"long_poll_seconds": LONG_POLL_SECONDS, "requests_per_minute": 10**6, "streams": 10**5}
    ),
    "THINK_MCP_PRIVATE_NETWORKS": "127.0.0.0/8",
}
"""Settings of a product for it: its receivers listen on this machine, and one person sends very many requests."""


def run_suite(url: str, token: str, *, seconds: float) -> dict[str, Any]:
    """Run it against a server, and return the report of vitest (as its reporter `json` writes it)."""
    folder = SUITE.get()
    report = folder / f"report-{os.getpid()}.json"
    vitest = str(folder / "node_modules" / "vitest" / "vitest.mjs")
    options = [
        "run",
        "conformance.test.mjs",
        "--reporter=json",
        f"--outputFile={report}",
        "--pool=threads",
        "--testTimeout=60000",
    ]
    environ = {**os.environ, "CONFORMANCE_URL": url, "CONFORMANCE_TOKEN": token, "NO_COLOR": "1", "CI": "1"}
    done = subprocess.run(
        [npm.DENO, "run", *npm.offline(folder), "-A", vitest, *options],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert report.exists(), (done.stdout + done.stderr)[-3000:]
    try:
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    finally:
        report.unlink()
    return found


def failures(report: dict[str, Any]) -> dict[str, str]:
    """The tests that did not pass, each with the beginning of what went wrong."""
    results = [each for file in report["testResults"] for each in file["assertionResults"]]
    return {
        each["fullName"]: each["status"] + ": " + " ".join(each.get("failureMessages", []))[:400]
        for each in results
        if each["status"] != "passed"
    }
