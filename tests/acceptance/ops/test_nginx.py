"""The proxy of `docs/deployment/nginx.conf`, in front of a real server: what it keeps, compresses and leaves alone."""

import asyncio
import http.client
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chat.client import ChatClient
from tests.acceptance.ops.static_files import BROWSER, FOR_EVER, get, linked
from tests.acceptance.product import ROOT, Product, wait_for
from thinkproject.run.supervisor import listen

NGINX = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
pytestmark = [pytest.mark.smoke, pytest.mark.skipif(NGINX is None, reason="nginx is not installed")]

MAIN = """\
daemon off;
error_log {folder}/error.log;
pid {folder}/pid;
events {{ worker_connections 64; }}
http {{
  default_type application/octet-stream;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  {site}
}}
"""


PLAIN = """\
map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
server {{
  listen 127.0.0.1:{port};
  location / {{
    proxy_pass http://127.0.0.1:{upstream};
    proxy_http_version 1.0;  # the default for long: an answer has no chunks then, so parts of it are kept back
    proxy_set_header Host $http_host;
  }}
  location ~ ^/agents/[^/]+/[^/]+$ {{
    proxy_pass http://127.0.0.1:{upstream};
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
  }}
}}
"""
EARLY_SECONDS = 60.0
"""How long the first words may take; the last ones take twice as long."""
SLOW = "say: early\nwait 120 s\nsay: late"


def site(folder: Path, port: int, upstream: int) -> str:
    """The example with the addresses of this test, and without TLS."""
    text = (ROOT / "docs" / "deployment" / "nginx.conf").read_text(encoding="utf-8")
    for old, new in {
        "server web:8000": f"server 127.0.0.1:{upstream}",
        "/var/cache/nginx": str(folder),
        "/var/log/nginx": str(folder),
        "listen 443 ssl;": f"listen 127.0.0.1:{port};",
        "proxy_set_header Host $host;": "proxy_set_header Host $http_host;",  # with the port of this test
    }.items():
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r"server \{\n  listen 80;.*?\n\}\n", "", text, flags=re.DOTALL)
    return re.sub(r"  (ssl_certificate\w*|http2) .*\n", "", text)


def plain_site(_folder: Path, port: int, upstream: int) -> str:
    """A proxy of other people before ours: as nginx is by itself, which keeps parts of answers back."""
    return PLAIN.format(port=port, upstream=upstream)


@pytest.fixture
def nginx(shared_product: Product, tmp_path: Path) -> Iterator[int]:
    """The port of an nginx before the first web process."""
    with running(tmp_path / "inner", site, shared_product.webs[0].port) as port:
        yield port


@pytest.fixture(params=[site, plain_site], ids=["ours", "plain"])
def two_proxies(nginx: int, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a second nginx before it."""
    with running(tmp_path / "outer", request.param, nginx) as port:
        yield port


@contextmanager
def running(folder: Path, make_site: Callable[[Path, int, int], str], upstream: int) -> Iterator[int]:
    """Run an nginx before a port; yields its own."""
    assert NGINX is not None
    folder.mkdir()
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    text = MAIN.format(folder=folder, site=make_site(folder, port, upstream))
    (folder / "nginx.conf").write_text("user root;\n" * (os.getuid() == 0) + text)
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    server = subprocess.Popen(command)
    try:
        wait_for(lambda: is_answering(port), seconds=15, what="nginx")
        yield port
    finally:
        server.terminate()
        server.wait(timeout=10)


def is_answering(port: int) -> bool:
    try:
        return get(port, "/health/live").status == 200
    except OSError:
        return False


def test_files_are_kept_as_they_were_compressed(nginx: int, shared_product: Product) -> None:
    files = linked(get(nginx, "/sign-in/").body)
    for path in files:
        for accepted in ("br, gzip", "gzip", "identity"):
            direct = get(shared_product.webs[0].port, path, Accept_Encoding=accepted)
            for answer in (get(nginx, path, Accept_Encoding=accepted), get(nginx, path, Accept_Encoding=accepted)):
                assert answer.status == 200
                assert answer.caching == FOR_EVER
                assert answer.headers.get("content-encoding") == direct.headers.get("content-encoding")
                assert answer.sent == direct.sent


def test_a_file_is_read_from_the_web_process_once(nginx: int, shared_product: Product) -> None:
    [style] = [path for path in linked(get(nginx, "/sign-in/").body) if path.endswith(".css")]
    first = get(nginx, style, Accept_Encoding="br")
    with shared_product.webs[0].paused():
        assert get(nginx, style, Accept_Encoding="br") == first


def test_a_file_without_a_compressed_form_gets_one(nginx: int) -> None:
    path = "/static/admin/css/base.css"
    plain, zipped = get(nginx, path), get(nginx, path, Accept_Encoding="gzip")
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.body == plain.sent
    assert len(zipped.sent) < len(plain.sent) / 2


def test_what_another_site_caused_stays_uncompressed(nginx: int) -> None:
    assert get(nginx, "/sign-in/", **BROWSER).headers["content-encoding"] == "br"
    answer = get(nginx, "/sign-in/", **{**BROWSER, "Sec-Fetch-Site": "cross-site"})
    assert "content-encoding" not in answer.headers
    assert b"<title>" in answer.sent


def test_an_answer_streams_through_two_proxies(two_proxies: int, shared_product: Product) -> None:
    headers = {"Authorization": f"Bearer {shared_product.token('alice')}", "Content-Type": "application/json"}

    def ask(method: str, path: str, body: object = None) -> http.client.HTTPResponse:
        line = http.client.HTTPConnection("127.0.0.1", two_proxies, timeout=EARLY_SECONDS)
        line.request(method, f"/api/v1{path}", None if body is None else json.dumps(body), headers)
        return line.getresponse()

    name = f"two-proxies-{two_proxies}"
    instance = json.load(ask("POST", "/instances", {"agent": "assistant", "name": name}))
    message = {"message": {"parts": [{"type": "text", "text": SLOW}]}}
    turn = json.load(ask("POST", f"/instances/{instance['id']}/turns", message))
    with ask("GET", f"/turns/{turn['id']}/stream") as stream:
        assert any(b"early" in line for line in iter(stream.readline, b""))  # a late one would be a timeout
        assert json.load(ask("GET", f"/turns/{turn['id']}"))["status"] == "running"
        assert json.load(ask("POST", f"/turns/{turn['id']}/cancel")) == {"cancelled": True}
        assert b"event: end" in stream.read()


def test_useChat_streams_through_two_proxies(two_proxies: int, shared_product: Product) -> None:  # noqa: N802 - its name
    headers = {"Authorization": f"Bearer {shared_product.token('alice')}", "Content-Type": "application/json"}
    message = {"id": f"u-{two_proxies}", "role": "user", "parts": [{"type": "text", "text": SLOW}]}
    body = {"id": "chat", "messages": [message], "trigger": "submit-message"}
    line = http.client.HTTPConnection("127.0.0.1", two_proxies, timeout=EARLY_SECONDS)
    line.request("POST", f"/agents/assistant/use-chat-{two_proxies}/chat", json.dumps(body), headers)
    with line.getresponse() as stream:
        assert stream.status == 200
        assert any(b"early" in part for part in iter(stream.readline, b""))


def test_a_socket_streams_through_two_proxies(two_proxies: int, shared_product: Product) -> None:
    async def first_words() -> str:
        token, name = shared_product.token("alice"), f"socket-{two_proxies}"
        async with ChatClient(f"http://127.0.0.1:{two_proxies}", agent="assistant", name=name, token=token) as chat:
            turn = await chat.send(SLOW)
            async with asyncio.timeout(EARLY_SECONDS):
                async for text in turn.texts():
                    if "early" in text:
                        await chat.cancel(turn)
                        return text
        return ""

    assert "early" in asyncio.run(first_words())


def test_a_socket_passes(nginx: int, shared_product: Product) -> None:
    async def connect() -> tuple[str, str] | None:
        token = shared_product.token("alice")
        async with ChatClient(f"http://127.0.0.1:{nginx}", agent="assistant", name="by-proxy", token=token) as chat:
            return chat.identity

    assert asyncio.run(connect()) is not None
