"""Preview of a conversation's next model call, with sizes for people.

Put together by `build_model_input`, as the calls of a turn are. No model is called, `before_turn` is not asked,
nothing is written. A message that is being answered, or that waits, is not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.core.context.context_policy import PRESETS, ContextPolicy
from chat.core.context.person_instructions import NO_INSTRUCTIONS, PersonInstructions
from chat.core.context.project_instructions import (
    NO_PROJECT,
    NOTHING_WRITTEN,
    ProjectContext,
    WrittenByPeople,
)
from chat.core.model.language_model import ModelMessage, ModelRequest, ToolSpec
from chat.core.model.overflow import estimate_request
from chat.errors import AgentNotFound
from chat.llm.registry import limits_of, refused_tools
from chat.turns.execution.assembly import MakeAgent, make_think
from chat.turns.execution.context_window import auto_compaction_is_on
from chat.turns.execution.model_input import NOTHING_SAID, ModelInput, build_model_input, tool_specs
from chat.user_code.call_hook import user_code_boundary
from sessions_app.core.compaction.compaction import covered_range
from sessions_app.core.compaction.tokens import TokenCounter, count_tokens
from sessions_app.core.context.context_blocks import Block
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db, user_code
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.phrases import Phrase
from tools_app.core.tool import Tool

PREVIEW_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSize:
    """A tool as it is declared to the model. `refused`: why it is left out of the call; empty where it is sent."""

    name: str
    description: str
    tokens: int
    refused: str = ""


REFUSED: Final = "does not take this tool as it is declared, so it is left out."


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySize:
    """A summary that is read in the place of messages."""

    first_id: str
    last_id: str
    text: str
    tokens: int
    message_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The messages that are sent as they are. `left_out`: older ones of the path that are neither sent nor summarised.

    `first_text` is the beginning of the first one.
    """

    tokens: int
    message_count: int
    first_id: str | None
    first_text: str
    left_out: int
    queued_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSize:
    """The system prompt. `is_kept`: the session stores this prompt."""

    text: str
    tokens: int
    is_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsSize:
    """The instructions of the person who asks, or of the project, as the model reads them."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The next call. `context_tokens`: the model's limit, 0 if unknown; `policy`: a preset's name.

    `usable_tokens`: what a conversation may take by the agent's compaction policy; beyond it older messages are
    summarised if `is_automatic`.
    """

    session_id: str
    model: str
    context_tokens: int
    usable_tokens: int
    is_automatic: bool
    policy: str
    total_tokens: int
    system: SystemSize
    instructions: InstructionsSize | None  # nothing where the model reads none
    project: InstructionsSize | None
    blocks: list[Block]
    loaded: list[str]
    summaries: list[SummarySize]
    tail: Tail
    tools: list[ToolSize]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPlace:
    """The end of the shown path of a session."""

    session_id: str
    leaf_id: str | None
    client_tools: tuple[JSONObject, ...] = ()
    caller_tools: tuple[JSONObject, ...] = ()  # of one turn: there is none yet
    model_choice: JSONObject | None = None
    history: list[Message] | None = field(default=None)
    has_mcp_servers: bool = True  # not known here
    has_extensions: bool = True
    instructions: PersonInstructions = NO_INSTRUCTIONS
    project: ProjectContext = NO_PROJECT


async def preview(
    key: InstanceKey,
    session_id: str,
    make_agent: MakeAgent,
    client_tools: Sequence[JSONObject] = (),
    model_choice: JSONObject | None = None,
    written: WrittenByPeople = NOTHING_WRITTEN,
) -> Preview:
    """Look at the next call of an instance's session.

    Errors: `AgentNotFound` for one whose class is gone or does not chat, `ModelError` without a model,
    `AgentCodeFailed`.
    """
    if not issubclass(get_agent_class(key.agent), Think):
        raise AgentNotFound(Phrase("Agent {agent!r} does not chat, so there is no next call.", agent=key.agent))
    leaf_id = await db(selectors.leaf_id, session_id)
    agent = await make_think(key, make_agent, model_choice)
    place = NextPlace(
        session_id=session_id,
        leaf_id=leaf_id,
        client_tools=tuple(client_tools),
        model_choice=model_choice,
        instructions=written.person,
        project=written.project,
    )
    gathered = await build_model_input(agent, place, keeps_prompt=False)
    with user_code_boundary("configure_session"):
        blocks = await gathered.context.blocks(gathered.state)
    with user_code_boundary("token_counter"):
        sizes = await user_code(_Sizes.of, gathered)
    limits = limits_of(gathered.model)
    found = await db(_places, session_id, gathered.history)
    name = gathered.model.name
    refused = await db(refused_tools, name, tool_specs(_declared(gathered)))
    return Preview(
        session_id=session_id,
        model=name,
        context_tokens=limits.context_tokens,
        usable_tokens=gathered.compaction.usable_tokens(limits),
        is_automatic=await db(auto_compaction_is_on, agent, session_id),
        policy=_name_of(gathered.policy),
        total_tokens=sizes.total,
        system=SystemSize(
            text=_beside_instructions(gathered),
            tokens=sizes.system,
            is_kept=gathered.state.rows.system_prompt == _beside_instructions(gathered),
        ),
        instructions=_piece(gathered.instructions, sizes.instructions),
        project=_piece(gathered.project, sizes.project),
        blocks=blocks,
        loaded=sorted(gathered.state.rows.loaded),
        summaries=_summaries(gathered.history, sizes, found),
        tail=_tail(gathered.history, sizes, found),
        tools=[replace(size, refused=f"{name} {REFUSED}") if size.name in refused else size for size in sizes.tools],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """Tokens, by the counter of the session."""

    system: int  # without what people have written
    instructions: int
    project: int
    summaries: list[int]
    messages: int  # those that are not summaries
    tools: list[ToolSize]

    @classmethod
    def of(cls, gathered: ModelInput) -> "_Sizes":
        counter = gathered.context.counter
        summaries = [message for message in gathered.history if covered_range(message)]
        of_each = [
            _count_messages(gathered.prompt([summary], is_noted=False)(NOTHING_SAID), counter) for summary in summaries
        ]
        everything = _count_messages(gathered.prompt()(NOTHING_SAID), counter)
        tools = [
            ToolSize(name=spec.name, description=spec.description, tokens=_count_tool(spec, counter))
            for spec in tool_specs(_declared(gathered))
        ]
        beside = _beside_instructions(gathered)
        return cls(
            system=count_tokens(beside, counter) if beside else 0,
            instructions=count_tokens(gathered.instructions, counter) if gathered.instructions else 0,
            project=count_tokens(gathered.project, counter) if gathered.project else 0,
            summaries=of_each,
            messages=max(0, everything - sum(of_each)),
            tools=tools,
        )

    @property
    def total(self) -> int:
        return (
            self.system
            + self.instructions
            + self.project
            + sum(self.summaries)
            + self.messages
            + sum(tool.tokens for tool in self.tools)
        )


def _piece(text: str, tokens: int) -> InstructionsSize | None:
    return InstructionsSize(text=text, tokens=tokens) if text else None


def _beside_instructions(gathered: ModelInput) -> str:
    """The system prompt without what people have written, which are pieces of their own."""
    text = gathered.system
    for written in (gathered.instructions, gathered.project):
        if written:
            before, _, after = text.partition(written)
            text = "\n\n".join(part for part in (before.strip("\n"), after.strip("\n")) if part)
    return text


def _declared(gathered: ModelInput) -> list[Tool]:
    """The tools as a step without hooks declares them."""
    return [*gathered.deferral.declared, *gathered.deferral.finders]


def _count_messages(messages: tuple[ModelMessage, ...], counter: TokenCounter) -> int:
    return estimate_request(ModelRequest(system="", messages=messages), counter)


def _count_tool(tool: ToolSpec, counter: TokenCounter) -> int:
    return estimate_request(ModelRequest(system="", messages=(), tools=(tool,)), counter)


@dataclass(frozen=True, slots=True)
class _Places:
    depths: dict[str, int]  # of the ends of summaries, and of the first message
    queued_count: int


def _places(session_id: str, history: list[Message]) -> _Places:
    wanted = [message_id for message in history for message_id in covered_range(message) or ()]
    if history and not covered_range(history[0]):
        wanted.append(str(history[0].get("id", "")))
    found = selectors.find_messages(session_id, wanted) if wanted else {}
    depths = {message_id: message.depth for message_id, message in found.items()}
    return _Places(depths, len(selectors.queued(session_id)))


def _summaries(history: list[Message], sizes: _Sizes, found: _Places) -> list[SummarySize]:
    covering = [(message, ends) for message in history if (ends := covered_range(message))]
    return [
        SummarySize(
            first_id=first,
            last_id=last,
            text=_text_of(message),
            tokens=tokens,
            message_count=found.depths.get(last, 0) - found.depths.get(first, 0) + 1,
        )
        for (message, (first, last)), tokens in zip(covering, sizes.summaries, strict=True)
    ]


def _tail(history: list[Message], sizes: _Sizes, found: _Places) -> Tail:
    sent = [message for message in history if not covered_range(message)]
    first_id = str(sent[0].get("id", "")) if sent else None
    above = (covered_range(history[0]) or (str(history[0].get("id", "")),))[0] if history else ""
    return Tail(
        tokens=sizes.messages,
        message_count=len(sent),
        first_id=first_id,
        first_text=_text_of(sent[0])[:PREVIEW_CHARS] if sent else "",
        left_out=found.depths.get(above, 0),
        queued_count=found.queued_count,
    )


def _text_of(message: Message) -> str:
    stored: Sequence[JSONValue] = message.get("parts") or []
    parts = [part for part in stored if isinstance(part, dict)]
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    return "\n\n".join(texts) or ", ".join(str(part["filename"]) for part in parts if part.get("filename"))


def _name_of(policy: ContextPolicy) -> str:
    return next((name for name, preset in PRESETS.items() if preset == policy), "")
