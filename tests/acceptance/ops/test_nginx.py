"""The proxy of `docs/deployment/nginx.conf`, in front of a real server: what it keeps, compresses and leaves alone."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
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


@pytest.fixture
def nginx(shared_product: Product, tmp_path: Path) -> Iterator[int]:
    """The port of an nginx before the first web process."""
    assert NGINX is not None
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    text = MAIN.format(folder=tmp_path, site=site(tmp_path, port, shared_product.webs[0].port))
    (tmp_path / "nginx.conf").write_text("user root;\n" * (os.getuid() == 0) + text)
    command = [NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log")]
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


def test_a_socket_passes(nginx: int, shared_product: Product) -> None:
    async def connect() -> tuple[str, str] | None:
        token = shared_product.token("alice")
        async with ChatClient(f"http://127.0.0.1:{nginx}", agent="assistant", name="by-proxy", token=token) as chat:
            return chat.identity

    assert asyncio.run(connect()) is not None
