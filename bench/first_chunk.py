"""How long from the frame a person sends to the first word of the answer, beyond what the provider takes.

Twenty conversations go on at once, each asking again as soon as it was answered and a short, random while has passed.
For each turn the provider's log says when the request reached it and when its first word left, so its own time is taken
out exactly; the driver's is the round trip to a bare echo server.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bench.chats import DONE, TEXT_DELTA, ProviderLog, ask, greeted
from bench.rig import Options, echo_server, running, socket_url
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

TURNS = 20
WORDS, RATE = 75, 50
GOAL_MS = 10.0


@dataclass
class Received:
    """When each marked turn was asked for, and when its first word came."""

    turns: dict[str, tuple[float, float]] = field(default_factory=dict)


async def converse(socket: Socket, name: str, until: float, received: Received) -> None:
    """Ask again and again."""
    number = 0
    await asyncio.sleep(random.uniform(0, WORDS / RATE))
    while time.monotonic() < until:
        number += 1
        await one_turn(socket, f"{name}-{number}", received)
        await asyncio.sleep(random.uniform(0, 0.2))


async def one_turn(socket: Socket, marker: str, received: Received, *, words: int = WORDS) -> None:
    """Ask once and wait for the end."""
    start = len(socket.frames)
    request_id, sent_at = ask(socket, f"marker: {marker}\nstream {words} words at {RATE}/s")
    mine = f'"id":"{request_id}"'.encode()
    first = await socket.until(mine, TEXT_DELTA, start=start)
    received.turns[marker] = (sent_at, socket.times[first])
    await socket.until(mine, DONE, start=first)


async def burst(sockets: list[Socket], rounds: int, received: Received) -> None:
    """All at the same moment."""
    for number in range(rounds):
        await asyncio.gather(*(one_turn(socket, f"burst-{at}-{number}", received) for at, socket in enumerate(sockets)))


async def echoes(url: str, count: int) -> list[float]:
    """Round trips of a frame of the same size."""
    socket = await Socket.connect(url)
    times = []
    for _ in range(count):
        start = len(socket.frames)
        sent_at = socket.send({"echo": "x" * 300})
        times.append(socket.times[await socket.until(b"echo", start=start)] - sent_at)
        await asyncio.sleep(0.005)
    socket.close()
    return times


async def ask_provider(base_url: str, count: int) -> list[float]:
    """Seconds to the first word when the driver asks the provider itself, on a connection that is open."""
    parts = urlsplit(base_url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    times = []
    for number in range(count):
        text = f"marker: direct-{number}\\nstream 3 words at {RATE}/s"
        body = f'{{"model":"scripted","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}'.encode()
        head = f"POST {parts.path}/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        began = time.time()
        writer.write(head.encode() + body)
        await reader.readuntil(b'"content":"')  # the opening chunk, which is empty
        await reader.readuntil(b'"content":"')
        times.append(time.time() - began)
        await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    return times


def added(received: Received, log: ProviderLog, prefix: str) -> tuple[list[float], list[float], list[float]]:
    """Seconds to reach the provider, seconds back from it, and both, of each turn."""
    there, back, both = [], [], []
    for marker, (sent_at, came_at) in received.turns.items():
        if marker.startswith(prefix):
            there.append(log.asked[marker] - sent_at)
            back.append(came_at - log.sent[marker][0][0])
            both.append(there[-1] + back[-1])
    return there, back, both


async def measure(product: Product, echo_url: str, options: Options) -> list[Row]:
    """Run everything against a product that is up."""
    seconds = 1.0 if options.is_smoke else min(options.seconds, 20.0)
    sockets = [await Socket.connect(socket_url(product, f"first-{number}")) for number in range(TURNS)]
    received = Received()
    for socket in sockets:
        await greeted(socket)
    await burst(sockets[:4], 1, Received())  # connections and threads are there from now on
    for number in range(2 if options.is_smoke else 15):
        await one_turn(sockets[0], f"alone-{number}", received, words=3)
    until = time.monotonic() + seconds
    conversations = [converse(socket, f"steady-{at}", until, received) for at, socket in enumerate(sockets)]
    _, echoed, direct = await asyncio.gather(
        asyncio.gather(*conversations), echoes(echo_url, 60), ask_provider(product.provider_url, 10)
    )
    await burst(sockets, 1 if options.is_smoke else 5, received)
    for socket in sockets:
        socket.close()
    await asyncio.sleep(0.1)  # the provider writes its log a moment later
    log = ProviderLog(product.provider_log)
    driver = row("", "ms", milliseconds(echoed)).median
    there, back, both = added(received, log, "steady-")
    _, _, at_once = added(received, log, "burst-")
    _, _, alone = added(received, log, "alone-")
    return [
        row(
            f"frame to first word, added, {TURNS} turns at a time",
            "ms",
            milliseconds(both),
            minus=driver,
            goal=GOAL_MS,
        ),
        row("- of that: frame to request at the provider", "ms", milliseconds(there)),
        row("- of that: provider's first word to the client", "ms", milliseconds(back)),
        row("the same, one turn at a time", "ms", milliseconds(alone), minus=driver),
        row(f"the same, {TURNS} turns asked for at the same moment", "ms", milliseconds(at_once), minus=driver),
        row("taken off: round trip to a bare echo server", "ms", milliseconds(echoed)),
        row("taken off: the provider's own first word, asked directly", "ms", milliseconds(direct)),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    with echo_server() as echo_url, running(options) as product:
        return await measure(product, echo_url, options)
