"""A worker is killed with signal 9 in the middle of answers: how long until each of them goes on, on another worker."""

import asyncio
import time

from bench.chats import DONE, TEXT_DELTA, ProviderLog, ask, greeted, text_chunks
from bench.rig import Options, running, socket_url
from bench.rows import Row, row
from bench.sockets import Socket
from tests.acceptance.product import Product

TURNS, RATE = 12, 25
GOAL_SECONDS = 20.0
STALL_SECONDS = 1.0
QUICK = {"THINK_FIBER_LEASE_SECONDS": "1.5", "THINK_FIBER_HEARTBEAT_SECONDS": "0.4", "THINK_FIBER_SWEEP_SECONDS": "0.3"}


async def one_kill(product: Product, number: int, words: int) -> tuple[list[float], int]:
    """Kill a worker that runs half of the turns; seconds until the cut ones went on, and how many came out wrong."""
    sockets, ids = [], []
    for at in range(TURNS):
        socket = await Socket.connect(socket_url(product, f"recovery-{number}-{at}"))
        await greeted(socket)
        sockets.append(socket)
        ids.append(ask(socket, f"marker: cut-{number}-{at}\nstream {words} words at {RATE}/s")[0])
    for socket in sockets:
        await socket.until(TEXT_DELTA)
    await asyncio.sleep(1.0)
    victim = product.workers[number % len(product.workers)]
    victim.kill()
    killed_at = time.time()
    await asyncio.gather(
        *(
            socket.until(f'"id":"{request_id}"'.encode(), DONE, seconds=120)
            for socket, request_id in zip(sockets, ids, strict=True)
        )
    )
    victim.start()
    log = ProviderLog(product.provider_log)
    gaps, wrong = [], 0
    for at, (socket, request_id) in enumerate(zip(sockets, ids, strict=True)):
        received = list(text_chunks(socket, request_id))
        after = [came for came, _ in received if came > killed_at + 0.1]
        if after and after[0] - killed_at > STALL_SECONDS:
            gaps.append(after[0] - killed_at)
        wrong += len("".join(text for _, text in received).split()) != words
        wrong += f"cut-{number}-{at}" not in log.sent
        socket.close()
    return gaps, wrong


async def run(options: Options) -> list[Row]:
    """Kill one worker after the other."""
    gaps: list[float] = []
    wrong = 0
    words = 75 if options.is_smoke else 200
    with running(options, workers=2, environ=QUICK if options.is_smoke else {}) as product:
        for number in range(1 if options.is_smoke else 2):
            found, broken = await one_kill(product, number, words)
            gaps += found
            wrong += broken
            await asyncio.to_thread(product.wait_until_ready)
    return [
        row(f"kill -9 of a worker to the next word ({len(gaps)} answers cut)", "s", gaps, goal=GOAL_SECONDS),
        Row(what="answers with a lost or doubled word", unit="answers", median=wrong, goal=0),
    ]
