"""A scripted provider on loopback, and models that reach it over each wire."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from chat.core.model.language_model import LanguageModel
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.adapters.transport import close_clients
from chat.llm.discovery import local_model_is_installed
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import model_memory
from chat.llm.scripted import ScriptedServer

API_KEY = "sk-test-abcdefghijklmnop"


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """Ports come again: no test knows what another one's server has taught."""
    model_memory.clear()
    yield
    model_memory.clear()


@pytest.fixture
async def closed_clients() -> AsyncIterator[None]:
    yield
    await close_clients()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
async def endpoint_of() -> AsyncIterator[Callable[..., Endpoint]]:
    def make(server: ScriptedServer, **changes: object) -> Endpoint:
        values: dict[str, object] = {"provider": "acme", "base_url": server.base_url, "api_key": API_KEY, **changes}
        return Endpoint(**values)  # type: ignore[arg-type]  # a test's keywords

    yield make
    await close_clients()


@pytest.fixture
def chat_model(server: ScriptedServer, endpoint_of: Callable[..., Endpoint]) -> LanguageModel:
    return ChatCompletionsModel(endpoint_of(server), "scripted")


@pytest.fixture
def responses_model(server: ScriptedServer, endpoint_of: Callable[..., Endpoint]) -> LanguageModel:
    return ResponsesModel(endpoint_of(server), "scripted")


@pytest.fixture(params=["chat", "responses"])
def http_model(
    request: pytest.FixtureRequest, server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> LanguageModel:
    adapter = ChatCompletionsModel if request.param == "chat" else ResponsesModel
    return adapter(endpoint_of(server), "scripted")


@pytest.fixture(scope="session")
def local_base_url() -> Iterator[str]:
    """The real small model, as the process that `make run` starts."""
    if not local_model_is_installed():
        pytest.skip("the small local model is not installed")
    child = subprocess.Popen(
        [sys.executable, "-m", "chat.llm.local_server"], stdout=subprocess.PIPE, env=dict(os.environ)
    )
    assert child.stdout is not None
    try:
        yield json.loads(child.stdout.readline())["base_url"]
    finally:
        child.terminate()
        assert child.wait(10) == 0
        child.stdout.close()
