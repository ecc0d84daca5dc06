"""Bad input from a socket: refused as documented, and the process, other sockets and stored rows are as before."""

import asyncio
import json

import pytest

from tests.acceptance.product import Product
from tests.acceptance.wire.address import socket_url
from tests.acceptance.wire.client import Tab

pytestmark = pytest.mark.smoke

IGNORED = [
    "not json",
    "[1, 2]",
    "null",
    '"text"',
    '{"type": "no_such_frame"}',
    '{"no": "type"}',
    '{"type": "cf_agent_chat_messages", "messages": []}',
    "[" * 5_000,
]
ENDED = [
    ({"type": "cf_agent_use_chat_request", "id": "b1", "init": {"method": "POST", "body": "{"}}, "b1"),
    ({"type": "cf_agent_use_chat_request", "id": "b2", "init": {"method": "POST", "body": '{"messages": 1}'}}, "b2"),
    ({"type": "cf_agent_use_chat_request", "id": "b3", "init": 7}, "b3"),
    (
        {
            "type": "cf_agent_use_chat_request",
            "id": "b4",
            "init": {"method": "POST", "body": json.dumps({"messages": [{"id": "s", "role": "system", "parts": []}]})},
        },
        "b4",
    ),
]


async def _serves(product: Product, name: str) -> None:
    async with Tab.open(socket_url(product, name)) as tab:
        request = await tab.chat("say: still here")
        assert (await tab.done(request))["outcome"] == "completed"


async def test_frames_that_are_none_are_ignored(shared_product: Product) -> None:
    async with Tab.open(socket_url(shared_product, "ignored")) as tab:
        await tab.wait(lambda f: f["type"] == "cf_agent_mcp_servers")
        before = len(tab.frames)
        for text in IGNORED:
            await tab.send_text(text)
        await tab.send_text(b"\xff\xfe binary")
        request = await tab.chat("say: fine")
        assert (await tab.done(request))["outcome"] == "completed"
        assert all(f.get("id") in {None, request} for f in tab.frames[before:])
        assert [m["role"] for m in tab.transcript()] == ["user", "assistant"]


async def test_broken_requests_end_with_an_error_and_change_nothing(shared_product: Product) -> None:
    async with Tab.open(socket_url(shared_product, "broken")) as tab:
        for frame, request_id in ENDED:
            await tab.send_text(json.dumps(frame))
            end = await tab.done(request_id)
            assert end["error"] is True
            assert end["body"]
        request = await tab.chat("say: fine")
        await tab.done(request)
        assert [m["role"] for m in tab.transcript()] == ["user", "assistant"]


async def test_a_frame_of_64_megabytes_closes_its_socket_alone(shared_product: Product) -> None:
    async with Tab.open(socket_url(shared_product, "big")) as other:
        async with Tab.open(socket_url(shared_product, "big")) as tab:
            sending = asyncio.create_task(tab.send_text("x" * (64 * 1024 * 1024)))
            assert await tab.closed(seconds=30) == 1009
            await asyncio.gather(sending, return_exceptions=True)
        request = await other.chat("say: fine")
        assert (await other.done(request))["outcome"] == "completed"


async def test_a_flood_closes_its_socket_alone(shared_product: Product) -> None:
    async with Tab.open(socket_url(shared_product, "flood")) as tab:

        async def flood() -> None:
            for _ in range(10_000):
                await tab.send_text('{"type": "no_such_frame"}')

        flooding = asyncio.create_task(flood())
        assert await tab.closed(seconds=60) == 4429
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)
    await _serves(shared_product, "flood")


async def test_invalid_utf8_closes_its_socket_alone(shared_product: Product) -> None:
    async with Tab.open(socket_url(shared_product, "utf8")) as tab:
        await tab.wait(lambda f: f["type"] == "cf_agent_mcp_servers")
        await tab.send_raw_text(b"\xff\xff")
        assert await tab.closed(seconds=30) in {1007, 1002}
    await _serves(shared_product, "utf8")


@pytest.mark.parametrize(
    ("path", "code"), [("/agents/nobody/room", 4404), ("/agents/assistant", 4404), ("/elsewhere", 4404)]
)
async def test_an_address_that_names_nothing_is_closed_for_good(shared_product: Product, path: str, code: int) -> None:
    url = shared_product.url(f"{path}?token={shared_product.token('alice')}").replace("http", "ws", 1)
    async with Tab.open(url) as tab:
        assert await tab.closed() == code


async def test_a_wrong_token_is_closed_for_good(shared_product: Product) -> None:
    url = shared_product.url("/agents/assistant/room?token=wrong").replace("http", "ws", 1)
    async with Tab.open(url) as tab:
        assert await tab.closed() == 4401
