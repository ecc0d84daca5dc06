"""Our daphne: large messages, slow readers, an access log that may be read."""

import contextlib
import http.client
import json
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.acceptance.product import Process, base_environ, wait_for
from thinkproject.run.supervisor import listen

MIB = 1024 * 1024
UVICORN = [
    "uvicorn",
    "--ws",
    "websockets-sansio",
    "--ws-max-size",
    str(16 * MIB),
    "--no-access-log",
    "--timeout-graceful-shutdown",
    "3",
]


def start_server(folder: Path, command: list[str], listener: socket.socket, **environ: str) -> Process:
    process = Process("server", command, base_environ(folder) | environ, folder, pass_fds=[listener.fileno()])
    process.port = listener.getsockname()[1]
    process.start()
    wait_for(lambda: counts(process) is not None, what="the server")
    return process


def counts(process: Process) -> dict[str, int] | None:
    assert process.is_running, process.log
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/?token=think_canary", timeout=5) as response:
            return dict(json.load(response))
    except OSError:
        return None


def send_many(client: Any, number: int) -> None:
    for _ in range(number):
        client.send("y" * MIB)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path, listener: socket.socket) -> Iterator[Process]:
    command = [sys.executable, "-m", "tests.acceptance.ops.echo_app", str(listener.fileno())]
    process = start_server(tmp_path, command, listener)
    yield process
    process.kill()


@pytest.fixture
def uvicorn(tmp_path: Path, listener: socket.socket) -> Iterator[Process]:
    command = [
        sys.executable,
        "-m",
        *UVICORN,
        "--fd",
        str(listener.fileno()),
        "tests.acceptance.ops.echo_app:application",
    ]
    process = start_server(tmp_path, command, listener)
    yield process
    process.kill()


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["server", "uvicorn"])
def test_a_message_may_have_16_mib_and_no_more(kind: str, request: pytest.FixtureRequest) -> None:
    process: Process = request.getfixturevalue(kind)
    with connect(f"ws://127.0.0.1:{process.port}/length", max_size=None) as client:
        client.send("y" * (16 * MIB - 100))
        assert json.loads(client.recv(timeout=30))["length"] == 16 * MIB - 100
        with contextlib.suppress(ConnectionClosed):  # it may learn of the refusal while it still sends
            client.send("y" * (16 * MIB + 100))
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(timeout=30)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009
    assert counts(process) is not None


@pytest.mark.smoke
def test_a_message_of_64_mb_is_refused_without_being_kept(server: Process) -> None:
    with connect(f"ws://127.0.0.1:{server.port}/length", max_size=None) as client:
        with contextlib.suppress(ConnectionClosed):
            client.send("y" * 64_000_000)
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(timeout=30)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009
    assert psutil.Process(server.pid).memory_info().rss < 200 * MIB
    assert counts(server) is not None


@pytest.mark.smoke
def test_a_frame_may_have_what_the_settings_say(tmp_path: Path, listener: socket.socket) -> None:
    command = [sys.executable, "-m", "tests.acceptance.ops.echo_app", str(listener.fileno())]
    process = start_server(tmp_path, command, listener, THINK_MAX_FRAME_BYTES="5000")
    with connect(f"ws://127.0.0.1:{process.port}/length", max_size=None) as client:
        client.send("y" * 5000)
        assert json.loads(client.recv(timeout=30))["length"] == 5000
        client.send("y" * 5001)
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(timeout=30)
    process.kill()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009


@pytest.mark.smoke
def test_a_socket_whose_frames_are_not_taken_is_not_read(server: Process) -> None:
    with connect(f"ws://127.0.0.1:{server.port}/deaf", compression=None) as client:
        client.socket.settimeout(3)
        with pytest.raises(ConnectionClosed):  # the system's buffers are full, and nothing is sent any more
            send_many(client, 300)
        assert psutil.Process(server.pid).memory_info().rss < 200 * MIB
        assert counts(server) is not None
        server.kill()


@pytest.mark.smoke
def test_a_frame_for_a_socket_that_closes_is_dropped_without_a_word(server: Process) -> None:
    with connect(f"ws://127.0.0.1:{server.port}/late") as client, pytest.raises(ConnectionClosed) as caught:
        client.recv(timeout=30)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 4000
    wait_for(lambda: (counts(server) or {})["frames"] == 1, what="the end of the application")
    assert "closed protocol" not in server.log


def test_a_reader_that_is_slow_holds_its_sender_back(server: Process) -> None:
    url = f"ws://127.0.0.1:{server.port}/flood"
    with connect(url, max_size=None, max_queue=1, compression=None) as slow:
        time.sleep(1.5)
        first = (counts(server) or {})["frames"]
        time.sleep(1.0)
        assert (counts(server) or {})["frames"] == first, "frames pile up while nobody reads"
        assert psutil.Process(server.pid).memory_info().rss < 200 * MIB
        for _ in range(200):
            slow.recv(timeout=10)
        assert (counts(server) or {})["frames"] > first, "nothing goes on although there is room again"


@pytest.mark.smoke
def test_a_reader_that_leaves_frees_its_sender(server: Process) -> None:
    url = f"ws://127.0.0.1:{server.port}/flood"
    with contextlib.suppress(OSError, ConnectionClosed), connect(url, max_queue=1, compression=None) as client:
        client.socket.shutdown(socket.SHUT_RDWR)
    wait_for(lambda: len(psutil.Process(server.pid).net_connections()) <= 1, seconds=15, what="the end of the socket")
    assert counts(server) is not None


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["server", "uvicorn"])
def test_an_answer_that_fails_in_its_middle_is_cut(kind: str, request: pytest.FixtureRequest) -> None:
    process: Process = request.getfixturevalue(kind)
    for _ in range(2):  # the second one is cut as well: the first has left the server whole
        address = f"http://127.0.0.1:{process.port}/broken"
        with (
            urllib.request.urlopen(address, timeout=20) as response,
            pytest.raises(http.client.IncompleteRead) as caught,
        ):
            response.read()
        assert caught.value.partial == b"the first half"
    wait_for(lambda: process.log.count("TypeError: nobody foresaw this") >= 2, what="the log")
    assert process.log.count("TypeError: nobody foresaw this") == 2
    assert counts(process) is not None


@pytest.mark.smoke
def test_the_access_log_holds_no_query(server: Process) -> None:
    with connect(f"ws://127.0.0.1:{server.port}/length?token=think_canary") as client:
        client.send("a")
        assert json.loads(client.recv(timeout=10)) == {"length": 1, "scheme": "ws"}
    wait_for(lambda: "disconnected /length" in server.log, seconds=10, what="the line of the socket")
    assert "GET / 200" in server.log
    assert "canary" not in server.log
