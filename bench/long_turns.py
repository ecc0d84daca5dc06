"""The first word in long conversations, in a worker that has them from the turn before and in one that has not.

The first turn of each conversation reads its whole history; the later ones go on from what stays in the worker. Turns
of a conversation that begins are asked in the same run. The time of the provider is taken out as in
`bench.first_chunk`. CPU is of the whole product, over turns that were asked one after the other.
"""

import asyncio

from bench.calls import get_messages
from bench.chats import Received, added, greeted_all, one_turn, read_log
from bench.rig import Meter, Options, running, socket_url
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

SIZE, SMOKE_SIZE = 500, 20
CONVERSATIONS, SMOKE_CONVERSATIONS = 12, 2
LATER, SMOKE_LATER = 3, 1
WORDS, RATE = 3, 50
GOAL_MS, GOAL_RATIO, GOAL_LIST_MS = 66.0, 1.1, 3.0
"""The first is the reference implementation's in 1,000 messages."""

SETTLE_SECONDS = 0.3


async def round_of(sockets: dict[str, Socket], kind: str, received: Received) -> None:
    """One turn in each of the conversations, one after the other."""
    for name, socket in sockets.items():
        await one_turn(socket, f"{kind}-{name}", received, words=WORDS, rate=RATE)
        await asyncio.sleep(0.02)


async def metered_round(
    product: Product, sockets: dict[str, Socket], kind: str, rounds: int, received: Received
) -> float:
    """Seconds of CPU of the product for one turn."""
    meter = Meter.of(product)
    meter.start()
    for number in range(rounds):
        await round_of(sockets, f"{kind}-{number}", received)
    await asyncio.sleep(SETTLE_SECONDS)  # what follows the end of the last belongs to it
    meter.stop()
    return meter.own / (rounds * len(sockets))


async def turns(product: Product, options: Options) -> list[Row]:
    """The first turn of each long conversation, then later ones, and turns of a conversation that begins."""
    size, count = (SMOKE_SIZE, SMOKE_CONVERSATIONS) if options.is_smoke else (SIZE, CONVERSATIONS)
    later = SMOKE_LATER if options.is_smoke else LATER
    names = [made["name"] for made in product.call("bench.seed:make_alike", size, count)]
    opened = await greeted_all([socket_url(product, name) for name in [*names, "empty", "warm"]])
    *long, empty, warm = opened
    sockets = dict(zip(names, long, strict=True))
    received, none = Received(), {"empty": empty}
    for number in range(4):
        await round_of({"warm": warm}, f"warm-{number}", Received())
    spent = {
        "empty": await metered_round(product, none, "empty", later * count, received),
        "cold": await metered_round(product, sockets, "cold", 1, received),
        "warm": await metered_round(product, sockets, "kept", later, received),
    }
    for socket in opened:
        socket.close()
    log = await read_log(product.provider_log)
    times = {kind: milliseconds(added(received, log, f"{kind}-")[2]) for kind in ("empty", "cold", "kept")}
    rows = [
        row(
            f"added time to the first word, {size:,} messages: second and later turns",
            "ms",
            times["kept"],
            goal=GOAL_MS,
        ),
        row("- the first turn in this worker", "ms", times["cold"]),
        row("- in a conversation that begins", "ms", times["empty"]),
    ]
    ratio = rows[0].median / rows[2].median
    rows.append(Row(what="- second and later turns over one that begins", unit="times", median=ratio, goal=GOAL_RATIO))
    words = {"warm": "second and later turns", "cold": "the first turn in this worker", "empty": "one that begins"}
    return rows + [
        Row(what=f"CPU of a turn, {size:,} messages: {words[kind]}", unit="ms", median=spent[kind] * 1000)
        for kind in ("warm", "cold", "empty")
    ]


def lists(product: Product, options: Options) -> list[Row]:
    """`get-messages`: the first time in a process, and again."""
    size, count = (SMOKE_SIZE, SMOKE_CONVERSATIONS) if options.is_smoke else (SIZE, CONVERSATIONS)
    names = [made["name"] for made in product.call("bench.seed:make_alike", size, count + 1, "listed")]
    get_messages(product, names[0], size, 3)  # connections and threads are there from now on
    first = [get_messages(product, name, size, 0, skip=0)[0] for name in names[1:]]
    again = get_messages(product, names[1], size, 3 if options.is_smoke else 40)
    return [
        row(f"get-messages, {size:,} messages", "ms", milliseconds(again), goal=GOAL_LIST_MS),
        row("- the first time in a process, on a new connection", "ms", milliseconds(first)),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    with running(options) as product:
        rows = await turns(product, options)
        return rows + await asyncio.to_thread(lists, product, options)
