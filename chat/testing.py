"""Test your own agent: a scripted model, no Redis, no Celery, no server.

    async def test_it_adds(transactional_db):
        async with agent_client(Calculator, 'call tool add {"a": 1, "b": 2}') as client:
            answer = await client.chat("one plus two?")
        assert answer.text == "..."

The turn runs through the product's own admission, fibers, loop and storage, on this event loop. Set `REDIS_URL = ""`
and `THINK_FIBER_DISPATCH = "manual"` in your test settings (`think_test_settings` gives what is needed).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from typing_extensions import Unpack

from chat.agent.base import Agent, InstanceKey
from chat.checks import problems_of_class
from chat.core.model.language_model import LanguageModel
from chat.instance.handle import AgentHandle, ChatResult
from chat.llm.registry import replaced_models
from chat.llm.scripted import ScriptedModel
from chat.turns.tools.caller_calls import ExtraTools
from fibers.testing import worker
from sessions_app.core.messages.shapes import Message, NewMessage, Part
from thinkproject.kernel.aio import db

__all__ = ["AgentClient", "Reply", "agent_client", "think_test_settings", "worker"]

think_test_settings: Final[dict[str, Any]] = {
    "REDIS_URL": "",
    "THINK_FIBER_DISPATCH": "manual",
    "THINK_TITLE_MODEL": "none",  # a script answers the conversation, and nothing else
    "THINK_FIBER_RECOVERY_DEBOUNCE_SECONDS": 0.0,  # each lost worker counts: a test does not wait between them
    "CHANNEL_LAYERS": {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
}
"""For `override_settings(**think_test_settings)` or a settings module."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: how the turn ended, its text, its tool calls, and all that was streamed."""

    result: ChatResult
    chunks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def parts(self) -> list[Part]:
        """The parts of the stored message; none when the answer is empty."""
        return [] if self.result.message is None else list(self.result.message["parts"])

    @property
    def tool_calls(self) -> list[Part]:
        """The tool parts, in order."""
        return [part for part in self.parts if "toolCallId" in part]


@dataclass
class _Recorder:
    chunks: list[str] = field(default_factory=list)
    error: str | None = None

    def on_event(self, text: str) -> None:
        self.chunks.append(text)

    def on_reset(self) -> None:
        self.chunks.clear()

    def on_error(self, text: str) -> None:
        self.error = text


class AgentClient:
    """One instance of the agent under test. `model`: the scripted model, with its received `requests`."""

    def __init__(self, key: InstanceKey, model: LanguageModel) -> None:
        self.key = key
        self.model: Any = model  # the caller's own, or a `ScriptedModel`
        self.handle = AgentHandle(key)

    async def chat(
        self,
        message: str | NewMessage,
        *,
        signal: asyncio.Event | None = None,
        timeout_seconds: float = 30.0,
        **extra: Unpack[ExtraTools],
    ) -> Reply:
        """Send a message and wait for the answer; an error is in `reply.result.error`.

        Errors: after `timeout_seconds` `TurnWaits` when the turn waits for an answer, `TurnTimeout` when it works.
        `extra`: tools of the test for this turn, as `AgentHandle.chat` takes them.
        """
        recorder = _Recorder()
        result = await self.handle.chat(message, recorder, signal=signal, timeout_seconds=timeout_seconds, **extra)
        return Reply(result, tuple(recorder.chunks))

    async def messages(self) -> list[Message]:
        """Read the conversation."""
        return await self.handle.messages()


@asynccontextmanager
async def agent_client(
    agent_class: type[Agent], script: str = "", *, model: LanguageModel | None = None, name: str = "default"
) -> AsyncIterator[AgentClient]:
    """Run an agent for a test user.

    Shape: `script` answers every message (docs/design/models.md has the language); without one each message is its own
    script. Whatever `get_model` names is replaced by the scripted model for the length of the block.
    Errors: `ImproperlyConfigured` for SQLite in memory, where the threads of a turn would wait for each other, and for
    a class with hooks or values that no turn could go well with.
    """
    refuse_memory_database()
    if problems := problems_of_class(agent_class):
        raise ImproperlyConfigured(f"{agent_class.__name__}: {' '.join(problems)}")
    scripted = model or ScriptedModel(script)
    user = await db(_test_user)
    key = InstanceKey(owner_id=user.pk, agent=agent_class.route_name(), name=name)
    with replaced_models(scripted):
        async with worker():
            yield AgentClient(key, scripted)


def _test_user() -> AbstractBaseUser:
    users = get_user_model()
    named: dict[str, Any] = {users.USERNAME_FIELD: "think-test-user"}
    user: AbstractBaseUser = users.objects.get_or_create(**named)[0]
    return user


def refuse_memory_database() -> None:
    """Raise `ImproperlyConfigured` for SQLite in memory, where the threads of a turn would wait for each other."""
    database = connection.settings_dict
    if connection.vendor == "sqlite" and "memory" in str(database["NAME"]):
        raise ImproperlyConfigured(
            "Agents cannot be tested on SQLite in memory. Give the test database a file: "
            'DATABASES["default"]["TEST"] = {"NAME": BASE_DIR / "test.sqlite3"}'
        )
