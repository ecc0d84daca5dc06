"""Streams of several processes: writers and readers at different ones, and one that is killed in the middle."""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.acceptance.product import Product, wait_for
from tests.chaos.durable.postgres import OwnPostgres

ROOT = "/v1/stream/"
JSON = "application/json"


def headers(product: Product, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {product.token('alice')}", **{k.replace("_", "-"): v for k, v in more.items()}}


def messages_at(product: Product, path: str, *, web: int) -> Iterator[object]:
    """Follow a stream of JSON at one web server by events, over its reconnects, until it is closed."""
    offset = "-1"
    while True:
        url = product.url(f"{ROOT}{path}?offset={offset}&live=sse", web=web)
        try:
            with httpx.stream("GET", url, headers=headers(product), timeout=30) as reply:
                kind = ""
                for line in reply.iter_lines():
                    name, _, value = line.partition(":")
                    if name == "event":
                        kind = value.strip()
                    elif name == "data" and kind == "data":
                        yield from json.loads(value)
                    elif name == "data":
                        control = json.loads(value)
                        offset = control["streamNextOffset"]
                        if control.get("streamClosed"):
                            return
        except httpx.HTTPError:
            time.sleep(0.05)


def test_a_writer_whose_server_is_killed_leaves_no_gap_and_nothing_twice(make_product: Callable[..., Product]) -> None:
    product = make_product(webs=2, workers=0)
    path = "killed"
    assert httpx.put(product.url(ROOT + path), headers=headers(product, Content_Type=JSON)).status_code == 201
    got: dict[int, list[object]] = {0: [], 1: []}
    readers = [
        threading.Thread(target=lambda at=web: got[at].extend(messages_at(product, path, web=at))) for web in got
    ]
    for reader in readers:
        reader.start()
    count, tries = 60, 0
    for number in range(count):
        if number in {15, 30, 45}:  # while the answer is on its way: what was stored is not known to the writer
            threading.Timer(0.002 * (number / 15), product.webs[0].kill).start()
        claim = {"Producer_Id": "writer", "Producer_Epoch": "0", "Producer_Seq": str(number)}
        for attempt in itertools.count():
            tries += 1
            try:
                body = json.dumps({"n": number})
                sent = headers(product, Content_Type=JSON, **claim)
                reply = httpx.post(product.url(ROOT + path), headers=sent, content=body, timeout=10)
            except httpx.HTTPError:
                assert attempt < 50
                if not product.webs[0].is_running:
                    product.webs[0].start()
                    wait_for(lambda: product.answers(product.webs[0]), what="the web server")
                continue
            assert reply.status_code in {200, 204}, reply.text
            break
    assert tries > count, "it was killed while it was asked"
    closing = httpx.post(product.url(ROOT + path, web=1), headers=headers(product, Stream_Closed="true"))
    assert closing.status_code == 204
    for reader in readers:
        reader.join(60)
    wanted = [{"n": number} for number in range(count)]
    assert got == {0: wanted, 1: wanted}


def test_a_database_that_is_killed_loses_no_append_that_was_answered(make_product: Callable[..., Product]) -> None:
    """PostgreSQL is killed three times between appends and in the middle of them, two writers at a time."""
    own = OwnPostgres()
    try:
        product = make_product(workers=0, environ={"DATABASE_URL": own.address})
        sent = headers(product, Content_Type=JSON)
        refused: list[int] = []

        def write(path: str) -> None:
            for number in range(40):
                claim = {"Producer-Id": path, "Producer-Epoch": "0", "Producer-Seq": str(number)}
                deadline = time.monotonic() + 100
                while True:
                    assert time.monotonic() < deadline, refused[-5:]
                    reply = httpx.post(product.url(ROOT + path), headers=sent | claim, content=str(number), timeout=30)
                    if reply.status_code in {200, 204}:  # 204: the answer before was lost, and what it said was not
                        break
                    refused.append(reply.status_code)
                    time.sleep(0.05)

        paths = ("one", "two")
        for path in paths:
            assert httpx.put(product.url(ROOT + path), headers=sent, timeout=30).status_code == 201
        writers = [threading.Thread(target=write, args=(path,)) for path in paths]
        for writer in writers:
            writer.start()
        for _ in range(3):
            own.restart()
            time.sleep(0.3)  # so that something is written between two ends
        for writer in writers:
            writer.join(120)
        assert refused, "it was killed while it was asked"
        assert set(refused) <= {503}
        for path in paths:
            reply = httpx.get(product.url(ROOT + path), headers=sent, timeout=30)
            assert reply.json() == list(range(40))
    finally:
        own.close()


def test_a_reader_at_another_process_gets_what_is_written(shared_product_of_two: Product) -> None:
    product = shared_product_of_two
    path = "across"
    httpx.put(product.url(ROOT + path), headers=headers(product, Content_Type=JSON))
    got: list[object] = []
    reader = threading.Thread(target=lambda: got.extend(messages_at(product, path, web=1)))
    reader.start()
    for number in range(5):
        sent = headers(product, Content_Type=JSON)
        assert httpx.post(product.url(ROOT + path), headers=sent, content=str(number), timeout=30).status_code == 204
    httpx.post(product.url(ROOT + path), headers=headers(product, Stream_Closed="true"), timeout=30)
    reader.join(60)
    assert got == [0, 1, 2, 3, 4]


@pytest.fixture
def shared_product_of_two(make_product: Callable[..., Product]) -> Product:
    return make_product(webs=2, workers=0)


@pytest.mark.parametrize("server", ["uvicorn", "daphne"])
def test_bodies_beyond_the_limit_are_refused_before_they_are_read(
    make_product: Callable[..., Product], server: str
) -> None:
    product = make_product(
        workers=0, environ={"THINK_WEB_SERVER": server, "THINK_DURABLE_STREAMS": '{"append_bytes": 2000000}'}
    )
    sent = headers(product, Content_Type="application/octet-stream")
    assert httpx.put(product.url(ROOT + "big"), headers=sent).status_code == 201
    assert httpx.post(product.url(ROOT + "big"), headers=sent, content=b"x" * 2_000_000).status_code == 204
    connection = http.client.HTTPConnection("127.0.0.1", product.webs[0].port, timeout=20)
    connection.putrequest("POST", ROOT + "big")
    for name, value in {**sent, "Content-Length": "2000001"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
