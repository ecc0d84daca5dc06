"""Read one streamed Chat Completions answer: decoded chunks in, model events out. Does no I/O.

The tolerance for what compatible servers really send begins here: reasoning under several names or in tags, calls
without ids, with repeated ids, without an index, with whole arguments at once, content as a list of parts, errors
inside the stream, an end in the middle. What counts is what comes before the end mark or the close; the last finish
reason wins.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
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
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from chat.core.model.provider_data import ProviderData, is_odd
from chat.errors import Overloaded
from chat.llm.adapters.call_arguments import arguments_of, is_repeated, is_whole
from chat.llm.adapters.chat_returns import ReasoningDetails, call_extras, thought_mark
from chat.llm.adapters.chat_wire import (
    HalfCharacters,
    WireChoice,
    WireChunk,
    WireDelta,
    decode,
    decode_odd,
    is_end_mark,
    odd_error,
)
from chat.llm.adapters.provider_errors import from_error_object
from chat.llm.adapters.redaction import redact_text
from chat.llm.adapters.thought_tags import Kind, ThoughtTags
from chat.llm.adapters.usage import read_usage
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

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
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "content-filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.CONTENT_FILTER,
    "sensitive": FinishReason.CONTENT_FILTER,
    "recitation": FinishReason.CONTENT_FILTER,
    "blocklist": FinishReason.CONTENT_FILTER,
    "prohibited_content": FinishReason.CONTENT_FILTER,
    "spii": FinishReason.CONTENT_FILTER,
    "error": FinishReason.ERROR,
    "network_error": FinishReason.ERROR,
    "insufficient_system_resource": FinishReason.ERROR,
    "malformed_function_call": FinishReason.ERROR,
}
_TEXT: Final = "text"
_REASONING: Final = "reasoning"
_CONTENT: Final = "content"


@dataclass(slots=True)
class _Call:
    """A call as far as it has arrived. Its start is held back until its name is known."""

    call_id: str
    wire_id: str
    name: str = ""
    started: bool = False
    pieces: list[str] = field(default_factory=list)
    extras: JSONObject = field(default_factory=dict)


class ChatReader:
    """The state of one answer. `finish_seen`: the answer may be over; `is_done`: nothing more can come."""

    def __init__(self, model: str, secrets: tuple[str, ...], used_call_ids: set[str]) -> None:
        """`model`: `provider/model`."""
        self._model = model
        self._provider = model.partition("/")[0]
        self._secrets = secrets
        self._used_ids = set(used_call_ids)
        self._calls: dict[int, _Call] = {}
        self._last_index = -1
        self._finish: str | None = None
        self._usage = Usage()
        self._response_id = ""
        self._model_name = ""
        self._reported: dict[str, str] = {}
        self._tags = ThoughtTags()
        self._flows = False  # text is text: nothing is open that a piece of it could end or continue
        self._late: str | None = None  # text after a finish, as long as it repeats the answer's
        self._reasoning_field = ""  # in which the open reasoning comes
        self._details = ReasoningDetails()
        self._halves: HalfCharacters | None = None
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
        if self.is_done:
            return []
        try:
            chunk = decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._read_odd(data, error)
        choices = chunk.choices
        if not choices:
            return self._read_rest(chunk, data)
        choice = choices[0]
        delta = choice.delta
        if (
            self._flows
            and delta is not None
            and choice.finish_reason is None
            and delta.tool_calls is None
            and chunk.usage is None
            and delta.reasoning is None
            and not choice.index
            and chunk.error is None
            and delta.refusal is None
            and delta.extra_content is None
            and delta.reasoning_details is None
            and delta.thinking_blocks is None
            and delta.reasoning_opaque is None
            and delta.reasoning_text is None
            and choice.usage is None
            and choice.error is None
        ):
            # Nearly every chunk is this: a piece of what the chunk before was, and nothing else.
            text, reasoning = delta.content, delta.reasoning_content
            if not reasoning and type(text) is str and text and "<" not in text and not self._reasoning_field:
                self._tags.said.append(text)
                return [TextDelta(text=text)]
            if not text and type(reasoning) is str and reasoning and self._reasoning_field == "reasoning_content":
                return [ReasoningDelta(text=reasoning)]
        return self._read_chunk(chunk, choice)

    def _read_odd(self, data: bytes, error: Exception) -> list[ModelEvent]:
        """The end mark, a chunk with half a character in it, or garbage."""
        if is_end_mark(data):
            self.is_done = True
            return []
        chunk = decode_odd(data)
        if chunk is None:
            return self._failed(self._garbage(data), error)
        self._halves = self._halves or HalfCharacters()
        return self._read_chunk(chunk, chunk.choices[0]) if chunk.choices else self._read_rest(chunk, data)

    def _read_chunk(self, chunk: WireChunk, choice: WireChoice) -> list[ModelEvent]:
        if chunk.error:
            return self._failed(self._error(chunk.error))
        if not self._response_id:
            self._read_head(chunk)
        self._count(chunk.usage or choice.usage or _of_groq(chunk).get("usage"))
        events = [] if choice.index else self._read_choice(choice)
        self._flows = self._tags.passes and self._late is None and self._halves is None
        return events

    def end(self) -> list[ModelEvent]:
        """Close the calls and report the finish reason."""
        events = self._end_text()
        for _, call in sorted(self._calls.items()):
            if not call.started:
                events.extend(self._start(call))
            events.append(self._end_call(call))
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
            return self._failed(self._error(error))
        self._count(usage)
        return []

    def _count(self, usage: JSONValue) -> None:
        """Take the counts of the last chunk that has any: where all have, they grow."""
        if usage:
            self._usage = read_usage(usage)

    def _read_head(self, chunk: WireChunk) -> None:
        self._response_id = chunk.id if isinstance(chunk.id, str) else ""
        self._model_name = chunk.model if isinstance(chunk.model, str) else ""
        reported = {"serviceTier": chunk.service_tier, "systemFingerprint": chunk.system_fingerprint}
        self._reported = {name: value for name, value in reported.items() if isinstance(value, str)}

    def _read_choice(self, choice: WireChoice) -> list[ModelEvent]:
        delta = choice.delta or choice.message
        events = self._read_delta(delta) if delta is not None else []
        if choice.error:
            return events + self._failed(self._error(choice.error))
        if choice.finish_reason and isinstance(choice.finish_reason, str):
            self._finish = choice.finish_reason
            self._late = "" if self._tags.said else None
        return events

    def _failed(self, error: Exception, cause: Exception | None = None) -> list[ModelEvent]:
        """Errors: the error; none where the answer has been given, which ends here."""
        if self._finish is None or not self.has_words:
            raise error from cause
        self.is_done = True
        return []

    def _error(self, error: JSONValue) -> Exception:
        return from_error_object(self._provider, error, secrets=self._secrets)

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
            self._keep(delta)
        if delta.reasoning_content or delta.reasoning or delta.reasoning_text:
            events += self._read_reasoning(delta)
        if delta.content:
            events += self._read_content(delta)
        if isinstance(delta.refusal, str) and delta.refusal:
            self._tags.said.append(delta.refusal)
            events.append(TextDelta(text=delta.refusal, refusal=True))
        if delta.tool_calls:
            events += self._end_text() if not self._calls else []
            for piece in delta.tool_calls if isinstance(delta.tool_calls, list) else [delta.tool_calls]:
                if isinstance(piece, dict):
                    events.extend(self._read_call(piece))
        return events

    def _read_content(self, delta: WireDelta) -> list[ModelEvent]:
        content = delta.content
        if not isinstance(content, str):
            events: list[ModelEvent] = []
            for kind, text in _parts(content):
                events += self._reason_in(text, _CONTENT) if kind is Kind.THOUGHT else self._read_text(text)
            return events
        is_thought = delta.extra_content is not None and thought_mark(delta.extra_content)
        if is_thought and not self._tags.takes(content):
            return self._reason_in(content, _CONTENT)
        return self._read_text(content)

    def _keep(self, delta: WireDelta) -> None:
        self._details.add("reasoning_details", delta.reasoning_details)
        self._details.add("thinking_blocks", delta.thinking_blocks)
        self._details.put("reasoning_opaque", delta.reasoning_opaque)
        if not thought_mark(delta.extra_content):
            self._details.put("extra_content", delta.extra_content)

    def _read_reasoning(self, delta: WireDelta) -> list[ModelEvent]:
        for name in ("reasoning_content", "reasoning", "reasoning_text"):
            text: JSONValue = getattr(delta, name)
            if isinstance(text, str) and text:
                return self._reason_in(text, name)
        return []

    def _reason_in(self, text: str, name: str) -> list[ModelEvent]:
        """Reasoning that came in a field of its own."""
        if self._halves is not None:
            text = self._halves.join(_REASONING, text)
        events = [] if self._tags.passes else [item for kind in self._tags.stop() for item in self._of_tags(*kind)]
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
        events = self._end_reasoning() if self._reasoning_field else []
        tags = self._tags
        if tags.passes and "<" not in text:
            tags.said.append(text)
            events.append(TextDelta(text=text))
            return events
        for kind, piece in tags.feed(text):
            events += self._of_tags(kind, piece)
        return events

    def _of_tags(self, kind: Kind, text: str) -> Iterable[ModelEvent]:
        match kind:
            case Kind.TEXT:
                return (TextDelta(text=text),)
            case Kind.THOUGHT:
                return (ReasoningDelta(text=text),)
            case Kind.WAS_THOUGHT:
                return (TextWasReasoning(),)

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
        return [*events, ReasoningDelta(text="", provider_metadata=self._data(fields))] if fields else events

    def _end_text(self) -> list[ModelEvent]:
        """What of the text was held back, and what has to go back with it."""
        events = self._end_reasoning() if self._reasoning_field else []
        late, self._late = self._late or "", None
        rest = self._halves.rest(_TEXT) if self._halves is not None else ""
        if late != "".join(self._tags.said) and late + rest:
            events += self._read_text(late + rest)
        for kind, text in self._tags.end():
            events += self._of_tags(kind, text)
        if self._details and self._tags.said:
            events.append(TextEnd(provider_metadata=self._data({"message": self._details.take()})))
        return events

    def _data(self, fields: JSONObject) -> JSONObject:
        return ProviderData(model=self._model, fields=fields).metadata()

    # Calls

    def _read_call(self, piece: JSONObject) -> list[ModelEvent]:
        given = piece.get("function")
        if len(piece) == 2 and self._halves is None and given and len(given) == 1:
            call = self._calls.get(piece.get("index", -1))
            text: JSONValue = given.get("arguments")
            if call is not None and call.started and type(text) is str and text and text[0] != "{":
                # Nearly every piece is this: more of the arguments of a call that has begun.
                self._last_index = piece["index"]
                call.pieces.append(text)
                return [ToolCallDelta(call_id=call.call_id, text=text)]
        function: JSONObject = given if isinstance(given, dict) else {}
        wire_id = piece["id"] if isinstance(piece.get("id"), str) else ""
        name = function["name"] if isinstance(function.get("name"), str) else ""
        arguments = function.get("arguments")
        call = self._find_call(_index(piece.get("index")), wire_id, name, arguments)
        call.extras.update(call_extras(piece, function))
        events: list[ModelEvent] = []
        if not call.started and name:
            call.name = name
            events.extend(self._start(call))
        if arguments not in (None, ""):
            text = arguments if isinstance(arguments, str) else dump(arguments)
            if self._halves is not None:
                text = self._halves.join(call.call_id, text)
            is_shown = call.started and not is_repeated(call.pieces, text)
            call.pieces.append(text)
            if is_shown:
                events.append(ToolCallDelta(call_id=call.call_id, text=text))
        return events

    def _find_call(self, index: int | None, wire_id: str, name: str, arguments: JSONValue) -> _Call:
        """The call that a piece belongs to; a new one when it names another id, or an unknown index."""
        if index is None:
            index = max(self._last_index, 0)
            last = self._calls.get(index)
            if last is not None and _is_another(last, wire_id, name, arguments):
                index = max(self._calls) + 1
        else:
            known = self._calls.get(index)
            if known is not None and wire_id and known.wire_id and wire_id != known.wire_id:
                # Some servers give every parallel call the index 0; only the ids differ.
                index = next((at for at, call in self._calls.items() if call.wire_id == wire_id), max(self._calls) + 1)
        self._last_index = index
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _Call(call_id=self._new_call_id(wire_id), wire_id=wire_id)
        return call

    def _new_call_id(self, wire_id: str) -> str:
        call_id = wire_id if wire_id and wire_id not in self._used_ids else new_id("call")
        self._used_ids.add(call_id)
        return call_id

    def _start(self, call: _Call) -> list[ModelEvent]:
        call.started = True
        events: list[ModelEvent] = [ToolCallStart(call_id=call.call_id, tool_name=call.name)]
        if call.pieces:
            events.append(ToolCallDelta(call_id=call.call_id, text="".join(call.pieces)))
        return events

    def _end_call(self, call: _Call) -> ToolCallEnd:
        fields: JSONObject = {"call": call.extras} if call.extras else {}
        if self._details:  # of the message; any of its calls may carry it
            fields["message"] = self._details.take()
        metadata = self._data(fields) if fields or is_odd(call.call_id) else {}
        arguments = arguments_of(call.pieces)
        return ToolCallEnd(call_id=call.call_id, tool_name=call.name, arguments=arguments, provider_metadata=metadata)

    def _garbage(self, data: bytes) -> Overloaded:
        logger.warning(
            "model provider sent what is not a chunk",
            extra={
                "action": "model_garbage",
                "provider": self._provider,
                "provider_body": redact_text(data[:500].decode("utf-8", "replace"), secrets=self._secrets),
            },
        )
        return Overloaded(f"{self._provider} sent something that is not a piece of an answer.", provider=self._provider)


def _is_another(last: _Call, wire_id: str, name: str, arguments: JSONValue) -> bool:
    """Whether a piece without an index begins another call than the last one."""
    if wire_id and last.wire_id and wire_id != last.wire_id:
        return True
    if not name or not last.started:
        return False
    return not wire_id or (is_whole(last.pieces) and arguments not in (None, "", "".join(last.pieces)))


def _of_groq(chunk: WireChunk) -> JSONObject:
    """The field of its own in which one provider puts usage and errors."""
    return chunk.x_groq if isinstance(chunk.x_groq, dict) else {}


def _index(value: JSONValue) -> int | None:
    """The place of a call, also where a server writes it as a text."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() else None
    return value if isinstance(value, int) else None


def _parts(content: JSONValue) -> Iterable[tuple[Kind, str]]:
    """Content as a list of parts, as some servers send it around their reasoning."""
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict):
            thoughts = part.get("thinking")
            for text in [thoughts] if isinstance(thoughts, str) else map(_part_text, thoughts or []):
                if text:
                    yield Kind.THOUGHT, text
            if text := _part_text(part):
                yield Kind.TEXT, text


def _part_text(part: JSONValue) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""
