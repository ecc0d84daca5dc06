"""SQLite's writers take turns, over threads and processes."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from django.db import OperationalError

from thinkproject.sqlite3.base import WriteQueue, queue_of

HOLD = """
import sys
from thinkproject.sqlite3.base import queue_of
queue = queue_of(sys.argv[1])
queue.take(5.0)
print("taken", flush=True)
sys.stdin.readline()
queue.give_back()
print("given back", flush=True)
sys.stdin.readline()
"""


def test_a_file_has_one_queue(tmp_path: Path) -> None:
    assert queue_of(str(tmp_path / "a.sqlite3")) is queue_of(f"{tmp_path}/./a.sqlite3")
    assert queue_of(str(tmp_path / "a.sqlite3")) is not queue_of(str(tmp_path / "b.sqlite3"))
    assert not list(tmp_path.iterdir())  # nothing is made by looking


def test_threads_write_one_at_a_time(tmp_path: Path) -> None:
    queue = WriteQueue(str(tmp_path / "writer"))
    inside: list[int] = []
    most: list[int] = []

    def write() -> None:
        for _ in range(50):
            queue.take(10.0)
            inside.append(1)
            most.append(len(inside))
            time.sleep(0)
            inside.pop()
            queue.give_back()

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (len(most), max(most)) == (300, 1)


def test_a_turn_that_does_not_come_is_an_error_and_leaves_the_queue_usable(tmp_path: Path) -> None:
    queue = WriteQueue(str(tmp_path / "writer"))
    queue.take(1.0)
    with pytest.raises(OperationalError, match="locked"):
        queue.take(0.05)
    queue.give_back()
    queue.take(1.0)
    queue.give_back()


def test_processes_write_one_at_a_time_and_a_dead_one_holds_up_nobody(tmp_path: Path) -> None:
    name = str(tmp_path / "db.sqlite3")
    queue = queue_of(name)
    with holder(name) as other:
        assert line(other) == "taken"
        with pytest.raises(OperationalError, match="locked"):
            queue.take(0.1)
        say(other)
        assert line(other) == "given back"
        queue.take(5.0)
        queue.give_back()
        say(other)
    with holder(name) as other:
        assert line(other) == "taken"
        other.kill()
        other.wait(10)
        queue.take(5.0)
        queue.give_back()


def holder(name: str) -> "subprocess.Popen[str]":
    environ = {**os.environ, "PYTHONPATH": os.getcwd()}
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    )


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def say(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
