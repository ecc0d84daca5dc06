"""A hundred turns at fifty chunks a second: is anything lost, how late does it come, what does a chunk cost.

Late is the time from the provider's own stamp to the arrival of the chunk's last character at the client, less what the
same driver sees from a bare server that sends the same number of frames.
"""

import asyncio
import time
from dataclasses import dataclass

import msgspec

from bench.chats import DONE, TEXT_DELTA, ProviderLog, ask, connect_all, delays, greeted_all, read_log, text_chunks
from bench.rig import Meter, Options, echo_server, running, socket_urls
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

TURNS, RATE = 100, 50
GOAL_MS = 50.0
ECHO_SECONDS = 8.0
RAMP = 6  # the turns begin within this part of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the turns."""

    late: list[float]
    broken: int
    chunks: int
    frames: int


async def bare(echo_url: str, turns: int, seconds: float) -> list[float]:
    """The same driver against the echo server."""
    sockets = await connect_all([echo_url] * turns)
    for socket in sockets:
        socket.send({"stream": int(RATE * seconds), "rate": RATE})
        await asyncio.sleep(1 / RATE / turns)
    await asyncio.gather(*(socket.until(DONE, seconds=seconds + 30) for socket in sockets))
    late = [
        at - msgspec.json.decode(raw)["at"]
        for socket in sockets
        for at, raw in zip(socket.times, socket.frames, strict=True)
    ]
    for socket in sockets:
        socket.close()
    return late


async def stream(sockets: list[Socket], seconds: float) -> list[str]:
    """Have every conversation answered; returns the request ids."""
    words = int(RATE * seconds)
    ids = []
    pause = seconds / RAMP / len(sockets)
    for at, socket in enumerate(sockets):
        request_id, _ = ask(socket, f"marker: turn-{at}\nstream {words} words at {RATE}/s")
        ids.append(request_id)
        await asyncio.sleep(pause)
    ends = (
        socket.until(f'"id":"{request_id}"'.encode(), DONE, seconds=seconds + 60)
        for socket, request_id in zip(sockets, ids, strict=True)
    )
    await asyncio.gather(*ends)
    return ids


def judge(sockets: list[Socket], ids: list[str], log: ProviderLog, words: int) -> Outcome:
    """Compare what each client holds with what the provider says it sent."""
    late: list[float] = []
    broken = chunks = 0
    for at, (socket, request_id) in enumerate(zip(sockets, ids, strict=True)):
        sent = log.sent.get(f"turn-{at}", [])
        chunks += len(sent)
        broken += len(sent) != words  # a turn that was refused or cut
        try:
            late += delays(sent, text_chunks(socket, request_id))
        except ValueError:
            broken += 1
    frames = sum(TEXT_DELTA in raw for socket in sockets for raw in socket.frames)
    return Outcome(late=late, broken=broken, chunks=chunks, frames=frames)


async def measure(product: Product, echo_url: str, options: Options) -> list[Row]:
    """Run everything against a product that is up."""
    seconds = 1.0 if options.is_smoke else options.seconds
    turns = 5 if options.is_smoke else TURNS
    echoed = await bare(echo_url, turns, min(seconds, ECHO_SECONDS))
    sockets = await greeted_all(socket_urls(product, "delivery", turns))
    meter = Meter.of(product)
    meter.start()
    began = time.monotonic()
    ids = await stream(sockets, seconds)
    meter.stop()
    took = time.monotonic() - began
    outcome = judge(sockets, ids, await read_log(product.provider_log), int(RATE * seconds))
    for socket in sockets:
        socket.close()
    driver = row("", "ms", milliseconds(echoed)).median
    load = f"{turns} turns × {RATE}/s × {seconds:.0f} s"
    rows = [
        Row(what=f"{load}: chunks sent by the provider", unit="chunks", median=outcome.chunks),
        Row(
            what="turns refused, cut, or whose text is not the provider's", unit="turns", median=outcome.broken, goal=0
        ),
        row("delivery", "ms", milliseconds(outcome.late), minus=driver, goal=GOAL_MS, goal_on="p99"),
        row("taken off (median): a bare server that sends as much", "ms", milliseconds(echoed)),
        Row(what="chunks in a frame", unit="chunks", median=outcome.chunks / max(1, outcome.frames)),
    ]
    for name, seconds_spent in meter.cpu.items():
        rows.append(Row(what=f"CPU a chunk: {name}", unit="µs", median=seconds_spent / outcome.chunks * 1e6))
    own = sum(spent for name, spent in meter.cpu.items() if name != "provider")
    rows.append(Row(what="CPU a chunk: all of the product", unit="µs", median=own / outcome.chunks * 1e6))
    for name in ("worker", "web"):
        share = meter.waited[name] / took * 100
        rows.append(
            Row(what=f"{name}: threads ready to run and waiting for a core", unit="% of the time", median=share)
        )
    rows += [Row(what=f"memory at most: {name}", unit="MB", median=peak / 1e6) for name, peak in meter.peak.items()]
    return rows


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    with echo_server() as echo_url, running(options) as product:
        return await measure(product, echo_url, options)
