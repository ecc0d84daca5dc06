"""The acceptance set-up itself: processes that can be killed and come back, people, a proxy that cuts."""

import http.client
import json
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest

from tests.acceptance.product import Process, Product, wait_for


def _get(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as response:
            return response.status, response.geturl()
    except urllib.error.HTTPError as error:
        return error.code, url


def _is_ready(product: Product) -> bool:
    try:
        return _get(product.url("/health/ready"))[0] == 200
    except OSError:
        return False


@pytest.mark.smoke("sqlite")
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_people_get_in_with_a_cookie_or_a_token(make_product: Callable[..., Product], database: str) -> None:
    product = make_product(database=database)
    assert _get(product.url("/"), Cookie=product.sign_in("alice")) == (200, product.url("/"))
    assert _get(product.url("/api/v1/agents"), Authorization=f"Bearer {product.token('bob')}")[0] == 200
    assert _get(product.url("/api/v1/agents"))[0] == 401
    assert product.sign_in("alice") != product.sign_in("bob")


def test_whatever_is_killed_comes_back_where_it_was(make_product: Callable[..., Product]) -> None:
    product = make_product(webs=2, workers=2)
    wait_for(lambda: _is_ready(product), what="readiness")
    for process in [product.webs[0], product.workers[1], product.redis]:
        before = process.pid
        process.kill()
        assert not process.is_running
        process.start()
        assert process.pid != before
    wait_for(lambda: _is_ready(product), what="readiness after the kills")
    assert _get(product.url("/health/live", web=1))[0] == 200


@pytest.mark.parametrize("end", [Process.stop, Process.kill])
def test_it_is_not_ready_as_soon_as_all_workers_have_gone(
    make_product: Callable[..., Product], end: Callable[[Process], object]
) -> None:
    product = make_product(workers=2)
    wait_for(lambda: _is_ready(product), what="readiness")
    end(product.workers[0])
    assert _is_ready(product)
    end(product.workers[1])
    wait_for(lambda: not _is_ready(product), what="the answer that no worker is there", seconds=2)
    product.workers[0].start()
    wait_for(lambda: _is_ready(product), what="readiness with a new worker")


def test_the_proxy_cuts_refuses_and_serves_again(make_product: Callable[..., Product]) -> None:
    product = make_product(webs=2, is_proxied=True)
    assert product.proxy is not None
    held = http.client.HTTPConnection("127.0.0.1", product.proxy.port, timeout=10)
    held.request("GET", "/health/live")
    assert held.getresponse().read()
    assert product.proxy.cut() == 1
    assert held.sock is not None
    with pytest.raises(ConnectionResetError):
        held.sock.recv(1)
    assert _get(f"{product.proxy.url}/health/live")[0] == 200
    product.proxy.go_offline()
    with pytest.raises(OSError):
        _get(f"{product.proxy.url}/health/live")
    product.proxy.go_online()
    assert _get(f"{product.proxy.url}/health/live")[0] == 200


@pytest.mark.smoke
def test_a_killed_web_process_refuses_no_client(shared_product: Product) -> None:
    web = shared_product.webs[0]
    os.kill(web.pid, signal.SIGKILL)
    wait_for(lambda: not web.is_running, what="the end")
    with socket.create_connection(("127.0.0.1", web.port), timeout=5) as waiting:  # the listener is ours
        web.start()
        waiting.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        waiting.settimeout(60)
        assert waiting.recv(100).startswith(b"HTTP/1.1 200")


def test_the_provider_keeps_the_log_of_what_it_sent(shared_product: Product) -> None:
    text = "marker: kept\nsay: This was sent."
    body = json.dumps({"model": "scripted", "messages": [{"role": "user", "content": text}]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer scripted"}
    request = urllib.request.Request(f"{shared_product.provider_url}/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        assert response.status == 200
    log = shared_product.provider_log
    wait_for(lambda: log.exists() and '"marker":"kept"' in log.read_text(encoding="utf-8"), seconds=5, what="the log")
