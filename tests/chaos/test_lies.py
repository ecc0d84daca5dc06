"""In the running product: when one part lies about one chunk, the oracle says so, and says where."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.product import Product
from tests.chaos import oracle
from tests.chaos.driver import recite
from tests.chaos.evidence import collect

TEXT = "marker: {name}\nstream 30 words at 60/s"


def told(brief: dict[str, Any]) -> list[tuple[str, str]]:
    """Differences by request and place, each pair once."""
    names = {request["request"]: request["text"].partition("\n")[0] for request in brief["requests"]}
    found = oracle.compare(collect(brief))
    return sorted({(names[item.turn.split()[0].partition("/")[2]], item.place) for item in found})


def start_lying(product: Product, lie: str) -> None:
    web = product.webs[0]
    web.stop()
    web.command = [part if part != "thinkproject.server" else "tests.chaos.lying_web" for part in web.command]
    web.command.insert(web.command.index("tests.chaos.lying_web") + 1, lie)
    web.start()
    product.wait_until_ready()


def test_provider_that_skips_or_repeats_a_chunk_is_found_out(make_product: Callable[..., Product]) -> None:
    product = make_product()
    texts = [TEXT.format(name=name) for name in ("honest", "skips", "repeats")]
    texts[1] += "\nmisbehave skip chunk 9"
    texts[2] += "\nmisbehave repeat chunk 9"
    brief = asyncio.run(recite(product, texts))
    assert told(brief) == [("marker: repeats", "log against provider"), ("marker: skips", "log against provider")]


@pytest.mark.parametrize("lie", ["lose", "double", "swap"])
def test_web_server_that_spoils_a_frame_is_found_out(make_product: Callable[..., Product], lie: str) -> None:
    product = make_product()
    start_lying(product, lie)
    brief = asyncio.run(recite(product, [TEXT.format(name="told")]))
    assert told(brief) == [("marker: told", "client A"), ("marker: told", "client B")]


def test_published_messages_that_are_lost_are_noticed_by_the_product(make_product: Callable[..., Product]) -> None:
    product = make_product()
    start_lying(product, "deaf")
    brief = asyncio.run(recite(product, [TEXT.format(name="deaf")]))
    assert told(brief) == []
