"""Read one streamed answer of the Responses API: decoded events in, model events out. Does no I/O.

Servers that imitate it leave out deltas, or events altogether: what was not streamed is taken from whole items, or from
the response at the end.
"""

import json
import logging
from dataclasses import dataclass, field

import msgspec

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    TextEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from chat.core.model.provider_data import ProviderData, is_odd
from chat.errors import Overloaded
from chat.llm.adapters.call_arguments import arguments_of
from chat.llm.adapters.chat_wire import HalfCharacters
from chat.llm.adapters.provider_errors import from_error_object
from chat.llm.adapters.redaction import redact_text
from chat.llm.adapters.transport import DONE
from chat.llm.adapters.usage import read_usage
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

logger = logging.getLogger("chat.llm")


class WireItem(msgspec.Struct, gc=False):
    """An output item: a message, a function call, or reasoning."""

    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: JSONValue = None
    encrypted_content: str | None = None
    summary: JSONValue = None
    phase: str | None = None
    content: JSONValue = None


class WireResponse(msgspec.Struct, gc=False):
    """The response object of lifecycle events, and the whole body of servers that do not stream."""

    id: JSONValue = None
    model: JSONValue = None
    status: str | None = None
    output: list[WireItem] | None = None
    error: JSONValue = None
    incomplete_details: JSONValue = None
    usage: JSONValue = None
    service_tier: JSONValue = None


class WireEvent(msgspec.Struct, gc=False):
    """One event of the stream, with the fields that any of them needs."""

    type: str = ""
    delta: JSONValue = None
    item: WireItem | None = None
    item_id: str | None = None
    output_index: int | None = None
    summary_index: int | None = None
    text: JSONValue = None
    response: WireResponse | None = None
    error: JSONValue = None
    code: JSONValue = None
    message: JSONValue = None


_decode = msgspec.json.Decoder(WireEvent).decode
_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})
_REASONS = {"completed": FinishReason.STOP, "cancelled": FinishReason.ERROR}


@dataclass(slots=True)
class _Call:
    call_id: str
    wire_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    is_over: bool = False


class ResponsesReader:
    """The state of one answer. `is_done`: the provider has sent its end."""

    def __init__(self, model: str, secrets: tuple[str, ...], used_call_ids: set[str]) -> None:
        """`model`: `provider/model`."""
        self._model = model
        self._provider = model.partition("/")[0]
        self._secrets = secrets
        self._used_ids = set(used_call_ids)
        self._calls: dict[str, _Call] = {}
        self._reason = FinishReason.OTHER
        self._usage = Usage()
        self._response_id = ""
        self._model_name = ""
        self._reported: JSONObject = {}
        self._has_text = False
        self._streams = False  # text came in deltas: items have it once more
        self._halves: HalfCharacters | None = None
        self.is_done = False

    @property
    def finish_seen(self) -> bool:
        """Whether the answer is complete."""
        return self.is_done

    @property
    def has_words(self) -> bool:
        """Whether there is anything in the answer for a person, or a call."""
        return self._has_text or bool(self._calls)

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Process one event. Errors: the error contained in the stream; `Overloaded` for unreadable data."""
        if data == DONE or self.is_done:
            return []
        try:
            event = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            event = self._decode_odd(data, error)
        kind = event.type
        if kind == "response.output_text.delta" and self._halves is None:
            if not isinstance(event.delta, str) or not event.delta:
                return []
            self._streams = True
            self._has_text = self._has_text or not event.delta.isspace()
            return [TextDelta(text=event.delta)]
        if kind.endswith(".delta"):
            return self._read_delta(kind, event)
        if kind in ("response.output_item.added", "response.output_item.done") and event.item is not None:
            return self._read_item(event, is_over=kind.endswith(".done"))
        if kind == "response.reasoning_summary_part.added" and event.summary_index:
            return [ReasoningDelta(text="\n\n")]
        if kind == "response.output_text.done" and not self._streams:
            self._streams = True
            return self._whole_text(event.text)
        if not kind:
            event = self._whole(data, event)
        return self._read_lifecycle(event)

    def _decode_odd(self, data: bytes, error: Exception) -> WireEvent:
        """An event with half a character in it, or with numbers as texts. Errors: `Overloaded` for any other."""
        try:
            value = json.loads(data.decode("utf-8", "surrogateescape"), strict=False)
            event = msgspec.convert(value, WireEvent, strict=False)
        except (ValueError, RecursionError):
            raise self._garbage(data) from error
        self._halves = self._halves or HalfCharacters()
        return event

    def _whole(self, data: bytes, event: WireEvent) -> WireEvent:
        """The event of a body that is no event: a whole response, or an error."""
        try:
            response = msgspec.json.decode(data, type=WireResponse)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return event
        if response.output or response.status in _ENDS:
            return WireEvent(type="response.completed", response=response)
        return WireEvent(type="error", error=event.error) if event.error else event

    def end(self) -> list[ModelEvent]:
        """Close open parts and report the finish reason."""
        rest = self._halves.rest("response.output_text.delta") if self._halves is not None else ""
        events: list[ModelEvent] = [TextDelta(text=rest)] if rest else []
        for call in self._calls.values():
            events.extend(self._end_call(call, None))
        reason = FinishReason.TOOL_CALLS if self._calls and self._reason is FinishReason.STOP else self._reason
        events.append(
            Finish(
                reason=reason,
                usage=self._usage,
                response_id=self._response_id,
                model_name=self._model_name,
                provider_metadata={self._provider: self._reported} if self._reported else {},
            )
        )
        return events

    def _read_delta(self, kind: str, event: WireEvent) -> list[ModelEvent]:
        text = event.delta if isinstance(event.delta, str) else ""
        if text and self._halves is not None:
            text = self._halves.join(kind if "text" in kind else _key(event), text)
        if not text:
            return []
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            self._has_text = self._streams = True
            return [TextDelta(text=text, refusal=kind == "response.refusal.delta")]
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            return [ReasoningDelta(text=text)]
        if kind == "response.function_call_arguments.delta":
            call = self._calls.get(_key(event))
            if call is not None and not call.is_over:
                call.pieces.append(text)
                return [ToolCallDelta(call_id=call.call_id, text=text)]
        return []

    def _read_item(self, event: WireEvent, *, is_over: bool) -> list[ModelEvent]:
        item = event.item
        if item is None:
            return []
        if item.type == "reasoning" and is_over and item.encrypted_content:
            sealed = {"id": item.id or "", "summary": item.summary or [], "encrypted_content": item.encrypted_content}
            return [ReasoningDelta(text="", provider_metadata=self._data({"reasoning": sealed}))]
        if item.type == "message" and is_over:
            events = [] if self._streams else self._whole_text(item.content)
            if item.phase and self._has_text:
                events.append(TextEnd(provider_metadata=self._data({"phase": item.phase})))
            return events
        if item.type != "function_call":
            return []
        key, wire_id = _key(event), item.call_id or item.id or ""
        call = self._calls.get(key)
        if call is not None and wire_id and call.wire_id and call.wire_id != wire_id:
            call = self._calls.get(key := wire_id)  # of another call at the same place
        events = []
        if call is None:
            call = _Call(call_id=self._new_call_id(item.call_id or ""), wire_id=wire_id, name=item.name or "")
            self._calls[key] = call
            events.append(ToolCallStart(call_id=call.call_id, tool_name=call.name))
        if is_over:
            events.extend(self._end_call(call, item.arguments))
        return events

    def _data(self, fields: JSONObject) -> JSONObject:
        return ProviderData(model=self._model, fields=fields).metadata()

    def _whole_text(self, content: JSONValue) -> list[ModelEvent]:
        """A text that was not streamed: as such, or as the parts of a message."""
        events: list[ModelEvent] = []
        for part in content if isinstance(content, list) else [{"text": content}]:
            for name in ("text", "refusal"):
                text = part.get(name) if isinstance(part, dict) else None
                if isinstance(text, str) and text:
                    self._has_text = True
                    events.append(TextDelta(text=text, refusal=name == "refusal"))
        return events

    def _end_call(self, call: _Call, whole: JSONValue) -> list[ModelEvent]:
        """The end of a call, with the arguments that came only now, if its deltas never did."""
        if call.is_over:
            return []
        call.is_over = True
        arguments = whole if isinstance(whole, str) or whole is None else dump(whole)
        events: list[ModelEvent] = []
        if arguments and not call.pieces:
            call.pieces.append(arguments)
            events.append(ToolCallDelta(call_id=call.call_id, text=arguments))
        text = arguments_of([arguments] if arguments else call.pieces)
        metadata = self._data({}) if is_odd(call.call_id) else {}
        end = ToolCallEnd(call_id=call.call_id, tool_name=call.name, arguments=text, provider_metadata=metadata)
        return [*events, end]

    def _new_call_id(self, wire_id: str) -> str:
        call_id = wire_id if wire_id and wire_id not in self._used_ids else new_id("call")
        self._used_ids.add(call_id)
        return call_id

    def _read_lifecycle(self, event: WireEvent) -> list[ModelEvent]:
        if event.type == "error":
            error = event.error or {"code": event.code, "message": event.message}
            raise from_error_object(self._provider, error, secrets=self._secrets)
        response = event.response
        if response is None:
            return []
        if isinstance(response.id, str) and isinstance(response.model, str | None):
            self._response_id = response.id or self._response_id
            self._model_name = response.model or self._model_name
        if isinstance(response.service_tier, str):
            self._reported["serviceTier"] = response.service_tier
        ending = event.type.removeprefix("response.")
        if ending not in _ENDS:
            return []
        ending = response.status if response.status in _ENDS else ending
        if ending == "failed":
            raise from_error_object(self._provider, response.error or "failed", secrets=self._secrets)
        events: list[ModelEvent] = []
        if not (self._streams or self._has_text or self._calls):
            for place, item in enumerate(response.output or ()):
                events += self._read_item(WireEvent(output_index=place, item=item), is_over=True)
        self.is_done = True
        self._usage = read_usage(response.usage)
        self._reason = _REASONS.get(ending) or _incomplete(response)
        return events

    def _garbage(self, data: bytes) -> Overloaded:
        logger.warning(
            "model provider sent what is not an event",
            extra={
                "action": "model_garbage",
                "provider": self._provider,
                "provider_body": redact_text(data[:500].decode("utf-8", "replace"), secrets=self._secrets),
            },
        )
        return Overloaded(f"{self._provider} sent something that is not a piece of an answer.", provider=self._provider)


def _key(event: WireEvent) -> str:
    """The key of a call's events: its output index, or the item's id if the server sends no index."""
    if event.output_index is not None:
        return str(event.output_index)
    return event.item_id or (event.item.id if event.item is not None else None) or ""


def _incomplete(response: WireResponse) -> FinishReason:
    details = response.incomplete_details
    why = details.get("reason") if isinstance(details, dict) else None
    reasons = {"max_output_tokens": FinishReason.LENGTH, "content_filter": FinishReason.CONTENT_FILTER}
    return reasons.get(str(why), FinishReason.OTHER)
