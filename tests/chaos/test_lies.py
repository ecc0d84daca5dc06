"""In the running product: when one part lies about one chunk, the oracle says so, and says where."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import redis

from tests.acceptance.product import Process, Product, redis_socket
from tests.chaos import oracle
from tests.chaos.driver import database_of, make_instance, recite
from tests.chaos.evidence import collect
from tests.chaos.pages import PageTab, chromium
from tests.chaos.published import PublishedTab
from tests.chaos.stroll import stroll
from tests.chaos.test_oracle import double, lose, swap

TEXT = "marker: {name}\nstream 30 words at 60/s"
SPOILS = [lose, double, swap]
EVERY_VIEW = ["client A transcript", "client B transcript", "page 0 page", "sdk7 published"]


def told(brief: dict[str, Any]) -> list[tuple[str, str]]:
    """Differences by request and place, each pair once."""
    world = collect(brief)
    names = {turn["request"]: turn["provider"][0]["marker"] for turn in world["turns"]}
    by_turn = {turn["turn"]: names[turn["request"]] for turn in world["turns"]}
    return sorted({(_name(item.turn, names, by_turn), item.place) for item in oracle.compare(world)})


def _name(turn: str, names: dict[str, str], by_turn: dict[str, str]) -> str:
    room_and_request, _, turn_id = turn.partition(" ")
    return by_turn.get(turn_id) or names[room_and_request.partition("/")[2]]


def start_lying(product: Product, process: Process, module: str, lie: str) -> None:
    """Start a process again with a lying module in the place of the one that it runs."""
    process.stop()
    at = list(process.command).index("-m") + 1
    process.command = [*process.command[:at], module, lie, *process.command[at + 1 :]]
    process.start()
    product.wait_until_ready()


def lie_on_the_web(product: Product, lie: str) -> None:
    start_lying(product, product.webs[0], "tests.chaos.lying_web", lie)


def test_provider_that_skips_or_repeats_a_chunk_is_found_out(make_product: Callable[..., Product]) -> None:
    product = make_product()
    texts = [TEXT.format(name=name) for name in ("honest", "skips", "repeats")]
    texts[1] += "\nmisbehave skip chunk 9"
    texts[2] += "\nmisbehave repeat chunk 9"
    brief = asyncio.run(recite(product, texts))
    assert told(brief) == [("repeats", "log against provider"), ("skips", "log against provider")]


@pytest.mark.parametrize("lie", ["lose", "double", "swap"])
def test_worker_that_spoils_a_chunk_is_found_out(make_product: Callable[..., Product], lie: str) -> None:
    product = make_product()
    worker = product.workers[0]
    worker.stop()
    worker.command = [part for part in worker.command if part not in {"--app", "thinkproject.celery"}]
    at = worker.command.index("celery")
    worker.command[at : at + 1] = ["tests.chaos.lying_worker", lie, "--app", "thinkproject.celery"]
    worker.log_path.unlink()  # it is ready when it says so again
    worker.start()
    product.wait_until_ready()
    brief = asyncio.run(recite(product, [TEXT.format(name="spoiled")]))
    assert told(brief) == [("spoiled", "log against provider")]


@pytest.mark.parametrize("lie", ["lose", "double", "swap"])
def test_web_server_that_spoils_a_frame_is_found_out(make_product: Callable[..., Product], lie: str) -> None:
    product = make_product()
    lie_on_the_web(product, lie)
    brief = asyncio.run(recite(product, [TEXT.format(name="told")]))
    assert told(brief) == [("told", "client A"), ("told", "client B")]


def test_published_messages_that_are_lost_are_noticed_by_the_product(make_product: Callable[..., Product]) -> None:
    product = make_product()
    lie_on_the_web(product, "deaf")
    brief = asyncio.run(recite(product, [TEXT.format(name="deaf")]))
    assert told(brief) == []


def test_what_is_spoiled_where_it_is_kept_is_found_out(make_product: Callable[..., Product]) -> None:
    product = make_product()
    brief = asyncio.run(recite(product, [TEXT.format(name="kept")]))
    assert told(brief) == []
    places = {
        "cold log": (in_the_cold_log, []),
        "hot log": (in_the_hot_log, []),
        "stored message": (in_the_stored_message, ["client A transcript", "client B transcript"]),
    }
    for place, (put, followers) in places.items():
        for spoil in SPOILS:
            undo = put(product, spoil)
            assert told(brief) == [("kept", name) for name in sorted([place, *followers])], (place, spoil.__name__)
            undo()
    assert told(brief) == []


def change(product: Product, sql: str, *values: Any) -> None:
    """Change a row behind the product's back."""
    address = database_of(product)
    if address.startswith("postgres"):
        with psycopg.connect(address) as postgres:
            postgres.execute(sql.replace("?", "%s").encode(), values)
        return
    with sqlite3.connect(address, timeout=10) as connection:
        connection.execute(sql, values)
    connection.close()


def in_the_cold_log(product: Product, spoil: Any) -> Callable[[], None]:
    [turn] = collect_turns(product)
    segment = max(turn["cold"], key=lambda segment: len(segment["texts"]))
    texts = list(segment["texts"])
    spoil(texts, 3)

    def put(lines: list[str]) -> None:
        last = segment["first"] + len(lines) - 1
        sql = "update think_chat_streamsegment set data = ?, last_offset = ? where stream = ? and first_offset = ?"
        change(product, sql, "\n".join(lines), last, turn["turn"], segment["first"])

    put(texts)
    return lambda: put(segment["texts"])


def in_the_hot_log(product: Product, spoil: Any) -> Callable[[], None]:
    [turn] = collect_turns(product)
    texts = [text for _, text in turn["hot"]]
    spoiled = list(texts)
    spoil(spoiled, 9)

    def put(lines: list[str]) -> None:
        key = f"think:{{{turn['turn']}}}:log"
        with redis.Redis(unix_socket_path=str(redis_socket(product.folder))) as client:
            client.delete(key)
            for offset, text in enumerate(lines):
                client.xadd(key, {"d": text}, id=f"0-{offset + 1}")

    put(spoiled)
    return lambda: put(texts)


def in_the_stored_message(product: Product, spoil: Any) -> Callable[[], None]:
    [turn] = collect_turns(product)
    world = collect({**EMPTY, "database": database_of(product), **where(product)})
    [message] = [m for m in world["rooms"]["recital"]["messages"] if m["id"] == turn["assistant"]]
    words = message["parts"][-1]["text"].split(" ")
    spoil(words, 9)
    parts = [*message["parts"][:-1], {**message["parts"][-1], "text": " ".join(words)}]

    def put(content: list[Any]) -> None:
        sql = "update think_sessions_message set content = ? where id = ?"
        change(product, sql, json.dumps({"parts": content}), message["pk"])

    put(parts)
    return lambda: put(message["parts"])


EMPTY: dict[str, Any] = {"requests": [], "clients": [], "views": [], "kills": []}


def where(product: Product) -> dict[str, str]:
    return {"redis": f"unix://{redis_socket(product.folder)}", "provider_log": str(product.provider_log)}


def collect_turns(product: Product) -> list[Any]:
    return list(collect({**EMPTY, "database": database_of(product), **where(product)})["turns"])


SPOIL_PAGE = """(how) => {
    const last = [...document.querySelectorAll('.md')].at(-1);
    const text = document.createTreeWalker(last, NodeFilter.SHOW_TEXT).nextNode();
    const words = text.data.split(' ');
    if (how === 'lose') words.splice(9, 1);
    if (how === 'double') words.splice(9, 0, words[9]);
    if (how === 'swap') words.splice(9, 2, words[10], words[9]);
    text.data = words.join(' ');
}"""


async def recite_to_browsers(product: Product, browser_path: str, clients: str, how: str) -> dict[str, Any]:
    """A recital watched by a page, which then shows a spoiled word, and by a published client."""
    cookie, host = product.sign_in("alice"), f"127.0.0.1:{product.webs[0].port}"
    instance = await asyncio.to_thread(make_instance, product, "recital")
    async with chromium(browser_path) as browser:
        page = await PageTab.open(browser, 0, "recital", product.url(""), f"/c/{instance}", cookie)
        hook = await PublishedTab.open(browser, "sdk7", "recital", clients, host=host, token=product.token("alice"))
        brief = await recite(product, [TEXT.format(name="watched")])
        watched: Any = [page, hook]
        if how:
            await stroll(product, database_of(product), watched)  # both have come to rest
            await page.run(SPOIL_PAGE, how)
        brief["views"] += await stroll(product, database_of(product), watched)
        return {**brief, "clients": [*brief["clients"], hook.dump()]}


@pytest.mark.parametrize("lie", ["", "lose", "double", "swap"])
def test_page_that_shows_a_spoiled_word_is_found_out(
    make_product: Callable[..., Product], browser: str, clients: str, lie: str
) -> None:
    product = make_product(environ={"THINK_ALLOWED_ORIGINS": clients})
    brief = asyncio.run(recite_to_browsers(product, browser, clients, lie))
    assert told(brief) == ([("watched", "page 0 page")] if lie else [])


@pytest.mark.parametrize("lie", ["lose", "double", "swap"])
def test_published_client_that_gets_a_spoiled_frame_is_found_out(
    make_product: Callable[..., Product], browser: str, clients: str, lie: str
) -> None:
    product = make_product(environ={"THINK_ALLOWED_ORIGINS": clients})
    lie_on_the_web(product, lie)
    brief = asyncio.run(recite_to_browsers(product, browser, clients, ""))
    assert [("watched", f"client {name}") for name in ("A", "B", "sdk7")] == [
        pair for pair in told(brief) if pair[1].startswith("client") and "transcript" not in pair[1]
    ]
