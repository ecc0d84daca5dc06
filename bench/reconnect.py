"""A tab that comes back in the middle of a long answer: how long until it shows everything said so far.

The answer stands at 5,000 records and goes on later. The tab does what the published client does: it connects, asks
whether something runs, acknowledges, and gets the log from its beginning.
"""

import asyncio
import statistics
import time

from bench.chats import ProviderLog, ask, greeted, text_chunks
from bench.rig import Options, echo_server, running, socket_url
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

WORDS, RATE = 5_000, 400
GOAL_MS = 100.0


async def come_back(url: str, request_id: str) -> tuple[float, Socket]:
    """Seconds from the first packet to the word that says that all was replayed."""
    began = time.perf_counter()
    socket = await Socket.connect(url)
    socket.send({"type": "cf_agent_stream_resume_request", "probeId": "p"})
    await socket.until(b"cf_agent_stream_resuming")
    socket.send({"type": "cf_agent_stream_resume_ack", "id": request_id})
    await socket.until(b'"replayComplete":true')
    return time.perf_counter() - began, socket


async def connect_bare(url: str) -> float:
    """The same steps, as far as a bare server has them."""
    began = time.perf_counter()
    socket = await Socket.connect(url)
    for step in range(3):
        socket.send({"step": step})
        await socket.until(f'"step":{step}'.encode())
    socket.close()
    return time.perf_counter() - began


async def measure(product: Product, echo_url: str, options: Options) -> list[Row]:
    """Run everything against a product that is up."""
    words = 100 if options.is_smoke else WORDS
    url = socket_url(product, "reconnect")
    first = await Socket.connect(url)
    await greeted(first)
    script = f"marker: long\nstream {words} words at {RATE}/s\nwait: 300 s\nsay: end"
    request_id, _ = ask(first, script)
    await first.until(f"{words - 1}".encode(), b"text-delta", seconds=words / RATE + 60)
    await asyncio.sleep(0.5)
    shown = "".join(text for _, text in text_chunks(first, request_id))
    rounds = 2 if options.is_smoke else 30
    times, bare, records, wrong = [], [], 0, 0
    for number in range(rounds + 2):
        took, socket = await come_back(url, request_id)
        records = sum(b'"replay":true' in frame for frame in socket.frames)
        wrong += "".join(text for _, text in text_chunks(socket, request_id)) != shown
        socket.close()
        bare_took = await connect_bare(echo_url)
        if number >= 2:
            times.append(took)
            bare.append(bare_took)
    sent = ProviderLog(product.provider_log).text("long")
    wrong += sent != shown
    first.send({"type": "cf_agent_chat_request_cancel", "id": request_id})
    await asyncio.sleep(0.2)
    first.close()
    driver = statistics.median(milliseconds(bare))
    return [
        row(
            f"connect to caught up, {records:,} frames replayed", "ms", milliseconds(times), minus=driver, goal=GOAL_MS
        ),
        row("taken off (median): connect and three round trips, bare server", "ms", milliseconds(bare)),
        Row(what="replays that differ from what the provider sent", unit="replays", median=wrong, goal=0),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure. Without a window each word is a record of its own."""
    environ = {"THINK_STREAM_WINDOW_SECONDS": "0"}
    with echo_server() as echo_url, running(options, environ=environ) as product:
        return await measure(product, echo_url, options)
