"""`python -m bench.beside_reference [--runs N] [--smoke] [--write FILE]`: the reference implementation and ours.

Both speak the same protocol, so the same driver asks both, and both have a scripted provider of the same kind. One is
started, measured and ended, then the other, and again so often as `--runs` says; a figure is the median of the runs.

The first run fetches the reference and the runtime that it needs (`bench.reference.runtime`).
"""

import argparse
import asyncio
import contextlib
import functools
import os
import secrets
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from bench import machine
from bench.calls import get_messages
from bench.chats import DONE, SENTENCES, Received, added, ask, greeted_all, lateness, read_log
from bench.compare import merged
from bench.pages import REFERENCE, write_page
from bench.reconnect import begin, come_back
from bench.reference.runtime import running_reference, versions
from bench.rig import Meter, Options, Served, running, socket_url, socket_urls
from bench.rows import Row, beside, milliseconds, row
from bench.turns import RATE, SHORT, WORDS, at_once

PROCESSES = 2
"""Web servers, and as many workers, of ours."""
WINDOW = 500
"""Messages of a long conversation that ours gives a client at once."""
SETTLE_SECONDS = 0.5
STORE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How much is asked for."""

    alone: int = 20
    bursts: tuple[tuple[int, int], ...] = ((20, 3), (100, 2))  # turns at once, rounds
    words: int = WORDS
    streams: tuple[int, ...] = (200, 2_000)  # chunks that a running answer has
    returns: int = 15
    sizes: tuple[int, ...] = (500, 1_000)  # messages of a stored conversation
    conversations: int = 4
    later: int = 4  # turns in each of these, after one that is not counted
    lists: int = 40


SMOKE: Final = Amounts(
    alone=2, bursts=((3, 1), (5, 1)), words=10, streams=(20, 60), returns=2, sizes=(20, 40), conversations=1, later=2
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two, running. `store`: names of so many conversations (second) that have so many messages (first).

    `window`: how many messages `get-messages` gives at most.
    """

    served: Served
    window: int
    meter: Callable[[], Meter]
    store: Callable[[int, int], Awaitable[list[str]]]


@contextlib.contextmanager
def the_reference() -> Iterator[Side]:
    """The reference. It takes a conversation from a client as a whole, which is how it comes to have one."""
    with running_reference() as reference:
        store = functools.partial(store_by_socket, reference)
        yield Side(served=reference, meter=reference.meter, store=store, window=sys.maxsize)


@contextlib.contextmanager
def ours() -> Iterator[Side]:
    """The product on SQLite."""

    async def store(size: int, count: int) -> list[str]:
        made = await asyncio.to_thread(product.call, "bench.seed:make_alike", size, count, f"stored-{size}")
        return [conversation["name"] for conversation in made]

    with running(Options(processes=PROCESSES)) as product:
        yield Side(served=product, meter=lambda: Meter.of(product), store=store, window=WINDOW)


SIDES: Final[dict[str, Callable[[], contextlib.AbstractContextManager[Side]]]] = {
    "reference": the_reference,
    "ours": ours,
}


async def store_by_socket(served: Served, size: int, count: int) -> list[str]:
    """Conversations that a client brings along with a question; question and answer are the last two messages."""
    names = [f"stored-{size}-{number}" for number in range(count)]
    before = [
        {
            "id": secrets.token_hex(8),
            "role": ("user", "assistant")[at % 2],
            "parts": [{"type": "text", "text": SENTENCES}],
        }
        for at in range(size - 2)
    ]
    for socket in await greeted_all([socket_url(served, name) for name in names]):
        request_id, _ = ask(socket, "say: stored", before=before)
        await socket.until(f'"id":"{request_id}"'.encode(), DONE, seconds=STORE_SECONDS)
        socket.close()
    return names


async def bursts(side: Side, amounts: Amounts) -> list[Row]:
    """One turn, and many at the same moment: the first word, all of them, each chunk, what it costs."""
    count = max(count for count, _ in amounts.bursts)
    sockets = await greeted_all(socket_urls(side.served, "burst", count))
    received = Received()
    for number in range(2):
        await at_once(sockets[:4], f"warm-{number}", Received(), words=SHORT)  # connections are there from now on
    for number in range(amounts.alone):
        await at_once(sockets[:1], f"of1-{number}", received, words=SHORT)
        await asyncio.sleep(0.02)
    rows = [await first_word(side, received, "of1-", "one turn")]
    for count, rounds in amounts.bursts:
        meter, asked, took = side.meter(), [], []
        meter.start()
        for number in range(rounds):
            began = time.monotonic()
            asked += await at_once(sockets[:count], f"of{count}-{number}", received, words=amounts.words)
            took.append(time.monotonic() - began)
            await asyncio.sleep(SETTLE_SECONDS)  # what follows the end of the last belongs to it
        meter.stop()
        late, chunks, broken = lateness(asked, await read_log(side.served.provider_log), amounts.words)
        rows += [
            await first_word(side, received, f"of{count}-", f"{count} turns asked for at once"),
            Row(
                what=f"- all {count} turns, of {amounts.words} chunks at {RATE}/s",
                unit="s",
                median=statistics.median(took),
            ),
            row(f"- a chunk from the provider to the client, of {count} turns", "ms", milliseconds(late)),
            Row(what=f"- CPU a chunk, of {count} turns", unit="µs", median=meter.own / chunks * 1e6),
            Row(what=f"- cut, or another text than the provider's, of {count} turns", unit="turns", median=broken),
        ]
    for socket in sockets:
        socket.close()
    return rows


async def first_word(side: Side, received: Received, prefix: str, what: str) -> Row:
    """What was added to the provider's own time, of the turns whose markers begin so."""
    _, _, both = added(received, await read_log(side.served.provider_log), prefix)
    return row(f"added time to the first word, {what}", "ms", milliseconds(both))


async def replays(side: Side, amounts: Amounts) -> list[Row]:
    """A tab that comes back to an answer that stands at so many chunks and goes on later."""
    answers = {words: await begin(side.served, words, RATE) for words in amounts.streams}
    times: dict[int, list[float]] = {words: [] for words in answers}
    for number in range(amounts.returns + 2):
        for words, answer in answers.items():
            took, socket = await come_back(answer.url, answer.request_id)
            socket.close()
            await asyncio.sleep(0.02)
            if number >= 2:  # the first ones warm up
                times[words].append(took)
    for answer in answers.values():
        answer.socket.send({"type": "cf_agent_chat_request_cancel", "id": answer.request_id})
        await answer.socket.until(f'"id":"{answer.request_id}"'.encode(), DONE)
        answer.socket.close()
    return [
        row(f"connect to caught up, a running answer of {words:,} chunks", "ms", milliseconds(times[words]))
        for words in answers
    ]


async def stored(side: Side, amounts: Amounts) -> list[Row]:
    """Conversations that are long already: their messages by HTTP, and the first word of a turn after another one."""
    rows = []
    for size in amounts.sizes:
        names = await side.store(size, amounts.conversations)
        listed = await asyncio.to_thread(get_messages, side.served, names[0], size, amounts.lists, window=side.window)
        sockets = await greeted_all([socket_url(side.served, name) for name in names])
        received = Received()
        for number in range(amounts.later + 1):
            for at, socket in enumerate(sockets):
                kind = "later" if number else "first"
                await at_once([socket], f"{kind}-{size}-{number}-{at}", received, words=SHORT)
                await asyncio.sleep(0.02)
        for socket in sockets:
            socket.close()
        rows += [
            row(f"get-messages, {size:,} messages (ours: the newest {WINDOW})", "ms", milliseconds(listed)),
            await first_word(side, received, f"later-{size}-", f"in a conversation of {size:,} messages"),
        ]
    return rows


async def measure(start: Callable[[], contextlib.AbstractContextManager[Side]], amounts: Amounts) -> list[Row]:
    """Start one side, measure everything, and end it."""
    with start() as side:
        meter = side.meter()
        meter.start()
        rows = [*await bursts(side, amounts), *await replays(side, amounts), *await stored(side, amounts)]
        meter.stop()
        return [*rows, Row(what="memory of all its processes at most", unit="MB", median=meter.most / 1e6)]


def main() -> int:
    """Measure both in turns and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.beside_reference", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each (default 3)")
    parser.add_argument("--smoke", action="store_true", help="as little as shows that it works")
    parser.add_argument("--write", type=Path, help="put the table into this page")
    options = parser.parse_args()
    amounts = SMOKE if options.smoke else Amounts()
    found: dict[str, list[list[Row]]] = {name: [] for name in SIDES}
    loads: list[float] = []
    for number in range(options.runs):
        for name, start in SIDES.items():
            began = time.monotonic()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                found[name].append(runner.run(measure(start, amounts)))
            loads.append(os.getloadavg()[0])
            print(f"{number + 1}/{options.runs} {name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    rows = merged(found, list(SIDES))
    table = beside(list(SIDES), [("Asked by the same driver", rows)])
    text = f"{machine.describe(loads)} {versions()}. Median of {options.runs} runs each.\n\n{table}\n"
    print(text)
    if options.write is not None:
        write_page(options.write, REFERENCE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
