"""Encode a plan's units as the bytes of a provider's stream. Pure; one small class a wire."""

from typing import Final, Protocol

import msgspec

from chat.llm.scripted.plan import Unit
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

_CREATED: Final = 1_790_000_000
_RESPONSES_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


class Wire(Protocol):
    """A provider's stream format."""

    def begin(self) -> bytes:
        """The opening of a stream, before the first chunk."""

    def unit(self, unit: Unit) -> bytes:
        """One chunk."""

    def end(self, finish: str, usage: JSONObject) -> bytes:
        """The end of a stream, after the last chunk. `finish`: a Chat Completions finish reason."""

    def error(self, code: str, message: str) -> bytes:
        """An error inside the stream."""


def sse(value: JSONValue, event: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + msgspec.json.encode(value) + b"\n\n"


class ChatWire:
    """Chat Completions."""

    def __init__(self, request_id: str, model: str, *, with_usage: bool) -> None:
        self._head: JSONObject = {
            "id": f"chatcmpl-{request_id}",
            "object": "chat.completion.chunk",
            "created": _CREATED,
            "model": model,
        }
        self._with_usage = with_usage

    def begin(self) -> bytes:
        """The role, as OpenAI sends it first."""
        return self._delta({"role": "assistant", "content": ""})

    def unit(self, unit: Unit) -> bytes:
        """A delta."""
        if unit.kind == "text":
            return self._delta({"content": unit.text})
        if unit.kind == "refusal":
            return self._delta({"refusal": unit.text})
        if unit.kind == "reasoning":
            return self._delta({"reasoning_content": unit.text})
        return b"" if unit.kind == "call_end" else self._delta({"tool_calls": [_chat_call(unit)]})

    def end(self, finish: str, usage: JSONObject) -> bytes:
        """Finish reason, usage if it was asked for, and the end mark."""
        last = self._delta({}, finish)
        if self._with_usage:
            last += sse({**self._head, "choices": [], "usage": chat_usage(usage)})
        return last + b"data: [DONE]\n\n"

    def error(self, code: str, message: str) -> bytes:
        """The error object in place of a chunk."""
        return sse({"error": {"message": message, "type": code, "code": code}})

    def _delta(self, delta: JSONObject, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**self._head, "choices": [choice], "usage": None})


def _chat_call(unit: Unit) -> JSONObject:
    flags = unit.flags
    is_start = unit.kind == "call_start"
    call: JSONObject = {"function": {"arguments": unit.text}}
    if "no-index" not in flags:
        call["index"] = 0 if "index-zero" in flags else unit.call_index
    if is_start:
        call["type"] = "function"
        call["function"]["name"] = unit.name
    if "no-id" not in flags and (is_start or "repeat-id" in flags):
        call["id"] = unit.call_id
    return call


def chat_usage(usage: JSONObject) -> JSONObject:
    """The usage object of Chat Completions."""
    return {
        "prompt_tokens": usage["input"],
        "completion_tokens": usage["output"],
        "total_tokens": usage["input"] + usage["output"],
        "prompt_tokens_details": {"cached_tokens": usage["cached"]},
        "completion_tokens_details": {"reasoning_tokens": usage["reasoning"]},
    }


def chat_answer(request_id: str, model: str, units: tuple[Unit, ...], finish: str, usage: JSONObject) -> JSONObject:
    """The whole answer in one piece, for a request that does not stream."""
    calls = [
        {"id": unit.call_id, "type": "function", "function": {"name": unit.name, "arguments": unit.text}}
        for unit in units
        if unit.kind == "call_end"
    ]
    message: JSONObject = {"role": "assistant", "content": _join(units, "text") or None}
    for key, value in (
        ("refusal", _join(units, "refusal")),
        ("reasoning_content", _join(units, "reasoning")),
        ("tool_calls", calls),
    ):
        if value:
            message[key] = value
    return {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": chat_usage(usage),
    }


def _join(units: tuple[Unit, ...], kind: str) -> str:
    return "".join(unit.text for unit in units if unit.kind == kind)


class ResponsesWire:
    """The Responses API: numbered events around output items."""

    def __init__(self, request_id: str, model: str) -> None:
        self._response: JSONObject = {
            "id": f"resp_{request_id}",
            "object": "response",
            "created_at": _CREATED,
            "model": model,
        }
        self._request_id = request_id
        self._number = -1
        self._index = -1
        self._open = ""
        self._text = ""
        self._calls: dict[int, int] = {}

    def begin(self) -> bytes:
        """The response was created."""
        created = {**self._response, "status": "in_progress"}
        return self._event("response.created", response=created) + self._event("response.in_progress", response=created)

    def unit(self, unit: Unit) -> bytes:
        """A delta, and the opening and closing of items around it."""
        if unit.kind.startswith("call"):
            return self._call(unit)
        item = "reasoning" if unit.kind == "reasoning" else "message"
        opened = b"" if self._open == item else self._close() + self._begin_item(item)
        self._text += unit.text
        names = {
            "text": "response.output_text.delta",
            "refusal": "response.refusal.delta",
            "reasoning": "response.reasoning_summary_text.delta",
        }
        place = {"item_id": self._item_id(), "output_index": self._index}
        return opened + self._event(names[unit.kind], delta=unit.text, **place)

    def end(self, finish: str, usage: JSONObject) -> bytes:
        """The response is completed or incomplete."""
        reason = _RESPONSES_REASONS.get(finish)
        status = "incomplete" if reason else "completed"
        response: JSONObject = {
            **self._response,
            "status": status,
            "incomplete_details": {"reason": reason} if reason else None,
            "usage": {
                "input_tokens": usage["input"],
                "input_tokens_details": {"cached_tokens": usage["cached"]},
                "output_tokens": usage["output"],
                "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
            },
        }
        return self._close() + self._event(f"response.{status}", response=response)

    def error(self, code: str, message: str) -> bytes:
        """The response failed."""
        failed = {**self._response, "status": "failed", "error": {"code": code, "message": message}}
        return self._event("response.failed", response=failed)

    def _call(self, unit: Unit) -> bytes:
        if unit.kind == "call_start":
            opened = self._close()
            self._index += 1
            self._calls[unit.call_index] = self._index
            # A call whose arguments come whole has no deltas: they are in its last event.
            return opened + self._event(
                "response.output_item.added", item=self._call_item(unit, "", "in_progress"), output_index=self._index
            )
        index = self._calls[unit.call_index]
        if unit.kind == "call_arguments":
            return self._event(
                "response.function_call_arguments.delta",
                delta=unit.text,
                item_id=f"fc_{unit.call_id}",
                output_index=index,
            )
        item = self._call_item(unit, unit.text, "completed")
        return self._event("response.output_item.done", item=item, output_index=index)

    def _call_item(self, unit: Unit, arguments: str, status: str) -> JSONObject:
        return {
            "id": f"fc_{unit.call_id}",
            "type": "function_call",
            "status": status,
            "call_id": "" if "no-id" in unit.flags else unit.call_id,
            "name": unit.name,
            "arguments": arguments,
        }

    def _begin_item(self, kind: str) -> bytes:
        self._index += 1
        self._open, self._text = kind, ""
        opened = self._event(
            "response.output_item.added", item={"id": self._item_id(), "type": kind}, output_index=self._index
        )
        if kind == "reasoning":
            opened += self._event(
                "response.reasoning_summary_part.added",
                output_index=self._index,
                item_id=self._item_id(),
                summary_index=0,
            )
        return opened

    def _close(self) -> bytes:
        if not self._open:
            return b""
        item: JSONObject = {"id": self._item_id(), "type": self._open}
        if self._open == "reasoning":
            item["encrypted_content"] = f"sealed:{self._request_id}:{len(self._text)}"
            item["summary"] = [{"type": "summary_text", "text": self._text}]
        self._open = ""
        return self._event("response.output_item.done", item=item, output_index=self._index)

    def _item_id(self) -> str:
        return f"{'rs' if self._open == 'reasoning' else 'msg'}_{self._request_id}_{self._index}"

    def _event(self, kind: str, **fields: JSONValue) -> bytes:
        self._number += 1
        return sse({"type": kind, "sequence_number": self._number, **fields}, kind)
