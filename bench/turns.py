"""What a turn costs before its first word and after its last: bursts, a long conversation, CPU.

In a burst all sockets are open and greeted, then all frames leave in the same moment. The time of the provider is taken
out as in `bench.first_chunk`; the driver's is that of the same burst against a bare echo server.
"""

import asyncio
import time

from bench.chats import Asked, Received, added, connect_all, greeted, greeted_all, one_turn, read_log
from bench.rig import Meter, Options, echo_server, running, socket_url, socket_urls
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

RATE = 50
BURSTS = ((20, 3, 100.0), (100, 2, 500.0))  # turns at once, rounds, goal in ms
SMOKE_BURSTS = ((3, 1, 100.0), (5, 1, 500.0))
WORDS = 200
SHORT = 3  # words of a turn that is nearly all beginning and end
ALONE, GOAL_ALONE_MS = 20, 17.0  # the reference implementation's
LONG, SMOKE_LONG = 1_000, 40
GOAL_RATIO = 1.1
METERED = (4, 40)  # conversations at a time, turns of each
GOAL_CPU_MS = 20.0
SETTLE_SECONDS = 0.5


async def burst(sockets: list[Socket], name: str, rounds: int, received: Received, *, words: int) -> None:
    """All at the same moment, again when all have ended."""
    for number in range(rounds):
        await at_once(sockets, f"{name}-{number}", received, words=words)
        await asyncio.sleep(SETTLE_SECONDS)


async def at_once(sockets: list[Socket], name: str, received: Received, *, words: int) -> list[Asked]:
    """One turn in each conversation, all asked for at the same moment; ends when all have."""
    markers = [f"{name}-{at}" for at in range(len(sockets))]
    turns = zip(sockets, markers, strict=True)
    ids = await asyncio.gather(*(one_turn(socket, mark, received, words=words, rate=RATE) for socket, mark in turns))
    return list(zip(sockets, markers, ids, strict=True))


async def bare_burst(echo_url: str, count: int) -> list[float]:
    """Round trips when the echo server gets a frame of the same size from so many sockets at the same moment."""
    sockets = await connect_all([echo_url] * count)
    times: list[float] = []
    for _ in range(3):
        starts = [len(socket.frames) for socket in sockets]
        sent = [socket.send({"echo": "x" * 300}) for socket in sockets]
        for socket, start, sent_at in zip(sockets, starts, sent, strict=True):
            times.append(socket.times[await socket.until(b"echo", start=start)] - sent_at)
    for socket in sockets:
        socket.close()
    return times


async def bursts(product: Product, echo_url: str, options: Options) -> list[Row]:
    """One turn, twenty, a hundred."""
    wanted = SMOKE_BURSTS if options.is_smoke else BURSTS
    sockets = await greeted_all(socket_urls(product, "burst", max(count for count, _, _ in wanted)))
    await burst(sockets[:4], "warm", 2, Received(), words=SHORT)  # connections and threads are there from now on
    received, bare = Received(), {}
    for number in range(2 if options.is_smoke else ALONE):
        await one_turn(sockets[0], f"of1-{number}", received, words=SHORT, rate=RATE)
        await asyncio.sleep(0.02)
    for count, rounds, _ in wanted:
        words = SHORT if options.is_smoke else WORDS
        bare[count] = row("", "ms", milliseconds(await bare_burst(echo_url, count))).median
        await burst(sockets[:count], f"of{count}", rounds, received, words=words)
    for socket in sockets:
        socket.close()
    log = await read_log(product.provider_log)
    rows = []
    for count, goal in ((1, GOAL_ALONE_MS), *((count, goal) for count, _, goal in wanted)):
        there, back, both = added(received, log, f"of{count}-")
        what = f"added time to the first word, {count} turns started at once" if count > 1 else "added time, one turn"
        rows += [
            row(what, "ms", milliseconds(both), minus=bare.get(count, 0.0), goal=goal),
            row(f"- frame to request at the provider, of {count}", "ms", milliseconds(there)),
            row(f"- provider's first word to the client, of {count}", "ms", milliseconds(back)),
        ]
    taken = max(bare.values())
    return [*rows, Row(what="taken off (median): the same burst at a bare echo server", unit="ms", median=taken)]


async def long_conversation(product: Product, options: Options) -> list[Row]:
    """The first word where much was said before, and where nothing was: by turns."""
    size, rounds = (SMOKE_LONG, 2) if options.is_smoke else (LONG, 12)
    made = product.call("bench.seed:make_conversations", [size])
    urls = {"long": socket_url(product, made[str(size)]["name"]), "empty": socket_url(product, "empty")}
    sockets = {name: await Socket.connect(url) for name, url in urls.items()}
    for socket in sockets.values():
        await greeted(socket)
    received = Received()
    for number in range(rounds + 2):
        for name, socket in sockets.items():
            marker = f"{name}-{number}" if number >= 2 else f"warm-{name}-{number}"
            await one_turn(socket, marker, received, words=SHORT, rate=RATE)
            await asyncio.sleep(0.05)
    for socket in sockets.values():
        socket.close()
    log = await read_log(product.provider_log)
    times = {name: milliseconds(added(received, log, f"{name}-")[2]) for name in sockets}
    rows = [
        row(f"added time in a conversation of {size:,} messages", "ms", times["long"]),
        row("- in an empty one, by turns", "ms", times["empty"]),
    ]
    ratio = rows[0].median / rows[1].median
    return [*rows, Row(what="- long over empty", unit="times", median=ratio, goal=GOAL_RATIO)]


async def metered(product: Product, options: Options) -> list[Row]:
    """CPU of whole processes over many short turns, divided by the turns."""
    at_a_time, each = (2, 3) if options.is_smoke else METERED
    sockets = await greeted_all(socket_urls(product, "metered", at_a_time))
    await burst(sockets, "warm-metered", 2, Received(), words=SHORT)

    async def converse(socket: Socket, at: int) -> None:
        for number in range(each):
            await one_turn(socket, f"metered-{at}-{number}", Received(), words=SHORT, rate=0)

    meter = Meter.of(product)
    meter.start()
    began = time.monotonic()
    await asyncio.gather(*(converse(socket, at) for at, socket in enumerate(sockets)))
    took = time.monotonic() - began
    await asyncio.sleep(SETTLE_SECONDS)  # what follows the end of the last belongs to it
    meter.stop()
    for socket in sockets:
        socket.close()
    turns = at_a_time * each
    rows = [
        Row(
            what=f"CPU of a turn of {SHORT} words, {at_a_time} at a time: all of the product",
            unit="ms",
            median=meter.own / turns * 1000,
            goal=GOAL_CPU_MS,
        )
    ]
    rows += [Row(what=f"- {name}", unit="ms", median=spent / turns * 1000) for name, spent in meter.cpu.items()]
    return [*rows, Row(what=f"short turns a second, {at_a_time} at a time", unit="1/s", median=turns / took)]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    with echo_server() as echo_url, running(options) as product:
        rows = await bursts(product, echo_url, options)
        rows += await long_conversation(product, options)
        return rows + await metered(product, options)
