"""`chat.testing` as a developer uses it: a scripted model, nothing of Redis or Celery; doubles that lie are noticed."""

import asyncio
import math
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from celery import Celery
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import override_settings

from chat.agent import declared
from chat.agent.think import INTERRUPTED_TEXT
from chat.core.model.language_model import ModelEvent, ModelRequest, TextDelta
from chat.errors import TurnTimeout, TurnWaits
from chat.instance import handle
from chat.instance.instance import started_agent
from chat.llm.scripted import ScriptedModel
from chat.testing import agent_client, think_test_settings
from chat.think import AgentHandle, Think, Tool, ToolContext, tool
from chat.tools import code
from fibers.testing import crash_after

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_services(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any use of Redis or of Celery fails the test."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        assert "redis" not in str(address), f"somebody called Redis at {address}"
        connect(self, address)

    def sent(*_args: Any, **_options: Any) -> None:
        raise AssertionError("somebody called Celery")

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(Celery, "send_task", sent)
    for name, value in think_test_settings.items():
        setattr(settings, name, value)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def adder() -> Iterator[type[Think]]:
    class AdderUnderTest(Think):
        def get_model(self) -> str:
            return "openai/whatever"

        def get_tools(self) -> list[Tool]:
            return [add]

    yield AdderUnderTest
    declared.unregister(AdderUnderTest)


async def test_an_agent_answers_with_its_tools(adder: type[Think]) -> None:
    async with agent_client(adder, 'call tool add {"a": 1, "b": 2}\nsay: It is {result}.') as client:
        reply = await client.chat("One plus two?")
        assert reply.result.status == "completed"
        assert reply.text == "It is 3."
        assert [(call["type"], call["input"], call["output"]) for call in reply.tool_calls] == [
            ("tool-add", {"a": 1, "b": 2}, 3)
        ]
        assert [message["role"] for message in await client.messages()] == ["user", "assistant"]
        assert len(client.model.requests) == 2


async def test_a_test_may_bring_a_tool_for_one_turn(adder: type[Think]) -> None:
    @tool
    def subtract(a: int, b: int) -> int:
        """Subtract one number from another."""
        return a - b

    async with agent_client(adder, 'call tool subtract {"a": 5, "b": 2}\nsay: It is {result}.') as client:
        assert (await client.chat("Five minus two?", tools=[subtract])).text == "It is 3."


async def test_each_message_is_its_own_script_without_one(adder: type[Think]) -> None:
    async with agent_client(adder) as client:
        assert (await client.chat("say: One.")).text == "One."
        assert (await client.chat("say: Two.")).text == "Two."


async def test_an_error_is_in_the_reply(adder: type[Think]) -> None:
    async with agent_client(adder, "error 401") as client:
        reply = await client.chat("Hello?")
    assert reply.result.status == "error"
    assert reply.result.error
    assert reply.text == ""


async def test_a_turn_can_be_stopped(adder: type[Think]) -> None:
    stop = asyncio.Event()

    class Interrupted(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            async with aclosing(super().stream(request)) as events:
                async for event in events:
                    yield event
                    if isinstance(event, TextDelta):
                        stop.set()

    async with agent_client(adder, model=Interrupted("stream 1000 words at 50/s")) as client:
        reply = await client.chat("Go on.", signal=stop)
    assert reply.result.status == "aborted"
    assert 0 < len(reply.text.split()) < 500


async def test_names_are_conversations_of_their_own(adder: type[Think]) -> None:
    async with agent_client(adder, "say: A.", name="a") as first:
        await first.chat("Hello?")
    async with agent_client(adder, "say: B.", name="b") as second:
        assert await second.messages() == []


@pytest.mark.parametrize("how", ["skip", "repeat"])
async def test_a_model_that_misbehaves_is_noticed(adder: type[Think], how: str) -> None:
    honest = "stream 5 words"
    async with agent_client(adder, honest, name="honest") as client:
        right = (await client.chat("Count.")).text
    async with agent_client(adder, f"{honest}\nmisbehave {how} chunk 2", name="lying") as client:
        wrong = (await client.chat("Count.")).text
    assert len(right.split()) == 5
    assert len(wrong.split()) == {"skip": 4, "repeat": 6}[how]


async def test_a_database_in_memory_is_refused_in_words(adder: type[Think], monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("SQLite alone has databases in memory")
    monkeypatch.setitem(connection.settings_dict, "NAME", "file:memorydb_default?mode=memory&cache=shared")
    with pytest.raises(ImproperlyConfigured, match="Give the test database a file"):
        async with agent_client(adder, "say: never"):
            pass


class Fragile(Think):
    """Has a small budget of recovery."""

    max_recoveries = 2

    def get_model(self) -> str:
        return "default"


async def test_a_budget_of_recovery_is_tested_without_waiting(settings: Any) -> None:
    settings.THINK_FIBER_RECOVERY_DEBOUNCE_SECONDS = 30.0  # as where nothing else is said
    with override_settings(**think_test_settings):
        async with agent_client(Fragile, "say: Never.") as client:
            with crash_after("begin", times=9):
                reply = await client.chat("Hello?")
    assert (reply.result.status, reply.result.error) == ("error", INTERRUPTED_TEXT)
    assert client.model.requests == []


class Asker(Think):
    """Has a tool that waits for a person."""

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [which_colour]


@tool
async def which_colour(context: ToolContext) -> str:
    """Ask a person."""
    return str((await context.wait("question", label="Which colour?")).answer)


ASK = "call tool which_colour {} id=c1\nsay: It is {result}."


async def test_a_chat_that_waits_for_a_person_ends_with_the_question() -> None:
    async with agent_client(Asker, ASK) as client:
        with pytest.raises(TurnWaits, match=r"“Which colour\?” \(call c1\)") as caught:
            await client.chat("What colour?", timeout_seconds=1.0)
        [wait] = caught.value.data["waits"]
        assert (wait["kind"], wait["label"], wait["callId"]) == ("question", "Which colour?", "c1")
        assert await client.handle.answer_wait("c1", "blue", wait="question")  # the turn has gone on waiting
        assert await client.handle.wait_until_stable(20)
        assert (await client.messages())[-1]["parts"][-1]["text"] == "It is blue."


async def test_the_handle_waits_for_a_parked_turn_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle, "PARKED_SECONDS", 0.3)
    async with agent_client(Asker, ASK) as client:
        with pytest.raises(TurnWaits, match=r"Which colour\?"):
            await client.handle.chat("What colour?")
        task = asyncio.create_task(AgentHandle(client.key).chat("And now?", timeout_seconds=math.inf))
        await client.handle.answer_wait("c1", "blue", wait="question")
        assert await client.handle.abort_all_requests()
        assert (await task).status == "aborted"


async def test_a_turn_that_works_for_too_long_is_named_as_working() -> None:
    async with agent_client(Asker, "hang") as client:
        with pytest.raises(TurnTimeout, match="has not ended in time"):
            await client.chat("Hello?", timeout_seconds=0.5)
        assert await client.handle.abort_all_requests()


async def test_an_agent_reads_its_messages(adder: type[Think]) -> None:
    async with agent_client(adder, "say: Hi.") as client:
        await client.chat("Hello?")
        agent = await started_agent(client.key)
        assert isinstance(agent, Think)
        assert await agent.messages() == await client.messages()


@pytest.mark.parametrize(
    ("values", "says"),
    [({"max_steps": 0}, "max_steps must be a positive whole number, not 0"), ({"get_tools": []}, "must be a method")],
)
async def test_a_class_that_cannot_work_is_refused_in_words(values: Any, says: str) -> None:
    broken = type("Broken", (Fragile,), values)
    try:
        with pytest.raises(ImproperlyConfigured, match=says):
            async with agent_client(broken):
                pass
    finally:
        declared.unregister(broken)


def test_the_ways_to_run_commands_are_public() -> None:
    assert {"create_bash_tool", "create_process_tool"} <= set(code.__all__)


async def test_the_requests_of_the_model_are_as_documented(adder: type[Think]) -> None:
    async with agent_client(adder, 'call tool add {"a": 1, "b": 2}\nsay: {result}') as client:
        await client.chat("one plus two?")
    first, second = client.model.requests
    assert {"model", "messages", "tools"} <= set(first)
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    [declared_tool] = [each for each in first["tools"] if each["name"] == "add"]
    assert set(declared_tool["parameters"]["properties"]) == {"a", "b"}
    [call] = second["messages"][2]["tool_calls"]
    assert call["function"]["name"] == "add"
    assert second["messages"][3]["tool_call_id"] == call["id"]
