"""Programs that use an agent over MCP, with the client of the protocol's authors."""

import asyncio
import json

import pytest

from tests.acceptance.product import Product
from tests.acceptance.programs.clients import HANDSHAKE, MODERN, connected

both_ways = pytest.mark.parametrize("mode", [MODERN, HANDSHAKE])


@both_ways
@pytest.mark.smoke
async def test_a_program_lists_and_calls_tools(shared_product: Product, mode: str) -> None:
    async with asyncio.timeout(60), connected(shared_product, mode=mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"chat", "add", "pay_out", "read", "write"} <= listed.keys()
        assert not listed.keys() & {"secret_plan", "bash", "locate_me"}
        assert listed["add"].annotations is not None
        assert listed["add"].annotations.read_only_hint is True
        result = await client.call_tool("add", {"a": 20, "b": 22})
        assert result.structured_content == {"sum": 42}
        assert not result.is_error


@both_ways
async def test_a_program_talks_and_sees_the_answer_grow(shared_product: Product, mode: str) -> None:
    texts: list[str] = []
    numbers: list[float] = []

    async def on_progress(progress: float, _total: float | None, message: str | None) -> None:
        numbers.append(progress)
        texts.append(message or "")

    async with asyncio.timeout(60), connected(shared_product, mode=mode) as client:
        result = await client.call_tool("chat", {"message": "words 30 at 20/s"}, progress_callback=on_progress)
        data = result.structured_content
        assert data["status"] == "completed"
        assert len(texts) > 1
        assert numbers == sorted(numbers)
        assert data["answer"].startswith("".join(texts)[:20])
        again = await client.call_tool("chat", {"message": "say: again", "conversation": data["conversation"]})
        assert again.structured_content["conversation_id"] == data["conversation_id"]
        read = await client.read_resource(f"think://counter/{data['conversation']}")
        history = json.loads(read.contents[0].text)
        assert [message["role"] for message in history["messages"]] == ["user", "assistant"] * 2
