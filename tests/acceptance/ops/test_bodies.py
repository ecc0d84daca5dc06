"""Bodies of requests are bounded before anybody has signed in: by both of our servers, as real processes."""

import select
import socket
import sys
import urllib.request
from collections.abc import Iterator

import psutil
import pytest

from tests.acceptance.ops.echo_server import SERVERS
from tests.acceptance.product import Process, base_environ, wait_for
from thinkproject.run.supervisor import listen

pytestmark = pytest.mark.smoke

KIB = 1024
MIB = 1024 * KIB
SENT = 200 * MIB
GROWTH = 40 * MIB
PIECE = b"a" * (256 * KIB)


@pytest.fixture(params=SERVERS, scope="module")
def any_server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Process]:
    tmp_path = tmp_path_factory.mktemp("bodies")
    with listen("127.0.0.1", 0) as listener:
        options = ["--fd", str(listener.fileno()), "--server", request.param]
        command = [sys.executable, "-m", "thinkproject.run.server", *options]
        process = Process("web", command, base_environ(tmp_path), tmp_path, pass_fds=[listener.fileno()])
        process.port = listener.getsockname()[1]
        process.start()
        wait_for(lambda: is_alive(process), what="the server")
        yield process
        process.kill()


def is_alive(web: Process) -> bool:
    assert web.is_running, web.log
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web.port}/health/live", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def post(web: Process, path: str, length: int, *, is_chunked: bool = False) -> tuple[int, bytes]:
    """Send a body, no further than to the first byte of an answer; returns its status and its head."""
    framing = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {length}"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{framing}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", web.port), timeout=60) as client:
        client.sendall(head.encode())
        sent = 0
        while sent < length and not select.select([client], [], [], 0)[0]:
            piece = PIECE[: length - sent]
            client.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if is_chunked else piece)
            sent += len(piece)
        if is_chunked and sent == length:
            client.sendall(b"0\r\n\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer:
            received = client.recv(64 * KIB)
            assert received, f"the connection ended after {answer!r}"
            answer += received
    return int(answer.split()[1]), answer


def memory(web: Process) -> int:
    return int(psutil.Process(web.pid).memory_info().rss)


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("path", ["/sign-in/", "/no/such/page", "/api/v1/files", "/api/v1/instances"])
def test_a_large_body_is_refused_and_not_kept(any_server: Process, path: str, is_chunked: bool) -> None:
    assert post(any_server, path, 10, is_chunked=is_chunked)[0] in {401, 403, 404}
    before = memory(any_server)
    status, answer = post(any_server, path, SENT, is_chunked=is_chunked)
    assert status == 413
    assert b"application/problem+json" in answer
    assert memory(any_server) - before < GROWTH
    assert is_alive(any_server)


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
def test_each_route_has_a_limit_of_its_own(any_server: Process, is_chunked: bool) -> None:
    limits = {"/sign-in/": MIB, "/nowhere": MIB, "/api/v1/instances": 16 * MIB, "/api/v1/files": 20 * MIB + 64 * KIB}
    for path, limit in limits.items():
        assert post(any_server, path, limit, is_chunked=is_chunked)[0] in {401, 403, 404}
        assert post(any_server, path, limit + 1, is_chunked=is_chunked)[0] == 413


def test_a_client_that_asks_first_is_refused_before_it_sends(any_server: Process) -> None:
    head = f"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {SENT}\r\nExpect: 100-continue\r\n\r\n"
    with socket.create_connection(("127.0.0.1", any_server.port), timeout=60) as client:
        client.sendall(head.encode())
        assert client.recv(64 * KIB).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_reads_only_at_the_end_sees_the_refusal(any_server: Process) -> None:
    length = 8 * MIB
    head = f"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", any_server.port), timeout=60) as client:
        client.sendall(head.encode() + b"a" * length)
        assert client.recv(64 * KIB).startswith(b"HTTP/1.1 413 ")
