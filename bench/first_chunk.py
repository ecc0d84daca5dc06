"""How long from the frame a person sends to the first word of the answer, beyond what the provider takes.

Twenty conversations go on at once, each asking again as soon as it was answered and a short, random while has passed.
For each turn the provider's log says when the request reached it and when its first word left, so its own time is taken
out exactly; the driver's is the round trip to a bare echo server. Turns that begin at the same moment: `bench.turns`.
"""

import asyncio
import random
import time
from urllib.parse import urlsplit

from bench.chats import Received, added, greeted_all, one_turn, read_log
from bench.rig import Options, echo_server, running, socket_urls
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

TURNS = 20
WORDS, RATE = 75, 50
GOAL_MS = 10.0


async def converse(socket: Socket, name: str, until: float, received: Received) -> None:
    """Ask again and again."""
    number = 0
    await asyncio.sleep(random.uniform(0, WORDS / RATE))
    while time.monotonic() < until:
        number += 1
        await one_turn(socket, f"{name}-{number}", received, words=WORDS, rate=RATE)
        await asyncio.sleep(random.uniform(0, 0.2))


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


async def measure(product: Product, echo_url: str, options: Options) -> list[Row]:
    """Run everything against a product that is up."""
    seconds = 1.0 if options.is_smoke else min(options.seconds, 20.0)
    sockets = await greeted_all(socket_urls(product, "first", TURNS))
    received = Received()
    warm_up = (one_turn(socket, f"warm-{at}", received, words=3, rate=RATE) for at, socket in enumerate(sockets[:4]))
    await asyncio.gather(*warm_up)  # connections and threads are there from now on
    until = time.monotonic() + seconds
    conversations = [converse(socket, f"steady-{at}", until, received) for at, socket in enumerate(sockets)]
    _, echoed, direct = await asyncio.gather(
        asyncio.gather(*conversations), echoes(echo_url, 60), ask_provider(product.provider_url, 10)
    )
    for socket in sockets:
        socket.close()
    driver = row("", "ms", milliseconds(echoed)).median
    there, back, both = added(received, await read_log(product.provider_log), "steady-")
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
        row("taken off: round trip to a bare echo server", "ms", milliseconds(echoed)),
        row("taken off: the provider's own first word, asked directly", "ms", milliseconds(direct)),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    with echo_server() as echo_url, running(options) as product:
        return await measure(product, echo_url, options)
