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
import redis

from fibers.process.interrupts import CHANNEL
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
    return all(word in commands for word in ("valkey-server", "thinkproject.run.server", " worker "))


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
    for name in ("think.sqlite3", "logs/web-1.log", "secret_key"):
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


def test_two_copies_run_side_by_side_with_cookies_of_their_own(
    running_product: Run, make_run: Callable[..., Run]
) -> None:
    runs = [running_product, make_run(is_migrated=True).start()]
    names = set()
    for run in runs:
        run.wait_until_ready(seconds=200)
        with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/admin/login/") as response:
            names.add(response.headers["Set-Cookie"].partition("=")[0])
    assert len(names) == 2
    assert all(_has_all_services(run) for run in runs)


def test_a_killed_child_is_started_again(running_product: Run) -> None:
    kills = running_product.output.count("ended (SIGKILL)")
    for word in ("valkey-server", "thinkproject.run.server", " worker "):
        before = running_product.children(word)
        os.kill(before[0], signal.SIGKILL)
        wait_for(partial(_are_new, running_product, word, before, killed=1), seconds=20, what=f"a new {word}")
    running_product.wait_until_healthy()
    assert running_product.output.count("ended (SIGKILL)") == kills + 3


@pytest.mark.smoke
def test_daphne_serves_where_it_is_chosen(make_run: Callable[..., Run]) -> None:
    run = make_run(is_migrated=True, THINK_WEB_SERVER="daphne").start()
    run.wait_until_ready(seconds=200)
    with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/admin/login/") as response:
        assert response.status == 200
        assert "date" not in response.headers  # which uvicorn sends with each answer
    assert run.ctrl_c() < 10


def test_code_that_does_not_run_for_its_walls_is_said_at_the_start(make_run: Callable[..., Run]) -> None:
    run = make_run(THINK_SANDBOX_MAY_LACK="users").start()
    run.wait_until_ready(seconds=200)
    assert "Sandbox: Code cannot run here: THINK_SANDBOX_MAY_LACK: 'users' is not a valid Wall." in run.output
    log = run.data_dir / "logs" / "worker-1.log"
    wait_for(lambda: "sandbox: Code cannot run here" in log.read_text(), seconds=20, what="the worker's warning")
    assert run.ctrl_c() < 10


def test_ctrl_c_while_it_starts_leaves_no_process(make_run: Callable[..., Run]) -> None:
    run = make_run().start()
    wait_for(lambda: run.children("thinkproject.run.server"), seconds=200, what="the first web process")
    assert run.ctrl_c() < 10
    assert pids_of(run.data_dir) == {}
    assert "Traceback" not in run.output


def test_code_that_cannot_be_loaded_is_one_clear_line(make_run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "broken_app").mkdir()
    (tmp_path / "broken_app" / "__init__.py").touch()
    (tmp_path / "broken_app" / "models.py").write_text("raise ValueError('not today')\n", encoding="utf-8")
    run = make_run(PYTHONPATH=str(tmp_path), THINK_APPS="broken_app").start()
    assert run.wait(seconds=200) != 0
    [line] = [line for line in run.output.splitlines() if line.startswith("error:")]
    assert "ValueError: not today" in line
    assert "web-1.log" in line
    assert pids_of(run.data_dir) == {}


@pytest.mark.smoke
def test_one_of_two_web_processes_and_workers_goes_and_the_other_one_serves(running_product: Run) -> None:
    webs, workers = running_product.children("thinkproject.run.server"), running_product.children(" worker ")
    assert (len(webs), len(workers)) == (2, 2)
    for name in ("web-1", "web-2", "worker-1", "worker-2"):
        assert (running_product.data_dir / "logs" / f"{name}.log").exists()
    # One that an earlier test has killed may be starting still, and would be the one that is left.
    wait_for(lambda: _listening_workers(running_product) == 2, seconds=60, what="both workers")
    os.kill(workers[0], signal.SIGSTOP)
    os.kill(webs[0], signal.SIGSTOP)  # it stays away, so what answers is the other one
    os.kill(webs[0], signal.SIGKILL)
    while not _are_new(running_product, "thinkproject.run.server", webs, killed=1):
        assert running_product.get("/health/live")[0] == 200
    os.kill(workers[0], signal.SIGKILL)
    wait_for(partial(_are_new, running_product, " worker ", workers, killed=1), seconds=20, what="a new worker")
    status, parts = running_product.get("/health/ready")
    assert status == 200, parts


def test_children_die_with_a_killed_supervisor_and_the_next_start_works(running_product: Run) -> None:
    os.kill(running_product.child("thinkproject.run.supervisor"), signal.SIGKILL)

    wait_for(lambda: pids_of(running_product.data_dir) == {}, seconds=20, what="the end of all children")
    running_product.start().wait_until_ready()


def test_what_was_left_by_a_power_cut_does_not_stop_the_next_start(running_product: Run) -> None:
    for pid in sorted(pids_of(running_product.data_dir)):
        os.kill(pid, signal.SIGKILL)
    assert (running_product.data_dir / "redis" / "redis.sock").exists()
    wait_for(lambda: pids_of(running_product.data_dir) == {}, seconds=10, what="the end of all processes")

    running_product.start().wait_until_ready()


def test_an_edit_restarts_web_and_worker_and_nothing_else(running_product: Run, tree: Path) -> None:
    words = ("valkey-server", "thinkproject.run.server", " worker ")
    before = {word: running_product.children(word) for word in words}

    agents = tree / "chat" / "apps.py"
    agents.write_text(agents.read_text(encoding="utf-8") + "\n", encoding="utf-8")

    wait_for(lambda: "apps.py changed" in running_product.output, seconds=10, what="noticing the edit")
    for word in ("thinkproject.run.server", " worker "):
        wait_for(partial(_are_new, running_product, word, before[word], killed=2), seconds=40, what=f"new {word}")
    for word in ("valkey-server",):
        assert running_product.children(word) == before[word]
    wait_for(lambda: _answers(running_product), seconds=20, what="the page")


def test_a_second_start_on_the_same_data_is_reported(running_product: Run, make_run: Callable[..., Run]) -> None:
    second = make_run(data_dir=running_product.data_dir).start()

    assert second.wait() != 0
    assert f"error: already running on {running_product.data_dir} (process " in second.output


def _listening_workers(run: Run) -> int:
    with redis.Redis(unix_socket_path=str(run.data_dir / "redis" / "redis.sock")) as client:
        ((_, count),) = client.pubsub_numsub(CHANNEL)
    return int(count)


def _answers(run: Run) -> bool:
    try:
        return run.get("/static/admin/css/base.css")[0] == 200
    except OSError:
        return False


def _are_new(run: Run, word: str, before: list[int], *, killed: int) -> bool:
    found = run.children(word)
    return len(found) == len(before) and len({*found} - {*before}) == killed
