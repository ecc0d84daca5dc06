"""The conversations that a program may enter by `chat`, and what it may not decide there."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.access import api_tokens
from chat.access.auth import open_agent
from chat.agents import Assistant
from chat.instances.rows import ensure_instance
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Turn
from chat.think import tool
from fibers.testing import run_until_idle
from tests.db.chat.http.mcp.flows import answer_of, authorised, call, post
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

pytestmark = pytest.mark.django_db(transaction=True)


@tool(needs_approval=True)
async def pay_out(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


@pytest.fixture(autouse=True)
def _payments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assistant, "get_tools", lambda _self: [pay_out])
    monkeypatch.setattr(Assistant, "get_model", lambda _self: ScriptedModel())


async def grant(user: User, scope: str = "chat") -> str:
    """The access token of a new program with these scopes."""
    return str((await authorised(user, scope=scope))[1]["access_token"])


async def say(token: str, message: str = "say: hello", **more: str) -> dict[str, Any]:
    """Have a program say something, and run the turns until all is done."""
    return await ask(token, call("tools/call", name="chat", arguments={"message": message, **more}))


async def ask(token: str, request: Any) -> dict[str, Any]:
    """Send a request, and run the turns until it is answered."""
    sent = asyncio.create_task(post(request, token=token))
    async with asyncio.timeout(60):
        while not sent.done():
            await run_until_idle()
            await asyncio.wait([sent], timeout=0.05)
    result: dict[str, Any] = answer_of(sent.result())["result"]
    return result


async def conversation_of(user: User, name: str) -> AgentInstance:
    key = (await sync_to_async(open_agent)(user, "assistant", name)).key
    return await sync_to_async(ensure_instance)(key)


async def turns_in(instance: AgentInstance) -> int:
    return await Turn.objects.filter(instance=instance).acount()


async def test_a_program_goes_on_in_what_it_began(alice: User) -> None:
    token = await grant(alice)
    first = (await say(token))["structuredContent"]
    again = (await say(token, conversation=first["conversation"]))["structuredContent"]
    assert (again["status"], again["conversation_id"]) == ("completed", first["conversation_id"])
    named = [(await say(token, conversation="weekly"))["structuredContent"] for _ in range(2)]
    assert len({each["conversation_id"] for each in named}) == 1
    assert named[0]["conversation_id"] != first["conversation_id"]


async def test_without_the_history_it_enters_no_conversation_of_the_persons(alice: User) -> None:
    mine = await conversation_of(alice, "diary")
    entered = (await say(await grant(alice), conversation="diary"))["structuredContent"]
    assert entered["conversation_id"] != mine.pk
    assert await turns_in(mine) == 0


async def test_without_the_history_it_enters_no_conversation_of_another_program(alice: User) -> None:
    one, other = await grant(alice), await grant(alice)
    begun = (await say(one))["structuredContent"]
    for name in (begun["conversation"], "weekly", "mcp-tools"):
        (await say(one, conversation=name))
        entered = (await say(other, conversation=name))["structuredContent"]
        assert await turns_in(await AgentInstance.objects.aget(pk=entered["conversation_id"])) == 1


async def test_with_the_history_and_with_an_api_token_it_enters_any(alice: User) -> None:
    mine = await conversation_of(alice, "diary")
    _, api_token = await sync_to_async(api_tokens.create_token)(alice, name="tests")
    for token in (await grant(alice, "chat history"), api_token):
        assert (await say(token, conversation="diary"))["structuredContent"]["conversation_id"] == mine.pk
    assert await turns_in(mine) == 2


@pytest.mark.parametrize("scope", ["chat", "chat history"])
async def test_a_message_of_a_program_decides_no_question(alice: User, scope: str) -> None:
    token = await grant(alice, scope)
    asked = (await say(token, 'call tool pay_out {"amount": 9}\nsay: done'))["structuredContent"]
    assert (asked["status"], asked["waits_for"]) == ("waiting", ["Pay out"])
    refused = await say(token, conversation=asked["conversation"])
    assert (refused["isError"], refused["structuredContent"]["error"]) == (True, "turn_conflict")
    assert asked["page"] in refused["content"][0]["text"]
    assert (await ToolCallRecord.objects.aget()).status == CallStatus.ASKED
    assert await Turn.objects.acount() == 1


async def test_calls_that_wait_for_a_person_take_the_places_of_others(
    alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "mcp_server", ("pay_out",))
    settings.THINK_MCP_SERVER_PARALLEL_CALLS = 1
    token = await grant(alice, "tools")
    asked = await ask(token, call("tools/call", name="pay_out", arguments={"amount": 9}))
    assert asked["structuredContent"]["status"] == "waiting"
    refused = await ask(token, call("tools/call", name="pay_out", arguments={"amount": 9}))
    assert (refused["isError"], refused["structuredContent"]["error"]) == (True, "quota_exceeded")
