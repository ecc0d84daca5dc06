"""A worker that dies anywhere in a turn of a provider that wants its data back loses none of it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chat.crashing.everywhere import CrashEverywhere
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.think import Think, Tool, tool
from tests.providers.corpus import FOLDER

pytestmark = pytest.mark.asyncio


@tool
def lookup(q: str) -> str:
    """Look something up."""
    return f"found {q}"


class Library(Think):
    """Looks things up."""

    workspace_tools = False

    def get_model(self) -> Any:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [lookup]


@pytest.fixture
def crashed_provider() -> Iterator[ScriptedServer]:
    with ScriptedServer(ServerOptions(recordings=FOLDER)) as running:
        yield running


def of(crashed_provider: ScriptedServer, name: str) -> Callable[[], ChatCompletionsModel]:
    who, _, model = name.partition("/")
    return lambda: ChatCompletionsModel(Endpoint(provider=who, base_url=crashed_provider.base_url), model)


TURNS = {
    "google/gemini-3-pro-preview": "play google/signed-call\nplay google/signed-second-call\nsay: Both were found.",
    "deepseek/deepseek-v4-pro": (
        "play deepseek/reasoning-then-call\nplay deepseek/reasoning-then-second-call\nsay: Both were found."
    ),
}


@pytest.mark.parametrize("name", TURNS)
async def test_no_signature_is_lost(
    crash_everywhere: CrashEverywhere, crashed_provider: ScriptedServer, name: str
) -> None:
    crashes = await crash_everywhere(Library, TURNS[name], "say: Thanks.", model=of(crashed_provider, name))
    assert {"begin", "model:0"} <= {point.key for points in crashes.points for point in points}
