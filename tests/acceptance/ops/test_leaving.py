"""How both of our servers end, and how they notice that a peer has."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.acceptance.ops.echo_server import SERVERS, counts, echo_command, start_server
from tests.acceptance.product import Process, wait_for
from thinkproject.run.supervisor import listen

EXIT_SECONDS = 5.0
HEARTBEAT = 0.5
Start = Callable[..., Process]


@pytest.fixture(params=SERVERS)
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Start the server; with `heartbeat` it pings that often (seconds)."""
    running: list[Process] = []
    with listen("127.0.0.1", 0) as listener:

        def make(*, heartbeat: float | None = None) -> Process:
            pace = [] if heartbeat is None else [str(heartbeat)]
            command = echo_command(request.param, listener, *pace)
            running.append(start_server(tmp_path, command, listener))
            return running[-1]

        yield make
        for process in running:
            if process.is_running:
                process.kill()


class Stopping:
    """SIGTERM, in a thread: `seconds` is how long the process took to end."""

    def __init__(self, process: Process) -> None:
        self.seconds = 0.0
        self.code: int | None = None
        self._process = process
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        begun = time.monotonic()
        self.code = self._process.stop(seconds=15)
        self.seconds = time.monotonic() - begun

    def join(self) -> None:
        self._thread.join(20)
        assert self.seconds < EXIT_SECONDS, f"{self.seconds:.1f} s"


@pytest.mark.smoke
def test_sockets_are_asked_to_reconnect(start: Start) -> None:
    process = start()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(f"ws://127.0.0.1:{process.port}/length")) for _ in range(20)]
        stopping = Stopping(process)
        for client in clients:
            with pytest.raises(ConnectionClosed) as caught:
                client.recv(timeout=10)
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 1012
    stopping.join()


@pytest.mark.smoke
def test_requests_at_work_are_answered(start: Start) -> None:
    process = start()
    slow = http.client.HTTPConnection("127.0.0.1", process.port, timeout=20)
    slow.request("GET", "/slow")
    with open_events(process):  # which do not end by themselves, and keep no one
        stopping = Stopping(process)
        assert slow.getresponse().status == 200
        stopping.join()


@pytest.mark.smoke
def test_event_streams_end_cleanly(start: Start) -> None:
    process = start()
    with open_events(process) as stream:
        stopping = Stopping(process)
        stream.read()  # raises IncompleteRead when the line is cut in the middle
        stopping.join()


def open_events(process: Process) -> http.client.HTTPResponse:
    """An event stream that is under way."""
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=20)
    connection.request("GET", "/events")
    stream = connection.getresponse()
    assert stream.readline() == b": still here\n"
    return stream


def test_a_client_that_answers_nothing_does_not_keep_the_server(start: Start) -> None:
    process = start()
    with connect(f"ws://127.0.0.1:{process.port}/flood", max_size=None, max_queue=1, compression=None):
        wait_for(lambda: (counts(process) or {}).get("frames", 0) > 5, seconds=10, what="the flood")
        stopping = Stopping(process)
        stopping.join()


@pytest.mark.smoke
def test_a_peer_that_is_dead_is_left(start: Start) -> None:
    """It says nothing, not even to pings, and its line is not cut: it hangs, or a firewall has forgotten it."""
    process = start(heartbeat=HEARTBEAT)
    with socket.create_connection(("127.0.0.1", process.port)) as dead:
        head = "GET /length HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        dead.sendall(f"{head}Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        wait_for(lambda: (counts(process) or {}).get("sockets") == 1, seconds=10, what="the socket")
        wait_for(lambda: (counts(process) or {}).get("sockets") == 0, seconds=10, what="its end")


@pytest.mark.smoke
def test_a_slow_reader_is_left_too(start: Start) -> None:
    """It comes back and has what it missed replayed; until then it costs nothing."""
    process = start(heartbeat=HEARTBEAT)
    with (
        connect(f"ws://127.0.0.1:{process.port}/length", ping_interval=None) as idle,
        contextlib.suppress(ConnectionClosed),
    ):
        with connect(f"ws://127.0.0.1:{process.port}/flood", max_size=None, max_queue=1, compression=None) as slow:
            wait_for(lambda: (counts(process) or {}).get("frames", 0) > 5, seconds=10, what="the flood")
            wait_for(lambda: _is_left(slow.socket), seconds=10, what="the end of the slow one")
        idle.send("still here")  # answers pings, so it stays
        assert "length" in str(idle.recv(timeout=5))


def _is_left(sock: socket.socket) -> bool:
    """Whether the peer has reset the connection. Reads nothing."""
    state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return bool(state != 1)  # TCP_ESTABLISHED


@pytest.mark.smoke
@pytest.mark.parametrize("code", [1011, 1012, 4404])
def test_every_close_code_and_its_reason_reach_the_client(start: Start, code: int) -> None:
    process = start()
    with connect(f"ws://127.0.0.1:{process.port}/closed/{code}") as client, pytest.raises(ConnectionClosed) as caught:
        client.recv(timeout=10)
    assert caught.value.rcvd is not None
    assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (code, "Because.")
