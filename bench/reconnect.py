"""A tab that comes back in the middle of a long answer: how long until it shows everything said so far.

Each answer stands at so many records and goes on later. The tab does what the published client does: it connects, asks
whether something runs, acknowledges, and gets the log from its beginning.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass

from bench.chats import ask, greeted, read_log, text_chunks
from bench.rig import Options, Served, echo_server, running, socket_url
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

SIZES = {200: 6.0, 2_000: 15.0, 5_000: 100.0}  # words, goal in ms
SMOKE_SIZES = {20: 6.0, 100: 100.0}
RATE = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One that goes on, as the tab that asked for it has it."""

    url: str
    socket: Socket
    request_id: str
    shown: str


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


async def begin(product: Served, words: int, rate: int = RATE) -> Answer:
    """Have an answer begun that stands after so many words."""
    url = socket_url(product, f"reconnect-{words}")
    socket = await Socket.connect(url)
    await greeted(socket)
    script = f"marker: long-{words}\nstream {words} words at {rate}/s\nwait: 300 s\nsay: end"
    request_id, _ = ask(socket, script)
    await socket.until(f"{words - 1}".encode(), b"text-delta", seconds=words / rate + 60)
    await asyncio.sleep(0.5)
    shown = "".join(text for _, text in text_chunks(socket, request_id))
    return Answer(url=url, socket=socket, request_id=request_id, shown=shown)


async def measure(product: Product, echo_url: str, options: Options) -> list[Row]:
    """Run everything against a product that is up."""
    sizes = SMOKE_SIZES if options.is_smoke else SIZES
    answers = {words: await begin(product, words) for words in sizes}
    rounds, wrong = 2 if options.is_smoke else 15, 0
    times: dict[int, list[float]] = {words: [] for words in sizes}
    bare = []
    for number in range(rounds + 2):
        for words, answer in answers.items():
            took, socket = await come_back(answer.url, answer.request_id)
            wrong += "".join(text for _, text in text_chunks(socket, answer.request_id)) != answer.shown
            socket.close()
            await asyncio.sleep(0.02)
            if number >= 2:
                times[words].append(took)
        bare.append(await connect_bare(echo_url))
    log = await read_log(product.provider_log)
    for words, answer in answers.items():
        wrong += log.text(f"long-{words}") != answer.shown
        answer.socket.send({"type": "cf_agent_chat_request_cancel", "id": answer.request_id})
    await asyncio.sleep(0.2)
    for answer in answers.values():
        answer.socket.close()
    driver = statistics.median(milliseconds(bare))
    rows = [
        row(f"connect to caught up, {words:,} chunks", "ms", milliseconds(times[words]), minus=driver, goal=goal)
        for words, goal in sizes.items()
    ]
    return [
        *rows,
        row("taken off (median): connect and three round trips, bare server", "ms", milliseconds(bare)),
        Row(what="replays that differ from what the provider sent", unit="replays", median=wrong, goal=0),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure. Without a window each word is a record of its own."""
    environ = {"THINK_STREAM_WINDOW_SECONDS": "0"}
    with echo_server() as echo_url, running(options, environ=environ) as product:
        return await measure(product, echo_url, options)
