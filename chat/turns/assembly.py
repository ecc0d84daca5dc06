"""Assembly: a fresh agent object, its model, its tools in the documented order, its context. The one such place.

Order of tools, later wins: those of clients, `get_tools()`, those of the session's context blocks, then the tools that
`before_turn` adds for this turn.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final, TypeAlias

from chat import attachments
from chat.agent import Agent, InstanceKey
from chat.core.context_policy import context_policy
from chat.core.hooks import ChatOptions, ModelChoice, TurnConfig, TurnContext
from chat.core.language_model import FileContent, LanguageModel, ModelMessage, ToolSpec
from chat.core.loop import TurnPlan
from chat.core.session_setup import SessionSetup
from chat.errors import AttachmentNotFound
from chat.llm.registry import guarded, resolve_model
from chat.think import Think
from chat.turns.calling import decide, decide_as, developers_code, is_overridden, observe
from chat.turns.client_tools import to_tools
from chat.turns.compacting import compact_session
from chat.turns.costs import price_calls
from chat.turns.merging import merge_history
from chat.turns.overrides import read_overrides
from chat.turns.persistence import TurnFacts, read_history
from chat.turns.prompting import Prompt
from chat.turns.room import TurnRoom
from sessions_app.models import CompactionTrigger
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool import Tool
from tools_app.core.toolset import Toolset
from tools_app.session_tools import ReadMessages, session_tools, skill_reader

MakeAgent: TypeAlias = Callable[[InstanceKey], Agent]
NOTHING_SAID: Final[JSONObject] = {"parts": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """Everything one attempt needs."""

    agent: Think
    plan: TurnPlan
    toolset: Toolset
    options: ChatOptions
    prompt: Prompt  # the plan's
    history: list[JSONObject]  # what the prompt begins with; results of approved calls are written into it
    setup: SessionSetup
    timeout_seconds: float | None = None  # of the attempt; `None` or 0 sets no limit


async def make_think(facts: TurnFacts, make_agent: MakeAgent) -> Think:
    """Make the agent object of a turn and run its `on_start`."""
    agent = make_agent(facts.key)
    assert isinstance(agent, Think), "admission refuses agents that do not chat"
    await observe(agent, "on_start")
    return agent


async def assemble(agent: Think, facts: TurnFacts, *, attempt: int, cut_was_shown: bool) -> Assembled:
    """Ask the agent for everything and build the plan.

    Errors: `ModelError` when there is no model, `AgentCodeFailed` when the agent's own code raises.
    """
    choice = await decide(agent, "get_model")
    base_model = _guarded(agent, choice)
    history = await _history(agent, facts)
    files = await _files(history, facts.key.owner_id)
    session = await _open_session(agent, facts.session_id)
    sends = partial(Prompt, history, files=files, policy=context_policy(agent.context_policy), reads=session.reads)
    # A client's tool never takes the place of one of ours: the model would be told what we never said.
    offered = Toolset(to_tools(facts.client_tools), await decide(agent, "get_tools"), session.tools)
    context = TurnContext(
        request_id=facts.request_id,
        turn_id=facts.turn_id,
        system=session.system,
        messages=sends(base_model)(NOTHING_SAID),
        tools={tool.name: tool for tool in offered},
        model=base_model,
        continuation=facts.is_continuation,
        body=facts.body,
        attempt=attempt,
    )
    config = await decide_as(agent, "before_turn", TurnConfig, context) or TurnConfig()
    overrides = read_overrides(config, system=session.system, offered=offered)
    seconds, toolset = config.stall_timeout_seconds, overrides.toolset
    chosen = choice if config.model is None else config.model
    model = base_model if config.model is None and seconds is None else _guarded(agent, chosen, seconds)
    prompt = sends(model, override=config.messages)
    plan = TurnPlan(
        request_id=facts.request_id,
        assistant_id=facts.assistant_id,
        model=model,
        resolve_model=lambda choice: _guarded(agent, choice, seconds),
        system=overrides.system,
        prompt=prompt,
        tools=_specs(toolset),
        tool_choice=overrides.tool_choice,
        settings=overrides.settings,
        max_steps=config.max_steps or int(await decide(agent, "get_max_steps")),
        stop_when=overrides.stop_when,
        output=overrides.output,
        shared=config.shared,
        room=_room(agent, facts, prompt),
        send_reasoning=agent.send_reasoning if config.send_reasoning is None else config.send_reasoning,
        cost_of=price_calls(),
        cut_was_shown=cut_was_shown,
    )
    return Assembled(
        agent=agent,
        plan=plan,
        toolset=toolset,
        options=_options(facts, plan, toolset, tuple(context.messages if config.messages is None else config.messages)),
        prompt=prompt,
        history=history,
        setup=session.setup,
        timeout_seconds=config.timeout_seconds,
    )


def _specs(toolset: Toolset) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name=t.name, description=t.description, input_schema=t.input_schema) for t in toolset)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """What the session of a turn brings: its choices, the prompt, tools, and how its messages are read."""

    setup: SessionSetup
    system: str
    tools: list[Tool]
    reads: ReadMessages


async def _open_session(agent: Think, session_id: str) -> _Session:
    context = await agent.host.open_context(agent, session_id)
    assert isinstance(context.setup, SessionSetup), "contexts of agents are opened with one"
    state = await context.state()
    with developers_code("configure_session"):  # the blocks' providers are the agent's own
        system = await context.system_prompt(state)
    tools, reads = session_tools(context, state), skill_reader(context, state)
    return _Session(setup=context.setup, system=system, tools=tools, reads=reads)


def _options(facts: TurnFacts, plan: TurnPlan, toolset: Toolset, messages: tuple[ModelMessage, ...]) -> ChatOptions:
    return ChatOptions(
        request_id=facts.request_id,
        turn_id=facts.turn_id,
        system=plan.system,
        messages=messages,
        tools={tool.name: tool for tool in toolset},
        body=facts.body,
    )


def _guarded(agent: Think, choice: ModelChoice, stall_timeout_seconds: float | None = None) -> LanguageModel:
    seconds = agent.stall_timeout_seconds if stall_timeout_seconds is None else stall_timeout_seconds
    return guarded(resolve_model(choice), gap_seconds=seconds)


def _room(agent: Think, facts: TurnFacts, prompt: Prompt) -> TurnRoom:
    async def compact(tail_tokens: int | None) -> bool:
        if facts.leaf_id is None:
            return False
        trigger = CompactionTrigger.OVERFLOW
        done = await compact_session(
            agent, facts.session_id, leaf_id=facts.leaf_id, trigger=trigger, tail_tokens=tail_tokens
        )
        return done is not None

    read_again = partial(_history, agent, replace(facts, history=None))
    return TurnRoom(agent=agent, session_id=facts.session_id, prompt=prompt, compact=compact, read_again=read_again)


async def _history(agent: Think, facts: TurnFacts) -> list[JSONObject]:
    if facts.leaf_id is None:
        return []
    history = facts.history
    if history is None:
        history = await db(read_history, facts.session_id, facts.leaf_id)
    history = await _merged(facts.session_id, history)
    if is_overridden(agent, "assemble_context"):
        chosen: list[JSONObject] | None = await decide(agent, "assemble_context", history)
        return history if chosen is None else list(chosen)
    return history


async def _merged(session_id: str, history: list[JSONObject]) -> list[JSONObject]:
    roles = [message["role"] for message in history]
    has_neighbours = any(pair == ("user", "user") for pair in pairwise(roles))
    return await db(merge_history, session_id, history) if has_neighbours else history


async def _files(history: list[JSONObject], owner_id: int | None) -> dict[str, FileContent]:
    urls = _file_urls(history)
    return await db(_load_files, urls, owner_id) if urls else {}


def _file_urls(history: list[JSONObject]) -> set[str]:
    return {
        str(part.get("url", ""))
        for message in history
        if message["role"] == "user"
        for part in message["parts"]
        if part.get("type") == "file"
    }


def _load_files(urls: set[str], owner_id: int | None) -> dict[str, FileContent]:
    if owner_id is None:
        return {}
    loaded: dict[str, FileContent] = {}
    for url in urls:
        with suppress(AttachmentNotFound):  # gone, or not the owner's: the prompt says that it is not available
            loaded[url] = attachments.load_for_model(url, owner_id)
    return loaded
