"""AG-UI: the events of a turn for clients of that protocol, made of its chunks. Pure.

Each text and each thought is a message of its own. What AG-UI has no event for (files, sources, data, what tools show
on the way) is a `CUSTOM` event with the chunk as its value, and never an empty text.
Source: the published package `@ag-ui/core` 1.0.0, whose schemas every event passes (`tests/unit/ag_ui`).
"""

from collections.abc import Mapping
from typing import Any, Final

from chat.core.wire.chunks import Chunk
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

VERSION: Final = "1.0"
KINDS: Final[Mapping[str, str]] = {
    "TEXT_MESSAGE_CONTENT": "text",
    "TOOL_CALL_START": "tool-call-start",
    "TOOL_CALL_ARGS": "tool-call-args",
    "TOOL_CALL_END": "tool-call-end",
    "STEP_FINISHED": "thinking",
    "REASONING_MESSAGE_CONTENT": "thinking",
}
"""A word for the rows of a table of events; `event` for all others."""
_SILENT: Final = frozenset({"start", "finish"})
DENIED: Final = "A person refused the call."


def row_kind(event_type: str) -> str:
    """The kind of a row that stores an AG-UI event: text, tool-call-start, -args, -end, thinking, or event."""
    return KINDS.get(event_type, "event")


class AgUiEncoder:
    """Encodes one turn, chunk by chunk. `thread_id`: the conversation's, `run_id`: the turn's."""

    def __init__(self, *, thread_id: str, run_id: str) -> None:
        self._ids = {"threadId": thread_id, "runId": run_id}
        self._run_id = run_id
        self._messages = 0
        self._steps = 0
        self._is_in_step = False
        self._open: dict[tuple[str, str], str] = {}  # `text` or `reasoning`, and the part: the message
        self._writing: dict[str, bool] = {}  # calls whose input is being written: whether there was any
        self._waiting: dict[str, None] = {}  # calls without a result
        self._asked: dict[str, JSONObject] = {}  # open questions by their ids

    def begin(self) -> list[JSONObject]:
        """The first events."""
        return [{"type": "RUN_STARTED", **self._ids, "protocolVersion": VERSION}]

    def encode(self, chunk: Chunk) -> list[JSONObject]:
        """The events of a chunk: none, one or several."""
        kind = chunk["type"]
        if kind in _SILENT:
            return []
        if kind.startswith(("text-", "reasoning-")) and "file" not in kind:
            name, _, where = kind.partition("-")
            return self._part(name, where, chunk)
        if kind.startswith("tool-"):
            return self._tool(kind, chunk)
        if kind == "start-step":
            events = self._end_step()
            self._steps += 1
            self._is_in_step = True
            return [*events, {"type": "STEP_STARTED", "stepName": f"step {self._steps}"}]
        if kind == "finish-step":
            return self._end_step()
        if kind in {"error", "abort"}:
            return []  # the end of the turn has it
        return [_custom(chunk)]

    def end(self, outcome: str, error: str | None = None) -> list[JSONObject]:
        """The last events. `outcome`: that of the turn; open questions make it an interrupt."""
        events = [event for call_id in list(self._writing) for event in self._end_call(call_id)]
        events += [event for name, part in list(self._open) for event in self._close(name, part)]
        events += self._end_step()
        if outcome == "error":
            return [*events, {"type": "RUN_ERROR", "message": error or "The turn failed.", "code": "turn_failed"}]
        ended: JSONObject = {"type": "success"}
        if outcome != "completed":
            ended = {"type": "cancelled"}
        elif self._asked:
            ended = {"type": "interrupt", "interrupts": list(self._asked.values())}
        elif self._waiting:
            ended["pendingToolCallIds"] = list(self._waiting)
        return [*events, {"type": "RUN_FINISHED", **self._ids, "outcome": ended}]

    def _part(self, name: str, where: str, chunk: Chunk) -> list[JSONObject]:
        part = chunk.get("id", "")
        events = [] if (name, part) in self._open or where == "end" else self._start(name, part)
        if where == "delta" and chunk.get("delta"):
            kind = "TEXT_MESSAGE_CONTENT" if name == "text" else "REASONING_MESSAGE_CONTENT"
            events.append({"type": kind, "messageId": self._open[name, part], "delta": chunk["delta"]})
        return events + (self._close(name, part) if where == "end" else [])

    def _start(self, name: str, part: str) -> list[JSONObject]:
        self._messages += 1
        message = self._open[name, part] = f"{self._run_id}:{self._messages}"
        if name == "text":
            return [{"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"}]
        started: JSONObject = {"type": "REASONING_MESSAGE_START", "messageId": message, "role": "reasoning"}
        return [{"type": "REASONING_START", "messageId": message}, started]

    def _close(self, name: str, part: str) -> list[JSONObject]:
        message = self._open.pop((name, part), None)
        if message is None:
            return []
        kinds = ("TEXT_MESSAGE_END",) if name == "text" else ("REASONING_MESSAGE_END", "REASONING_END")
        return [{"type": kind, "messageId": message} for kind in kinds]

    def _tool(self, kind: str, chunk: Chunk) -> list[JSONObject]:
        call_id = chunk.get("toolCallId", "")
        match kind:
            case "tool-input-start":
                return self._start_call(call_id, chunk)
            case "tool-input-delta":
                return self._args(call_id, chunk.get("inputTextDelta", ""))
            case "tool-input-available" | "tool-input-error":
                return self._input(call_id, chunk)
            case "tool-approval-request":
                self._asked[chunk["approvalId"]] = _interrupt(chunk)
                return []
            case "tool-approval-response":
                self._asked.pop(chunk.get("approvalId", ""), None)
                return []
            case "tool-output-available" if not chunk.get("preliminary"):
                return self._result(call_id, chunk.get("output"))
            case "tool-output-error":
                return self._result(call_id, chunk.get("errorText", ""))
            case "tool-output-denied":
                return self._result(call_id, DENIED)
        return [_custom(chunk)]

    def _input(self, call_id: str, chunk: Chunk) -> list[JSONObject]:
        events = [] if call_id in self._writing else self._start_call(call_id, chunk)
        if not self._writing[call_id]:
            given = chunk.get("input")
            events += self._args(call_id, given if isinstance(given, str) else dump(given))
        events += self._end_call(call_id)
        self._waiting[call_id] = None
        return events + (self._result(call_id, chunk.get("errorText", "")) if "errorText" in chunk else [])

    def _start_call(self, call_id: str, chunk: Chunk) -> list[JSONObject]:
        events = self._end_call(call_id) if call_id in self._writing else []  # it begins anew: clients add up its input
        self._writing[call_id] = False
        return [*events, {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": chunk.get("toolName", "")}]

    def _args(self, call_id: str, text: str) -> list[JSONObject]:
        if not text or call_id not in self._writing:
            return []
        self._writing[call_id] = True
        return [{"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": text}]

    def _end_call(self, call_id: str) -> list[JSONObject]:
        self._writing.pop(call_id, None)
        return [{"type": "TOOL_CALL_END", "toolCallId": call_id}]

    def _result(self, call_id: str, output: JSONValue) -> list[JSONObject]:
        self._waiting.pop(call_id, None)
        for asked in [key for key, interrupt in self._asked.items() if interrupt["toolCallId"] == call_id]:
            del self._asked[asked]
        content = output if isinstance(output, str) else dump(output)
        message = f"{call_id}:result"
        return [
            {
                "type": "TOOL_CALL_RESULT",
                "messageId": message,
                "toolCallId": call_id,
                "content": content,
                "role": "tool",
            }
        ]

    def _end_step(self) -> list[JSONObject]:
        if not self._is_in_step:
            return []
        self._is_in_step = False
        return [{"type": "STEP_FINISHED", "stepName": f"step {self._steps}"}]


def _interrupt(chunk: Chunk) -> JSONObject:
    """A question about a call, as AG-UI has it. Its answer is a decision, and the arguments where they were changed."""
    descriptor: Any = chunk.get("approvalDescriptor") or {}
    said = {"message": descriptor["title"]} if isinstance(descriptor.get("title"), str) else {}
    answer: JSONObject = {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}, "input": {"type": "object"}},
        "required": ["approved"],
    }
    return {
        "id": chunk["approvalId"],
        "reason": "tool-approval",
        "toolCallId": chunk["toolCallId"],
        "responseSchema": answer,
        **said,
    }


def _custom(chunk: Chunk) -> JSONObject:
    return {"type": "CUSTOM", "name": chunk["type"], "value": dict(chunk)}
