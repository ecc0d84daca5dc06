"""How files and answers travel: names, encodings and caching headers of real servers, here and in production."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from tests.acceptance.ops.static_files import BROWSER, FOR_EVER, get, linked
from tests.acceptance.product import ROOT, Process, Product, base_environ, wait_for
from thinkproject.run.supervisor import listen

pytestmark = pytest.mark.smoke

PRODUCTION = """\
from thinkproject.settings import *

INSTALLED_APPS = [name for name in INSTALLED_APPS if name != "ninja"]
STATIC_ROOT = {root!r}
"""
"""Without the megabytes of the API's documentation, which take ten seconds to compress."""


@pytest.fixture(params=[("own machine", "uvicorn"), ("production", "daphne")], ids=str, scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Process]:
    """A server as on one's own machine, and the other one with the files of `collectstatic`."""
    folder = tmp_path_factory.mktemp("static")
    environ = base_environ(folder)
    mode, server = request.param
    if mode == "production":
        (folder / "production.py").write_text(PRODUCTION.format(root=str(folder / "staticfiles")))
        environ |= {
            "ALLOWED_HOSTS": "127.0.0.1",
            "SECRET_KEY": "abcdefghij0123456789" * 4,
            "THINK_HTTPS": "0",
            "DJANGO_SETTINGS_MODULE": "production",
            "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        }
        command = [sys.executable, "manage.py", "collectstatic", "--noinput", "-v0"]
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    with listen("127.0.0.1", 0) as listener:
        options = ["--fd", str(listener.fileno()), "--server", server]
        command = [sys.executable, "-m", "thinkproject.run.server", *options]
        process = Process("web", command, environ, folder, pass_fds=[listener.fileno()])
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


def test_what_a_page_loads_is_compressed_and_kept_for_ever(web: Process) -> None:
    files = linked(get(web.port, "/sign-in/").body)
    assert {name.rpartition(".")[2] for name in files} == {"js", "css", "svg"}
    for path in files:
        plain, packed, zipped = (
            get(web.port, path, Accept_Encoding=accepted) for accepted in ("identity", "gzip, br", "gzip")
        )
        assert plain.status == packed.status == zipped.status == 200
        assert plain.caching == packed.caching == zipped.caching == FOR_EVER
        assert packed.headers["content-encoding"] == "br"
        if len(plain.sent) > 200:  # gzip makes a smaller one larger
            assert zipped.headers["content-encoding"] == "gzip"
        assert packed.headers["vary"] == zipped.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
        assert packed.headers["content-length"] == str(len(packed.sent))
        assert packed.headers["content-type"] == plain.headers["content-type"]
        assert packed.body == zipped.body == plain.body == plain.sent
        assert packed.headers["x-content-type-options"] == "nosniff"


def test_who_asks_again_gets_no_body(web: Process) -> None:
    for path in linked(get(web.port, "/sign-in/").body):
        first = get(web.port, path, Accept_Encoding="br")
        for condition in ("If-None-Match", "If-Modified-Since"):
            header = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}[condition]
            again = get(web.port, path, Accept_Encoding="br", **{condition: first.headers[header]})
            assert (again.status, again.sent) == (304, b"")
        head = get(web.port, path, method="HEAD", Accept_Encoding="br")
        assert (head.status, head.sent) == (200, b"")
        assert head.headers["content-length"] == str(len(first.sent))


def test_imports_between_modules_resolve(web: Process) -> None:
    manifest = json.loads((ROOT / "static" / "dist" / "manifest.json").read_text())
    waiting = [f"/static/think/{entry['file']}" for name, entry in manifest["entries"].items() if name.endswith(".js")]
    seen = set(waiting)
    while waiting:
        answer = get(web.port, waiting.pop(), Accept_Encoding="br")
        assert answer.status == 200
        for name in re.findall(rb"""["']\./([\w.-]+\.js)["']""", answer.body):
            path = f"/static/think/{name.decode()}"
            if path not in seen:
                seen.add(path)
                waiting.append(path)
    assert len(seen) > 10  # the page's own, its chunks, and what is loaded when it is needed


def test_source_maps_are_neither_compressed_nor_loaded(web: Process) -> None:
    page = get(web.port, "/sign-in/").body
    [script] = [path for path in linked(page) if path.startswith("/static/think/simple.")]
    answer = get(web.port, f"{script}.map", **{"Accept-Encoding": "br, gzip"})
    assert answer.status == 200
    assert "content-encoding" not in answer.headers
    assert json.loads(answer.sent)["sources"]
    assert b".map" not in page


def test_a_name_without_a_hash_is_asked_for_again(web: Process) -> None:
    answer = get(web.port, "/static/admin/css/base.css", Accept_Encoding="br")
    assert answer.status == 200
    assert "immutable" not in answer.caching
    assert answer.caching & {"max-age=0", "max-age=60"}


def test_pages_never_stay_in_a_cache(web: Process) -> None:
    answer = get(web.port, "/sign-in/", **BROWSER)
    assert answer.headers["content-encoding"] == "br"
    assert answer.caching >= {"no-cache", "no-store", "private"}
    assert b"<title>" in answer.body


def test_an_answer_that_another_site_caused_is_not_compressed(web: Process) -> None:
    answer = get(web.port, "/sign-in/", **{**BROWSER, "Sec-Fetch-Site": "cross-site"})
    assert "content-encoding" not in answer.headers
    assert b"<title>" in answer.sent
    assert "Accept-Encoding" in answer.headers["vary"]


def test_the_first_load_is_compressed_throughout(shared_product: Product, capsys: pytest.CaptureFixture[str]) -> None:
    port = shared_product.webs[0].port
    page = get(port, "/", **BROWSER, Cookie=shared_product.sign_in("alice"))
    assert page.status == 200
    weights: dict[str, list[int]] = {"html": [len(page.sent), len(page.body)]}
    for path in linked(page.body):
        answer = get(port, path, **BROWSER)
        assert answer.headers["content-encoding"] == "br", path
        kind = weights.setdefault(path.rpartition(".")[2], [0, 0])
        kind[0] += len(answer.sent)
        kind[1] += len(answer.body)
    assert weights.keys() == {"html", "css", "js", "svg"}
    with capsys.disabled():
        total = sum(sent for sent, _ in weights.values())
        kinds = ", ".join(f"{kind} {sent / 1000:.1f} of {size / 1000:.1f}" for kind, (sent, size) in weights.items())
        sys.stdout.write(f"\nfirst load, kB compressed of kB: {kinds}; {total / 1000:.1f} in all\n")
    assert all(sent < size / 2 for kind, (sent, size) in weights.items() if kind != "svg")
