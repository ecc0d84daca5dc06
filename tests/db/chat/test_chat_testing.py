"""`chat.testing` as a developer uses it: a scripted model, nothing of Redis or Celery; doubles that lie are noticed."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from celery import Celery
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from chat.agent import declared
from chat.core.model.language_model import ModelEvent, ModelRequest, TextDelta
from chat.llm.scripted import ScriptedModel
from chat.testing import agent_client, think_test_settings
from chat.think import Think, Tool, tool

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
