"""What the benchmarks of the product stand on: its processes, a bare echo server, and what each process spends."""

import asyncio
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil
import psycopg

from tests.acceptance.product import ROOT, Plan, Process, Product, base_environ, start_product

SAMPLE_SECONDS = 0.5
LOG_TAIL = 3_000
ENVIRON = {"THINK_TURNS_PER_MINUTE": "0", "THINK_RUNNING_TURNS_PER_USER": "0", "THINK_LOG_LEVEL": "WARNING"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How long and how much. `is_smoke`: as little as shows that it works. `kept`: products that several share.

    `processes`: web servers, and as many workers.
    """

    seconds: float = 60.0
    is_smoke: bool = False
    database: str = "sqlite"
    processes: int = 1
    kept: "Kept | None" = None


class Served(Protocol):
    """What the driver asks of whatever speaks the protocol: the product, and the reference implementation."""

    @property
    def webs(self) -> Sequence[Process]:
        """The servers that it may dial."""

    @property
    def provider_log(self) -> Path:
        """What the provider says it sent."""

    def url(self, path: str = "/", *, web: int = 0) -> str:
        """Address on a server."""

    def token(self, name: str) -> str:
        """A person's bearer token."""


class Kept:
    """Products that outlive their block, for a run that compares no times: one of each plan."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._products: list[tuple[Plan, Product]] = []

    def product(self, plan: Plan) -> Product:
        """The product of a plan, started when first asked for."""
        found = next((product for known, product in self._products if known == plan), None)
        if found is None:
            found = self._stack.enter_context(_started(plan))
            self._products.append((plan, found))
        return found

    def close(self) -> None:
        """End them all."""
        self._stack.close()


@contextlib.contextmanager
def running(options: Options, *, workers: int = 1, environ: Mapping[str, str] | None = None) -> Iterator[Product]:
    """Start the product in a folder of its own; everything ends with the block, unless the options keep it."""
    plan = Plan(
        webs=options.processes,
        workers=max(workers, options.processes),
        worker_threads=200,
        database=options.database,
        provider_options=["--no-bodies"],
        environ={**ENVIRON, **(environ or {})},
    )
    if options.kept is not None:
        yield options.kept.product(plan)
        return
    with _started(plan) as product:
        yield product


@contextlib.contextmanager
def _started(plan: Plan) -> Iterator[Product]:
    folder = Path(tempfile.mkdtemp(prefix="thkb"))
    try:
        product = start_product(folder, plan)
        try:
            yield product
        except BaseException:
            for process in [*product.webs, *product.workers, product.provider]:
                is_there = "runs" if process.is_running else "has ended"
                print(f"--- {process.name} {is_there}\n{process.log[-LOG_TAIL:]}", file=sys.stderr)
            raise
        finally:
            product.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def echo_server() -> Iterator[str]:
    """Start the bare echo server; gives its address."""
    command = [sys.executable, "-m", "bench.echo"]
    process = subprocess.Popen(command, cwd=ROOT, env=base_environ(ROOT / "var"), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"ws://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.terminate()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()


def socket_url(product: Served, name: str, *, web: int = 0) -> str:
    """Address of a conversation of the one user there is."""
    url = product.url(f"/agents/assistant/{name}?token={product.token('alice')}", web=web)
    return url.replace("http", "ws", 1)


def socket_urls(product: Served, name: str, count: int) -> list[str]:
    """Addresses of so many conversations, dealt out to the web servers."""
    return [socket_url(product, f"{name}-{at}", web=at % len(product.webs)) for at in range(count)]


@dataclass
class Meter:
    """CPU and memory of processes by name, between `start` and `stop`, with all that they started."""

    pids: Mapping[str, Sequence[int]]
    cpu: dict[str, float] = field(default_factory=dict)  # seconds
    waited: dict[str, float] = field(default_factory=dict)  # seconds in which it could have run and had no core
    peak: dict[str, float] = field(default_factory=dict)  # bytes that are resident
    most: float = 0.0  # bytes of all but the provider, of which what processes share is counted once
    _before: dict[str, float] = field(default_factory=dict)
    _waited_before: dict[str, float] = field(default_factory=dict)
    _task: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, product: Product) -> "Meter":
        """Measure the processes of a product, and the database server if there is one."""
        pids = {
            "web": [web.pid for web in product.webs],
            "worker": [worker.pid for worker in product.workers],
            "redis": [product.redis.pid],
            "postgres": _postgres(product.environ.get("DATABASE_URL", "")),
            "provider": [product.provider.pid],
        }
        return cls({name: found for name, found in pids.items() if found})

    @property
    def own(self) -> float:
        """Seconds of CPU of the product: all but the provider."""
        return sum(spent for name, spent in self.cpu.items() if name != "provider")

    def start(self) -> None:
        """Begin."""
        self._before, self._waited_before = self._spent(), self._waiting()
        self._task = asyncio.get_running_loop().create_task(self._sample())

    def stop(self) -> None:
        """End, and say in `cpu` and `waited` what was spent."""
        assert self._task is not None
        self._task.cancel()
        self._look()
        self.cpu = _since(self._before, self._spent())
        self.waited = _since(self._waited_before, self._waiting())

    def memory(self, name: str) -> float:
        """Bytes of resident memory now."""
        return _sum(self._processes()[name], lambda process: process.memory_info().rss)

    def _processes(self) -> dict[str, list[psutil.Process]]:
        """All of each name. One look at the list of processes, which takes the driver milliseconds, serves them all."""
        started = defaultdict(list)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess):
                started[process.ppid()].append(process)

        def family(root: psutil.Process) -> Iterator[psutil.Process]:
            yield root
            for child in started[root.pid]:
                yield from family(child)

        roots = {name: [psutil.Process(pid) for pid in pids] for name, pids in self.pids.items()}
        return {name: [each for root in found for each in family(root)] for name, found in roots.items()}

    def _spent(self) -> dict[str, float]:
        """User and system time, its own and that of children that ended."""
        return {
            name: _sum(found, lambda process: sum(process.cpu_times()[:4])) for name, found in self._processes().items()
        }

    def _waiting(self) -> dict[str, float]:
        """Seconds that threads have waited for a core so far; Linux reports it, elsewhere it is zero."""
        return {name: _sum(found, _waited) for name, found in self._processes().items()}

    def _look(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):  # at the end of a run that failed
            shares = 0.0
            for name, found in self._processes().items():
                resident = _sum(found, lambda process: process.memory_info().rss)
                self.peak[name] = max(self.peak.get(name, 0.0), resident)
                if name != "provider":
                    shares += _sum(found, lambda process: process.memory_full_info().pss)
            self.most = max(self.most, shares)

    async def _sample(self) -> None:
        while True:
            await asyncio.to_thread(self._look)  # the loop has frames to stamp meanwhile
            await asyncio.sleep(SAMPLE_SECONDS)


def _sum(processes: Iterable[psutil.Process], amount: Callable[[psutil.Process], float]) -> float:
    found = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # a child that ends meanwhile; its parent counts its time
            found += amount(process)
    return found


def _since(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    return {name: now[name] - spent for name, spent in before.items()}


def _waited(process: psutil.Process) -> float:
    nanoseconds = 0
    for path in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # a thread that ends meanwhile
            nanoseconds += int(path.read_text(encoding="ascii").split()[1])
    return nanoseconds / 1e9


def _postgres(url: str) -> list[int]:
    """The database server's process, if the address names one."""
    if not url:
        return []
    with psycopg.connect(url) as connection:
        found = connection.execute("SHOW data_directory").fetchone()
    assert found is not None
    return [int((Path(found[0]) / "postmaster.pid").read_text(encoding="ascii").split()[0])]
