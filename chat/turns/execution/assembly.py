"""Assembles a turn: a fresh agent object, its model, its tools in the documented order, its context.

The tools come from their sources in order (`tools_app/core/tool_sources.py`), limited by `enabled_tools` of the class;
what `before_turn` adds comes on top, and its `active_tools` limit all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from django.utils import timezone

from chat.agent.base import Agent, InstanceKey
from chat.agent.think import Think
from chat.core.context.compaction_policy import CompactionPolicy
from chat.core.context.result_files import READER
from chat.core.context.session_setup import SessionSetup
from chat.core.loop.hooks import ChatOptions, TurnConfig, TurnContext
from chat.core.loop.plan import TurnPlan
from chat.core.loop.request_records import RequestRecorder
from chat.core.loop.step_limit import StepLimit
from chat.core.model.chosen_model import stored_choice
from chat.core.model.language_model import LanguageModel, ModelMessage, ModelSettings
from chat.llm.direct_call import DirectCall
from chat.llm.registry import limits_of
from chat.members.selectors import user_key
from chat.turns.background.compaction import compact_session
from chat.turns.background.costs import price_calls
from chat.turns.background.declared_schedules import reconcile_if_declared
from chat.turns.execution.code.code_tool import with_code_over
from chat.turns.execution.context_window import TurnContextReducer
from chat.turns.execution.deferring import deferral_of
from chat.turns.execution.earlier_steps import earlier_steps
from chat.turns.execution.extensions.turn_config import with_extensions
from chat.turns.execution.model_input import (
    NOTHING_SAID,
    ModelInput,
    build_model_input,
    guarded_model,
    history_at,
    tool_specs,
)
from chat.turns.execution.overrides import Overrides, read_overrides
from chat.turns.execution.prompting import Prompt
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.guarding.handed_down import Denied, denied_above, guard_below, negations
from chat.turns.guarding.turn_guard import TurnGuard
from chat.turns.tools.output_reader import output_reader
from chat.user_code.call_hook import ask_hook, call_hook, is_overridden, notify_hook
from fibers.context import FiberContext
from sessions_app.core.compaction.compaction import Bounds
from sessions_app.core.messages.shapes import Message
from sessions_app.models import CompactionTrigger
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.deferral import Deferral
from tools_app.core.tool import Tool
from tools_app.core.tool_calls import ToolCall
from tools_app.core.tool_names import excludes
from tools_app.core.toolset import Toolset
from tools_app.guard.standings import GuardScope

MakeAgent: TypeAlias = Callable[[InstanceKey], Agent]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """Everything one attempt needs."""

    agent: Think
    guard: TurnGuard
    plan: TurnPlan
    deferral: Deferral  # the tools
    reader: Tool | None  # of outputs that were cut; not offered before there is one
    options: ChatOptions  # for an agent that answers itself; without messages where no hook reads them
    prompt: Prompt  # the plan's
    history: list[Message]  # what the prompt begins with; results of approved calls are written into it
    setup: SessionSetup
    has_budget: bool  # whether the session has a limit of cost, as its row was read
    handed_down: Denied = ()  # to the turns that this one starts below
    timeout_seconds: float | None = None  # of the attempt; `None` or 0 sets no limit


async def make_think(
    key: InstanceKey,
    make_agent: MakeAgent,
    model_choice: JSONObject | None = None,
    *,
    turn_id: str = "",
    asked_by: Any = None,
) -> Think:
    """Make the agent object of an instance and run its `on_start`. `model_choice`: the conversation's.

    `turn_id`: the turn that it works for, if it is one. `asked_by`: the member who asked for it; None: the owner.
    """
    agent = make_agent(key)
    assert isinstance(agent, Think), "admission refuses agents that do not chat"
    agent.model_choice = stored_choice(model_choice)
    agent.instance.turn_id, agent.instance.asked_by = turn_id, asked_by
    await notify_hook(agent, "on_start")
    await reconcile_if_declared(agent)
    return agent


async def make_think_for(facts: TurnFacts, make_agent: MakeAgent) -> Think:
    """Make the agent object of a turn."""
    asked_by = user_key(facts.author)
    return await make_think(facts.key, make_agent, facts.model_choice, turn_id=facts.turn_id, asked_by=asked_by)


async def guard_of(agent: Think, facts: TurnFacts, context: FiberContext) -> TurnGuard:
    """The injection guard of the turn's conversation. No query where no text of others was in it."""
    key = facts.key
    place = GuardScope(session_id=facts.session_id, scope=key.instance_id, owner_id=key.owner_id, turn_id=facts.turn_id)
    guard = TurnGuard(guard_below(key, agent.injection_guard), place, context.fenced)
    if facts.has_guard:
        await guard.load()
    return guard


async def assemble(
    agent: Think,
    facts: TurnFacts,
    guard: TurnGuard,
    *,
    attempt: int,
    partial_output_shown: bool,
    answer: Message = NOTHING_SAID,
) -> Assembled:
    """Ask the agent for everything and build the plan. `answer`: what an earlier attempt has left of it.

    Errors: `ModelError` when there is no model, `AgentCodeFailed` when the agent's own code raises.
    """
    gathered = replace(await build_model_input(agent, facts, answer=answer, guard=guard), forms=facts.forms)
    context = _turn_context(agent, facts, gathered, attempt)
    config = await ask_hook(agent, "before_turn", context) or TurnConfig()
    config = await with_extensions(agent, facts, config, context, guard, message_count=len(gathered.history))
    overrides, deferral, reader = _with_tools(agent, facts, gathered, config)
    model = _model(agent, gathered, config)
    prompt = gathered.prompt(model=model, override=config.messages)
    plan = TurnPlan(
        request_id=facts.request_id,
        assistant_id=facts.assistant_id,
        model=model,
        resolve_model=lambda choice: guarded_model(agent, choice, config.stall_timeout_seconds),
        system=overrides.system,
        prompt=prompt,
        forms=gathered.forms,
        reader=None if reader is None else tool_specs([reader])[0],
        needs_reader=prompt.has_cut_output,
        tool_choice=overrides.tool_choice,
        settings=overrides.settings,
        limit=await _limit(agent, facts, config, overrides),
        output=overrides.output,
        shared=config.shared,
        reducer=_reducer(agent, facts, prompt, gathered.compaction),
        send_reasoning=agent.send_reasoning if config.send_reasoning is None else config.send_reasoning,
        cost_of=price_calls(),
        context_size=_context_size,
        clock=timezone.now,
        partial_output_shown=partial_output_shown,
        requests=_recorder(facts),
    )
    plan = _of_call(_declaring(plan, deferral, reader), facts)
    return Assembled(
        agent=agent,
        guard=guard,
        plan=plan,
        deferral=deferral,
        reader=reader,
        options=_options(
            facts, plan, overrides.toolset, context.messages if config.messages is None else config.messages
        ),
        prompt=prompt,
        history=gathered.history,
        setup=gathered.setup,
        has_budget=gathered.state.rows.max_cost is not None,
        handed_down=_handed_down(facts, config),
        timeout_seconds=config.timeout_seconds,
    )


async def _limit(agent: Think, facts: TurnFacts, config: TurnConfig, overrides: Overrides) -> StepLimit:
    """The bounds of the answer, with the steps that it had before this turn. Errors: as of the getter."""
    return StepLimit(
        max_steps=config.max_steps or await call_hook(agent, "get_max_steps"),
        stop_when=overrides.stop_when,
        earlier=await db(earlier_steps, facts) if facts.goes_on_from else (),
        asks_last=agent.answers_at_step_limit and overrides.tool_choice in {"auto", "none"},
        text=agent.step_limit_text,
    )


def _recorder(facts: TurnFacts) -> RequestRecorder:
    """The recorder of the turn's requests, which goes on from those of the turns before."""
    return RequestRecorder(
        position=facts.position, before=facts.last_request, sent=facts.sent_before, forms=facts.forms
    )


def _with_tools(
    agent: Think, facts: TurnFacts, gathered: ModelInput, config: TurnConfig
) -> tuple[Overrides, Deferral, Tool | None]:
    """The checked config, the tools as they are declared, and the reader of outputs: all without what is denied."""
    denied = (*denied_above(agent.key), *facts.denied)
    overrides = read_overrides(config, system=gathered.system, offered=gathered.offered, denied=denied)
    toolset = with_code_over(
        agent, overrides.toolset, gathered.code, gathered.workspace, config.active_tools, denied=denied
    )
    keep = (overrides.tool_choice,)  # a provider takes a choice among those that are declared
    reader = _reader(agent, config, toolset, denied)
    return replace(overrides, toolset=toolset), deferral_of(agent, toolset, keep=keep), reader


def _declaring(plan: TurnPlan, deferral: Deferral, reader: Tool | None) -> TurnPlan:
    """The plan with these tools."""
    return replace(
        plan,
        tools=tool_specs(deferral.declared),
        found=tool_specs(deferral.found),
        finders=tool_specs(deferral.finders),
        titles=_titles(deferral.all, reader),
    )


def _handed_down(facts: TurnFacts, config: TurnConfig) -> Denied:
    """The lists for the turns that this one starts: those that it got itself, and what `before_turn` takes away."""
    own = () if config.active_tools is None else negations(config.active_tools, "active_tools of before_turn")
    return (*facts.denied, own) if own else facts.denied


def _of_call(plan: TurnPlan, facts: TurnFacts) -> TurnPlan:
    """The plan; for a turn that makes one given call, without a model, whatever hooks choose."""
    call = facts.direct_call
    if call is None:
        return plan
    given = ToolCall(call_id=f"call_{facts.turn_id}", tool_name=call["tool"], input=call["input"])
    model = DirectCall(calls=(given,), is_made=facts.is_continuation)
    return replace(
        plan,
        model=model,
        resolve_model=lambda _choice: model,
        settings=ModelSettings(),
        tool_choice="auto",
        limit=StepLimit(max_steps=1, asks_last=False, text=""),
        output=None,
        reducer=None,
    )


def _context_size(model: LanguageModel) -> int:
    return limits_of(model).context_tokens


def _titles(toolset: Toolset, reader: Tool | None) -> dict[str, str]:
    return {tool.name: tool.title for tool in (*toolset, *([reader] if reader else [])) if tool.title}


def _model(agent: Think, gathered: ModelInput, config: TurnConfig) -> LanguageModel:
    """The turn's model: that of the input, unless `before_turn` chose another one or another patience."""
    seconds = config.stall_timeout_seconds
    if config.model is None and seconds is None:
        return gathered.model
    return guarded_model(agent, gathered.choice if config.model is None else config.model, seconds)


def _turn_context(agent: Think, facts: TurnFacts, gathered: ModelInput, attempt: int) -> TurnContext:
    return TurnContext(
        request_id=facts.request_id,
        turn_id=facts.turn_id,
        system=gathered.system,
        # Converting a long history takes milliseconds before the model is asked, and few agents have such hooks.
        messages=gathered.prompt(is_noted=False)(NOTHING_SAID) if _is_watched(agent, facts) else (),
        tools={tool.name: tool for tool in gathered.offered},
        model=gathered.model,
        continuation=facts.is_continuation,
        body=facts.body,
        attempt=attempt,
    )


def _reader(agent: Think, config: TurnConfig, toolset: Toolset, denied: Denied) -> Tool | None:
    """The reader of outputs that were cut, unless a tool has its name or a pattern takes it away by name."""
    patterns = [*(tuple(given) for given in (agent.enabled_tools, config.active_tools) if given is not None), *denied]
    is_excluded = READER in toolset or any(excludes(given, READER) for given in patterns)
    return None if is_excluded else output_reader(agent.key)


def _is_watched(agent: Think, facts: TurnFacts) -> bool:
    """Whether a hook reads the messages before there is a request; later ones read those of their step.

    A turn that goes on may begin with calls that a person has approved, and their hooks read what led to them.
    """
    return facts.is_continuation or any(is_overridden(agent, name) for name in ("before_turn", "on_chat_message"))


def _options(facts: TurnFacts, plan: TurnPlan, toolset: Toolset, messages: Sequence[ModelMessage]) -> ChatOptions:
    return ChatOptions(
        request_id=facts.request_id,
        turn_id=facts.turn_id,
        system=plan.system,
        messages=tuple(messages),
        tools={tool.name: tool for tool in toolset},
        body=facts.body,
    )


def _reducer(agent: Think, facts: TurnFacts, prompt: Prompt, policy: CompactionPolicy) -> TurnContextReducer:
    async def compact(bounds: Bounds | None) -> bool:
        if facts.leaf_id is None:
            return False
        trigger = CompactionTrigger.OVERFLOW
        done = await compact_session(agent, facts.session_id, leaf_id=facts.leaf_id, trigger=trigger, bounds=bounds)
        return done is not None

    read_again = partial(history_at, agent, replace(facts, history=None))
    return TurnContextReducer(
        agent=agent,
        session_id=facts.session_id,
        prompt=prompt,
        policy=policy,
        compact=compact,
        read_again=read_again,
    )
