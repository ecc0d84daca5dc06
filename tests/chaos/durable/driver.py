"""Durable work of every kind in several conversations at once, while processes die. Returns a world for `rules`."""

import asyncio
import json
import random
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from chat.client import ChatClient
from chat.client.errors import RequestRefused
from tests.acceptance.product import UNLIMITED, Process, Product
from tests.chaos.driver import database_of
from tests.chaos.durable.agents import LEDGER
from tests.chaos.durable.evidence import Occurrences, Takeovers, gather
from tests.chaos.durable.postgres import OwnPostgres
from tests.chaos.durable.reaper import Reaper, Victim
from tests.chaos.evidence import query
from tests.chaos.faults import RandomProxy
from tests.chaos.waiting import wait_until

JSONObject = dict[str, Any]
BUSY_TRIES = 60
ARM_SECONDS = 2.0
OPEN = """
select count(*) from think_fibers_fiber where status in ('running', 'parked') or (status = 'pending' and attempt > 0)
"""
LIVE_TURNS = """
select count(*) from think_chat_turn t join think_fibers_fiber f on f.id = t.fiber_id
where f.status in ('pending', 'running', 'parked')
"""
ASKED = "select count(*) from think_tools_toolcallrecord where status = 'asked'"
ROOM_OPEN = """
select (select count(*) from think_chat_turn t join think_fibers_fiber f on f.id = t.fiber_id
    where t.instance_id = i.id and f.status in ('pending', 'running', 'parked'))
    + (select count(*) from think_tools_toolcallrecord c where c.scope = i.id and c.status in ('asked', 'approved'))
from think_chat_agentinstance i where i.name = '{room}'
"""


@dataclass(frozen=True, kw_only=True)
class Score:
    """What is to be done: at least so many requests and kills. Units: seconds."""

    requests: int
    seed: int
    min_kills: int = 0
    rooms: int = 4  # conversations at the same time
    kill_every: float = 1.0
    freeze_seconds: float = 12.0
    end_seconds: float = 180.0
    shift_seconds: float = 3600.0  # of one worker's own clock


@dataclass
class Errands:
    """One run."""

    score: Score
    dice: random.Random
    token: str
    asked: list[JSONObject] = field(default_factory=list)

    def ask(self) -> JSONObject:
        """A new request of some kind: its text, the effects that it has, and what is said last."""
        name = f"e{len(self.asked):04d}-{secrets.token_hex(3)}"
        kinds: list[Callable[[str], tuple[list[str], list[JSONObject]]]] = [_paid, _ordered, _posted, _signed, _coded]
        kinds += [_delegated, _weighed, _enlisted, _told_by_teller]
        calls, effects = self.dice.choices(kinds, weights=[3, 2, 2, 3, 2, 2, 2, 2, 2])[0](name)
        lines = [f"marker: {name}", f"stream {self.dice.randint(10, 80)} words at 25/s", *calls, f"say: [end {name}]"]
        found = {"text": "\n".join(lines), "says": f"[end {name}]", "effects": effects, "request": ""}
        self.asked.append(found)
        return found


def _effect(what: str, *, is_repeatable: bool) -> JSONObject:
    return {"what": what, "is_repeatable": is_repeatable}


def _call(tool: str, **arguments: str) -> str:
    return f"call tool {tool} {json.dumps(arguments)}"


def _paid(name: str) -> tuple[list[str], list[JSONObject]]:
    return [_call("pay", what=name)], [_effect(name, is_repeatable=True)]


def _ordered(name: str) -> tuple[list[str], list[JSONObject]]:
    return [_call("order", what=name)], [_effect(name, is_repeatable=False)]


def _posted(name: str) -> tuple[list[str], list[JSONObject]]:
    return [_call("post", what=name)], [_effect(name, is_repeatable=False)]


def _signed(name: str) -> tuple[list[str], list[JSONObject]]:
    return [_call("sign", what=name)], [_effect(name, is_repeatable=True)]


def _coded(name: str) -> tuple[list[str], list[JSONObject]]:
    first, second = f"{name}-a", f"{name}-b"
    code = f"async () => [await tools.pay({{what: '{first}'}}), await tools.sign({{what: '{second}'}})]"
    return [_call("execute", code=code)], [_effect(first, is_repeatable=True), _effect(second, is_repeatable=True)]


def _delegated(name: str) -> tuple[list[str], list[JSONObject]]:
    task = f"{_call('pay', what=name)}\nsay: done"
    return [_call("chaos_helper", task=task)], [_effect(name, is_repeatable=True)]


def _weighed(name: str) -> tuple[list[str], list[JSONObject]]:
    return [_call("weigh", what=name)], [_effect(name, is_repeatable=True)]


def _enlisted(name: str) -> tuple[list[str], list[JSONObject]]:
    return [_call("enlist", what=name)], [_effect(name, is_repeatable=True)]


def _told_by_teller(name: str) -> tuple[list[str], list[JSONObject]]:
    message = f"{_call('pay', what=name)}\nsay: done"
    return [_call("ask_teller", message=message)], [_effect(name, is_repeatable=True)]


def start_lab(product: Product) -> Process:
    """Start a worker beside the product that has the tool of the lab, and takes nothing else."""
    options = ["--pool", "threads", "--concurrency", "4", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    celery = [sys.executable, "-m", "celery", "--app", "thinkproject.celery", "worker", *options]
    environ = {**product.environ, "THINK_APPS": f"{product.environ['THINK_APPS']},tests.chaos.durable_lab"}
    lab = Process("lab", [*celery, "-Q", "chat.tool.lab", "--hostname", "lab@%h"], environ, product.folder)
    lab.start()
    return lab


def start_beat(product: Product, name: str = "beat", **environ: str) -> Process:
    """Start a beat beside the product. `environ` adds to its environment."""
    options = ["beat", "--schedule", str(product.folder / f"{name}-schedule"), "--pidfile", "", "--loglevel", "INFO"]
    beat = Process(
        name,
        [sys.executable, "-m", "celery", "--app", "thinkproject.celery", *options],
        {**product.environ, **environ},
        product.folder,
    )
    beat.start()
    return beat


def shift_clock(worker: Process, seconds: float) -> None:
    """Start a worker again with a clock of its own that is wrong by so much."""
    worker.stop()
    at = list(worker.command).index("-m") + 1
    worker.command = [*worker.command[:at], "tests.chaos.durable.shifted_worker", *worker.command[at + 1 :]]
    worker.environ = {**worker.environ, "CHAOS_SHIFT_SECONDS": str(seconds)}
    worker.log_path.unlink()
    worker.start()


def environ_of(ledger: Path) -> dict[str, str]:
    """The environment of an installation that has the agents of this run."""
    return UNLIMITED | {"THINK_APPS": "tests.acceptance.desk,tests.chaos.durable", LEDGER: str(ledger)}


async def play(product: Product, score: Score, ledger: Path, *, postgres: OwnPostgres | None) -> JSONObject:
    """Ask, kill, wait until all is over, and return the world. Errors: `AssertionError` for work that does not end."""
    dice = random.Random(score.seed)
    shift_clock(product.workers[-1], score.shift_seconds)
    beat, lab = start_beat(product), start_lab(product)
    await asyncio.to_thread(product.wait_until_ready)
    victims: list[Victim] = [*product.webs, *product.workers, product.redis, beat, lab]
    victims += [postgres] if postgres else []
    proxy = RandomProxy([web.port for web in product.webs])
    reaper = Reaper(victims, random.Random(dice.random()), score.kill_every, score.freeze_seconds)
    run, address = Errands(score, random.Random(dice.random()), product.token("alice")), database_of(product)
    takeovers, occurrences = Takeovers(address, reaper.kills), Occurrences(address)
    ready: list[JSONObject] = []
    helpers = [
        asyncio.create_task(takeovers.watch()),
        asyncio.create_task(occurrences.watch()),
        asyncio.create_task(_approve(product)),
        asyncio.create_task(_watch_ready(product, ready)),
    ]
    begun = time.monotonic()
    try:
        await _arm(proxy, run.token)
        reaper.begin()
        await asyncio.gather(*(_room(run, reaper, proxy, f"errands{n}", address) for n in range(score.rooms)))
        await reaper.end()
        seconds = time.monotonic() - begun
        await asyncio.to_thread(product.wait_until_ready)
        is_over = await wait_until(lambda: _is_over(address), seconds=score.end_seconds, pause=0.5)
        schedules, calm_at = await asyncio.to_thread(_schedules, address), time.time()
        await wait_until(lambda: _ticked(ledger, schedules, calm_at), seconds=30, pause=0.5)
        await wait_until(lambda: _all_written(ledger, run), seconds=score.end_seconds, pause=0.5)
        await asyncio.to_thread(product.call, "tests.chaos.durable.beside:end_schedules")
        await wait_until(lambda: _none(address, OPEN), seconds=score.end_seconds, pause=0.5)
        await occurrences.look()
        world = await asyncio.to_thread(gather, address, ledger)
    finally:
        await reaper.end()
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        beat.kill()
        lab.kill()
        proxy.close()
    facts = {"seed": score.seed, "seconds": seconds, "is_over": is_over, "schedules": schedules, "calm_at": calm_at}
    seen = {"kills": reaper.kills, "ready": ready, "takeovers": takeovers.found}
    return {**world, **facts, **seen, "occurrences": occurrences.found, "every": ARM_SECONDS, "asked": run.asked}


async def _sent(chat: ChatClient, text: str) -> Any:
    """A message that was accepted. One that is refused while the database is away is sent again, as people do."""
    for _ in range(BUSY_TRIES):
        try:
            return await chat.send(text)
        except RequestRefused as error:
            if "busy" not in str(error):
                raise
            await asyncio.sleep(1)  # between two tries, as people do
    raise TimeoutError("The server was busy all the time.")


async def _arm(proxy: RandomProxy, token: str) -> None:
    async with ChatClient(proxy.url, agent="chaos-clerk", name="ticks", token=token) as chat:
        turn = await _sent(chat, f"call tool arm {json.dumps({'seconds': ARM_SECONDS})}\nsay: armed")
        await turn.ended()


async def _room(run: Errands, reaper: Reaper, proxy: RandomProxy, name: str, address: str) -> None:
    async with ChatClient(proxy.url, agent="chaos-clerk", name=name, token=run.token) as chat:
        while len(run.asked) < run.score.requests or len(reaper.kills) < run.score.min_kills:
            reaper.check()
            ask = run.ask()
            turn = await _sent(chat, ask["text"])
            ask["request"] = turn.request_id
            with suppress(TimeoutError):
                async with asyncio.timeout(run.score.end_seconds):
                    await turn.ended()
            # A further message would go on without the answer to what is asked.
            await wait_until(lambda: _none(address, ROOM_OPEN.format(room=name)), seconds=run.score.end_seconds)


async def _approve(product: Product) -> None:
    while True:
        await asyncio.to_thread(product.call, "tests.chaos.durable.beside:approve")
        await asyncio.sleep(0.5)  # between two looks


async def _watch_ready(product: Product, ready: list[JSONObject]) -> None:
    """Note each time that a worker has come up and is ready."""
    counts: dict[str, int] = {}
    while True:
        for worker in product.workers:
            log = await asyncio.to_thread(worker.log_path.read_text, encoding="utf-8", errors="replace")
            count = log.count(" ready.")
            if count > counts.get(worker.name, 0):
                counts[worker.name] = count
                ready.append({"name": worker.name, "at": time.time()})
        await asyncio.sleep(0.2)  # between two looks


async def _is_over(address: str) -> bool:
    return await _none(address, LIVE_TURNS) and await _none(address, ASKED)


async def _none(address: str, sql: str) -> bool:
    try:
        return not (await asyncio.to_thread(query, address, sql))[0][0]
    except (psycopg.Error, sqlite3.Error):  # the database is one of those that are killed
        return False


def _schedules(address: str) -> list[str]:
    return [row[0] for row in query(address, "select id from think_fibers_schedule where status = 'active'")]


async def _all_written(ledger: Path, run: Errands) -> bool:
    """Whether every effect of a queryset has been: one follows its row, and no turn waits for it."""
    text = await asyncio.to_thread(ledger.read_text, encoding="utf-8")
    written = {json.loads(line)["what"] for line in text.splitlines()}
    return {effect["what"] for ask in run.asked for effect in ask["effects"] if effect["is_repeatable"]} <= written


async def _ticked(ledger: Path, schedules: list[str], since: float) -> bool:
    text = await asyncio.to_thread(ledger.read_text, encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    late = {line["schedule"] for line in lines if line["what"] == "tick" and line["at"] > since}
    return set(schedules) <= late
