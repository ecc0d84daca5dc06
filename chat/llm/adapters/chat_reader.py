"""Read one streamed Chat Completions answer: decoded chunks in, model events out. Does no I/O.

The tolerance for what compatible servers really send begins here: reasoning under several names or in tags, calls
without ids, with repeated ids, without an index, with whole arguments at once, content as a list of parts, errors
inside the stream, an end in the middle. What counts is what comes before the end mark or the close; the last finish
reason wins.
"""

import logging
from collections.abc import Iterable
from typing import Final

import msgspec

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    TextEnd,
    TextWasReasoning,
    Usage,
)
from chat.core.model.provider_data import ProviderData
from chat.errors import ModelError, ModelRejected, Overloaded
from chat.llm.adapters.chat_calls import CallReader
from chat.llm.adapters.chat_returns import ReasoningDetails, detailed, thought_mark
from chat.llm.adapters.chat_wire import (
    END,
    HalfCharacters,
    PlainDelta,
    WireChoice,
    WireChunk,
    WireDelta,
    decode,
    decode_odd,
    decode_plain,
    odd_error,
)
from chat.llm.adapters.provider_errors import from_error_object
from chat.llm.adapters.redaction import redact_text
from chat.llm.adapters.spoken_calls import Tools
from chat.llm.adapters.thought_tags import TagKind, ThoughtTags, without_end_mark
from chat.llm.adapters.usage import completed, read_usage
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

logger = logging.getLogger("chat.llm")

_FINISH: Final = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "error_limit": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "content-filter": FinishReason.CONTENT_FILTER,
    "content_filtered": FinishReason.CONTENT_FILTER,
    "guardrail_intervened": FinishReason.CONTENT_FILTER,
    "error_toxic": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.CONTENT_FILTER,
    "sensitive": FinishReason.CONTENT_FILTER,
    "recitation": FinishReason.CONTENT_FILTER,
    "blocklist": FinishReason.CONTENT_FILTER,
    "prohibited_content": FinishReason.CONTENT_FILTER,
    "spii": FinishReason.CONTENT_FILTER,
    "language": FinishReason.CONTENT_FILTER,
    "model_armor": FinishReason.CONTENT_FILTER,
    "image_safety": FinishReason.CONTENT_FILTER,
    "image_prohibited_content": FinishReason.CONTENT_FILTER,
    "error": FinishReason.ERROR,
    "network_error": FinishReason.ERROR,
    "insufficient_system_resource": FinishReason.ERROR,
    "abort": FinishReason.ERROR,
    "aborted": FinishReason.ERROR,
    "cancelled": FinishReason.ERROR,
    "timeout": FinishReason.ERROR,
    "malformed_function_call": FinishReason.ERROR,
    "malformed_response": FinishReason.ERROR,
    "malformed_model_output": FinishReason.ERROR,
    "malformed_tool_use": FinishReason.ERROR,
    "unexpected_tool_call": FinishReason.ERROR,
    "too_many_tool_calls": FinishReason.ERROR,
    "missing_thought_signature": FinishReason.ERROR,
}
_FAILED: Final = (FinishReason.ERROR, None)
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text")
_LEAST_REPEATED: Final = 16  # characters of a word that can only be all of the answer once more
_PAUSE: Final = 8
_TEXT: Final = "text"
_CALLS: Final = "calls"
_REASONING: Final = "reasoning"
_CONTENT: Final = "content"


class ChatReader:
    """The state of one answer. `finish_seen`: the answer may be over; `is_done`: nothing more can come."""

    def __init__(
        self, model: str, secrets: tuple[str, ...], used_call_ids: set[str], tools: Tools | None = None
    ) -> None:
        """`model`: `provider/model`. `tools`: those that an answer may call in its text, see `spoken_calls`."""
        self._model = model
        self._provider = model.partition("/")[0]
        self._secrets = secrets
        self._calls = CallReader(model, used_call_ids)
        self._tools = tools
        self._finish: str | None = None
        self._usage = Usage()
        self._response_id = ""
        self._model_name = ""
        self._reported: dict[str, str] = {}
        self._tags = ThoughtTags()
        self._said = self._tags.said
        self._plain = ""  # what a plain chunk goes on with; empty while each has to be looked at whole
        self._late: str | None = None  # text after a finish, as long as it repeats the answer's
        self._reasoning_field = ""  # in which the open reasoning comes
        self._details = ReasoningDetails()
        self._halves: HalfCharacters | None = None
        self._pause = 0  # so many chunks are not taken for plain ones, after one that was none
        self.is_done = False

    @property
    def finish_seen(self) -> bool:
        """Whether the provider reported the answer as complete."""
        return self._finish is not None or self.is_done

    @property
    def has_words(self) -> bool:
        """Whether there is anything in the answer for a person, or a call."""
        return bool(self._calls) or any(piece.strip() for piece in self._tags.said)

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Process one event. Errors: the error contained in the stream; `Overloaded` for unreadable data.

        After a finish neither is one: the answer is there, and ends with it.
        """
        plain = self._plain
        if plain:
            try:
                delta = decode_plain(data).choices[0].delta
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass
            else:
                text = delta.content
                if text and plain is _TEXT and "<" not in text and not delta.reasoning_content and not delta.reasoning:
                    if delta.tool_calls is None:
                        self._said.append(text)
                        return [TextDelta(text=text)]
                elif not text and (event := _plain_event(delta, plain, self._calls)) is not None:
                    return [event]
            self._plain, self._pause = "", _PAUSE + 1
        return self._read_whole(data)

    def _read_whole(self, data: bytes) -> list[ModelEvent]:
        """An event of any kind."""
        if self.is_done:
            return []
        if self._pause:
            self._pause -= 1
        try:
            chunk = decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._read_odd(data, error)
        return self._read_chunk(chunk, chunk.choices[0]) if chunk.choices else self._read_rest(chunk, data)

    def _read_odd(self, data: bytes, error: Exception) -> list[ModelEvent]:
        """The end mark, a chunk with half a character in it, or garbage."""
        try:
            chunks = decode_odd(data)
        except ValueError:
            return self._failed(_garbage(self._provider, data, self._secrets), error)
        events: list[ModelEvent] = []
        for chunk in chunks:
            if chunk is END:
                self.is_done = True
                break
            self._halves = self._calls.halves = self._halves or HalfCharacters()
            events += self._read_chunk(chunk, chunk.choices[0]) if chunk.choices else self._read_rest(chunk, data)
        return events

    def _read_chunk(self, chunk: WireChunk, choice: WireChoice) -> list[ModelEvent]:
        if chunk.error:
            choice.error = choice.error or chunk.error
        if not self._response_id:
            self._response_id, self._model_name, self._reported = _head(chunk)
        self._count(chunk.usage or choice.usage or (chunk.x_groq and _of_groq(chunk).get("usage")))
        if choice.index:  # another alternative; ours may be behind it
            choice = next((other for other in chunk.choices or () if not other.index), choice)
        events = [] if choice.index and not choice.error else self._read_choice(choice)
        if self._pause or self.is_done:
            self._plain = ""
        elif (
            self._tags.passes and self._late is None and self._halves is None
        ):  # nothing that a piece of text could end
            self._plain = self._reasoning_field or _TEXT
        else:
            self._plain = _CALLS if self._calls else ""
        return events

    def end(self) -> list[ModelEvent]:
        """Close the calls and report the finish reason."""
        events = self._end_text()
        if self._tools and not self._calls and self._reason() in (FinishReason.STOP, FinishReason.OTHER):
            events += self._calls.speak("".join(self._tags.said), self._tools)
        events += self._calls.end(self._details)
        events.append(
            Finish(
                reason=self._reason(),
                usage=self._usage,
                response_id=self._response_id,
                model_name=self._model_name,
                provider_metadata={self._provider: self._reported} if self._reported else {},
            )
        )
        return events

    def _read_rest(self, chunk: WireChunk, data: bytes) -> list[ModelEvent]:
        """An event without an answer: an error, usage, or nothing."""
        groq = _of_groq(chunk)
        usage = chunk.usage or groq.get("usage")
        error = chunk.error or groq.get("error") or (None if usage else odd_error(data))
        if error:
            return self._failed(from_error_object(self._provider, error, secrets=self._secrets))
        self._count(usage)
        return []

    def _count(self, usage: JSONValue) -> None:
        """Take the counts of the last chunk that has any: where all have, they grow."""
        if usage:
            self._usage = completed(read_usage(usage), self._usage)

    def _read_choice(self, choice: WireChoice) -> list[ModelEvent]:
        delta = choice.delta or choice.message
        if delta is not None and (choice.finish_reason or choice.delta is None):
            _leave_new(delta, self._tags.said, is_whole=choice.delta is None)
        events = self._read_delta(delta) if delta is not None else []
        reason = choice.finish_reason
        if reason and isinstance(reason, str) and not (choice.error and _FINISH.get(reason.lower()) in _FAILED):
            self._finish = reason
            self._late = "" if self._tags.said else None
        if choice.error:
            return events + self._failed(from_error_object(self._provider, choice.error, secrets=self._secrets))
        return events

    def _failed(self, error: Exception, cause: Exception | None = None) -> list[ModelEvent]:
        """Errors: the error; none where the answer has been given, which ends here."""
        if self._finish is None or not self.has_words:
            raise error from cause
        self.is_done = True
        return []

    def _reason(self) -> FinishReason:
        reason = _FINISH.get((self._finish or "").lower(), FinishReason.OTHER)
        if self._calls and reason in (FinishReason.STOP, FinishReason.OTHER):
            return FinishReason.TOOL_CALLS
        if reason is FinishReason.TOOL_CALLS and not self._calls:
            return FinishReason.STOP
        return reason

    # Text and reasoning

    def _read_delta(self, delta: WireDelta) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if delta.reasoning_details or delta.thinking_blocks or delta.reasoning_opaque or delta.extra_content:
            self._details.keep(delta)
        if delta.reasoning_content or delta.reasoning or delta.reasoning_text:
            for name in _REASONING_FIELDS:
                text: JSONValue = getattr(delta, name)
                if isinstance(text, str) and text:
                    events += self._reason_in(text, name)
                    break
        elif delta.reasoning_details and (text := detailed(delta.reasoning_details)):
            events += self._reason_in(text, _CONTENT)
        if delta.content:
            events += self._read_content(delta)
        if isinstance(delta.refusal, str) and delta.refusal:
            self._tags.said.append(delta.refusal)
            events.append(TextDelta(text=delta.refusal, refusal=True))
        if calls := delta.tool_calls or (delta.function_call and {"index": 0, "function": delta.function_call}):
            events += self._read_calls(calls if isinstance(calls, list) else [calls])
        return events

    def _read_calls(self, pieces: list[JSONValue]) -> list[ModelEvent]:
        events = self._end_text() if not self._calls else []
        for piece in pieces:
            if isinstance(piece, dict):
                events.extend(self._calls.read(piece))
        return events

    def _read_content(self, delta: WireDelta) -> list[ModelEvent]:
        content = delta.content
        if not isinstance(content, str):
            events: list[ModelEvent] = []
            for kind, text in _parts(content):
                events += self._reason_in(text, _CONTENT) if kind is TagKind.THOUGHT else self._read_text(text)
            return events
        is_thought = delta.extra_content is not None and thought_mark(delta.extra_content)
        if is_thought and not self._tags.takes(content):
            return self._reason_in(content, _CONTENT)
        return self._read_text(content)

    def _reason_in(self, text: str, name: str) -> list[ModelEvent]:
        """Reasoning that came in a field of its own."""
        if self._halves is not None:
            text = self._halves.join(_REASONING, text)
        events = [] if self._tags.passes else [item for kind in self._tags.stop() for item in _of_tags(*kind)]
        self._reasoning_field = name
        events.append(ReasoningDelta(text=text))
        return events

    def _read_text(self, text: str) -> list[ModelEvent]:
        if self._halves is not None:
            text = self._halves.join(_TEXT, text)
        if self._late is not None:
            self._late += text
            if "".join(self._tags.said).startswith(self._late):
                return []  # what a server says again after the end, as far as it goes
            text, self._late = self._late, None
        events = []
        if self._reasoning_field:
            events, text = self._end_reasoning(), without_end_mark(text)
        tags = self._tags
        if tags.passes and "<" not in text:
            tags.said.append(text)
            events.append(TextDelta(text=text))
            return events
        for kind, piece in tags.feed(text):
            events += _of_tags(kind, piece)
        return events

    def _end_reasoning(self) -> list[ModelEvent]:
        """The end of reasoning that came in a field, with what has to go back of it."""
        fields: JSONObject = {}
        if self._details.has_lists:
            fields["message"] = self._details.take()
        elif self._reasoning_field not in ("", _CONTENT):
            fields["text_in"] = self._reasoning_field
        self._reasoning_field = ""
        rest = self._halves.rest(_REASONING) if self._halves is not None else ""
        events: list[ModelEvent] = [ReasoningDelta(text=rest)] if rest else []
        data = ProviderData(model=self._model, fields=fields)
        return [*events, ReasoningDelta(text="", provider_metadata=data.metadata())] if fields else events

    def _end_text(self) -> list[ModelEvent]:
        """Give the text that was held back, and the data that has to go back with it."""
        events = self._end_reasoning() if self._reasoning_field else []
        late, self._late = self._late or "", None
        rest = self._halves.rest(_TEXT) if self._halves is not None else ""
        if late != "".join(self._tags.said) and late + rest:
            events += self._read_text(late + rest)
        for kind, text in self._tags.end():
            events += _of_tags(kind, text)
        if self._details and self._tags.said:
            data = ProviderData(model=self._model, fields={"message": self._details.take()})
            events.append(TextEnd(provider_metadata=data.metadata()))
        return events


def _plain_event(delta: PlainDelta, plain: str, open_calls: CallReader) -> ModelEvent | None:
    """The event of more of the reasoning or of a call; `None` where more has to be looked at."""
    reasoning, other, calls = delta.reasoning_content, delta.reasoning, delta.tool_calls
    if calls:
        return None if reasoning or other or len(calls) > 1 else open_calls.more(calls[0])
    if plain == "reasoning":
        reasoning, other = other, reasoning
    elif plain != "reasoning_content":
        return None
    return ReasoningDelta(text=reasoning) if reasoning and not other else None


def _leave_new(delta: WireDelta, pieces: list[str], *, is_whole: bool) -> None:
    """Leave what is new in a message that is whole, or may be: the last piece of some servers says all again."""
    said = "".join(pieces)
    if not said or not isinstance(delta.content, str):
        return
    if is_whole and delta.content.startswith(said):
        delta.content = delta.content[len(said) :]
    elif (is_whole and delta.content.rstrip().endswith(said.rstrip())) or (
        delta.content == said and len(pieces) > 1 and _is_no_refrain(said)
    ):
        delta.content = None
    else:
        return
    delta.reasoning_content = delta.reasoning = delta.reasoning_text = None


def _is_no_refrain(said: str) -> bool:
    """Whether a text can only be said twice by mistake: words without a space at either end, or a long one."""
    return len(said) >= _LEAST_REPEATED or (said == said.strip() and len(said.split()) > 1)


def _garbage(provider: str, data: bytes, secrets: tuple[str, ...]) -> ModelError:
    logger.warning(
        "model provider sent what is not a chunk",
        extra={
            "action": "model_garbage",
            "provider": provider,
            "provider_body": redact_text(data[:500].decode("utf-8", "replace"), secrets=secrets),
        },
    )
    if data.startswith(b"<"):
        page = "answered with a web page. Check the base URL, and whether something in between wants a sign-in."
        return ModelRejected(f"{provider} {page}", provider=provider)
    return Overloaded(f"{provider} sent something that is not a piece of an answer.", provider=provider)


def _head(chunk: WireChunk) -> tuple[str, str, dict[str, str]]:
    """The answer's id, the model's name, and what else is reported."""
    reported = {"serviceTier": chunk.service_tier, "systemFingerprint": chunk.system_fingerprint}
    texts = {name: value for name, value in reported.items() if isinstance(value, str)}
    names = (value if isinstance(value, str) else "" for value in (chunk.id, chunk.model))
    return next(names), next(names), texts


def _of_tags(kind: TagKind, text: str) -> Iterable[ModelEvent]:
    match kind:
        case TagKind.TEXT:
            return (TextDelta(text=text),)
        case TagKind.THOUGHT:
            return (ReasoningDelta(text=text),)
        case TagKind.WAS_THOUGHT:
            return (TextWasReasoning(),)


def _of_groq(chunk: WireChunk) -> JSONObject:
    """The field of its own in which one provider puts usage and errors."""
    return chunk.x_groq if isinstance(chunk.x_groq, dict) else {}


def _parts(content: JSONValue) -> Iterable[tuple[TagKind, str]]:
    """Content as a list of parts, as some servers send it around their reasoning."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str | int | float):
            yield TagKind.TEXT, str(part)
        elif isinstance(part, dict):
            thoughts = part.get("thinking")
            for text in [thoughts] if isinstance(thoughts, str) else map(_part_text, thoughts or []):
                if text:
                    yield TagKind.THOUGHT, text
            if text := _part_text(part):
                yield TagKind.TEXT, text


def _part_text(part: JSONValue) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""
