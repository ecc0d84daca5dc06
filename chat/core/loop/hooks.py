"""Arguments and return values of hooks.

Hooks never mutate their argument; they return a value or `None`, which means "no opinion". All values are frozen.
The order for one turn: `before_turn`, then per step `before_step`, `on_chunk` per chunk, per tool call
`before_tool_call` and `after_tool_call`, `on_step_finish`; then the message is stored, the lane released, and
`on_chat_response` runs. It is the same for every way into a turn. How to use them: docs/howto/hooks.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from chat.core.model.language_model import LanguageModel, ModelMessage, ModelSettings, Usage
from chat.core.model.output_schema import Output
from chat.core.wire.chunks import Chunk
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.tool import Tool

ModelChoice: TypeAlias = str | LanguageModel | Sequence[str | LanguageModel]
"""`"provider/model"`, the reserved name `"default"`, a model object, or a list of these: where one fails, the next
answers."""

ToolChoice: TypeAlias = str | Mapping[str, str]
"""`"auto"`, `"none"`, `"required"`, a tool's name, or `{"type": "tool", "toolName": name}`."""

StopCondition: TypeAlias = Callable[[Sequence["StepRecord"]], bool]
"""Gets the finished steps, oldest first; true ends the turn before the next model call. Sync and quick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """A turn before its first model call. Built once per attempt, so again after a crash."""

    request_id: str
    turn_id: str
    system: str
    messages: tuple[ModelMessage, ...]
    tools: Mapping[str, Tool]
    model: LanguageModel
    continuation: bool
    body: JSONObject
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnConfig:
    """Overrides for one turn; `None` keeps a value. Contradictory values end the turn with a reason.

    `instructions` is another word for `system`. `tools` are added on top. `active_tools` limits what may be called:
    names and patterns such as `"read*"` and `"!bash"`, of which the last that matches decides.
    `output`: a pydantic model, a JSON Schema or an `Output`; the answer is JSON of that shape, or the turn fails.
    `settings` are sampling and limits, `provider_options` come on top of theirs. `stop_when`: conditions that end the
    turn besides `max_steps`. `timeout_seconds` bounds an attempt of the turn, `stall_timeout_seconds` the silence
    between two pieces of the answer. `shared` is handed to `before_step` and to tools that ask for their context.
    """

    model: ModelChoice | None = None
    system: str | None = None
    instructions: str | None = None
    messages: Sequence[ModelMessage] | None = None
    tools: Sequence[Tool] | Mapping[str, Tool] = ()
    active_tools: Sequence[str] | None = None
    tool_choice: ToolChoice | None = None
    max_steps: int | None = None
    stop_when: StopCondition | Sequence[StopCondition] = ()
    send_reasoning: bool | None = None
    output: Output | type[BaseModel] | JSONObject | None = None
    settings: ModelSettings | None = None
    provider_options: Mapping[str, JSONObject] | None = None
    timeout_seconds: float | None = None
    stall_timeout_seconds: float | None = None
    shared: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """The context of `on_chat_message`, for answering without the model. Cancelling the turn cancels its task."""

    request_id: str
    turn_id: str
    system: str
    messages: tuple[ModelMessage, ...]
    tools: Mapping[str, Tool]
    body: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """The work of an agent of `create_agent`, as its code knows it: its name, and that of its session or room."""

    agent_name: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInput:
    """The input of one's own `generate`. `pending`: the rows that are answered, `messages`: what was made of them."""

    pending: Sequence[Any]
    messages: Sequence[Any]
    model: Any
    tools: Sequence[Tool]
    instructions: str
    context: AgentContext


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """One model call that is about to be made.

    `step_number` counts from 0; a call that goes on after a broken connection has the number of the broken one.
    `steps` are the finished ones, those of an earlier attempt included.
    """

    request_id: str
    step_number: int
    system: str
    messages: tuple[ModelMessage, ...]
    model: LanguageModel
    steps: tuple["StepRecord", ...] = ()
    shared: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConfig:
    """Overrides for one step; `None` keeps a value. `shared` applies to all later steps too.

    `active_tools`: patterns, as in `TurnConfig`.
    """

    model: ModelChoice | None = None
    system: str | None = None
    messages: Sequence[ModelMessage] | None = None
    active_tools: Sequence[str] | None = None
    tool_choice: ToolChoice | None = None
    provider_options: Mapping[str, JSONObject] | None = None
    shared: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A finished step: the model's text, calls and cost.

    Shape: `finish_reason` is the AI SDK's word. `files` and `sources` are parts of the message. `warnings`: what of the
    settings that this provider does not support. `request` is the body that was sent, without credentials; `response`
    has the provider's `id` and `model`. `output` is the structured answer, if the turn asked for one and this step gave
    it. A step whose model call broke in the middle of a tool call has the reason "error" and neither request nor
    response.
    """

    request_id: str
    step_number: int
    text: str
    reasoning: str
    tool_calls: tuple[JSONObject, ...]
    tool_results: tuple[JSONObject, ...]
    finish_reason: str
    usage: Usage
    model_name: str
    files: tuple[Part, ...] = ()
    sources: tuple[Part, ...] = ()
    warnings: tuple[str, ...] = ()
    request: JSONObject = field(default_factory=dict)
    response: JSONObject = field(default_factory=dict)
    provider_metadata: JSONObject = field(default_factory=dict)
    output: JSONValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallContext:
    """A server tool's call that is about to run.

    `messages` are those that the model was sent when it made the call. Stopping the turn cancels the task in which the
    hook and the tool run.
    """

    request_id: str
    call_id: str
    tool_name: str
    input: JSONObject
    attempt: int = 1
    step_number: int = 0
    messages: tuple[ModelMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """Run the tool, with another input if one is given; a given input is validated again."""

    input: JSONObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Do not run the tool; the reason becomes its output."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute:
    """Do not run the tool; use this output."""

    output: JSONValue


ToolDecision: TypeAlias = Allow | Block | Substitute
"""What `before_tool_call` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationContext:
    """A turn in which an action is about to be asked about, or to run. `user_id`: for whom the agent works.

    `sub_agent`: route of the agent below whose action it is, where it is none of the agent's own. The turn is then the
    one in which the agent started it, as far as it did so by a run.
    """

    request_id: str
    turn_id: str
    user_id: int | None
    continuation: bool
    body: JSONObject = field(default_factory=dict)
    sub_agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionContext:
    """An action that a person is about to be asked about, or that is about to run.

    `permissions` are those that it declares, `missing` those of them that are not granted. `approved`: a person has
    approved the call, and it runs now. `sub_agent`: route of the agent below whose action it is; empty for one's own.
    """

    request_id: str
    turn_id: str
    call_id: str
    user_id: int | None
    action: str
    input: JSONObject
    permissions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    risk: str | None = None
    approved: bool = False
    sub_agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """The outcome of a call. `input` is the model's; blocked and substituted calls count as success.

    `output` is what the model sees; of a call that failed that is the text in `error` too.
    """

    request_id: str
    call_id: str
    tool_name: str
    input: JSONObject
    success: bool
    output: JSONValue
    duration_ms: int
    error: str | None = None
    step_number: int = 0
    messages: tuple[ModelMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkContext:
    """One chunk on its way to the reader. Observation only."""

    request_id: str
    chunk: Chunk


Moment = Literal["start", "finish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataContext:
    """An answer that begins or ends, for `get_message_metadata`.

    `finish_reason` and the counts are those of the end; at the start they are empty. Units: tokens of all steps so far.
    """

    moment: Moment
    request_id: str
    message_id: str
    continuation: bool
    finish_reason: str = ""
    model_name: str = ""
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class ResponseStatus(StrEnum):
    """A turn's outcome, for `on_chat_response`."""

    COMPLETED = "completed"
    ERROR = "error"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatResponse:
    """A finished turn. `message` is the stored assistant message, with no parts when the answer is empty.

    `output` is the structured answer of a turn that asked for one, as JSON.
    """

    message: Message
    request_id: str
    continuation: bool
    status: ResponseStatus
    error: str | None = None
    output: JSONValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatErrorContext:
    """The origin of an error, and whether the partial output is kept.

    `stage`: "parse" and "persist" for a request that was refused before it was a turn, in the web process that got it;
    "turn" before anything was streamed, "stream" after; "recovery" for a turn that a crash cut and that does not go on.
    """

    request_id: str
    stage: Literal["parse", "persist", "turn", "stream", "recovery"]
    messages_persisted: bool
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryContext:
    """An interrupted turn, before it continues. `kind`: whether partial output of the step had been shown.

    `cause`: its worker was lost, or its model fell silent (`model_stalled`); then nothing of the recovery's budget is
    spent.

    `recovery_data` is what the turn kept with `stash`; `messages` the conversation that it answers, without its own
    partial answer; `client_tools` what clients brought, as they sent it.

    Losses of its worker that follow one another are one incident: `incident_id`, and `losses` so far. `attempt` counts
    all claims of the turn, `recovery_attempt` the recoveries in a row without progress, from 1, of which there may be
    `max_recovery_attempts`.
    """

    request_id: str
    turn_id: str
    kind: Literal["retry", "continue"]
    partial_text: str
    partial_parts: tuple[Part, ...]
    created_at: str
    attempt: int
    body: JSONObject = field(default_factory=dict)
    recovery_data: JSONValue = None
    messages: tuple[Message, ...] = ()
    client_tools: tuple[JSONObject, ...] = ()
    incident_id: str = ""
    cause: Literal["worker_lost", "model_stalled"] = "worker_lost"
    losses: int = 1
    recovery_attempt: int = 1
    max_recovery_attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryExhausted:
    """A turn that is given up after crashes.

    `reason`: `recovery_attempts_exhausted`, `no_progress_timeout`, `recovery_work_exhausted`, `out_of_memory`,
    `not_resumed_in_time` or `recovery_declined` (by `should_keep_recovering`). `partial_text` is kept.
    """

    request_id: str
    turn_id: str
    reason: str
    partial_text: str
    incident_id: str = ""
    losses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSwitch:
    """The next model of a list takes over.

    `code`: the error of the one before; `resting` where that had just failed in another turn. `step_number` counts
    from 0.
    """

    request_id: str
    turn_id: str
    from_model: str
    to_model: str
    code: str
    step_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryDecision:
    """Whether to go on; if not, whether to keep the partial answer (settled tool results are always kept).

    A turn that goes on keeps its partial answer: people have seen it.
    """

    persist: bool = True
    continue_turn: bool = True
