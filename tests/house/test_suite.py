"""What a run of the tests promises: what is left behind fails it, and what fails once is printed and kept."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.repository import ROOT

LEAVES_A_TASK = """
import asyncio, gc
async def forever():
    await asyncio.Event().wait()
def test_that_leaves_a_task():
    loop = asyncio.new_event_loop()
    task = loop.create_task(forever())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    del task
    gc.collect()
"""
LEAVES_A_PROCESS = """
import asyncio
def test_that_leaves_a_process():
    loop = asyncio.new_event_loop()
    process = loop.run_until_complete(asyncio.create_subprocess_exec("sleep", "0.05"))
    loop.close()
def test_that_is_there_when_it_ends():
    import time
    time.sleep(0.5)  # which is when the process has long ended
"""
FAILS_ONCE = """
from pathlib import Path
def test_that_fails_once():
    mark = Path(__file__).with_name("mark")
    is_first = not mark.exists()
    mark.touch()
    assert not is_first, "for the first time"
def test_that_fails():
    assert False, "each time"
"""

HANGS = """
import asyncio, threading
import pytest
@pytest.fixture
def hanging():
    yield
    threading.Event().wait()
def test_whose_loop_swallows_the_limit():
    def wait():
        while True:
            threading.Event().wait(0.05)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    loop.call_soon(wait)
    loop.run_forever()
def test_that_fails_and_hangs_then(hanging):
    assert False
def test_that_passes():
    pass
@pytest.mark.timeout(60)
def test_that_may_take_longer_than_others():
    threading.Event().wait(3.5)
def test_that_waits_in_a_loop():
    async def forever():
        await asyncio.Event().wait()
    asyncio.run(forever())
"""


@pytest.fixture
def planted() -> Iterator[Path]:
    """A folder for tests that no other run collects."""
    place = ROOT / ".pytest_cache"
    place.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=place, prefix="planted"))
    yield folder
    shutil.rmtree(folder)


def run(*arguments: str, **environ: str) -> tuple[int, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TEST_", "PYTEST_", "CI"))}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**kept, **environ}, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("source", "said"),
    [(LEAVES_A_TASK, "Task was destroyed but it is pending"), (LEAVES_A_PROCESS, "that handles pid")],
    ids=["task", "process"],
)
def test_what_is_left_behind_fails_the_run(planted: Path, source: str, said: str) -> None:
    path = planted / "test_leaving.py"
    path.write_text(source, encoding="utf-8")
    (planted / "conftest.py").write_text('pytest_plugins = ("tests.conftest",)\n', encoding="utf-8")
    code, output = run("pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", str(path))
    assert code == 1, output
    assert "left behind by this test or an earlier one" in output
    assert said in output


def test_what_hangs_for_good_fails_and_the_others_are_run(planted: Path) -> None:
    path = planted / "test_hanging.py"
    path.write_text(HANGS, encoding="utf-8")
    limits = "timeout = 1\nfaulthandler_timeout = 3\nfaulthandler_exit_on_timeout = true\n"
    (planted / "pytest.ini").write_text(f"[pytest]\n{limits}", encoding="utf-8")
    code, output = run("pytest", "-n1", "-p", "no:randomly", "-p", "no:django", "-p", "tests.suite.hanging", str(path))
    assert code == 1, output
    assert "4 failed, 2 passed" in output, "one failed, and hung then"
    assert re.search(r"in forever\n +await asyncio", output)
    for name in ("test_whose_loop_swallows_the_limit", "test_that_fails_and_hangs_then"):
        assert re.search(rf"crashed while running '\S+::{name}'", output)
    assert output.count("Timeout (0:00:03)!") == 2, "the stacks are printed"


def report_of(planted: Path) -> Path:
    """The report of a run in which both tests failed."""
    path = planted / "test_failing.py"
    path.write_text(FAILS_ONCE, encoding="utf-8")
    (planted / "mark").touch()
    failed = {f"{path}::{name}": f"all that {name} said" for name in ("test_that_fails_once", "test_that_fails")}
    report = planted / "report"
    report.write_text(json.dumps({"database": "sqlite", "skipped": {}, "failed": failed}) + "\n", encoding="utf-8")
    return report


def test_a_test_that_passes_alone_is_told_as_unsteady_and_one_that_fails_twice_fails_the_run(planted: Path) -> None:
    code, output = run("tests.suite.reruns", str(report_of(planted)), str(planted / "unsteady.txt"))
    assert code == 1
    assert "UNSTEADY: 1 failed and passed alone" in output
    assert "FAILED TWICE: " in output
    assert output.index("test_that_fails (sqlite)") < output.index("FAILED TWICE")
    told = (planted / "unsteady.txt").read_text(encoding="utf-8")
    assert "test_that_fails_once (sqlite)\nall that test_that_fails_once said" in told
    assert "test_that_fails (" not in told


def test_unsteady_tests_alone_do_not_fail_the_run(planted: Path) -> None:
    report = report_of(planted)
    record = json.loads(report.read_text(encoding="utf-8"))
    record["failed"] = {name: text for name, text in record["failed"].items() if name.endswith("_once")}
    report.write_text(json.dumps(record) + "\n", encoding="utf-8")
    code, output = run("tests.suite.reruns", str(report), str(planted / "unsteady.txt"))
    assert (code, "UNSTEADY: 1" in output) == (0, True)


def test_a_run_in_which_everything_fails_is_not_run_again(planted: Path) -> None:
    report = planted / "report"
    failed = {f"tests/test_{number}.py::test_it": "" for number in range(21)}
    report.write_text(json.dumps({"database": "sqlite", "skipped": {}, "failed": failed}) + "\n", encoding="utf-8")
    code, output = run("tests.suite.reruns", str(report), str(planted / "unsteady.txt"))
    assert (code, "Once more" in output) == (1, False)
