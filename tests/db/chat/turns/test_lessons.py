"""What one call of the product learns from a refusal, all other calls of the model know."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.test import override_settings

from chat.instance.instance import make_agent
from chat.llm.model_memory import model_memory
from chat.models import AgentInstance
from chat.reads.preview import preview
from chat.think import ModelSettings, Tool, TurnConfig, TurnContext, tool
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.everyday import Plain, add
from tests.odd_provider import JSON, OddProvider, Reply, odd_provider, refused
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of
from .overflows import session_of, talked


@tool
def tool_bad(value: str) -> str:
    """Do what no provider understands."""
    return value


class Lessons(Plain):
    """Asks a provider that a test has made, with settings and two tools."""

    def get_model(self) -> str:  # type: ignore[override]  # a name is a model as well
        return "odd/m"

    def get_tools(self) -> list[Tool]:
        return [add, tool_bad]

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(settings=ModelSettings(max_output_tokens=500, temperature=0.2))


@contextmanager
def provider_of(answer: Callable[[JSON], Reply]) -> Iterator[OddProvider]:
    model_memory.clear()
    with odd_provider(answer) as provider, override_settings(THINK_PROVIDERS={"odd": {"base_url": provider.base_url}}):
        yield provider


def names(body: JSON) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", ())]


async def test_answers_titles_and_summaries_share_what_was_learned(make_room: MakeRoom) -> None:
    """Real world 7."""

    def answer(body: JSON) -> Reply:
        if "max_tokens" in body:
            words = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return refused(words, param="max_tokens", code="unsupported_parameter")
        if "temperature" in body:
            return refused("Unsupported value: 'temperature'. Only the default (1) value is supported.")
        return Reply(text="A Very Good Title")

    with provider_of(answer) as provider, override_settings(THINK_TITLE_MODEL=""):
        room = make_room("lessons")
        assert status_of(await room.say("What is the best way to learn Latin?")) == "completed"
        instance = await db(AgentInstance.objects.get)
        assert instance.title == "A Very Good Title"
        await talked(room)
        compacted = len(provider.bodies)
        await room.handle.compact()
        await run_until_idle(skip_delays=True)
        assert len(provider.bodies) > compacted
    assert sum("max_tokens" in body for body in provider.bodies) == 1
    assert sum("temperature" in body for body in provider.bodies) <= 2  # the first two have both
    assert any(body.get("max_completion_tokens") for body in provider.bodies)


async def test_other_processes_know_it_too(make_room: MakeRoom) -> None:
    answer = lambda body: (  # noqa: E731 - one expression
        refused("Unsupported parameter: 'temperature'", param="temperature") if "temperature" in body else Reply()
    )
    with provider_of(answer) as provider:
        room = make_room("lessons")
        await room.say("hello")
        model_memory.clear()  # as another process, which has the cache and no memory of its own
        await room.say("again")
    assert ["temperature" in body for body in provider.bodies] == [True, False, False]


@pytest.mark.parametrize("words", ["Invalid schema for function 'tool_bad': array schema missing items."])
async def test_a_turn_goes_on_without_the_tool_that_is_refused(make_room: MakeRoom, words: str) -> None:
    """Real world 16."""
    with provider_of(lambda body: refused(words) if "tool_bad" in names(body) else Reply()) as provider:
        room = make_room("lessons")
        for _ in range(2):
            assert status_of(await room.say("hello")) == "completed"
        assert [len(names(body)) for body in provider.bodies] == [2, 1, 1]
        session = await session_of(room)
        model_memory.clear()  # the page is drawn by another process than the one that learned
        shown = await preview(room.key, session.pk, make_agent)
    assert {size.name: bool(size.refused) for size in shown.tools} == {"add": False, "tool_bad": True}
    assert "odd/m" in next(size.refused for size in shown.tools if size.name == "tool_bad")
