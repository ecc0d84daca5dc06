"""The interface of a language model: one request in, a stream of typed events out.

Adapters live in `chat/llm/`; they know one vendor's wire and nothing of messages in the database or of tools' code.
All values are frozen. The unions are closed: match them with `assert_never`.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, Protocol, TypeAlias

from chat.errors import AnswerFailed
from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

DIRECT_CALL: Final = "direct/call"
"""The name that stands for a model where calls were given and none was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextContent:
    """Text of a user or of the assistant. `provider_metadata`: as in `ReasoningContent`."""

    text: str
    provider_metadata: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file of the user's or of a tool. Images and PDF documents are sent to models that take them.

    `data`: its bytes; none for a file that there is no room for in the request, and for one that no model takes.
    `text`: what is in it, for models that do not take it.
    """

    media_type: str
    data: bytes
    filename: str = ""
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningContent:
    """Earlier reasoning of a model, with what its provider wants back.

    `chat.core.model.provider_data` decides which model that is for; without such data reasoning is not sent.
    """

    text: str
    provider_metadata: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallContent:
    """A call the model made. `input` is always an object. `provider_metadata`: as in `ReasoningContent`."""

    call_id: str
    tool_name: str
    input: JSONObject
    provider_metadata: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """A message of the user, or the loop's unstored instruction to continue."""

    content: tuple[TextContent | FileContent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """The model's text and its tool calls."""

    content: tuple[TextContent | ReasoningContent | ToolCallContent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The only result of one call. `output` is sent as it is if text; other JSON is encoded by the adapter.

    `files`: images and PDF documents that the tool returned, for models that take them.
    """

    call_id: str
    tool_name: str
    output: JSONValue
    is_error: bool = False
    files: tuple[FileContent, ...] = ()


ModelMessage: TypeAlias = UserMessage | AssistantMessage | ToolMessage
"""One message of a request to a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as it is declared to the model. `input_schema` is a JSON Schema of type object."""

    name: str
    description: str
    input_schema: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Sampling and limits; `None` means the provider's default.

    What an adapter's API has no place for is not sent, and the step's `warnings` say so. `max_retries` counts the
    attempts after the first; `headers` travel with the request. `provider_options` holds an object per provider
    (`{"openai": {"service_tier": "flex"}}`), merged into the body of that provider's requests alone; `extra` is merged
    into any. With `response_schema` the answer is JSON of that schema; `response_by_tool` asks for it as a tool call,
    for providers that refuse schemas.
    """

    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop_sequences: tuple[str, ...] = ()
    seed: int | None = None
    reasoning_effort: str | None = None
    parallel_tool_calls: bool | None = None
    response_schema: JSONObject | None = None
    response_by_tool: bool = False
    max_retries: int | None = None
    lowers_output: bool = False  # `max_output_tokens` counts only where it is below the bound in settings of the model
    headers: dict[str, str] = field(default_factory=dict)
    provider_options: dict[str, JSONObject] = field(default_factory=dict)
    extra: JSONObject = field(default_factory=dict)

    def with_options(self, options: Mapping[str, JSONObject]) -> "ModelSettings":
        """A copy with additional provider options, merged into the existing ones."""
        merged = {name: {**self.provider_options.get(name, {}), **given} for name, given in options.items()}
        return replace(self, provider_options={**self.provider_options, **merged})

    def over(self, defaults: "ModelSettings") -> "ModelSettings":
        """A copy in which what these leave open is as in the defaults."""
        open_here = [each.name for each in fields(self) if getattr(self, each.name) == getattr(_OPEN, each.name)]
        values = {name: getattr(defaults, name) for name in open_here}
        if self.lowers_output and self.max_output_tokens is not None and defaults.max_output_tokens is not None:
            values["max_output_tokens"] = min(self.max_output_tokens, defaults.max_output_tokens)
        return replace(self, **values)


_OPEN: Final = ModelSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call.

    Shape: `messages` oldest first; each tool call has exactly one `ToolMessage` after it; the last message is never an
    `AssistantMessage`. `continues`: the history has the beginning of the answer, which may be all of it. `cut_word`: of
    an answer whose text was cut, what was shown behind the last whole word that the history has; `None` elsewhere. A
    provider that goes on within a text is sent both as its end, and `Prefilled` comes before the answer. `forms`: of
    its messages, where the conversation stays in the worker; they decide nothing.
    """

    system: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none", "required"] | str = "auto"
    settings: ModelSettings = field(default_factory=ModelSettings)
    continues: bool = False
    cut_word: str | None = None
    forms: KeptForms = field(default=NO_FORMS, compare=False, repr=False)


class FinishReason(StrEnum):
    """Why a model call ended; the values are the AI SDK's words on the wire."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content-filter"
    TOOL_CALLS = "tool-calls"
    ERROR = "error"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counted them. `input_tokens` includes cached ones, `output_tokens` includes reasoning.

    `cached_tokens` were read from the provider's cache, `cache_write_tokens` were written into it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefilled:
    """A notice that the answer goes on exactly where the cut text ended, without its white space there.

    `echoes`: the provider's answers begin with the text that they go on from.
    """

    echoes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More text for the reader. `refusal` marks text in which the model declines."""

    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEnd:
    """The text part ends here, with what its provider wants back. Parts without such data end by themselves."""

    provider_metadata: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """More reasoning. A delta with empty text may carry `provider_metadata` for the whole reasoning part."""

    text: str
    provider_metadata: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWasReasoning:
    """The text of this answer so far was reasoning: its end mark came, and its beginning had never been marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStart:
    """A call begins. The adapter generates a `call_id` if the provider sends none or a duplicate."""

    call_id: str
    tool_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """More of the call's argument text (not necessarily valid JSON on its own)."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallEnd:
    """The call is complete. `arguments` is the raw text as the model wrote it; it may be malformed."""

    call_id: str
    tool_name: str
    arguments: str
    provider_metadata: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The call ended as the provider intended. Always the last event; a stream without it broke off.

    `warnings`: parts of the request that were not sent. `provider_metadata`: further data by the provider's name.
    """

    reason: FinishReason
    usage: Usage = field(default_factory=Usage)
    response_id: str = ""
    model_name: str = ""
    warnings: tuple[str, ...] = ()
    provider_metadata: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryNotice:
    """The provider refused or failed, and is asked again after a wait. No part of an answer.

    `attempt`: the number of the attempt that comes next, from 2, of at most `attempts`. `code`: of the error.
    """

    attempt: int
    attempts: int
    delay_seconds: float
    retry_at: datetime
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """An attempt ended without an answer, and used something all the same. No part of an answer."""

    usage: Usage
    model_name: str = ""

    @classmethod
    def on(cls, error: Exception) -> "tuple[Spent, ...]":
        """The use of the attempt that failed so; nothing where that is not known."""
        finish = error.finish if isinstance(error, AnswerFailed) else None
        if not isinstance(finish, Finish) or finish.usage == Usage():
            return ()
        return (cls(usage=finish.usage, model_name=finish.model_name),)


ModelEvent: TypeAlias = (
    Prefilled
    | TextDelta
    | TextEnd
    | TextWasReasoning
    | ReasoningDelta
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | Finish
    | RetryNotice
    | Spent
)


class LanguageModel(Protocol):
    """A model that answers. Implementations are stateless and may be shared between turns."""

    @property
    def name(self) -> str:
        """`provider/model`, as shown to people."""

    @property
    def accepts_images(self) -> bool:
        """Whether images (`FileContent`) may be sent; otherwise the prompt mentions the attachment."""

    @property
    def accepts_documents(self) -> bool:
        """Whether `FileContent` PDF documents may be sent; otherwise as with images."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask the model. Closing the generator closes the provider's connection.

        Errors: the `ModelError` family of `chat.errors`, classified; provider bodies stay out of messages.
        """

    def describe(self, request: ModelRequest) -> JSONObject:
        """The exact request body that `stream` would send, without credentials: for the admin and for the journal."""
