"""Opening the newest page of a long conversation, by the API and by a socket, on SQLite and PostgreSQL.

It has to cost the page, not the history: the last rows hold the longest conversation against the shorter one.
"""

import http.client
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import urlsplit

from bench.rig import Options, echo_server, running, socket_url
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

SIZES = (5_000, 100_000)
SMOKE_SIZES = (50, 200)
GOAL_MS = 50.0
GOAL_RATIO = 1.5


class Api:
    """One kept connection to the API."""

    def __init__(self, product: Product) -> None:
        parts = urlsplit(product.url())
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {product.token('alice')}"}

    def page(self, instance_id: str) -> float:
        """Seconds for the newest fifty messages."""
        began = time.perf_counter()
        self._connection.request("GET", f"/api/v1/instances/{instance_id}/messages?limit=50", headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body[:500]
        assert body.count(b'"role"') == 50
        return time.perf_counter() - began


async def open_socket(url: str, awaited: bytes) -> float:
    """Seconds from the first packet to the transcript, the way a tab opens."""
    began = time.perf_counter()
    socket = await Socket.connect(url)
    if awaited:
        await socket.until(awaited)
    took = time.perf_counter() - began
    socket.close()
    return took


async def interleaved(calls: dict[str, Callable[[], Awaitable[float]]], rounds: int) -> dict[str, list[float]]:
    """Take turns, so that all see the same machine."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 3):
        for name, call in calls.items():
            took = await call()
            if number >= 3:  # the first ones warm up
                times[name].append(took)
    return times


async def measure(product: Product, echo_url: str, options: Options, label: str) -> list[Row]:
    """Measure one database."""
    sizes = SMOKE_SIZES if options.is_smoke else SIZES
    made = product.call("bench.seed:make_conversations", sizes)
    api = Api(product)

    def by_api(size: int) -> Callable[[], Awaitable[float]]:
        async def call() -> float:
            return api.page(made[str(size)]["id"])

        return call

    def by_socket(size: int) -> Callable[[], Awaitable[float]]:
        return lambda: open_socket(socket_url(product, made[str(size)]["name"]), b"cf_agent_chat_messages")

    calls: dict[str, Callable[[], Awaitable[float]]] = {"echo": lambda: open_socket(echo_url, b"")}
    for size in sizes:
        calls[f"api {size}"] = by_api(size)
        calls[f"socket {size}"] = by_socket(size)
    times = await interleaved(calls, 3 if options.is_smoke else 40)
    driver = statistics.median(milliseconds(times["echo"]))
    rows = []
    for way, title, minus in (
        ("api", "API, newest 50", 0.0),
        ("socket", "socket, connect to transcript (500 messages)", driver),
    ):
        measured = [
            row(f"{label}: {title}, of {size:,}", "ms", milliseconds(times[f"{way} {size}"]), minus=minus, goal=GOAL_MS)
            for size in sizes
        ]
        ratio = measured[-1].median / measured[0].median
        rows += [*measured, Row(what=f"{label}: - longest over shortest", unit="times", median=ratio, goal=GOAL_RATIO)]
    return rows


async def run(options: Options) -> list[Row]:
    """Measure both databases."""
    rows: list[Row] = []
    with echo_server() as echo_url:
        for database, label in (("sqlite", "SQLite"), ("postgres", "PostgreSQL")):
            with running(replace(options, database=database)) as product:
                rows += await measure(product, echo_url, options, label)
    return rows
