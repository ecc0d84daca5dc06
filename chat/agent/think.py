"""The class `Think`. Developers import it, and all that goes with it, from `chat.think`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from chat.agent.agent_calls import AgentCalls
from chat.agent.agent_tools import SubAgentTools
from chat.agent.approval_callables import ApprovalCallables
from chat.agent.base import Agent
from chat.agent.mcp_declarations import McpMethods
from chat.agent.methods.context import ContextMethods
from chat.agent.methods.extensions import ExtensionDeclarations
from chat.agent.methods.model_choice import ModelMethods
from chat.agent.methods.recovery import RecoveryMethods
from chat.agent.methods.schedules import ScheduleDeclarations
from chat.agent.methods.sessions import SessionMethods
from chat.agent.methods.turns import SubmissionMethods, TurnMethods
from chat.core.commands import Command
from chat.core.context.compaction_policy import CompactionPolicy
from chat.core.context.context_policy import ContextPolicy
from chat.core.context.session_setup import SessionSetup
from chat.core.loop.hooks import (
    ChatErrorContext,
    ChatOptions,
    ChatResponse,
    ChunkContext,
    MetadataContext,
    RecoveryContext,
    StepContext,
    StepRecord,
    ToolCallContext,
    ToolOutcome,
    TurnContext,
)
from chat.core.loop.step_limit import STEP_LIMIT_TEXT
from chat.core.model.chosen_model import NOTHING, ChosenModel
from chat.errors import ModelNotConfigured
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.core.guard.rules import ON, InjectionGuard
from tools_app.core.permissions.rules import Permission

USE_LOOP = object()
"""What `on_chat_message` returns to have the agentic loop answer."""

INTERRUPTED_TEXT = "The assistant was interrupted and could not recover. Please try again."
DEFAULT_SYSTEM_PROMPT = "You are a helpful assistant."


class Think(
    TurnMethods,
    SubmissionMethods,
    SessionMethods,
    ModelMethods,
    ApprovalCallables,
    McpMethods,
    ExtensionDeclarations,
    SubAgentTools,
    AgentCalls,
    ScheduleDeclarations,
    RecoveryMethods,
    Agent,
    abstract=True,
):
    """A durable chat agent. Only `get_model` must be supplied; everything else works as it is."""

    max_steps: ClassVar[int] = 10
    """How many model calls of one answer may call tools. After the last of them the model is asked once more, without
    a call. See `get_max_steps`."""

    step_limit_text: ClassVar[str] = STEP_LIMIT_TEXT
    """What people read below an answer that has reached `max_steps`; `{steps}` is their number."""

    answers_at_step_limit: ClassVar[bool] = True
    """Whether the model is asked that last time, for words about what it has found. Without it the answer ends with the
    results of its last calls."""

    asks_about_loops: ClassVar[bool] = True
    """Whether a person is asked before the model makes one call for the third time in a row, or goes round a second
    time in a circle of two to four calls, with equal arguments. Without a person to ask such a call fails."""

    enabled_tools: ClassVar[Sequence[str] | None] = None
    """Which of all its tools the agent has, by name and pattern: `("read*", "!read_secret")`. The last that matches
    decides; a first one with `!` starts from all; one may name a source (`"!mcp:*"`). What `before_turn` adds is not
    affected. `None`: all."""

    tells_time: ClassVar[bool] = True
    """Whether the model reads below each message when it was sent, in the person's time zone. About 25 tokens each."""

    reads_instructions: ClassVar[bool] = True
    """Whether the model reads what the person who asks has written in the settings: who they are, and how to answer.
    Sub-agents, which are asked by agents, never do."""

    reads_projects: ClassVar[bool] = True
    """Whether the model reads what the owner has written for the project that the conversation is in, and gets tools
    that read the project's files. In turns that the owner asks for; sub-agents never do."""

    searched_tools: ClassVar[Sequence[str]] = ("mcp:*", "extensions:*")
    """Names and patterns of the tools that the model searches where they are more than `max_declared_tools`: it gets
    `search_tools` and `call_tool` in their place. Hooks, approvals and people see a call of the tool itself."""

    max_declared_tools: ClassVar[int | None] = 20
    """How many of `searched_tools` are declared in each call of the model; `None`: all."""

    send_reasoning: ClassVar[bool] = True
    """Whether reasoning reaches clients and is stored."""

    message_concurrency: ClassVar[str | Mapping[str, JSONValue]] = "queue"
    """What a message does that arrives while a turn runs or waits. `queue`: it waits for its turn. `latest`: of those
    that wait only the newest is answered. `merge`: the same, and the model sees them as one message. `drop`: it is not
    taken. `{"strategy": "debounce", "debounceMs": 750}`: the newest is answered once nothing came for so long.
    `steer`: the answer takes it in before its next step. `interrupt`: the answer is stopped, and it is the next. A
    message may ask for `queue`, `steer` or `interrupt` itself."""

    interrupted_text: ClassVar[str] = INTERRUPTED_TEXT
    """What people read when a turn is given up after crashes. `on_chat_error` may still reword it."""

    keeps_sessions: ClassVar[bool] = False
    """Whether an instance keeps several histories, of which one is current. Most agents keep one: a conversation of its
    own for each matter is another instance."""

    max_persisted_messages: ClassVar[int | None] = None
    """Archive the oldest messages of the shown path beyond this count. Off by default."""

    context_policy: ClassVar[ContextPolicy | str] = "cache-aware"
    """What of the conversation the model is sent: `cache-aware`, `read-time`, `last-calls`, `coding`, `prune`, `whole`,
    or a `ContextPolicy` of your own. What is stored stays as it is."""

    auto_compaction: ClassVar[bool | None] = None
    """Whether a conversation that is too long for its model is summarised within the turn; `None` asks settings."""

    compaction_policy: ClassVar[CompactionPolicy | str | None] = None
    """When a conversation is too long and what of it is kept: `v1`, `v2`, `v3`, `share`, `files`, or a
    `CompactionPolicy` of your own; `None` asks settings."""

    compaction_model: ClassVar[Any] = None
    """The model that summarises, as `get_model` would name it; `None` means the agent's own."""

    stall_timeout_seconds: ClassVar[float | None] = None
    """A model that is silent for this long is treated as lost; 0 switches the watchdog off, `None` asks settings."""

    approval_seconds: ClassVar[float | None] = None
    """How long a person may take to approve a tool call; 0 is for ever, `None` asks settings."""

    approved_by: ClassVar[str] = "approver"
    """Who may answer a question about a call, where several people share the conversation: any `approver`, the
    `requester` of the turn, if that person is one, or `another` than the requester. The owner is an approver."""

    workspace_tools: ClassVar[bool] = True
    """Whether the model gets tools for the files of the workspace: read, write, edit, list, find, grep, delete,
    and bash, a shell over them without access to the machine."""

    workspace_in_prompt: ClassVar[bool | str] = False
    """Whether the system prompt ends with the tree of the workspace, as the turn begins: at most 200 entries and 8,000
    characters, without what `.gitignore` files exclude. `"top"`: with the entries of its root and their sizes, or with
    a sentence where there is none. A prompt that `before_turn` returns stands in its place."""

    instruction_files: ClassVar[Sequence[str]] = ()
    """Files of the workspace that instruct the agent, such as `("AGENTS.md", "CLAUDE.md")`: the system prompt has the
    text of the first that is there, at most 16 KiB, before the tree. It is read as a turn begins, and is the same bytes
    from turn to turn until the file changes. Instructions of strangers count for the injection guard."""

    code_tool: ClassVar[bool | Sequence[str]] = False
    """Whether the model gets a tool that runs code which calls the other tools of the turn and, with `workspace_tools`,
    `state.*` for the files. Names and patterns choose what code may call, as in `enabled_tools`; the files are `state`
    there. A person approves and hooks see its calls like the model's own; their `call_id` is that of the call with the
    code, a colon and an ordinal."""

    models: ClassVar[Sequence[str] | None] = None
    """The models that people may choose for a conversation, as `provider/model`, in this order. `None` means those of
    the site (`THINK_MODELS`); an empty tuple lets them choose none."""

    title_model: ClassVar[Any] = None
    """Model that writes the titles of conversations: a name or a model object; `""` is the agent's own, `"none"` writes
    none, `None` asks settings."""

    summary_model: ClassVar[Any] = None
    """Model that keeps a short summary of each conversation for people: as `title_model`; `"none"` writes one only when
    a person asks, `None` asks settings."""

    injection_guard: ClassVar[InjectionGuard] = ON
    """The guard against instructions in text of strangers, on by default: once a page, a file or a server's text is in
    the conversation, calls that change something or send something ask a person first. A class that needs less says
    why: `Relaxed(reason="Reads our own wiki only", trusts=[Origin.WEB])`."""

    permissions: ClassVar[Sequence[Permission]] = ()
    """Rules about calls, beside those that the site and people make: `Permission.deny("bash", "rm *")`. The last that
    matches decides; what a class denies no person allows. What they take away is taken from sub-agents as well."""

    review_model: ClassVar[Any] = None
    """A model that is asked before a person about calls that need approval: what it calls clear runs, all else asks the
    person, and so does its failure. Never asked about high risks, the injection guard, secrets or rules that ask. As
    `title_model`; `None` asks people only."""

    commands: ClassVar[Sequence[Command]] = ()
    """Slash commands that people have here beside `/undo`, `/redo`, `/compact` and `/title`:
    `Command("test", "Run !`npm test -- $ARGUMENTS` and mend what fails.")`. In every client: what is sent as `/test`
    becomes the template."""

    user_shell: ClassVar[str] = ""
    """The tool that runs what a person sends behind a `!`, such as `bash` or `run_command`: a message with a call, as
    if the model had made it, after the same rules and approvals, and no model is asked. Empty: such a message is one
    like any other."""

    mcp_server: ClassVar[bool | Sequence[str]] = False
    """Whether programs that a person has authorised may talk to the agent as an MCP server: `True` offers the tool
    `chat` and the person's conversations. Names and patterns, as in `enabled_tools`, offer tools of the class besides,
    and those of extensions and servers where a pattern names their source (`"mcp:notes_*"`): a program that calls one
    gets what a model would, after the same hooks and approvals."""

    model_choice: ChosenModel = NOTHING
    """What people chose for this conversation as its turn began; empty outside of a turn (`get_model_choice` reads it
    anywhere)."""

    @property
    def context(self) -> ContextMethods:
        """The context blocks of this conversation, to read and write: see `ContextMethods`."""
        return ContextMethods(self.instance.open_context)

    # Getters

    def get_model(self) -> Any:
        """Choose the model: `"provider/model"`, `"default"`, a model object, or a list of these.

        Of a list the first answers, and where it fails the next one goes on from what was shown. Runs once an attempt.
        A model that people chose for the conversation (`models`) goes before it: then only the models of a list count,
        after the chosen one. Errors: the default raises `ModelNotConfigured`; the turn ends with its text.
        """
        name = type(self).__name__
        raise ModelNotConfigured(
            f'{name} has no model. Override get_model() in {name} and return "default" or "provider/model", '
            f'for example "openai/gpt-5-mini".'
        )

    def get_system_prompt(self) -> Any:
        """Give the system prompt. Ignored when the session renders a context prompt of its own."""
        return DEFAULT_SYSTEM_PROMPT

    def get_tools(self) -> Any:
        """Give the tools: an iterable of `@tool` functions, or a mapping whose keys name them. Runs every turn."""
        return ()

    def get_skills(self) -> Any:
        """Give the sources of skills: `SkillDirectory`, `WorkspaceSkills`, `SkillsInCode`, or your own (`SkillSource`).

        Runs once an attempt. The system prompt lists the skills, and the model gets tools to read them and to run their
        scripts. Of two with one name that of the later source counts. A source that fails blocks nothing: it is logged.
        """
        return ()

    def get_max_steps(self) -> Any:
        """Give the step limit of this turn; the class attribute by default."""
        return self.max_steps

    def get_message_metadata(self, context: MetadataContext) -> Any:  # noqa: ARG002 - for those who override it
        """Give metadata of the answer, an object or `None`. Runs when it starts and again when it is complete.

        It is sent with the `start` and the `finish` chunk (`messageMetadata`) and stored with the message; what the end
        gives is merged over what the start gave, one level deep. The start is not repeated after a crash.
        """
        return None

    def get_workspace(self) -> Any:
        """Choose the workspace of the file tools, the page and the API: a `Workspace`.

        `None`, the default, is the instance's own; `False` means none. Runs once an attempt, and when people look at
        the files of a conversation. May be sync or async.
        """
        return None

    def configure_session(self, session: SessionSetup) -> Any:
        """Configure the session and return it, for instance `session.with_memory().with_cached_prompt()`.

        Runs once an attempt, before the system prompt is made, and where code opens `context` outside of a turn.
        `get_config()` works inside. Identity by default.
        """
        return session

    def assemble_context(self, messages: list[Message]) -> Any:  # noqa: ARG002 - the shape that overriders copy
        """Choose which stored messages the model sees (oldest first). Runs once an attempt; `None` keeps them all."""
        return None

    def on_chat_message(self, options: ChatOptions) -> Any:  # noqa: ARG002 - as above
        """Answer without the loop: return an async iterable of UI message chunks (dicts with `type`).

        Storage, stream, resume and cancel stay ours. The default returns `USE_LOOP`. `None` ends the turn without an
        answer. Runs again from the start when a crash cut it before anything was shown.
        """
        return USE_LOOP

    # Hooks. Each says when it runs; "again" means again when a crashed turn is recovered.

    def before_turn(self, context: TurnContext) -> Any:
        """Run before the first model call of an attempt; return a `TurnConfig` to override. Runs again."""

    def before_step(self, context: StepContext) -> Any:
        """Run before each model call; return a `StepConfig` to override. Recorded steps do not run it again."""

    def before_tool_call(self, context: ToolCallContext) -> Any:
        """Run before a tool; return `Allow`, `Block` or `Substitute`. Raising makes the call fail.

        Runs again for a call that a crash cut. Also runs for the calls that code makes within a call; their `call_id`
        is that of the call with the code, a colon and their place among its calls.
        """

    def after_tool_call(self, outcome: ToolOutcome) -> Any:
        """Run after a tool, blocked and substituted calls and those that code makes included."""

    def on_chunk(self, context: ChunkContext) -> Any:
        """Run for each chunk; observation only. Costs a call per token, so it is only made when overridden."""

    def on_step_finish(self, record: StepRecord) -> Any:
        """Run after each step, its calls settled. Steps that ended do not run it again."""

    def on_chat_response(self, response: ChatResponse) -> Any:
        """Run after the answer is stored and the lane is released, at least once. May start further turns."""

    def on_chat_error(self, error: Exception, context: ChatErrorContext) -> Any:
        """Reword an error for the client: return a text or an exception; `None` keeps it.

        Runs in a worker, for a request that is refused before it is a turn in the web process that got it.
        """

    def on_chat_recovery(self, context: RecoveryContext) -> Any:
        """Run before a turn that a crash cut goes on; return a `RecoveryDecision`."""
