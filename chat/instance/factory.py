"""Make an agent object: the class of an address, and the host through which it reaches the product."""

import asyncio
from functools import partial
from typing import Any

from chat.agent.base import Agent, InstanceKey
from chat.agent.methods.context import ContextMethods
from chat.agent.operations import MessageFunction, SavedTurn, Submission
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.background.queue import QueueHost
from chat.background.service import FibersHost, InstanceFibers
from chat.conf import chat_settings
from chat.core.model.chosen_model import ChosenModel
from chat.errors import TurnConflict
from chat.extensions.service import ExtensionsHost, InstanceExtensions
from chat.instances.rows import ensure_instance
from chat.llm.registry import name_of
from chat.mcp_servers.service import McpHost
from chat.runtime import submissions, turns
from chat.runtime.add_messages import add_messages
from chat.runtime.approvals import ApprovalsHost
from chat.runtime.host import DatabaseHost
from chat.runtime.model_choice import ModelChoices
from chat.runtime.sessions import SessionsHost
from chat.schedules.service import SchedulesHost
from chat.sub_agents.service import SubAgentsHost
from chat.turns.admission.tool_answers import has_pending_interaction
from chat.user_code.call_hook import call_hook, notify_hook
from chat.user_code.extensions import declare_blocks
from chat.user_code.session_setup import configured_session
from sessions_app.context.session_context import SessionContext
from sessions_app.core.compaction.tokens import counter_named
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.core.messages.tree import Leaf
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase


class ChatDatabaseHost(
    SessionsHost,
    ApprovalsHost,
    McpHost,
    ExtensionsHost,
    FibersHost,
    QueueHost,
    SubAgentsHost,
    SchedulesHost,
    DatabaseHost,
):
    """The host of agents that chat."""

    _context: SessionContext | None = None  # of the turn that the agent object serves

    async def open_context(self, agent: Agent, session_id: str | None = None) -> SessionContext:
        """Open the context of a turn's session and keep it. `None`: the object's session, else the current one."""
        if not isinstance(agent, Think):
            raise TurnConflict(Phrase("Agent {agent!r} does not chat.", agent=self.key.agent))
        if session_id is not None and (self._context is None or self._context.session_id != session_id):
            self._context = await open_context(agent, session_id)
        return self._context or await open_context(agent, await db(_current_session, self.key))

    async def run_turn(
        self,
        words: list[NewMessage] | MessageFunction | None,
        *,
        body: JSONObject | None = None,
        callback: Any = None,
        signal: asyncio.Event | None = None,
    ) -> SavedTurn:
        """Run a turn and wait for its end."""
        return await turns.run_words(self.key, words, body=body, callback=callback, signal=signal)

    async def add_messages(
        self, messages: list[NewMessage], *, parent: str | Leaf | None, is_upsert: bool
    ) -> list[str]:
        """Store messages without a turn."""
        return await db(add_messages, self.key, messages, parent=parent, is_upsert=is_upsert)

    async def stop_turns(self, request_id: str | None, reason: str | None) -> bool:
        """Stop one turn, or all."""
        return await turns.stop_turns(self.key, request_id, reason)

    async def has_pending_interaction(self) -> bool:
        """Whether a call waits for a person or a client."""
        return await db(has_pending_interaction, self.key)

    async def wait_until_stable(self, timeout_seconds: float | None) -> bool:
        """Wait until nothing runs, waits or is pending."""
        return await turns.wait_until_stable(self.key, timeout_seconds)

    async def compact(self, instructions: str) -> str:
        """Request a compaction."""
        return await db(turns.compact, self.key, instructions)

    async def submit(self, messages: list[NewMessage], *, key: str | None, metadata: JSONObject) -> Submission:
        """Accept a submission."""
        return await db(submissions.submit, self.key, messages, idempotency_key=key, metadata=metadata)

    async def find_submission(self, submission_id: str) -> Submission | None:
        """Read a submission."""
        return await db(submissions.find_submission, self.key, submission_id)

    async def newest_submissions(self, limit: int) -> list[Submission]:
        """Read the newest submissions."""
        return await db(submissions.newest_submissions, self.key, limit)

    async def cancel_submission(self, submission_id: str) -> bool:
        """Stop a submission."""
        return await db(submissions.cancel_submission, self.key, submission_id)

    async def save_model_choice(self, choice: ChosenModel) -> None:
        """Check and store a choice of a model."""
        await model_choices(self.key).choose(choice.to_json())


def context_of(key: InstanceKey) -> ContextMethods:
    """Give the context methods of an instance to server code."""

    async def opened() -> SessionContext:
        agent, host = await started_agent(key)
        return await host.open_context(agent)

    return ContextMethods(opened)


def extensions_of(key: InstanceKey) -> InstanceExtensions:
    """Give the extensions of an instance to people and to code."""

    async def made() -> Think | None:
        if not is_served(key.agent) or not issubclass(get_agent_class(key.agent), Think):
            return None
        agent, _host = await started_agent(key)
        assert isinstance(agent, Think)
        return agent

    return InstanceExtensions(key, made)


def fibers_of(key: InstanceKey) -> InstanceFibers:
    """Give the background work of an instance to people and to code."""
    return InstanceFibers(key, partial(_made, key))


async def _made(key: InstanceKey) -> Agent:
    return (await started_agent(key))[0]


def model_choices(key: InstanceKey) -> ModelChoices:
    """Give the choice of a model of an instance to people and to code."""
    return ModelChoices(key, partial(_own_model, key))


async def _own_model(key: InstanceKey) -> str | None:
    """The name of the model that the agent itself names for this conversation; `None` where its code cannot say."""
    if not is_served(key.agent) or not issubclass(get_agent_class(key.agent), Think):
        return None
    try:
        agent, _host = await started_agent(key)
        named = await call_hook(agent, "get_model")
    except ThinkError:  # logged where it was raised; the next turn ends with it
        return None
    return name_of(named) or None


def _current_session(key: InstanceKey) -> str:
    session_id = ensure_instance(key).session_id
    assert session_id is not None
    return session_id


async def started_agent(key: InstanceKey) -> tuple[Agent, ChatDatabaseHost]:
    """Make a fresh object of the instance's class and run its `on_start`. Errors: `AgentNotFound`."""
    host = ChatDatabaseHost(key)
    agent = get_agent_class(key.agent)(host, key)
    await notify_hook(agent, "on_start")
    return agent, host


def make_agent(key: InstanceKey) -> Agent:
    """Make a fresh object of the instance's class. Errors: `AgentNotFound`."""
    return get_agent_class(key.agent)(ChatDatabaseHost(key), key)


async def open_context(agent: Think, session_id: str) -> SessionContext:
    """Configure the session and give its context; one without blocks has the text of `get_system_prompt`.

    Errors: `AgentCodeFailed` when the agent's own code raises.
    """
    setup = await configured_session(agent)
    await declare_blocks(agent, setup)

    async def base() -> str:
        prompt: str = await call_hook(agent, "get_system_prompt")
        return prompt

    counter = setup.token_counter or counter_named(chat_settings.token_counter)
    return SessionContext(session_id, setup, counter=counter, base=base)
