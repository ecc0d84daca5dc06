"""In the running product: when one part lies about one chunk, the oracle reports it, and says where."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
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
from tests.chaos.spoiling import double, lose, swap
from tests.chaos.stroll import stroll

TEXT = "marker: {name}\nstream 30 words at 60/s"
SPOILS = (lose, double, swap)
LIES = ("lose", "double", "swap")


def told(brief: dict[str, Any]) -> list[tuple[str, str]]:
    """Differences by request and place, each pair once."""
    world = collect(brief)
    names = {turn["request"]: turn["provider"][0]["marker"] for turn in world["turns"]}
    by_turn = {turn["turn"]: names[turn["request"]] for turn in world["turns"]}
    return sorted({(_name(item.turn, names, by_turn), item.place) for item in oracle.compare(world)})


def _name(turn: str, names: dict[str, str], by_turn: dict[str, str]) -> str:
    room_and_request, _, turn_id = turn.partition(" ")
    return by_turn.get(turn_id) or names[room_and_request.partition("/")[2]]


def start_lying(product: Product, process: Process, *command: str) -> None:
    """Start a process again with a lying module in the place of the one that it runs."""
    process.stop()
    at = list(process.command).index("-m") + 1
    process.command = [*process.command[:at], *command, *process.command[at + 1 :]]
    process.log_path.unlink()  # it is ready when it prints that again
    process.start()
    product.wait_until_ready()


def test_provider_that_skips_or_repeats_a_chunk_is_found_out(make_product: Callable[..., Product]) -> None:
    product = make_product()
    texts = [TEXT.format(name=name) for name in ("honest", "skips", "repeats")]
    texts[1] += "\nmisbehave skip chunk 9"
    texts[2] += "\nmisbehave repeat chunk 9"
    brief = asyncio.run(recite(product, texts))
    assert told(brief) == [("repeats", "log against provider"), ("skips", "log against provider")]


def test_worker_that_spoils_a_chunk_is_found_out(make_product: Callable[..., Product]) -> None:
    product = make_product()
    start_lying(product, product.workers[0], "tests.chaos.lying_worker")
    brief = asyncio.run(recite(product, [TEXT.format(name=lie) for lie in LIES]))
    # The message is made of what the model said, the log of what was written to it.
    assert told(brief) == [(lie, place) for lie in sorted(LIES) for place in ("log against provider", "stored message")]


def test_published_messages_that_are_lost_are_noticed_by_the_product(make_product: Callable[..., Product]) -> None:
    product = make_product()
    start_lying(product, product.webs[0], "tests.chaos.lying_web", "deaf")
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


@pytest.fixture
def browsers(chromium_path: str, clients: str) -> tuple[str, str]:
    """Path of a Chromium and address of the published clients; `conftest.py` was loud about what is missing."""
    if not clients:
        pytest.skip("there are no browsers")
    return chromium_path, clients


async def recite_to_browsers(product: Product, names: Sequence[str], browser: str, clients: str) -> dict[str, Any]:
    """A recital watched by a page and a published client. `spoiled`: views of the page after each lie about a word."""
    cookie, host = product.sign_in("alice"), f"127.0.0.1:{product.webs[0].port}"
    instance = await asyncio.to_thread(make_instance, product, "recital")
    async with chromium(browser) as running:
        page = await PageTab.open(running, 0, "recital", product.url(""), f"/c/{instance}", cookie)
        hook = await PublishedTab.open(running, "sdk7", "recital", clients, host=host, token=product.token("alice"))
        brief = await recite(product, [TEXT.format(name=name) for name in names])
        brief["views"] += await stroll(product, database_of(product), [page, hook])
        brief["clients"].append(hook.dump())
        spoiled = {}
        for lie in LIES:
            await page.load()
            await page.run(SPOIL_PAGE, lie)
            spoiled[lie] = [await page.view(None)]
        return {**brief, "spoiled": spoiled}


def test_page_that_shows_a_spoiled_word_is_found_out(
    make_product: Callable[..., Product], browsers: tuple[str, str]
) -> None:
    product = make_product(environ={"THINK_ALLOWED_ORIGINS": browsers[1]})
    brief = asyncio.run(recite_to_browsers(product, ["watched"], *browsers))
    assert told(brief) == []
    for lie in LIES:
        assert told({**brief, "views": brief["spoiled"][lie]}) == [("watched", "page 0 page")], lie


def test_web_server_that_spoils_a_frame_is_found_out(
    make_product: Callable[..., Product], browsers: tuple[str, str]
) -> None:
    product = make_product(environ={"THINK_ALLOWED_ORIGINS": browsers[1]})
    start_lying(product, product.webs[0], "tests.chaos.lying_web", "spoil")
    brief = asyncio.run(recite_to_browsers(product, LIES, *browsers))
    got = [(lie, f"client {name}") for lie in sorted(LIES) for name in ("A", "B", "sdk7")]
    assert [pair for pair in told(brief) if pair in got] == got
    assert {place for _, place in told(brief)} - {place for _, place in got} <= {"sdk7 published"}
