"""The driver: turns of every kind in several conversations at once, while processes die and connections break.

`play` returns a brief for the oracle: where the places are, what was asked, what each client held at rest.
"""

import asyncio
import itertools
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
from tests.chaos import acts
from tests.chaos.evidence import query
from tests.chaos.faults import Faults, RandomProxy
from tests.chaos.lines import Line, user_message
from tests.chaos.pages import PageTab, chromium
from tests.chaos.published import PublishedTab
from tests.chaos.stroll import Viewer, stroll
from tests.chaos.tally import idle
from tests.chaos.waiting import wait_until

JSONObject = dict[str, Any]
REST_SECONDS = 9.0  # longer than the looks and polls by which the product notices a lost notification
PUBLISHED = ("sdk7", "sdk6")
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
    browser: str = ""  # path of a Chromium; without one no browsers take part
    clients: str = ""  # address of the pages with the published clients; without it they take no part


@dataclass
class Play:
    """One run."""

    product: Product
    score: Score
    dice: random.Random
    lines: dict[str, list[Line]] = field(default_factory=dict)
    pages: dict[str, PageTab] = field(default_factory=dict)
    published: dict[str, PublishedTab] = field(default_factory=dict)
    requests: list[JSONObject] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    acts: dict[str, list[bool]] = field(default_factory=dict)
    started: int = 0

    def marker(self) -> str:
        """A new marker."""
        self.started += 1
        return f"t{self.started:04d}-{secrets.token_hex(3)}"

    def count(self, tab: PageTab | PublishedTab, act: str, *, is_done: bool) -> None:
        """Note what was tried in a tab, and whether there was something to do it with."""
        kind = "page" if isinstance(tab, PageTab) else "published"
        self.acts.setdefault(f"{act} ({kind})", []).append(is_done)

    def chunks(self) -> int:
        """How many chunks the clients have got."""
        return sum(sum(line.seen.values()) for line in self.all_lines) + sum(
            t.chunks() for t in self.published.values()
        )

    @property
    def all_lines(self) -> list[Line]:
        """The plain clients."""
        return [line for both in self.lines.values() for line in both]

    @property
    def viewers(self) -> list[Viewer]:
        """Everybody."""
        return [*self.all_lines, *self.pages.values(), *self.published.values()]

    async def turns(self) -> int:
        """How many turns were accepted."""
        return len(await asyncio.to_thread(query, database_of(self.product), TURNS_OF_ROOMS))

    async def turns_of(self, room: str) -> int:
        """How many turns were accepted in a room."""
        return len(await self._statuses(room))

    async def all_over(self, room: str, *, more_than: int, seconds: float) -> bool:
        """Wait until a room has more turns than it had, and all are over."""

        async def holds() -> bool:
            statuses = await self._statuses(room)
            return len(statuses) > more_than and not {"pending", "running", "parked"}.intersection(statuses)

        return await wait_until(holds, seconds=seconds, pause=0.2)

    async def _statuses(self, room: str) -> list[str]:
        rows = await asyncio.to_thread(query, database_of(self.product), TURNS_OF_ROOMS)
        return [status for name, status in rows if name == room]


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
            await _open_tabs(run, browser, proxy)
        if not score.is_calm:
            faults.begin()
        await asyncio.gather(*(_play_room(run, name, random.Random(dice.random()), faults) for name in run.lines))
        await faults.end()
        seconds = round(time.monotonic() - begun, 1)
        await _rest(run)
        browsers: list[PageTab | PublishedTab] = [*run.pages.values(), *run.published.values()]
        clients: list[Line | PublishedTab] = [*run.all_lines, *run.published.values()]
        return {
            **await make_brief(product, run.all_lines, run.requests, faults.kills),
            "clients": [client.dump() for client in clients],
            "views": await stroll(product, database_of(product), run.viewers),
            "seed": score.seed,
            "seconds": seconds,
            "cuts": faults.cuts,
            "acts": {act: f"{sum(done)}/{len(done)}" for act, done in sorted(run.acts.items())},
            "problems": run.problems + idle(run.acts) + [error for tab in browsers for error in tab.errors],
        }
    finally:
        await faults.end()
        await asyncio.gather(*(line.close() for line in run.all_lines))
        proxy.close()


async def _open_tabs(run: Play, browser: Browser, proxy: RandomProxy) -> None:
    """In each of the first two rooms one tab of the web page and one with a published client."""
    cookie, token = run.product.sign_in("alice"), run.product.token("alice")
    for number, room in enumerate(list(run.lines)[:2]):
        instance = await asyncio.to_thread(make_instance, run.product, room)
        run.pages[room] = await PageTab.open(browser, number, room, proxy.url, f"/c/{instance}", cookie)
        if run.score.clients:
            query_words = {"host": f"127.0.0.1:{proxy.port}", "token": token}
            run.published[room] = await PublishedTab.open(
                browser, PUBLISHED[number], room, run.score.clients, **query_words
            )


def make_instance(product: Product, room: str) -> str:
    """Have a conversation on the server before anybody is in it; returns its id."""
    headers = {"Authorization": f"Bearer {product.token('alice')}", "Content-Type": "application/json"}
    body = json.dumps({"agent": "assistant", "name": room}).encode()
    request = urllib.request.Request(product.url("/api/v1/instances"), body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(json.load(answer)["id"])


async def _rest(run: Play) -> None:
    for line in run.all_lines:
        if not await line.wait(lambda line=line: line.is_open, seconds=30):  # type: ignore[misc]  # bound at once
            run.problems.append(f"client {line.client} of {line.room} does not come back")
    for published in run.published.values():
        await published.be_ready()
    await asyncio.sleep(REST_SECONDS)  # as it says: only time shows that nothing more comes
    for page in run.pages.values():
        await page.show_all()


def database_of(product: Product) -> str:
    """Address (PostgreSQL) or path (SQLite) of an installation's database."""
    return product.environ.get("DATABASE_URL") or str(product.folder / "think.sqlite3")


async def make_brief(
    product: Product, lines: Sequence[Line], requests: list[JSONObject], kills: Sequence[JSONObject] = ()
) -> JSONObject:
    """What the oracle needs: where the places are, what was asked, what the clients hold, when Redis was lost."""
    return {
        "database": database_of(product),
        "redis": f"unix://{redis_socket(product.folder)}",
        "provider_log": str(product.provider_log),
        "requests": requests,
        "clients": [line.dump() for line in lines],
        "views": [await line.view(None) for line in lines],
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
            assert await lines[0].wait(lambda request=request: request in lines[0].ended, seconds=60)  # type: ignore[misc]  # as above
        await asyncio.sleep(1)  # what came after the end, and must not, would come at once
        return await make_brief(product, lines, requests)
    finally:
        await asyncio.gather(*(line.close() for line in lines))


async def _play_room(run: Play, room: str, dice: random.Random, faults: Faults) -> None:
    actors = itertools.cycle([run.published.get(room), run.pages.get(room), None])
    while await run.turns() < run.score.turns or (not run.score.is_calm and len(faults.kills) < run.score.min_kills):
        match next(actors):
            case PageTab() as tab:
                await acts.on_page(run, dice, tab)
            case PublishedTab() as tab:
                await acts.on_published(run, dice, tab)
            case None:
                await acts.with_lines(run, dice, room)
        await asyncio.sleep(dice.uniform(0, 0.3))  # people act when they like
