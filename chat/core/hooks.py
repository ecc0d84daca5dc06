"""What hooks are given and what they may answer.

Hooks never mutate their argument; they return a value or `None`, which means "no opinion". All values are frozen.
The order for one turn: `before_turn`, then per step `before_step`, `on_chunk` per chunk, per tool call
`before_tool_call` and `after_tool_call`, `on_step_finish`; then the message is stored, the lane released, and
`on_chat_response` runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from chat.core.language_model import LanguageModel, ModelMessage, ModelSettings, Usage
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.tool import Tool

ModelChoice: TypeAlias = str | LanguageModel
"""`"provider/model"`, the reserved name `"default"`, or a model object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """What the turn is about to do. Runs once an attempt: again when a crashed turn is recovered."""

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
    """Overrides for one turn; `None` leaves a value as it is. `tools` are added on top, `active_tools` limits."""

    model: ModelChoice | None = None
    system: str | None = None
    messages: tuple[ModelMessage, ...] | None = None
    tools: Sequence[Tool] = ()
    active_tools: Sequence[str] | None = None
    tool_choice: str | None = None
    max_steps: int | None = None
    send_reasoning: bool | None = None
    settings: ModelSettings | None = None
    stall_timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """What `on_chat_message` may use to answer by itself. Cancelling the turn cancels the task that runs it."""

    request_id: str
    turn_id: str
    system: str
    messages: tuple[ModelMessage, ...]
    tools: Mapping[str, Tool]
    body: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """One model call that is about to be made. `step_number` counts from 0."""

    request_id: str
    step_number: int
    system: str
    messages: tuple[ModelMessage, ...]
    model: LanguageModel
    steps: tuple["StepRecord", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConfig:
    """Overrides for one step."""

    model: ModelChoice | None = None
    system: str | None = None
    messages: tuple[ModelMessage, ...] | None = None
    active_tools: Sequence[str] | None = None
    tool_choice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A finished step: what the model said, called and cost. `finish_reason` is the AI SDK's word."""

    request_id: str
    step_number: int
    text: str
    reasoning: str
    tool_calls: tuple[JSONObject, ...]
    tool_results: tuple[JSONObject, ...]
    finish_reason: str
    usage: Usage
    model_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallContext:
    """A server tool's call that is about to run."""

    request_id: str
    call_id: str
    tool_name: str
    input: JSONObject
    attempt: int = 1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """How a call ended. `input` is what the model gave; blocked and substituted calls count as success."""

    request_id: str
    call_id: str
    tool_name: str
    input: JSONObject
    success: bool
    output: JSONValue
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkContext:
    """One chunk on its way to the reader. Observation only."""

    request_id: str
    chunk: JSONObject


class ResponseStatus(StrEnum):
    """How a turn ended, for `on_chat_response`."""

    COMPLETED = "completed"
    ERROR = "error"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatResponse:
    """A finished turn. `message` is the stored assistant message, with no parts when nothing was said."""

    message: JSONObject
    request_id: str
    continuation: bool
    status: ResponseStatus
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatErrorContext:
    """Where an error came from and whether what was shown is kept."""

    request_id: str
    stage: Literal["parse", "persist", "turn", "stream", "recovery"]
    messages_persisted: bool
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryContext:
    """A turn that a crash cut, before it goes on. `kind` says whether anything of the cut step had been shown."""

    request_id: str
    turn_id: str
    kind: Literal["retry", "continue"]
    partial_text: str
    partial_parts: tuple[JSONObject, ...]
    created_at: str
    attempt: int
    body: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryDecision:
    """Whether to go on; if not, whether to keep the partial answer (settled tool results are always kept).

    A turn that goes on keeps its partial answer: people have seen it.
    """

    persist: bool = True
    continue_turn: bool = True
