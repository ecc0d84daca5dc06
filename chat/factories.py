"""Agents without a class of one's own: `create_agent`, `durable_agent`, `create_worker_agent`.

    Researcher = create_agent(durable_agent(name="researcher", instructions="Research.", model="default"))
    fact_checker = create_worker_agent(name="fact_checker", description="…", instructions="…", output_schema=Verdict)

They are thin: an agent of `create_agent` is a `Think` class, and a worker is a tool. Call them where a module of agents
is imported, so that every process knows them. How to: `docs/howto/agents-that-talk.md`.
"""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from chat.agent.declared import kebab
from chat.agent.think import Think
from chat.agent.values.messages import AgentReference
from chat.core.context.compaction_policy import CompactionPolicy
from chat.core.context.session_setup import SessionSetup
from chat.core.loop.hooks import AgentContext, AgentInput, ChatErrorContext, ChatOptions, ChatResponse, ResponseStatus
from chat.core.model.output_schema import Output
from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from chat.errors import TurnConfigInvalid
from chat.inbox.queries import QueryAgent, declared
from chat.models import AgentMessage
from chat.workers.memory import to_messages
from chat.workers.worker import WORKER_TRIES, BuildMessages, WorkerAgent, WorkerSpec, make_worker
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool import Tool, checked_name

__all__ = ["AgentConfig", "auto_summarize", "create_agent", "create_worker_agent", "durable_agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The declaration of an agent with an inbox. Each function may be sync or async, and left out.

    `build_messages(pending, context)` gives the conversation that the model reads, in place of what is stored: a text,
    or pairs of a role and a text. `generate(AgentInput)` gives the answer in place of the loop. `on_response(text,
    pending, context)` and `on_error(error, pending, context)` run afterwards, at least once; answers are written
    whatever they do. `attributes`: of the class, such as `max_steps`.
    """

    name: str
    instructions: str
    model: Any = "default"
    tools: Sequence[Tool] = ()
    agents: Sequence[AgentReference | type[Think] | str] = ()
    description: str = ""
    build_messages: Callable[[Sequence[AgentMessage], AgentContext], Any] | None = None
    generate: Callable[[AgentInput], Any] | None = None
    on_response: Callable[[str, Sequence[AgentMessage], AgentContext], Any] | None = None
    on_error: Callable[[str, Sequence[AgentMessage], AgentContext], Any] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


def durable_agent(name: str, instructions: str, **options: Any) -> AgentConfig:
    """Declare an agent with an inbox for `create_agent`: the defaults, each of which may be replaced by itself.

    `options`: the fields of `AgentConfig`. Errors: `TypeError` for another one.
    """
    return AgentConfig(name=name, instructions=instructions, **options)


def auto_summarize(threshold: int = 100, window_size: int = 50, *, keep: int = 0, model: Any = None) -> dict[str, Any]:
    """Attributes for `AgentConfig.attributes`: beyond so many messages all but the last are summarised.

    `window_size`: of the last, and `keep` of the first, which stay as they are. `model` writes the summary, the
    agent's own by default. What is stored stays; a summary that fails changes nothing.
    """

    def configure_session(_self: Think, session: SessionSetup) -> SessionSetup:
        return session.compact_after_count(threshold)

    policy = CompactionPolicy(keep_messages=window_size, protect_head=keep)
    return {"configure_session": configure_session, "compaction_policy": policy, "compaction_model": model}


def create_agent(config: AgentConfig | None = None, /, **options: Any) -> Any:
    """Make an agent: with an inbox, or over tables of your own.

    With an inbox it is a `Think` class, served under its name like any other. With `pending_work` it is a `QueryAgent`
    and needs `build_messages` and `on_response` besides. Errors: `TurnConfigInvalid` where one of the three is missing
    or another option is given, `ToolDeclarationInvalid` for a name that providers refuse.
    """
    module = str(sys._getframe(1).f_globals.get("__name__", ""))
    if config is None and "pending_work" in options:
        return _query_agent(options)
    made = config if config is not None else _config(options)
    name = kebab(checked_name(made.name).replace("_", "-"))
    attributes: dict[str, Any] = {
        "__module__": module,
        "__doc__": made.description,
        "description": made.description,
        "agents": made.agents,
        "config": made,
        **{hook: function for hook, function in _HOOKS.items() if _is_wanted(made, hook)},
        **made.attributes,
    }
    return type("".join(word.capitalize() for word in name.split("-")), (CreatedAgent,), attributes)


def create_worker_agent(  # noqa: PLR0913 - one keyword for each thing a developer may decide
    *,
    name: str,
    description: str,
    instructions: str,
    model: Any = "default",
    tools: Sequence[Tool] = (),
    input_schema: type[BaseModel] | None = None,
    output_schema: type[BaseModel] | JSONObject | None = None,
    output_tries: int = WORKER_TRIES,
    build_messages: BuildMessages | None = None,
    max_steps: int = 10,
    title: str = "",
    durable: bool = False,
) -> WorkerAgent:
    """Make a worker agent: a tool that does one task in a fresh context, with `run` for code.

    `output_tries`: how often it is asked again after an output of another form. `durable`: its turn and calls are rows
    of a sub-agent; otherwise nothing of it is stored, and it runs again from its start after a crash. Errors:
    `ToolDeclarationInvalid` for a name that providers refuse, `TurnConfigInvalid` for a schema.
    """
    output = None if output_schema is None else Output(schema=output_schema, tries=output_tries)
    spec = WorkerSpec(
        model=model,
        instructions=instructions,
        tools=tuple(tools),
        input_schema=input_schema,
        output=output,
        build_messages=build_messages,
        max_steps=max_steps,
    )
    module = str(sys._getframe(1).f_globals.get("__name__", ""))
    return make_worker(checked_name(name), description, title, spec, module=module, is_durable=durable)


class CreatedAgent(Think, abstract=True):
    """The base of what `create_agent` makes."""

    config: AgentConfig

    def get_model(self) -> Any:
        """The declared one."""
        return self.config.model

    def get_system_prompt(self) -> Any:
        """The declared instructions."""
        return self.config.instructions

    def get_tools(self) -> Any:
        """The declared ones."""
        return self.config.tools

    async def pending(self, **of_turn: str) -> list[AgentMessage]:
        """The messages that a turn answers, the present one by default; none where it is not for the inbox."""
        lookup = of_turn or {"turn_id": self.instance.turn_id}
        rows = AgentMessage.objects.filter(target=self.key.agent, **lookup).exclude(turn=None).order_by("seq")
        return await db(lambda: list(rows))

    @property
    def about(self) -> AgentContext:
        """The context for functions of the declaration."""
        room = self.key if self.key.parent is None else self.key.parent
        return AgentContext(agent_name=self.config.name, session=room.name)


async def _assemble(self: CreatedAgent, messages: list[Any]) -> Any:
    pending = await self.pending()
    if not pending or self.config.build_messages is None:
        return messages
    return to_messages(await call_user_code(self.config.build_messages, pending, self.about))


async def _answer(self: CreatedAgent, options: ChatOptions) -> AsyncIterator[Chunk]:
    assert self.config.generate is not None
    given = AgentInput(
        pending=await self.pending(),
        messages=options.messages,
        model=self.config.model,
        tools=tuple(options.tools.values()),
        instructions=options.system,
        context=self.about,
    )
    text, part_id = str(await call_user_code(self.config.generate, given)), new_id("txt")

    async def said() -> AsyncIterator[Chunk]:
        for chunk in (chunks.text_start(part_id), chunks.text_delta(part_id, text), chunks.text_end(part_id)):
            yield chunk

    return said()


async def _responded(self: CreatedAgent, response: ChatResponse) -> None:
    pending = await self.pending(turn__request_id=response.request_id)
    text = "".join(part.get("text", "") for part in response.message["parts"])
    if response.status is ResponseStatus.COMPLETED and self.config.on_response is not None:
        await call_user_code(self.config.on_response, text, pending, self.about)


async def _failed(self: CreatedAgent, error: Any, context: ChatErrorContext) -> None:
    del context
    if self.config.on_error is not None:
        await call_user_code(self.config.on_error, str(error), await self.pending(), self.about)


_HOOKS: Mapping[str, Any] = {
    "assemble_context": _assemble,
    "on_chat_message": _answer,
    "on_chat_response": _responded,
    "on_chat_error": _failed,
}
_FIELDS = {
    "assemble_context": "build_messages",
    "on_chat_message": "generate",
    "on_chat_response": "on_response",
    "on_chat_error": "on_error",
}


def _is_wanted(config: AgentConfig, hook: str) -> bool:
    return getattr(config, _FIELDS[hook]) is not None


def _config(options: Mapping[str, Any]) -> AgentConfig:
    try:
        return AgentConfig(**options)
    except TypeError as error:
        raise TurnConfigInvalid(f"create_agent: {error}") from error


def _query_agent(options: Mapping[str, Any]) -> QueryAgent:
    try:
        made = QueryAgent(**{"model": "default", **options})
    except TypeError as error:
        raise TurnConfigInvalid(f"create_agent with pending_work: {error}") from error
    checked_name(made.name)
    declared[made.name] = made
    return made
