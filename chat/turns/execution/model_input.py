"""The input of a model call before the turn's hooks: model, history, system prompt, tools, policy.

A turn begins with it (`assembly.py`), and people are shown it (`preview.py`): what they see is what is sent.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Protocol

from chat.agent.think import Think
from chat.core.context.compaction_policy import CompactionPolicy
from chat.core.context.context_policy import ContextPolicy, context_policy
from chat.core.context.person_instructions import PersonInstructions
from chat.core.context.project_instructions import NO_PROJECT, ProjectContext
from chat.core.context.result_files import is_seen
from chat.core.context.sent_note import without_instants
from chat.core.context.session_setup import SessionSetup
from chat.core.loop.hooks import ModelChoice
from chat.core.model.chosen_model import stored_choice
from chat.core.model.fallbacks import models_of
from chat.core.model.language_model import FileContent, LanguageModel, ModelMessage, ToolSpec
from chat.errors import TurnConfigInvalid, WorkspaceMissing
from chat.files.views import files_for_models
from chat.instances.model_choice import effect_of, fit
from chat.llm.registry import guarded, inquire_of, resolve_model
from chat.llm.wrappers import Preset
from chat.people.project_files import files_of_project
from chat.turns.background.sampling import sampler_for
from chat.turns.conf import turn_settings
from chat.turns.execution.begin import read_history
from chat.turns.execution.code.code_tool import code_tool
from chat.turns.execution.deferring import deferral_of
from chat.turns.execution.naming import author_in, with_names
from chat.turns.execution.prompting import Prompt
from chat.turns.guarding.handed_down import denied_above
from chat.turns.guarding.turn_guard import TurnGuard
from chat.turns.state.merging import merge_history
from chat.turns.tools.providers import ToolRequest, gather_tools
from chat.user_code.call_hook import call_hook, is_overridden, user_code_boundary
from chat.user_code.extensions import extensions_of
from chat.user_code.session_setup import policy_of
from chat.user_code.skills import skills_of
from chat.user_code.workspace import INSTRUCTIONS_END, files_in_prompt, workspace_of
from sessions_app.context.kept_head import prompt_head
from sessions_app.context.session_context import SessionContext
from sessions_app.context.snapshot import ContextState
from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.steered import steered_in
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, dump, fingerprint, load
from tools_app.code_tool.tool import NAME as CODE_TOOL
from tools_app.core.deferral import Deferral
from tools_app.core.files.workspace import Workspace
from tools_app.core.schema import declared_schema
from tools_app.core.source import Source
from tools_app.core.tool import Tool
from tools_app.core.tool_calls import details_in
from tools_app.core.toolset import Toolset
from tools_app.errors import ToolDeclarationInvalid
from tools_app.session_tools import skill_reader

logger = logging.getLogger(__name__)

NOTHING_SAID: Final[Message] = {"id": "", "role": "assistant", "parts": []}


class ConversationPoint(Protocol):
    """The point of a conversation at which a call is made. `history`: the path to the leaf, if already read."""

    @property
    def session_id(self) -> str:
        """The session."""

    @property
    def leaf_id(self) -> str | None:
        """The message that is answered."""

    @property
    def history(self) -> list[Message] | None:
        """The path to it, root first."""

    @property
    def client_tools(self) -> tuple[JSONObject, ...]:
        """Tools of the client that asked last."""

    @property
    def caller_tools(self) -> tuple[JSONObject, ...]:
        """Tools of the program that asked for the turn."""

    @property
    def model_choice(self) -> JSONObject | None:
        """The model that people chose for the conversation."""

    @property
    def has_mcp_servers(self) -> bool:
        """Whether there may be MCP servers for the conversation."""

    @property
    def has_extensions(self) -> bool:
        """Whether any extension is stored that may concern the conversation."""

    @property
    def instructions(self) -> PersonInstructions:
        """The instructions of the person who asks."""

    @property
    def project(self) -> ProjectContext:
        """The project that the conversation is in."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInput:
    """The parts of a model call."""

    choice: ModelChoice
    model: LanguageModel
    history: list[Message]
    forms: KeptForms = NO_FORMS
    files: dict[str, FileContent]
    policy: ContextPolicy
    compaction: CompactionPolicy
    context: SessionContext
    state: ContextState
    system: str
    instructions: str  # of the person who asks; a part of the system prompt
    project: str  # the part that the conversation's project adds
    context_note: str  # changed blocks, for the end of the conversation
    offered: Toolset
    deferral: Deferral  # the same, as they are declared
    code: Tool | None = None  # runs code over the offered tools, and is one of them unless it was taken away
    workspace: Workspace | None = None  # that the agent's tools work in

    @property
    def setup(self) -> SessionSetup:
        """The result of `configure_session`."""
        setup = self.context.setup
        assert isinstance(setup, SessionSetup), "contexts of agents are opened with one"
        return setup

    def prompt(
        self,
        history: list[Message] | None = None,
        *,
        model: LanguageModel | None = None,
        override: Sequence[ModelMessage] | None = None,
        is_noted: bool = True,
    ) -> Prompt:
        """The messages that are sent, of this history or another; an override stands in its place.

        Without `is_noted` changed blocks are left out: for hooks, whose messages get the note themselves.
        """
        return Prompt(
            self.history if history is None else history,
            model or self.model,
            files=self.files,
            forms=self.forms,
            policy=self.policy,
            reads=skill_reader(self.context, self.state),
            override=override,
            context_note=self.context_note if is_noted else "",
        )


async def build_model_input(
    agent: Think,
    place: ConversationPoint,
    *,
    keeps_prompt: bool = True,
    answer: Message = NOTHING_SAID,
    guard: TurnGuard | None = None,
) -> ModelInput:
    """Ask the agent for the parts of a model call. Calls no model.

    `answer`: what there is of it already. `guard`: of a turn; it learns what the model is going to read of others.
    Without `keeps_prompt` nothing is written: a prompt that a turn would keep is only shown. Errors: `ModelError`
    without a model, `AgentCodeFailed` when the agent's own code raises, `TurnConfigInvalid` for a policy that is none.
    """
    choice = await _choose(agent, place.model_choice)
    model = guarded_model(agent, choice)
    await inquire_of(models_of(model))
    history = await history_at(agent, place)
    await extensions_of(agent, has_stored=place.has_extensions)
    context = await agent.instance.open_context(place.session_id)
    state = await context.state()
    with user_code_boundary("configure_session"):  # the blocks' providers are the agent's own
        head = await prompt_head(context, state, keeps=keeps_prompt)
    workspace = await _workspace(agent)
    instructions, project = _by_people(agent, place)
    system = _joined(head.system, instructions, project.text) + await _tree(agent, workspace, guard)
    request = ToolRequest(
        agent=agent,
        context=context,
        state=state,
        client_tools=place.client_tools,
        caller_tools=place.caller_tools,
        workspace=workspace if agent.workspace_tools else None,
        project_files=files_of_project(project.id, agent.key.owner_id) if project.has_files else None,
        skills=await skills_of(agent),
        has_mcp_servers=place.has_mcp_servers,
        sampler=sampler_for(agent, place.session_id, choice),
        guard=guard,
    )
    offered, code = await _offered(request)
    if guard is not None:
        await guard.scan([*history, answer], offered, asker_id=_asker_of(agent))
    return ModelInput(
        choice=choice,
        model=model,
        history=history,
        files=await files_in([*history, answer], agent.key.owner_id),
        policy=context_policy(agent.context_policy),
        compaction=policy_of(agent),
        context=context,
        state=state,
        system=system + request.skills.catalogue(),
        instructions=instructions,
        project=project.text,
        context_note=head.note,
        offered=offered,
        deferral=deferral_of(agent, offered),
        code=code,
        workspace=request.workspace,
    )


def _by_people(agent: Think, place: ConversationPoint) -> tuple[str, ProjectContext]:
    """The instructions of the person who asks and the project, as far as the agent's class reads them."""
    instructions = place.instructions.text_for(agent.key.agent) if agent.reads_instructions else ""
    return instructions, place.project if agent.reads_projects else NO_PROJECT


def _joined(*texts: str) -> str:
    """The prompt of the agent, of a person, of a project: each changes more often than the one before it."""
    return "\n\n".join(text for text in texts if text)


async def _tree(agent: Think, workspace: Workspace | None, guard: TurnGuard | None) -> str:
    """The files as the prompt shows them. Names of strangers count once, and again when there are others.

    So do their instructions, and again when these change.
    """
    tree, names = await files_in_prompt(agent, workspace)
    if guard is not None and names:
        instructions = tree.rpartition(INSTRUCTIONS_END)[0]
        listed = "\n".join([*sorted(each.source for each in names), *([instructions] if instructions else [])])
        await guard.see(names, name=f"tree {fingerprint(listed)}")
    return tree


async def _offered(request: ToolRequest) -> tuple[Toolset, Tool | None]:
    """All tools of the turn, and the one that runs code over the others, where there is one."""
    agent, sources = request.agent, await gather_tools(request)
    has_own = CODE_TOOL in _enabled(agent, sources.of_server())
    code = None if has_own else code_tool(agent, _enabled(agent, sources.merged()), request.workspace)
    if code is not None:
        sources.add(Source.WORKSPACE, [code])
    return _enabled(agent, sources.merged()), code


async def _workspace(agent: Think) -> Workspace | None:
    """The workspace of an agent that does something with it. It is asked for once an attempt."""
    if not (agent.workspace_tools or agent.workspace_in_prompt or agent.instruction_files):
        return None
    try:
        return await workspace_of(agent)
    except WorkspaceMissing:
        return None


def _enabled(agent: Think, tools: Toolset) -> Toolset:
    """The tools that the class lets its agent have, and those above do not deny."""
    try:
        return tools.only(agent.enabled_tools).without(denied_above(agent.key))
    except ToolDeclarationInvalid as error:
        raise TurnConfigInvalid(f"enabled_tools of {type(agent).__name__}: {error.message}") from error


async def _choose(agent: Think, stored: JSONObject | None) -> ModelChoice:
    """The conversation's choice where it counts, else the agent's own model. The log has what does not count.

    Where the agent has a list, its other models stand behind the chosen one.
    """
    effect = effect_of(type(agent), stored_choice(stored))
    if effect.choice.model is None:
        choice: ModelChoice = await call_hook(agent, "get_model")
    else:
        choice = await _before_others(agent, effect.choice.model)
    notice = effect.notice
    if effect.choice.has_parameters:
        model = resolve_model(choice)
        notice = fit(effect, model.name).notice or notice
        presets = [Preset(one, fit(effect, one.name).choice.settings) for one in models_of(model)]
        choice = presets[0] if len(presets) == 1 else presets
    if notice:
        extra = {"action": "model_choice_not_in_effect", "agent": agent.key.agent, "notice": notice}
        logger.warning("a chosen model or parameter does not count", extra=extra)
    return choice


async def _before_others(agent: Think, chosen: str) -> ModelChoice:
    """A model that people chose, before those of the agent's list; alone where the agent has no list."""
    try:
        own = models_of(resolve_model(await call_hook(agent, "get_model")))
    except ThinkError:  # the choice stands for itself
        return chosen
    return chosen if len(own) == 1 else [chosen, *own]


def tool_specs(toolset: Iterable[Tool]) -> tuple[ToolSpec, ...]:
    """The tools as they are declared to the model."""
    return tuple(
        ToolSpec(name=each.name, description=each.description, input_schema=_declared(each)) for each in toolset
    )


def _declared(tool: Tool) -> JSONObject:
    """The schema of a tool's input, shorter where it is ours: what a stranger declares stays as it is."""
    return tool.input_schema if tool.arguments is None else declared_schema(tool.input_schema)


def guarded_model(agent: Think, choice: ModelChoice, stall_timeout_seconds: float | None = None) -> LanguageModel:
    """Find a model, watched for silence. Errors: `ModelError`."""
    seconds = agent.stall_timeout_seconds if stall_timeout_seconds is None else stall_timeout_seconds
    return guarded(resolve_model(choice), gap_seconds=seconds)


async def history_at(agent: Think, place: ConversationPoint) -> list[Message]:
    """The path to a message as the model gets it, or the agent's replacement."""
    if place.leaf_id is None:
        return []
    history = place.history
    if history is None:
        history = await db(read_history, place.session_id, place.leaf_id)
    if any(author_in(message) for message in history):
        history = await db(with_names, history, agent.key.owner_id)
    history = await _merged(place.session_id, history if agent.tells_time else without_instants(history))
    if is_overridden(agent, "assemble_context"):
        history = load(dump(history))  # turns share messages, and a hook may change what it gets
        chosen: list[Message] | None = await call_hook(agent, "assemble_context", history)
        return history if chosen is None else list(chosen)
    return history


async def _merged(session_id: str, history: list[Message]) -> list[Message]:
    roles = [message["role"] for message in history]
    has_neighbours = any(pair == ("user", "user") for pair in pairwise(roles))
    return await db(merge_history, session_id, history) if has_neighbours else history


def _asker_of(agent: Think) -> Any:
    """Key of the person who asks; none for a sub-agent, whose messages an agent has written."""
    key, asked_by = agent.key, agent.instance.asked_by
    return None if key.parent is not None else key.owner_id if asked_by is None else asked_by


async def files_in(messages: list[Message], owner_id: int | None) -> dict[str, FileContent]:
    """Files of the conversation by their URL, the newest last. No query where there are none."""
    urls = list(dict.fromkeys(url for message in reversed(messages) for url in reversed([*_file_urls(message)])))
    if not urls:
        return {}
    most = turn_settings.request_media_bytes
    loaded = await files_for_models(urls, owner_id, max_bytes=most)
    return {url: loaded[url] for url in reversed(urls) if url in loaded}


def _file_urls(message: Message) -> Iterator[str]:
    """URLs of what people attached, and of what tools returned and models can see."""
    for said in steered_in(message):
        yield from _file_urls(said)
    for part in message["parts"]:
        if message["role"] == "user" and part.get("type") == "file":
            yield str(part.get("url", ""))
        given = details_in(part).get("attachments") if message["role"] == "assistant" else None
        for entry in given if isinstance(given, list) and not part.get("pruned") else ():
            if isinstance(entry, dict) and is_seen(str(entry.get("mediaType"))):
                yield str(entry.get("url", ""))
