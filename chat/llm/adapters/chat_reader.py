"""Read one streamed Chat Completions answer: decoded chunks in, model events out. Does no I/O.

The tolerance for what compatible servers really send is all here: reasoning under two names, calls without ids, with
repeated ids, without an index, with whole arguments at once, content as a list of parts, errors inside the stream.
"""

import logging
from dataclasses import dataclass, field
from typing import Final

import msgspec

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from chat.errors import Overloaded
from chat.llm.adapters.provider_errors import from_error_object
from chat.llm.adapters.redaction import redact_text
from chat.llm.adapters.transport import DONE
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONValue, dump

logger = logging.getLogger("chat.llm")

_FINISH: Final = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.CONTENT_FILTER,
    "error": FinishReason.ERROR,
}


class WireFunction(msgspec.Struct, gc=False):
    """Name and a piece of the arguments (text; an object from servers that do not encode it)."""

    name: str | None = None
    arguments: JSONValue = None


class WireCall(msgspec.Struct, gc=False):
    """A piece of a tool call."""

    index: int | None = None
    id: JSONValue = None
    function: WireFunction | None = None


class WireDelta(msgspec.Struct, gc=False):
    """A piece of the answer."""

    content: JSONValue = None
    reasoning_content: str | None = None
    reasoning: JSONValue = None
    refusal: str | None = None
    tool_calls: list[WireCall] | None = None


class WireChoice(msgspec.Struct, gc=False):
    """One alternative; only the first is read. `message` comes from servers that answer in one piece."""

    index: int | None = 0
    delta: WireDelta | None = None
    message: WireDelta | None = None
    finish_reason: str | None = None


class WireChunk(msgspec.Struct, gc=False):
    """One event of the stream."""

    id: JSONValue = None
    model: JSONValue = None
    choices: list[WireChoice] | None = None
    usage: JSONValue = None
    error: JSONValue = None
    service_tier: JSONValue = None
    system_fingerprint: JSONValue = None


_decode = msgspec.json.Decoder(WireChunk).decode


@dataclass(slots=True)
class _Call:
    """A call as far as it has arrived. Its start is held back until its name is known."""

    call_id: str
    wire_id: str
    name: str = ""
    started: bool = False
    pieces: list[str] = field(default_factory=list)


class ChatReader:
    """The state of one answer. `finish_seen`: the answer is complete; `is_done`: nothing more can come."""

    def __init__(self, provider: str, secrets: tuple[str, ...], used_call_ids: set[str]) -> None:
        self._provider = provider
        self._secrets = secrets
        self._used_ids = set(used_call_ids)
        self._calls: dict[int, _Call] = {}
        self._last_index = -1
        self._finish: str | None = None
        self._usage = Usage()
        self._response_id = ""
        self._model_name = ""
        self._reported: dict[str, str] = {}
        self.is_done = False

    @property
    def finish_seen(self) -> bool:
        """Whether the provider reported the answer as complete."""
        return self._finish is not None or self.is_done

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Process one event. Errors: the error contained in the stream; `Overloaded` for unreadable data."""
        if data == DONE:
            self.is_done = True
            return []
        try:
            chunk = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._garbage(data) from error
        if chunk.error:
            raise from_error_object(self._provider, chunk.error, secrets=self._secrets)
        if chunk.usage:
            self._usage = read_usage(chunk.usage)
        if not chunk.choices:
            return []
        if not self._response_id:
            self._response_id = chunk.id if isinstance(chunk.id, str) else ""
            self._model_name = chunk.model if isinstance(chunk.model, str) else ""
            reported = {"serviceTier": chunk.service_tier, "systemFingerprint": chunk.system_fingerprint}
            self._reported = {name: value for name, value in reported.items() if isinstance(value, str)}
        choice = chunk.choices[0]
        if self._finish is not None or choice.index:
            return []
        delta = choice.delta or choice.message
        events = self._read_delta(delta) if delta is not None else []
        if choice.finish_reason:
            self._finish = choice.finish_reason
        return events

    def feed_tail(self, data: bytes) -> None:
        """Take an event after the finish: only usage matters, garbage does not."""
        if data == DONE:
            self.is_done = True
            return
        try:
            chunk = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if chunk.usage:
            self._usage = read_usage(chunk.usage)

    def end(self) -> list[ModelEvent]:
        """Close the calls and report the finish reason."""
        events: list[ModelEvent] = []
        for _, call in sorted(self._calls.items()):
            if not call.started:
                events.extend(self._start(call))
            events.append(
                ToolCallEnd(call_id=call.call_id, tool_name=call.name, arguments="".join(call.pieces) or "{}")
            )
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

    def _reason(self) -> FinishReason:
        reason = _FINISH.get((self._finish or "").lower(), FinishReason.OTHER)
        if self._calls and reason in (FinishReason.STOP, FinishReason.OTHER):
            return FinishReason.TOOL_CALLS
        if reason is FinishReason.TOOL_CALLS and not self._calls:
            return FinishReason.STOP
        return reason

    def _read_delta(self, delta: WireDelta) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        reasoning = delta.reasoning_content or (delta.reasoning if isinstance(delta.reasoning, str) else None)
        if reasoning:
            events.append(ReasoningDelta(text=reasoning))
        if delta.content:
            if isinstance(delta.content, str):
                events.append(TextDelta(text=delta.content))
            else:
                events.extend(_read_parts(delta.content))
        if delta.refusal:
            events.append(TextDelta(text=delta.refusal, refusal=True))
        if delta.tool_calls:
            for piece in delta.tool_calls:
                events.extend(self._read_call(piece))
        return events

    def _read_call(self, piece: WireCall) -> list[ModelEvent]:
        wire_id = piece.id if isinstance(piece.id, str) else ""
        name = (piece.function.name if piece.function else None) or ""
        call = self._find_call(piece.index, wire_id, name)
        events: list[ModelEvent] = []
        if not call.started and name:
            call.name = name
            events.extend(self._start(call))
        arguments = piece.function.arguments if piece.function else None
        if arguments not in (None, ""):
            text = arguments if isinstance(arguments, str) else dump(arguments)
            call.pieces.append(text)
            if call.started:
                events.append(ToolCallDelta(call_id=call.call_id, text=text))
        return events

    def _find_call(self, index: int | None, wire_id: str, name: str) -> _Call:
        """The call that a piece belongs to; a new one when it names another id, or an unknown index."""
        if index is None:
            index = max(self._last_index, 0)
            last = self._calls.get(index)
            is_another = last is not None and bool(name) and last.started and (not wire_id or wire_id != last.wire_id)
            if is_another or (last is not None and wire_id and last.wire_id and wire_id != last.wire_id):
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


def _read_parts(content: JSONValue) -> list[ModelEvent]:
    """Content as a list of parts, as some servers send it around their reasoning."""
    events: list[ModelEvent] = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict):
            thoughts = part.get("thinking")
            events += [ReasoningDelta(text=text) for text in map(_part_text, thoughts or []) if text]
            if text := _part_text(part):
                events.append(TextDelta(text=text))
    return events


def _part_text(part: JSONValue) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def read_usage(usage: JSONValue) -> Usage:
    """Token counts in either vendor's spelling; missing and non-numeric values count as zero.

    Made equal: the input includes what was read from a cache or written into one, the output includes reasoning, also
    where a provider counts them apart.
    """
    if not isinstance(usage, dict):
        return Usage()
    given, read, written = _read_input(usage)
    output = _count(usage, "completion_tokens", "output_tokens")
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = _count(details, "reasoning_tokens")
    if reasoning and (reasoning > output or _count(usage, "total_tokens") == given + output + reasoning):
        output += reasoning
    return Usage(
        input_tokens=given,
        output_tokens=output,
        reasoning_tokens=reasoning,
        cached_tokens=read,
        cache_write_tokens=written,
    )


def _read_input(usage: "dict[str, JSONValue]") -> tuple[int, int, int]:
    """Tokens of the input, of those read from a cache, and of those written into it."""
    given = _count(usage, "prompt_tokens", "input_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    read = _count(details, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens")
    written = _count(details, "cache_write_tokens") or _count(usage, "cache_creation_input_tokens")
    # The words of a provider that counts them besides its `input_tokens`; who says `prompt_tokens` includes them.
    is_apart = "prompt_tokens" not in usage and {"cache_read_input_tokens", "cache_creation_input_tokens"} & set(usage)
    if is_apart or given < read + written:
        given += read + written
    return given, read, written


def _count(values: JSONValue, *names: str) -> int:
    for name in names:
        value = values.get(name) if isinstance(values, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
            return int(value)
    return 0
