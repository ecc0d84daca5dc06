"""Chunks of the AI SDK's UI message stream.

A chunk is a plain dict, exactly as on the wire; its JSON text is one record of the log. The constructors emit the
subset that version 6 of the SDK knows; `validate` also takes what version 7 added. Nothing here folds: see
`accumulator.py`.
Source: `docs/reference/protocol.md`, chunks.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Required, TypedDict, cast

from chat.errors import ChunkInvalid
from sessions_app.core.messages.shapes import Part
from sessions_app.core.messages.steered import STEER
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load


class Chunk(TypedDict, total=False):
    """A chunk of any type: `type` decides which other fields there are. Extra fields of later versions are kept."""

    type: Required[str]
    id: str  # of the text, reasoning or data part
    delta: str
    messageId: str
    messageMetadata: JSONObject
    finishReason: str
    toolCallId: str
    toolName: str
    inputTextDelta: str
    input: JSONValue
    output: JSONValue
    errorText: str
    title: str
    dynamic: bool
    preliminary: bool
    providerExecuted: bool
    providerMetadata: JSONObject
    toolMetadata: JSONObject
    inputEncoding: str
    approvalId: str
    approved: bool
    reason: str  # of a decision, or of what asks for it
    approvalDescriptor: JSONObject
    inputSchemaInput: JSONValue
    signature: str
    isAutomatic: bool
    data: JSONValue
    transient: bool
    url: str
    mediaType: str
    filename: str
    sourceId: str
    citations: list[JSONObject]
    kind: str
    parts: list[Part]


DATA_PREFIX: Final = "data-"
STATUS: Final = DATA_PREFIX + "think-status"
PROGRESS: Final = DATA_PREFIX + "think-progress"
TODO: Final = DATA_PREFIX + "think-todo"
RESUMED: Final = DATA_PREFIX + "think-resumed"


def _with(chunk: Chunk, **optional: JSONValue) -> Chunk:
    for key, value in optional.items():
        if value is not None and value is not False:
            chunk[key] = value  # type: ignore[literal-required]  # a name of a keyword argument below
    return chunk


def start(message_id: str | None = None, *, metadata: JSONObject | None = None) -> Chunk:
    """Begin the message with its final, stored id."""
    return _with({"type": "start"}, messageId=message_id, messageMetadata=metadata)


def start_step() -> Chunk:
    """Begin a step: one model call and the tools it asks for."""
    return {"type": "start-step"}


def finish_step() -> Chunk:
    """End a step."""
    return {"type": "finish-step"}


def finish(reason: str, *, metadata: JSONObject | None = None) -> Chunk:
    """End the message. `reason` is one of the AI SDK's finish reasons."""
    return _with({"type": "finish", "finishReason": reason}, messageMetadata=metadata)


def message_metadata(metadata: JSONObject) -> Chunk:
    """Merge keys into the message's metadata."""
    return {"type": "message-metadata", "messageMetadata": metadata}


def text_start(part_id: str, *, provider_metadata: JSONObject | None = None) -> Chunk:
    """Open a text part."""
    return _with({"type": "text-start", "id": part_id}, providerMetadata=provider_metadata)


def text_delta(part_id: str, delta: str, *, provider_metadata: JSONObject | None = None) -> Chunk:
    """Add text to the open text part."""
    return _with({"type": "text-delta", "id": part_id, "delta": delta}, providerMetadata=provider_metadata)


def text_end(part_id: str, *, provider_metadata: JSONObject | None = None) -> Chunk:
    """Close the open text part."""
    return _with({"type": "text-end", "id": part_id}, providerMetadata=provider_metadata)


def reasoning_start(part_id: str, *, provider_metadata: JSONObject | None = None) -> Chunk:
    """Open a reasoning part."""
    return _with({"type": "reasoning-start", "id": part_id}, providerMetadata=provider_metadata)


def reasoning_delta(part_id: str, delta: str, *, provider_metadata: JSONObject | None = None) -> Chunk:
    """Add text to the open reasoning part."""
    return _with({"type": "reasoning-delta", "id": part_id, "delta": delta}, providerMetadata=provider_metadata)


def reasoning_end(part_id: str, *, provider_metadata: JSONObject | None = None) -> Chunk:
    """Close the open reasoning part; the metadata carries the data that the provider needs again."""
    return _with({"type": "reasoning-end", "id": part_id}, providerMetadata=provider_metadata)


def tool_input_start(
    call_id: str,
    name: str,
    *,
    dynamic: bool = False,
    title: str | None = None,
    provider_metadata: JSONObject | None = None,
) -> Chunk:
    """Begin a tool call whose input is still being written."""
    chunk: Chunk = {"type": "tool-input-start", "toolCallId": call_id, "toolName": name}
    return _with(chunk, dynamic=dynamic, title=title, providerMetadata=provider_metadata)


def tool_input_delta(call_id: str, text: str) -> Chunk:
    """Add to the raw text of a call's input."""
    return {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": text}


def tool_input_available(
    call_id: str,
    name: str,
    tool_input: JSONValue,
    *,
    dynamic: bool = False,
    title: str | None = None,
    provider_metadata: JSONObject | None = None,
) -> Chunk:
    """Complete a call's input; the metadata carries the data that the provider needs again."""
    chunk: Chunk = {"type": "tool-input-available", "toolCallId": call_id, "toolName": name, "input": tool_input}
    return _with(chunk, dynamic=dynamic, title=title, providerMetadata=provider_metadata)


def tool_input_error(
    call_id: str,
    name: str,
    tool_input: JSONValue,
    error_text: str,
    *,
    dynamic: bool = False,
    provider_metadata: JSONObject | None = None,
) -> Chunk:
    """End a call whose input is malformed or cut; `tool_input` is what there was of it."""
    chunk: Chunk = {
        "type": "tool-input-error",
        "toolCallId": call_id,
        "toolName": name,
        "input": tool_input,
        "errorText": error_text,
    }
    return _with(chunk, dynamic=dynamic, providerMetadata=provider_metadata)


def tool_output_available(
    call_id: str,
    output: JSONValue,
    *,
    preliminary: bool = False,
    dynamic: bool = False,
    metadata: JSONObject | None = None,
) -> Chunk:
    """Settle a call with its result, or show a preliminary one. `metadata`: of the part's `toolMetadata`."""
    chunk: Chunk = {"type": "tool-output-available", "toolCallId": call_id, "output": output}
    return _with(chunk, preliminary=preliminary, dynamic=dynamic, toolMetadata=metadata)


def tool_output_error(
    call_id: str, error_text: str, *, dynamic: bool = False, metadata: JSONObject | None = None
) -> Chunk:
    """Settle a call that failed."""
    chunk: Chunk = {"type": "tool-output-error", "toolCallId": call_id, "errorText": error_text}
    return _with(chunk, dynamic=dynamic, toolMetadata=metadata)


def tool_progress(call_id: str, details: JSONObject) -> Chunk:
    """Report what a running call says of itself, before it has given anything; never stored."""
    return {"type": PROGRESS, "data": {"toolCallId": call_id, **details}, "transient": True}


def todo_list(todos: list[JSONObject]) -> Chunk:
    """Report the to-do list that a call has written; never stored beside the call."""
    return {"type": TODO, "data": {"todos": todos}, "transient": True}


def tool_output_denied(call_id: str) -> Chunk:
    """Settle a call that a person refused."""
    return {"type": "tool-output-denied", "toolCallId": call_id}


def tool_approval_request(approval_id: str, call_id: str, descriptor: JSONObject | None = None) -> Chunk:
    """Ask a person whether the call may run.

    `descriptor`: the title and sentence of the question, and which arguments may be changed.
    """
    chunk: Chunk = {"type": "tool-approval-request", "approvalId": approval_id, "toolCallId": call_id}
    return _with(chunk, approvalDescriptor=descriptor)


def file(url: str, media_type: str) -> Chunk:
    """Add a file that the assistant made."""
    return {"type": "file", "url": url, "mediaType": media_type}


def data(name: str, value: JSONValue, *, part_id: str | None = None, transient: bool = False) -> Chunk:
    """Add or, with a `part_id` that exists, replace a data part. A transient one is never stored."""
    return _with({"type": DATA_PREFIX + name, "data": value}, id=part_id, transient=transient)


def steer(said: JSONObject) -> Chunk:
    """Add a message that the answer takes in between two steps: `{id, parts, metadata?, sentAt?}`."""
    return {"type": STEER, "id": said["id"], "data": said}


def resumed(at: datetime, text: str, part_id: str, *, replaced: str = "") -> Chunk:
    """Mark the place where a text was cut and goes on, in UTF-16 units of the last text part, which was this text.

    The same place is marked once, however often the answer is cut there. `replaced`: the end of the text, which is
    taken off it by the chunk: the answer goes on before it, in other words.
    """
    value: JSONObject = {
        "at": at.isoformat(timespec="milliseconds"),
        "offset": _utf16_length(text) - _utf16_length(replaced),
    }
    if replaced:
        value["replaced"] = replaced
    return {"type": RESUMED, "id": f"{part_id}:{_utf16_length(text)}", "data": value}


def replaced_text(chunk: Chunk) -> str:
    """The end of the last text part that a chunk takes back; empty for any other chunk."""
    data = chunk.get("data") if chunk["type"] == RESUMED else None
    replaced = data.get("replaced") if isinstance(data, dict) else None
    return replaced if isinstance(replaced, str) else ""


def takes_back(text: str) -> bool:
    """Whether the JSON text of a chunk is of one that takes something back. Cheap: it is asked of every record."""
    return RESUMED in text and bool(replaced_text(load(text)))


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def status(kind: str, facts: JSONObject) -> Chunk:
    """Report what a running turn does; never stored. `kind`: `model`, `tool`, `retry` or `waiting`."""
    return {"type": STATUS, "data": {"kind": kind, **facts}, "transient": True}


def error(text: str) -> Chunk:
    """Fail the turn with a text for people. On the socket it travels as an error frame, not as a chunk."""
    return {"type": "error", "errorText": text}


def abort(reason: str | None = None) -> Chunk:
    """The turn was stopped."""
    return _with({"type": "abort"}, reason=reason)


_SHOWN_DELTAS: Final = frozenset({"text-delta", "reasoning-delta"})
_SHOWN: Final = frozenset(
    {
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "tool-input-error",
        "file",
        "reasoning-file",
        "source-url",
        "source-document",
        "custom",
    }
)
_BOUNDARIES: Final = frozenset(
    {
        "text-end",
        "reasoning-end",
        "tool-input-available",
        "tool-input-error",
        "tool-approval-request",
        "tool-approval-response",
        "tool-output-available",
        "tool-output-error",
        "tool-output-denied",
        "finish-step",
        "finish",
        "error",
        "abort",
    }
)
_DELTAS: Final[Mapping[str, tuple[str, str]]] = {
    "text-delta": ("id", "delta"),
    "reasoning-delta": ("id", "delta"),
    "tool-input-delta": ("toolCallId", "inputTextDelta"),
}

_PLAIN_DELTA_KEYS: Final = 3  # type, part, delta: nothing else to compare


def is_shown(chunk: Chunk) -> bool:
    """Whether this chunk shows content of the model step, so that the step cannot be run again.

    Framing (`start`, `start-step`, the opening of a part) shows nothing; neither does an empty delta.
    """
    kind = chunk["type"]
    return bool(chunk["delta"]) if kind in _SHOWN_DELTAS else kind in _SHOWN


def is_boundary(chunk: Chunk) -> bool:
    """Whether a part or a step ends here, or a tool result came: the cold log is flushed."""
    return chunk["type"] in _BOUNDARIES


def merge(first: Chunk, second: Chunk) -> Chunk | None:
    """Join two adjacent deltas of one part into an equivalent one; `None` if they do not join."""
    names = _DELTAS.get(first["type"])
    if names is None or second["type"] != first["type"]:
        return None
    part, delta = names
    one, other = cast("JSONObject", first), cast("JSONObject", second)
    if one[part] != other[part]:
        return None
    is_plain = len(one) == _PLAIN_DELTA_KEYS == len(other)
    if not is_plain and _rest(one, delta) != _rest(other, delta):
        return None
    return cast("Chunk", {**one, delta: one[delta] + other[delta]})


def _rest(chunk: JSONObject, delta: str) -> JSONObject:
    return {key: value for key, value in chunk.items() if key != delta}


class _Anything:
    """Marks a field that must be there and may hold any JSON value."""


_FINISH_REASONS: Final = frozenset(
    {"stop", "length", "content-filter", "tool-calls", "error", "other", "unknown", "interrupted"}
)
_PART = {"id": str}
_DELTA = {"id": str, "delta": str}
_CALL = {"toolCallId": str}
_NAMED_CALL = {"toolCallId": str, "toolName": str}
_FILE = {"url": str, "mediaType": str}

_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "start": {},
    "start-step": {},
    "finish-step": {},
    "reset-step": {},
    "finish": {},
    "message-metadata": {"messageMetadata": _Anything},
    "text-start": _PART,
    "text-delta": _DELTA,
    "text-end": _PART,
    "reasoning-start": _PART,
    "reasoning-delta": _DELTA,
    "reasoning-end": _PART,
    "tool-input-start": _NAMED_CALL,
    "tool-input-delta": {"toolCallId": str, "inputTextDelta": str},
    "tool-input-available": {**_NAMED_CALL, "input": _Anything},
    "tool-input-error": {**_NAMED_CALL, "input": _Anything, "errorText": str},
    "tool-approval-request": {"approvalId": str, "toolCallId": str},
    "tool-approval-response": {"approvalId": str, "approved": bool},
    "tool-output-available": {**_CALL, "output": _Anything},
    "tool-output-error": {**_CALL, "errorText": str},
    "tool-output-denied": _CALL,
    "source-url": {"sourceId": str, "url": str},
    "source-document": {"sourceId": str, "mediaType": str, "title": str},
    "file": _FILE,
    "reasoning-file": _FILE,
    "custom": {"kind": str},
    "steering-message": {"id": str, "parts": list},
    "error": {"errorText": str},
    "abort": {},
}
_DATA_REQUIRED: Final[Mapping[str, type]] = {"data": _Anything}
_OPTIONAL: Final[Mapping[str, type]] = {
    "messageId": str,
    "providerMetadata": dict,
    "finishReason": str,
    "dynamic": bool,
    "providerExecuted": bool,
    "preliminary": bool,
    "transient": bool,
    "isAutomatic": bool,
    "title": str,
    "filename": str,
    "reason": str,
    "id": str,
}


def validate(chunk: JSONValue) -> Chunk:
    """Return the chunk if it is one of the stream's, of either version; extra keys are allowed.

    Errors: `ChunkInvalid` that names the field.
    """
    if not isinstance(chunk, dict) or not isinstance(chunk.get("type"), str):
        raise ChunkInvalid("A chunk is an object with a type.")
    kind = chunk["type"]
    required = _required(kind)
    for key, expected in required.items():
        if key not in chunk or (expected is not _Anything and not isinstance(chunk[key], expected)):
            raise ChunkInvalid(f"Chunk {kind!r} needs {key!r}{_kind_of(expected)}.")
    for key, expected in _OPTIONAL.items():
        if key in chunk and not isinstance(chunk[key], expected):
            raise ChunkInvalid(f"Chunk {kind!r} has {key!r} that is not{_kind_of(expected)}.")
    if kind == "finish" and chunk.get("finishReason", "stop") not in _FINISH_REASONS:
        raise ChunkInvalid(f"Chunk 'finish' has an unknown reason {chunk['finishReason']!r}.")
    return cast("Chunk", chunk)


def _required(kind: str) -> Mapping[str, type]:
    if kind.startswith(DATA_PREFIX) and len(kind) > len(DATA_PREFIX):
        return _DATA_REQUIRED
    try:
        return _REQUIRED[kind]
    except KeyError:
        raise ChunkInvalid(f"There is no chunk {kind[:60]!r}.") from None


def _kind_of(expected: type) -> str:
    names = {str: " a text", bool: " true or false", dict: " an object", list: " a list"}
    return names.get(expected, "")
