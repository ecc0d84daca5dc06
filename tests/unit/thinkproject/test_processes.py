"""Children are restarted with back-off, ended for certain, and their logs stay small."""

import contextlib
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from thinkproject.run import processes
from thinkproject.run.memory_kills import memory_kills
from thinkproject.run.processes import Child, RestartInTurn, stop_all
from thinkproject.run.watcher import Watcher

FOREVER = "import time; time.sleep(60)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"


@pytest.fixture
def make_child(tmp_path: Path) -> Iterator[Callable[[str], Child]]:
    made: list[Child] = []

    def make(code: str) -> Child:
        said: list[str] = []
        child = Child(
            name="child", command=[sys.executable, "-c", code], log_path=tmp_path / f"{len(made)}.log", say=said.append
        )
        made.append(child)
        return child

    yield make
    for child in made:
        child.signal(signal.SIGKILL)


def _tick_until(child: Child, condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        child.tick()
        time.sleep(0.01)


def _alive_in_group(group: int) -> list[int]:
    alive = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process.pid)
    return alive


def test_a_child_that_ends_is_started_again_after_a_growing_pause(make_child: Callable[[str], Child]) -> None:
    child = make_child("import sys; sys.exit('no luck')")
    child.start()
    _tick_until(child, lambda: child.restarts == 3)
    assert child.backoff_seconds == pytest.approx(processes.FIRST_BACKOFF_SECONDS * 8)
    assert child.log_path.read_text(encoding="utf-8").count("no luck") == 3


def test_a_restart_on_request_has_no_pause(make_child: Callable[[str], Child]) -> None:
    child = make_child(FOREVER)
    child.start()
    first = child.process
    child.restart()
    _tick_until(child, lambda: child.process is not first)
    assert child.is_running
    assert child.backoff_seconds == processes.FIRST_BACKOFF_SECONDS


KILLED = """
import os, signal, sys
print(os.environ.get("THINK_FIBER_KILLED_WORKER", "none"), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("grows", "holds_leases"), [(True, True), (False, True), (True, False)])
def test_a_worker_killed_for_memory_is_named_to_the_one_in_its_place(
    make_child: Callable[[str], Child], grows: bool, holds_leases: bool
) -> None:
    child = make_child(KILLED)
    child.holds_leases = holds_leases
    counts = itertools.count() if grows else itertools.repeat(3)
    child.count_kills = lambda: next(counts)
    child.start()
    assert child.process is not None
    first = f"{socket.gethostname()[:60]}:{child.process.pid}"
    _tick_until(child, lambda: child.restarts == 2)
    told = child.log_path.read_text(encoding="utf-8").split()
    assert told[:2] == ["none", first if grows and holds_leases else "none"]


def test_a_child_that_is_killed_on_request_did_not_run_out_of_memory(make_child: Callable[[str], Child]) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    child = make_child(code)
    child.holds_leases, child.stop_seconds = True, 0.0
    counts = itertools.count()
    child.count_kills = lambda: next(counts)
    child.start()
    _tick_until(child, lambda: "up" in child.log_path.read_text(encoding="utf-8"))
    child.restart()
    _tick_until(child, lambda: child.restarts == 1)
    assert "THINK_FIBER_KILLED_WORKER" not in child.environ


def test_the_kernels_count_of_kills_is_a_number_or_unknown() -> None:
    count = memory_kills()
    assert count is None or count >= 0


SERVER = """
import json, os, pathlib, sys, time
while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)
os.write(int(sys.argv[3]), json.dumps({"serves": True}).encode() + b"\\n")
time.sleep(60)
"""  # serves once a file is there; its last two arguments are `--report FD`


def test_children_are_restarted_in_turn_each_when_the_last_one_serves(
    make_child: Callable[[str], Child], tmp_path: Path
) -> None:
    children = [make_child(SERVER), make_child(SERVER)]
    for child in children:
        child.reports = True
        child.command = [*child.command, str(tmp_path / "serve")]
        child.start()
    firsts = [child.process for child in children]

    def tick() -> None:
        for child in children:
            child.listen()
            child.tick()

    def tick_until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline
            tick()
            turn.tick()
            time.sleep(0.01)

    turn = RestartInTurn([])
    (tmp_path / "serve").touch()
    tick_until(lambda: all(child.is_serving for child in children))
    (tmp_path / "serve").unlink()
    turn = RestartInTurn(children)
    tick_until(lambda: children[0].process not in {firsts[0], None})
    for _ in range(30):  # it loads, and the other one is left alone
        tick()
        turn.tick()
        time.sleep(0.01)
    assert children[1].process is firsts[1]
    assert children[1].is_running
    assert not children[0].is_serving
    (tmp_path / "serve").touch()
    tick_until(lambda: children[1].process not in {firsts[1], None})
    tick_until(lambda: all(child.is_serving for child in children))
    assert [child.restarts for child in children] == [1, 1]


def test_one_that_does_not_listen_is_killed_in_time(make_child: Callable[[str], Child]) -> None:
    child = make_child(DEAF)
    child.stop_seconds = 0.3
    child.start()
    _tick_until(child, lambda: "on" in child.log_path.read_text(encoding="utf-8"))
    started = time.monotonic()
    stop_all([child], hurry=lambda: False)
    assert child.process is None
    assert 0.2 < time.monotonic() - started < 5


def test_what_a_child_started_ends_with_it(make_child: Callable[[str], Child]) -> None:
    child = make_child(f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {DEAF!r}]).wait()")
    child.start()
    _tick_until(child, lambda: "on" in child.log_path.read_text(encoding="utf-8"))
    assert child.process is not None
    group = child.process.pid
    child.stop_seconds = 0.3
    stop_all([child], hurry=lambda: False)
    deadline = time.monotonic() + 10
    while _alive_in_group(group):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_long_log_is_rotated_and_the_child_goes_on_writing(
    make_child: Callable[[str], Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LOG_MAX_BYTES", 1000)
    child = make_child("import time\nwhile True: print('x' * 99, flush=True); time.sleep(0.005)")
    child.start()
    _tick_until(child, lambda: child.log_path.stat().st_size > 2000)
    child.rotate_log()
    assert child.log_path.with_name(f"{child.log_path.name}.1").stat().st_size > 2000
    _tick_until(child, lambda: 0 < child.log_path.stat().st_size < 2000)
    assert not child.log_path.read_bytes().startswith(b"\0")


def test_edits_of_code_are_reported(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "front" / "dist").mkdir(parents=True)
    (tmp_path / ".pytest_cache").mkdir()
    (tmp_path / "a.py").write_text("1", encoding="utf-8")
    watcher = Watcher([tmp_path])
    assert watcher.poll() == set()
    (tmp_path / ".pytest_cache" / "cache").mkdir()  # made by a run of tests beside
    (tmp_path / ".ruff_cache").mkdir()
    (tmp_path / "a.py").write_text("22", encoding="utf-8")
    (tmp_path / "new.py").write_text("3", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("4", encoding="utf-8")
    (tmp_path / "var" / "data.py").write_text("5", encoding="utf-8")
    (tmp_path / "front" / "dist" / "index.html").write_text("6", encoding="utf-8")  # made by a build, served as a file
    (tmp_path / "front" / "page.html").write_text("7", encoding="utf-8")
    assert changed(watcher, 3) == {str(tmp_path / name) for name in ("a.py", "new.py", "front/page.html")}
    assert watcher.poll() == set()
    watcher.close()


@pytest.mark.long
def test_a_package_that_is_new_is_watched(tmp_path: Path) -> None:
    watcher = Watcher([tmp_path])
    (tmp_path / "package").mkdir()
    assert changed(watcher, 1) == {str(tmp_path / "package")}
    (tmp_path / "package" / "tools.py").write_text("1", encoding="utf-8")
    assert changed(watcher, 1) == {str(tmp_path / "package" / "tools.py")}
    watcher.close()


def changed(watcher: Watcher, count: int) -> set[str]:
    """The paths that a watcher reports until there are so many."""
    found: set[str] = set()
    deadline = time.monotonic() + 10
    while len(found) < count and time.monotonic() < deadline:
        found |= watcher.poll()
    return found
