"""The driver: turns of every kind in several conversations at once, while processes die and connections break.

`play` returns a brief for the oracle: where the places are, what was asked, what each client held at rest.
"""

import asyncio
import json
import random
import secrets
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser

from tests.acceptance.product import Product, redis_socket
from tests.chaos import scripts
from tests.chaos.evidence import query
from tests.chaos.faults import Faults, RandomProxy
from tests.chaos.lines import Line
from tests.chaos.pages import PageTab, chromium

JSONObject = dict[str, Any]
REST_SECONDS = 9.0  # longer than the looks and polls by which the product notices a lost bell
SENT_MESSAGES = 8
PAGE_SHARE = 0.5
TURNS_OF_ROOMS = """
select i.name, f.status from think_chat_turn t join think_chat_agentinstance i on i.id = t.instance_id
join think_fibers_fiber f on f.id = t.fiber_id
"""


@dataclass(frozen=True, kw_only=True)
class Score:
    """What is to be played. `turns` at least; `kill_every`: seconds between two kills, from and to."""

    turns: int
    seed: int
    rooms: int = 4
    kill_every: tuple[float, float] = (4.0, 8.0)
    min_kills: int = 0
    turn_seconds: float = 120.0
    is_calm: bool = False
    browser: str = ""  # path of a Chromium; without one no pages take part


@dataclass
class Play:
    """One run."""

    product: Product
    score: Score
    dice: random.Random
    lines: dict[str, list[Line]] = field(default_factory=dict)
    tabs: dict[str, PageTab] = field(default_factory=dict)
    requests: list[JSONObject] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    started: int = 0

    def marker(self) -> str:
        """A new marker; counts the turn."""
        self.started += 1
        return f"t{self.started:04d}-{secrets.token_hex(3)}"

    def chunks(self) -> int:
        """How many chunks the clients have got."""
        return sum(sum(line.seen.values()) for lines in self.lines.values() for line in lines)


async def play(product: Product, score: Score) -> JSONObject:
    """Play the score and return the brief. Errors: `AssertionError` when turns do not end."""
    if not score.browser:
        return await _play(product, score, None)
    async with chromium(score.browser) as browser:
        return await _play(product, score, browser)


async def _play(product: Product, score: Score, browser: Browser | None) -> JSONObject:
    dice = random.Random(score.seed)
    proxy = RandomProxy([web.port for web in product.webs])
    run = Play(product, score, dice)
    token = product.token("alice")
    for number in range(score.rooms):
        name = f"room{number}"
        url = f"ws://127.0.0.1:{proxy.port}/agents/assistant/{name}?token={token}"
        run.lines[name] = [Line(client, name, url, random.Random(dice.random())) for client in ("A", "B")]
    faults = Faults(product, proxy, random.Random(dice.random()), run.chunks, score.kill_every)
    begun = time.monotonic()
    try:
        if browser is not None:
            await _open_tabs(run, browser, proxy.url)
        if not score.is_calm:
            faults.begin()
        await asyncio.gather(*(_play_room(run, name, random.Random(dice.random()), faults) for name in run.lines))
        await faults.end()
        await _rest(run)
        lines = [line for both in run.lines.values() for line in both]
        return {
            **make_brief(product, lines, run.requests, faults.kills),
            "pages": [await tab.dump() for tab in run.tabs.values()],
            "seed": score.seed,
            "seconds": round(time.monotonic() - begun, 1),
            "cuts": faults.cuts,
            "problems": run.problems + [error for tab in run.tabs.values() for error in tab.errors],
        }
    finally:
        await faults.end()
        await asyncio.gather(*(line.close() for lines in run.lines.values() for line in lines))
        proxy.close()


async def _open_tabs(run: Play, browser: Browser, base: str) -> None:
    """One tab in each of the first two rooms."""
    cookie = run.product.sign_in("alice")
    for number, room in enumerate(list(run.lines)[:2]):
        instance = await asyncio.to_thread(_make_instance, run.product, room)
        run.tabs[room] = await PageTab.open(browser, number, room, base, f"/c/{instance}", cookie)


def _make_instance(product: Product, room: str) -> str:
    headers = {"Authorization": f"Bearer {product.token('alice')}", "Content-Type": "application/json"}
    body = json.dumps({"agent": "assistant", "name": room}).encode()
    request = urllib.request.Request(product.url("/api/v1/instances"), body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(json.load(answer)["id"])


async def _rest(run: Play) -> None:
    lines = [line for both in run.lines.values() for line in both]
    for line in lines:
        if not await line.wait(lambda line=line: line.is_open, seconds=30):  # type: ignore[misc]  # bound at once
            run.problems.append(f"client {line.client} of {line.room} does not come back")
    await asyncio.sleep(REST_SECONDS)


def database_of(product: Product) -> str:
    """Address (PostgreSQL) or path (SQLite) of an installation's database."""
    return product.environ.get("DATABASE_URL") or str(product.folder / "think.sqlite3")


def make_brief(
    product: Product, lines: Sequence[Line], requests: list[JSONObject], kills: Sequence[JSONObject] = ()
) -> JSONObject:
    """What the oracle needs: where the places are, what was asked, what the clients hold, when Redis was lost."""
    return {
        "database": database_of(product),
        "redis": f"unix://{redis_socket(product.folder)}",
        "provider_log": str(product.provider_log),
        "requests": requests,
        "clients": [line.dump() for line in lines],
        "pages": [],
        "kills": list(kills),
    }


async def recite(product: Product, texts: Sequence[str], *, web: int = 0) -> JSONObject:
    """Have each text answered, one after the other, watched by two undisturbed clients; returns the brief."""
    url = product.url(f"/agents/assistant/recital?token={product.token('alice')}", web=web).replace("http", "ws", 1)
    lines = [Line(client, "recital", url, random.Random(number)) for number, client in enumerate("AB")]
    requests: list[JSONObject] = []
    try:
        for line in lines:
            assert await line.wait(lambda line=line: line.is_open, seconds=20)  # type: ignore[misc]  # bound at once
        for text in texts:
            request = await lines[0].ask([*lines[0].transcript, user_message(text)])
            requests.append({"room": "recital", "request": request, "text": text, "stopped": False})
            assert await lines[0].wait(lambda request=request: request in lines[0].ended, seconds=60)  # type: ignore[misc]
        await asyncio.sleep(1)
        return make_brief(product, lines, requests)
    finally:
        await asyncio.gather(*(line.close() for line in lines))


async def _play_room(run: Play, room: str, dice: random.Random, faults: Faults) -> None:
    kinds = [_plain, _tools, _broken, _edit, _regenerate, _stopped, _queued]
    while run.started < run.score.turns or (not run.score.is_calm and len(faults.kills) < run.score.min_kills):
        if room in run.tabs and dice.random() < PAGE_SHARE:
            await _on_page(run, dice, run.tabs[room])
        else:
            act = dice.choices(kinds, weights=[8, 5, 2, 3, 3, 3, 2])[0]
            line, other = dice.sample(run.lines[room], 2)
            await act(run, dice, line, other)
        await asyncio.sleep(dice.uniform(0, 0.3))


async def _end(run: Play, line: Line, *requests: str) -> None:
    if not await line.wait(lambda: all(r in line.ended for r in requests), seconds=run.score.turn_seconds):
        late = [request for request in requests if request not in line.ended]
        run.problems.append(f"no end of {late} in {line.room} within {run.score.turn_seconds} s")
        raise AssertionError(run.problems[-1])


def user_message(text: str, message_id: str = "") -> JSONObject:
    """A person's message as clients send it."""
    return {"id": message_id or secrets.token_hex(8), "role": "user", "parts": [{"type": "text", "text": text}]}


async def _submit(run: Play, line: Line, text: str, *, stopped: bool = False) -> str:
    request = await line.ask([*line.transcript[-SENT_MESSAGES:], user_message(text)])
    run.requests.append({"room": line.room, "request": request, "text": text, "stopped": stopped})
    return request


async def _plain(run: Play, dice: random.Random, line: Line, _other: Line) -> None:
    await _end(run, line, await _submit(run, line, scripts.plain(dice, run.marker())))


async def _tools(run: Play, dice: random.Random, line: Line, _other: Line) -> None:
    await _end(run, line, await _submit(run, line, scripts.tools(dice, run.marker())))


async def _broken(run: Play, dice: random.Random, line: Line, _other: Line) -> None:
    await _end(run, line, await _submit(run, line, scripts.broken(dice, run.marker())))


async def _edit(run: Play, dice: random.Random, line: Line, other: Line) -> None:
    users = [at for at, message in enumerate(line.transcript) if message["role"] == "user"]
    if not users:
        return await _plain(run, dice, line, other)
    at = dice.choice(users[-4:])
    text = scripts.plain(dice, run.marker())
    request = await line.ask([*line.transcript[max(0, at - 4) : at], user_message(text, line.transcript[at]["id"])])
    run.requests.append({"room": line.room, "request": request, "text": text, "stopped": False})
    await _end(run, line, request)
    return None


async def _regenerate(run: Play, dice: random.Random, line: Line, other: Line) -> None:
    answers = [at for at, message in enumerate(line.transcript) if message["role"] == "assistant"]
    if not answers:
        return await _plain(run, dice, line, other)
    at = dice.choice(answers[-4:])
    run.marker()
    request = await line.ask(line.transcript[max(0, at - 4) : at], trigger="regenerate-message")
    run.requests.append({"room": line.room, "request": request, "text": None, "stopped": False})
    await _end(run, line, request)
    return None


async def _stopped(run: Play, dice: random.Random, line: Line, other: Line) -> None:
    request = await _submit(run, line, scripts.long(dice, run.marker()), stopped=True)
    wanted = dice.randint(0, 40)
    await line.wait(lambda: line.seen.get(request, 0) >= wanted or request in line.ended, seconds=30)
    await dice.choice([line, other]).stop(request)
    await _end(run, line, request)


async def _queued(run: Play, dice: random.Random, line: Line, other: Line) -> None:
    first = await _submit(run, line, scripts.plain(dice, run.marker()))
    second = await _submit(run, other, scripts.tools(dice, run.marker()))
    is_stopped = dice.random() < 0.4
    third = await _submit(run, line, scripts.plain(dice, run.marker()), stopped=is_stopped)
    if is_stopped:
        await line.stop(third)
    await _end(run, line, first, third)
    await _end(run, other, second)


async def _on_page(run: Play, dice: random.Random, tab: PageTab) -> None:
    """One thing that a person does in a tab; over when every turn of the room is."""
    before, _ = await _turns_of(run, tab.room)
    act = dice.choices(["write", "tools", "stop", "again", "edit"], weights=[4, 2, 2, 2, 2])[0]
    is_stopped = act == "stop"
    make = {"stop": scripts.long, "tools": scripts.tools}.get(act, scripts.plain)
    text = make(dice, run.marker())
    if act == "again":
        if not await tab.regenerate():
            return
    elif act != "edit":
        await tab.write(text)
    elif not await tab.edit_last(text):
        return
    request = {"room": tab.room, "request": None, "text": text, "stopped": is_stopped}
    if act != "again":
        run.requests.append(request)
    if is_stopped:
        await asyncio.sleep(dice.uniform(0.2, 2.0))
        await tab.stop()
    deadline = time.monotonic() + run.score.turn_seconds
    while time.monotonic() < deadline:
        count, waiting = await _turns_of(run, tab.room)
        if count > before and not waiting:
            return
        await asyncio.sleep(0.2)
    run.problems.append(f"{act} on page {tab.number} of {tab.room} led to nothing: {text!r}")


async def _turns_of(run: Play, room: str) -> tuple[int, int]:
    """How many turns a room has, and how many of them are not over."""
    rows = await asyncio.to_thread(query, database_of(run.product), TURNS_OF_ROOMS)
    statuses = [status for name, status in rows if name == room]
    return len(statuses), sum(status in {"pending", "running", "parked"} for status in statuses)
