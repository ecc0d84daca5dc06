"""Client tools and approvals of `chat.client` against the real server."""

import asyncio
import json
from typing import Any

import pytest

from chat.client import ChatClient
from chat.client.errors import RequestRefused
from tests.acceptance.client.people import client
from tests.acceptance.product import Product

DESK = "desk"


async def get_location(precision: int) -> dict[str, Any]:
    """Say where the user is."""
    return {"latitude": round(47.3769, precision)}


async def broken() -> None:
    """Fail."""
    raise LookupError("no such place")


def with_tools(product: Product, name: str) -> ChatClient:
    tools: dict[str, Any] = {"get_location": get_location, "broken": broken}
    return ChatClient(product.url(""), agent="assistant", name=name, token=product.token("alice"), tools=tools)


async def test_a_client_tool_runs_and_the_answer_goes_on(shared_product: Product) -> None:
    async with with_tools(shared_product, "py-tool") as chat, client(shared_product, "py-tool") as other:
        turn = await chat.send('call tool get_location {"precision": 1}\nsay: You are at {result}.')
        async with asyncio.timeout(30):
            final = await turn.final()
        assert "47.4" in final["parts"][-1]["text"]
        assert final["id"] != turn.message_id
        assert chat.messages == await chat.get_messages() == other.messages


@pytest.mark.smoke
async def test_parallel_client_tools_are_all_answered(shared_product: Product) -> None:
    async with with_tools(shared_product, "py-parallel") as chat:
        script = 'call tool get_location {"precision": 0}\ncall tool get_location {"precision": 2}\nsay: {results}'
        async with asyncio.timeout(30):
            final = await (await chat.send(script)).final()
        assert "47.38" in final["parts"][-1]["text"]


async def test_a_failing_client_tool_is_a_result_for_the_model(shared_product: Product) -> None:
    async with with_tools(shared_product, "py-broken") as chat:
        async with asyncio.timeout(30):
            final = await (await chat.send("call tool broken {}\nsay: It said {result}.")).final()
        assert "no such place" in final["parts"][-1]["text"]


@pytest.mark.smoke
async def test_approving_goes_on(shared_product: Product) -> None:
    async with client(shared_product, "py-approve", agent=DESK) as chat:
        turn = await chat.send('call tool pay {"amount": 5}\nsay: The bank: {result}')
        await turn.final()
        [call] = turn.approvals
        assert call.input == {"amount": 5}
        async with asyncio.timeout(30):
            following = await chat.approve(call.call_id)
            assert following is not None
            final = await following.final()
        assert final["parts"][-1]["text"].startswith("The bank: paid 5")
        assert chat.messages == await chat.get_messages()
        assert await chat.approve(call.call_id) is None  # the first decision won


async def test_denying_goes_on_too(shared_product: Product) -> None:
    async with client(shared_product, "py-deny", agent=DESK) as chat:
        turn = await chat.send('call tool pay {"amount": 5}\nsay: As you say.')
        await turn.final()
        async with asyncio.timeout(30):
            following = await chat.deny(turn.approvals[0].call_id)
            assert following is not None
            await following.final()
        states = [part.get("state") for part in chat.messages[1]["parts"]]
        assert "output-denied" in states


async def test_another_client_may_approve(shared_product: Product) -> None:
    async with (
        client(shared_product, "py-other", agent=DESK) as chat,
        client(shared_product, "py-other", agent=DESK) as boss,
    ):
        turn = await chat.send('call tool pay {"amount": 5}\nsay: Done.')
        await turn.final()
        seen = asyncio.create_task(anext(chat.turns()))
        await asyncio.sleep(0)
        following = await boss.approve(turn.approvals[0].call_id)
        assert following is not None
        await following.final()
        async with asyncio.timeout(30):
            await (await seen).message()
        assert chat.messages == boss.messages == await chat.get_messages()


async def test_an_agent_asks_another_one_as_its_client(shared_product: Product) -> None:
    """A parent that talks to an agent of another server, in a tool of its own."""
    place = {"url": shared_product.url(""), "token": shared_product.token("alice")}
    asked = json.dumps({**place, "question": "say: Greetings from afar."})
    async with client(shared_product, "py-parent", agent=DESK) as chat:
        turn = await chat.send(f"call tool ask_remote {asked}\nsay: It says: {{result}}")
        async with asyncio.timeout(30):
            final = await turn.final()
    assert final["parts"][-1]["text"] == "It says: Greetings from afar."


async def test_approving_with_changed_arguments(shared_product: Product) -> None:
    async with client(shared_product, "py-edit", agent=DESK) as chat:
        turn = await chat.send('call tool pay {"amount": 5}\nsay: The bank: {result}')
        await turn.final()
        [call] = turn.approvals
        async with asyncio.timeout(30):
            with pytest.raises(RequestRefused, match="amount"):
                await chat.approve(call.call_id, edited_input={"amount": "much"})
            following = await chat.approve(call.call_id, edited_input={"amount": 3})
            assert following is not None
            final = await following.final()
        assert "paid 3" in final["parts"][-1]["text"]
        part = next(part for part in chat.messages[-2]["parts"] if part.get("toolCallId") == call.call_id)
        assert (part["input"], part["approval"]["originalInput"]) == ({"amount": 3}, {"amount": 5})
        with pytest.raises(RequestRefused, match="decided already"):
            await chat.approve(call.call_id, edited_input={"amount": 4})
