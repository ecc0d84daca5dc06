"""`make run` as a newcomer meets it: a copy of the tree, an empty home, real processes."""

import os
import signal
import sqlite3
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.ops.tree import Run, pids_of
from tests.acceptance.product import wait_for

pytestmark = pytest.mark.timeout(300)

OFFLINE = {
    "UV_OFFLINE": "1",
    "PIP_NO_INDEX": "1",
    "https_proxy": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
}


def _has_all_services(run: Run) -> bool:
    commands = " ".join(pids_of(run.data_dir).values())
    return all(word in commands for word in ("valkey-server", "thinkproject.run.server", " worker ", " beat "))


@pytest.mark.smoke
def test_a_fresh_machine_gets_a_page_and_ctrl_c_leaves_no_process(make_run: Callable[..., Run]) -> None:
    run = make_run().start()
    address = run.wait_until_ready(seconds=200)
    assert address.startswith(f"http://127.0.0.1:{run.port}/")
    assert run.get("/static/admin/css/base.css")[0] == 200
    assert _has_all_services(run)
    assert "Model: No model " in run.output  # the small one is left out in this test, and no one pretends

    assert run.ctrl_c() < 10
    assert pids_of(run.data_dir) == {}
    assert not (run.data_dir / "redis" / "redis.sock").exists()


def test_a_second_start_needs_no_network_takes_seconds_and_finds_the_data(make_run: Callable[..., Run]) -> None:
    first = make_run().start()
    first.wait_until_ready(seconds=200)
    first.ctrl_c()
    with sqlite3.connect(first.data_dir / "think.sqlite3") as database:
        database.execute("UPDATE auth_user SET first_name = 'kept'")
    database.close()

    assert open_to_others(first.data_dir) == []
    first.data_dir.chmod(0o755)
    for name in ("think.sqlite3", "logs/web.log", "secret_key"):
        (first.data_dir / name).chmod(0o644)  # as earlier versions left them

    second = make_run(data_dir=first.data_dir, port=first.port, **OFFLINE).start()
    started = time.monotonic()
    second.wait_until_ready()

    assert time.monotonic() - started < 30
    assert "Installing" not in second.output
    assert open_to_others(second.data_dir) == []
    with sqlite3.connect(first.data_dir / "think.sqlite3") as database:
        assert database.execute("SELECT username, first_name FROM auth_user").fetchall() == [("me", "kept")]
    database.close()


def open_to_others(data_dir: Path) -> list[str]:
    """What others than the owner may do anything with, by name and mode; sockets are within private directories."""
    paths = [data_dir, *data_dir.rglob("*")]
    found = [path for path in paths if not path.is_socket() and not path.is_symlink() and path.stat().st_mode & 0o077]
    return [f"{path.relative_to(data_dir)} {path.stat().st_mode:o}" for path in found]


def test_two_copies_run_side_by_side_with_cookies_of_their_own(running: Run, make_run: Callable[..., Run]) -> None:
    runs = [running, make_run().start()]
    names = set()
    for run in runs:
        run.wait_until_ready(seconds=200)
        with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/admin/login/") as response:
            names.add(response.headers["Set-Cookie"].partition("=")[0])
    assert len(names) == 2
    assert all(_has_all_services(run) for run in runs)


def test_a_killed_child_is_started_again(running: Run) -> None:
    kills = running.output.count("ended (SIGKILL)")
    for word in ("valkey-server", "thinkproject.run.server", " worker ", " beat "):
        before = running.child(word)
        os.kill(before, signal.SIGKILL)
        wait_for(partial(_is_new, running, word, before), seconds=20, what=f"a new {word}")
    running.wait_until_healthy()
    assert running.output.count("ended (SIGKILL)") == kills + 4


def test_children_die_with_a_killed_supervisor_and_the_next_start_works(running: Run) -> None:
    os.kill(running.child("thinkproject.run.supervisor"), signal.SIGKILL)

    wait_for(lambda: pids_of(running.data_dir) == {}, seconds=20, what="the end of all children")
    running.start().wait_until_ready()


def test_what_was_left_by_a_power_cut_does_not_stop_the_next_start(running: Run) -> None:
    for pid in sorted(pids_of(running.data_dir)):
        os.kill(pid, signal.SIGKILL)
    assert (running.data_dir / "redis" / "redis.sock").exists()
    wait_for(lambda: pids_of(running.data_dir) == {}, seconds=10, what="the end of all processes")

    running.start().wait_until_ready()


def test_an_edit_restarts_web_and_worker_and_nothing_else(running: Run, tree: Path) -> None:
    before = {word: running.child(word) for word in ("valkey-server", "thinkproject.run.server", " worker ", " beat ")}

    agents = tree / "chat" / "apps.py"
    agents.write_text(agents.read_text(encoding="utf-8") + "\n", encoding="utf-8")

    wait_for(lambda: "apps.py changed" in running.output, seconds=10, what="noticing the edit")
    for word in ("thinkproject.run.server", " worker "):
        wait_for(partial(_is_new, running, word, before[word]), seconds=20, what=f"a new {word}")
    for word in ("valkey-server", " beat "):
        assert running.child(word) == before[word]
    wait_for(lambda: _answers(running), seconds=20, what="the page")


def test_a_second_start_on_the_same_data_is_reported(running: Run, make_run: Callable[..., Run]) -> None:
    second = make_run(data_dir=running.data_dir).start()

    assert second.wait() != 0
    assert f"error: already running on {running.data_dir} (process " in second.output


def _answers(run: Run) -> bool:
    try:
        return run.get("/static/admin/css/base.css")[0] == 200
    except OSError:
        return False


def _is_new(run: Run, word: str, before: int) -> bool:
    found = [pid for pid, command in pids_of(run.data_dir).items() if word in command]
    return len(found) == 1 and found != [before]
