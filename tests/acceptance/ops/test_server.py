"""Both of our servers: large messages, slow readers, an access log that may be read."""

import contextlib
import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import connect

from tests.acceptance.ops.echo_server import SERVERS, counts, echo_command, start_server
from tests.acceptance.product import Process, wait_for
from thinkproject.run.supervisor import listen

MIB = 1024 * 1024


def send_many(client: Any, number: int) -> None:
    for _ in range(number):
        client.send("y" * MIB)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0) as server:
        yield server


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def echo_server(tmp_path: Path, listener: socket.socket, kind: str) -> Iterator[Process]:
    process = start_server(tmp_path, echo_command(kind, listener), listener)
    yield process
    process.kill()


@pytest.mark.smoke
def test_a_message_may_have_16_mib_and_no_more(echo_server: Process) -> None:
    with connect(f"ws://127.0.0.1:{echo_server.port}/length", max_size=None) as client:
        client.send("y" * (16 * MIB - 100))
        assert json.loads(client.recv(timeout=30))["length"] == 16 * MIB - 100
        with contextlib.suppress(ConnectionClosed):  # it may learn of the refusal while it still sends
            client.send("y" * (16 * MIB + 100))
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(timeout=30)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009
    assert counts(echo_server) is not None


@pytest.mark.smoke
def test_a_message_of_64_mb_is_refused_without_being_kept(echo_server: Process) -> None:
    with connect(f"ws://127.0.0.1:{echo_server.port}/length", max_size=None) as client:
        with contextlib.suppress(ConnectionClosed):
            client.send("y" * 64_000_000)
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(timeout=30)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009
    assert psutil.Process(echo_server.pid).memory_info().rss < 200 * MIB
    assert counts(echo_server) is not None


UNREADABLE = {
    "a long query": (b"/length?a=" + b"x" * 20_000, b""),
    "a very long query": (b"/length?a=" + b"x" * 60_000, b""),
    "one beyond all bounds": (b"/length?a=" + b"x" * 200_000, b""),
    "a long header": (b"/length", b"Cookie: a=" + b"x" * 20_000 + b"\r\n"),
    "many headers": (b"/length", b"".join(b"X-%d: y\r\n" % number for number in range(600))),
    "no text": (b"/length?a=\xff\xfe", b""),
}


@pytest.mark.parametrize("request_of", UNREADABLE)
def test_a_handshake_that_cannot_be_read_is_refused_with_words(echo_server: Process, request_of: str) -> None:
    target, headers = UNREADABLE[request_of]
    asking = b"Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    asking += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    with socket.create_connection(("127.0.0.1", echo_server.port), timeout=10) as client:
        with contextlib.suppress(ConnectionError):  # it may be refused before it has been sent
            client.sendall(b"GET " + target + b" HTTP/1.1\r\n" + asking + headers + b"\r\n")
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := client.recv(65_536):
                answer += piece
    status = int(answer.split(b" ", 2)[1])
    assert 400 <= status < 500, answer[:200]
    assert counts(echo_server) is not None


@pytest.mark.smoke
def test_a_frame_may_have_what_the_settings_say(tmp_path: Path, listener: socket.socket, kind: str) -> None:
    process = start_server(tmp_path, echo_command(kind, listener), listener, THINK_MAX_FRAME_BYTES="5000")
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
def test_a_socket_whose_frames_are_not_taken_is_not_read(echo_server: Process) -> None:
    with connect(f"ws://127.0.0.1:{echo_server.port}/deaf", compression=None) as client:
        client.socket.settimeout(3)
        with pytest.raises(ConnectionClosed):  # the system's buffers are full, and nothing is sent any more
            send_many(client, 300)
        assert psutil.Process(echo_server.pid).memory_info().rss < 200 * MIB
        assert counts(echo_server) is not None
        echo_server.kill()


@pytest.mark.smoke
def test_a_frame_for_a_socket_that_closes_is_dropped_without_a_word(echo_server: Process) -> None:
    with connect(f"ws://127.0.0.1:{echo_server.port}/late") as client, pytest.raises(ConnectionClosed) as caught:
        client.recv(timeout=30)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 4000
    wait_for(lambda: (counts(echo_server) or {})["frames"] == 1, what="the end of the application")
    assert "closed protocol" not in echo_server.log


def test_a_reader_that_is_slow_holds_its_sender_back(echo_server: Process) -> None:
    url = f"ws://127.0.0.1:{echo_server.port}/flood"
    with connect(url, max_size=None, max_queue=1, compression=None, close_timeout=1) as slow:  # as below

        def standing() -> int:
            before = (counts(echo_server) or {})["frames"]
            time.sleep(0.5)  # only time shows that nothing goes on
            return before if (counts(echo_server) or {})["frames"] == before else 0

        first: int = wait_for(standing, seconds=10, what="an end of the frames that pile up while nobody reads")
        assert psutil.Process(echo_server.pid).memory_info().rss < 200 * MIB
        for _ in range(200):
            slow.recv(timeout=10)
        assert (counts(echo_server) or {})["frames"] > first, "nothing goes on although there is room again"


@pytest.mark.smoke
def test_a_reader_that_leaves_frees_its_sender(echo_server: Process) -> None:
    url = f"ws://127.0.0.1:{echo_server.port}/flood"
    leaving = connect(url, max_queue=1, compression=None, close_timeout=1)  # it does not wait for a farewell
    with contextlib.suppress(OSError, ConnectionClosed), leaving as client:
        client.socket.shutdown(socket.SHUT_RDWR)
    wait_for(lambda: len(psutil.Process(echo_server.pid).net_connections()) <= 1, what="the end of the socket")
    assert counts(echo_server) is not None


@pytest.mark.smoke
def test_an_answer_that_fails_in_its_middle_is_cut(echo_server: Process) -> None:
    process = echo_server
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
def test_the_access_log_holds_no_query(echo_server: Process) -> None:
    with connect(f"ws://127.0.0.1:{echo_server.port}/length?token=think_canary") as client:
        client.send("a")
        assert json.loads(client.recv(timeout=10)) == {"length": 1, "scheme": "ws"}
    wait_for(lambda: "disconnected /length" in echo_server.log, seconds=10, what="the line of the socket")
    assert "GET / 200" in echo_server.log
    assert "canary" not in echo_server.log


@pytest.mark.smoke
def test_no_address_makes_a_line_of_the_log_or_reaches_a_terminal(echo_server: Process) -> None:
    path = "/length/x%0A2026-01-01%20ERROR%20forged%0D%1b[31m%C2%9B31m%E2%80%AE"
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://127.0.0.1:{echo_server.port}{path}", timeout=10).close()
    with contextlib.suppress(WebSocketException), connect(f"ws://127.0.0.1:{echo_server.port}{path}"):
        pass
    wait_for(lambda: echo_server.log.count("forged") >= 2, seconds=10, what="the lines of both requests")
    lines = [line for line in echo_server.log.split("\n") if "forged" in line]
    assert all(" INFO think.access: " in line and line.isprintable() for line in lines), lines
    assert {line.split(": ", 1)[1].split(" ")[0] for line in lines} == {"GET", "websocket"}


@pytest.mark.smoke
@pytest.mark.parametrize("length", [1, 62, 63, 125, 126, 32_767, 32_768, 65_535, 65_536, 3 * MIB])
def test_frames_of_every_length_arrive_whole(echo_server: Process, length: int) -> None:
    with connect(f"ws://127.0.0.1:{echo_server.port}/large/{length}", max_size=None) as client:
        assert client.recv(timeout=20) == "ü" * length
        assert client.recv(timeout=20) == b"b" * length


@pytest.mark.smoke
@pytest.mark.parametrize("is_proxied", [True, False])
def test_a_proxy_is_believed_only_when_there_is_one(
    tmp_path: Path, listener: socket.socket, kind: str, is_proxied: bool
) -> None:
    """The rule about origins needs to know whether the browser came over TLS."""
    process = start_server(tmp_path, echo_command(kind, listener, *["proxied"] * is_proxied), listener)
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "198.51.100.7"}
    with connect(f"ws://127.0.0.1:{process.port}/length", additional_headers=headers) as client:
        client.send("a")
        assert json.loads(client.recv(timeout=10))["scheme"] == ("wss" if is_proxied else "ws")
    process.kill()


@pytest.mark.smoke
def test_frames_are_not_compressed(echo_server: Process) -> None:
    """Compression takes more time and memory than it saves on a stream of small frames; a proxy may add it to pages."""
    with connect(f"ws://127.0.0.1:{echo_server.port}/length", compression="deflate") as client:
        assert client.protocol.extensions == []


@pytest.mark.smoke
def test_a_socket_whose_application_fails_is_closed_as_an_error(echo_server: Process) -> None:
    with connect(f"ws://127.0.0.1:{echo_server.port}/fails") as client, pytest.raises(ConnectionClosed) as caught:
        client.recv(timeout=10)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1011
    wait_for(lambda: "nobody foresaw this" in echo_server.log, seconds=10, what="the log")


@pytest.mark.smoke
def test_an_application_does_not_outlive_its_socket(echo_server: Process) -> None:
    """One that waits for something else and never learns that its peer has gone is ended after a while."""
    with connect(f"ws://127.0.0.1:{echo_server.port}/deaf"):
        wait_for(lambda: (counts(echo_server) or {})["sockets"] == 1, what="the socket")
    wait_for(lambda: (counts(echo_server) or {})["sockets"] == 0, seconds=20, what="the end of its application")


@pytest.mark.smoke
@pytest.mark.parametrize("part", ["path", "header", "headers"])
def test_the_head_of_a_request_is_bounded(echo_server: Process, part: str) -> None:
    line = {"path": b"GET /" + b"a" * MIB, "header": b"GET / HTTP/1.1\r\nX: " + b"a" * MIB}
    line["headers"] = b"GET / HTTP/1.1\r\n" + b"X-Y: a\r\n" * 100_000
    with socket.create_connection(("127.0.0.1", echo_server.port), timeout=10) as client:
        client.settimeout(10)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may learn of it while it still sends
            for _ in range(64):
                client.sendall(line[part])
            while client.recv(64 * 1024):  # a refusal at most, then the end
                pass
    assert psutil.Process(echo_server.pid).memory_info().rss < 200 * MIB
    assert counts(echo_server) is not None
