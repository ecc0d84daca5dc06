"""What is asked beside turns: the transcript by HTTP, messages that code adds, many tabs that open at once."""

import asyncio
import http.client
import json
import statistics
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from bench.rig import Options, Served, echo_server, running, socket_urls
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

SIZE, SMOKE_SIZE = 1_000, 45
GOAL_TRANSCRIPT_MS = 3.0
ADDED, GOAL_ADD_MS = 100, 3.0
SOCKETS, GOAL_OPEN_MS = 100, 300.0
GREETING = (b"cf_agent_identity", b"cf_agent_chat_messages")


def get_messages(
    product: Served, name: str, size: int, rounds: int, *, skip: int = 3, window: int = 500
) -> list[float]:
    """Seconds for each `get-messages` on one kept connection, without the first ones, which warm up.

    `size`: messages of the conversation; `window`: how many of them come at most.
    """
    parts = urlsplit(product.url())
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    headers = {"Authorization": f"Bearer {product.token('alice')}"}
    times = []
    for number in range(max(rounds + skip, 1)):
        began = time.perf_counter()
        connection.request("GET", f"/agents/assistant/{name}/get-messages", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        took = time.perf_counter() - began
        assert answer.status == 200, body[:500]
        if number == 0:
            assert len(json.loads(body)) >= min(size, window), "the window is shorter than it should be"
        if number >= skip:
            times.append(took)
    connection.close()
    return times


async def open_at_once(urls: list[str], awaited: tuple[bytes, ...]) -> float:
    """Seconds until all sockets have the bytes that are awaited."""
    began = time.perf_counter()

    async def one(url: str) -> Socket:
        socket = await Socket.connect(url)
        if not awaited:
            socket.send({"echo": "x"})
            await socket.until(b"echo")
        for part in awaited:
            await socket.until(part)
        return socket

    sockets = await asyncio.gather(*(one(url) for url in urls))
    took = time.perf_counter() - began
    for socket in sockets:
        socket.close()
    await asyncio.sleep(0.3)  # closing is work as well, and belongs to no figure
    return took


async def many_tabs(product: Product, echo_url: str, options: Options) -> list[Row]:
    """Open many sockets at once, to new conversations and to the same ones again."""
    count, rounds = (5, 2) if options.is_smoke else (SOCKETS, 4)
    kinds: dict[str, Callable[[int], list[str]]] = {
        "bare": lambda _round: [echo_url] * count,
        "new": lambda number: socket_urls(product, f"new-{number}", count),
        "known": lambda _round: socket_urls(product, "new-0", count),
    }
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(rounds + 1):
        for kind, urls in kinds.items():
            took = await open_at_once(urls(number), () if kind == "bare" else GREETING)
            if number > 0:  # the first round warms up
                times[kind].append(took)
    driver = statistics.median(milliseconds(times["bare"]))
    return [
        *(
            row(
                f"{count} sockets opened at once, all greeted: {kind} conversations",
                "ms",
                milliseconds(times[kind]),
                minus=driver,
                goal=GOAL_OPEN_MS,
            )
            for kind in ("new", "known")
        ),
        row("taken off (median): the same at a bare server", "ms", milliseconds(times["bare"])),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    size = SMOKE_SIZE if options.is_smoke else SIZE
    with echo_server() as echo_url, running(options) as product:
        made = product.call("bench.seed:make_conversations", [size])
        transcript = get_messages(product, made[str(size)]["name"], size, 3 if options.is_smoke else 40)
        adding = product.call("bench.seed:time_adding", "added", 5 if options.is_smoke else ADDED)
        tabs = await many_tabs(product, echo_url, options)
    return [
        row(f"get-messages, {size:,} messages", "ms", milliseconds(transcript), goal=GOAL_TRANSCRIPT_MS),
        row("add_messages, one at a time", "ms", milliseconds(adding), goal=GOAL_ADD_MS),
        *tabs,
    ]
