"""The accumulator: folds chunks into a message. The only one in Python.

What is persisted, what a late reader sees and what recovery starts from are all this fold of the log. Its rules are
those of the protocol's builder (`docs/reference/protocol.md`, folding), which differ from the browser's reducer in
small ways: a text delta goes to the *last* text part whatever its id, and the first write of a tool call wins. It
never raises on a chunk that makes no sense where it stands; it ignores it, as clients do.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias, cast

from chat.core.wire.chunks import DATA_PREFIX, Chunk, is_shown, replaced_text
from sessions_app.core.messages.shapes import OURS, Approval, Message, Part
from sessions_app.core.messages.tool_states import SETTLED, ToolState, states_before
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load

_STEP_START: Final = "step-start"
_TEXTS: Final = ("text", "reasoning")
_ProviderMetadata: TypeAlias = Literal["providerMetadata", "callProviderMetadata", "resultProviderMetadata"]
_APPROVAL_FIELDS: Final[Mapping[str, str]] = {
    "approvalDescriptor": "descriptor",
    "inputSchemaInput": "inputSchemaInput",
    "signature": "signature",
    "reason": "requestReason",
    "isAutomatic": "isAutomatic",
}


def fold(chunks: Iterable[Chunk], message: Message | None = None) -> Message:
    """Fold chunks into a message, on top of `message` when one is given. Neither argument is changed."""
    accumulator = Accumulator(message)
    for chunk in chunks:
        accumulator.apply(chunk)
    return accumulator.message


def tool_name(part: Mapping[str, object]) -> str:
    """Name of the tool that a tool part calls, or `""` when the part is not of a tool."""
    kind = part.get("type")
    if not isinstance(kind, str):
        return ""
    if kind == "dynamic-tool":
        return str(part.get("toolName") or "")
    return str(part.get("toolName") or kind[5:]) if kind.startswith("tool-") else ""


def to_input_object(value: JSONValue) -> JSONObject:
    """Normalise a call's input: an object stays, a text that holds one is parsed, anything else is `{}`."""
    if isinstance(value, str):
        try:
            value = load(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


class Accumulator:
    """A message under construction.

    Shape: seeded with a stored message it goes on with it and keeps its id and parts; else the first `start` names it.
    Durability: `message` after any prefix of the chunks can seed another one that goes on with the rest.
    """

    def __init__(self, message: Message | None = None) -> None:
        self._draft = _Draft(message)
        self.last_chunk_type: str | None = None

    @property
    def message(self) -> Message:
        """A JSON-ready copy of the message so far; later chunks do not change it."""
        self._draft.join()
        return cast("Message", {**self._draft.head, "parts": [part.copy() for part in self._draft.parts]})

    @property
    def message_id(self) -> str:
        """Id of the message, `""` before one is known."""
        return str(self._draft.head["id"])

    @property
    def has_parts(self) -> bool:
        """Whether there is anything to store: a part that is more than the beginning of a step."""
        return len(self._draft.parts) > self._draft.step_count

    @property
    def open_text_id(self) -> str | None:
        """Id of the text part that is still open; a continued answer goes on with a delta of this id."""
        return self._draft.open_ids["text"]

    @property
    def open_reasoning_id(self) -> str | None:
        """Id of the reasoning part that is still open."""
        return self._draft.open_ids["reasoning"]

    @property
    def open_calls(self) -> dict[str, str]:
        """State by call id of the tool calls without a result, in order of their calls."""
        states = (
            (call_id, str(self._draft.parts[index].get("state", ""))) for call_id, index in self._draft.calls.items()
        )
        return {call_id: state for call_id, state in states if state not in SETTLED}

    @property
    def step_count(self) -> int:
        """Number of steps begun."""
        return self._draft.step_count

    @property
    def has_shown_in_step(self) -> bool:
        """Whether content of the model was shown since the last step began."""
        return self._draft.has_shown_in_step

    @property
    def finish_reason(self) -> str | None:
        """Why the message ended, once it did."""
        return self._draft.finish_reason

    @property
    def error_text(self) -> str | None:
        """The text of the last error chunk."""
        return self._draft.error_text

    def accepts(self, chunk: Chunk) -> bool:
        """Whether the chunk does something; others (a provider repeating a settled call) are not to be forwarded."""
        accepted = _ACCEPTED_IN.get(chunk["type"])
        if accepted is None:
            return True
        part = self._draft.call(chunk)
        return part is None or part.get("state") in accepted

    def apply(self, chunk: Chunk) -> None:
        """Fold one chunk, in time independent of the chunks before. Never raises on a valid chunk."""
        kind = chunk["type"]
        handler = _HANDLERS.get(kind)
        if handler is not None:
            if self.accepts(chunk):
                handler(self._draft, chunk)
        elif kind.startswith(DATA_PREFIX):
            _data(self._draft, chunk)
        self.last_chunk_type = kind
        if is_shown(chunk):
            self._draft.has_shown_in_step = True


class _Draft:
    """State of the fold: the parts, with indices for constant-time access."""

    def __init__(self, seed: Message | None) -> None:
        self.head: JSONObject = {"id": "", "role": "assistant"}
        self.parts: list[Part] = []
        if seed:
            self.head.update((key, value) for key, value in seed.items() if key != "parts")
            self.parts = [part.copy() for part in seed.get("parts", [])]
        self.pieces: dict[int, list[str]] = {}  # index of a part -> deltas not yet joined into it
        self.open_ids: dict[str, str | None] = dict.fromkeys(_TEXTS)
        self.finish_reason: str | None = None
        self.error_text: str | None = None
        self.has_shown_in_step = False
        self.index_parts()

    def index_parts(self) -> None:
        self.calls: dict[str, int] = {}
        self.data_parts: dict[tuple[str, str], int] = {}
        self.last: dict[str, int] = {}
        self.step_count = 0
        for index, part in enumerate(self.parts):
            self.index_part(index, part)

    def index_part(self, index: int, part: Part) -> None:
        kind: JSONValue = part.get("type")
        if kind == _STEP_START:
            self.step_count += 1
        elif kind in _TEXTS:
            self.last[kind] = index
        elif isinstance(part.get("toolCallId"), str):
            self.calls[part["toolCallId"]] = index
        elif isinstance(kind, str) and kind.startswith(DATA_PREFIX):
            self.data_parts[kind, str(part.get("id", ""))] = index

    def append(self, part: Part) -> Part:
        self.parts.append(part)
        self.index_part(len(self.parts) - 1, part)
        return part

    def join(self) -> None:
        for index, pieces in self.pieces.items():
            part = self.parts[index]
            key: Literal["text", "rawInput"] = "text" if part["type"] in _TEXTS else "rawInput"
            part[key] = "".join([part.get(key) or "", *pieces])
        self.pieces.clear()

    def call(self, chunk: Chunk) -> Part | None:
        index = self.calls.get(chunk.get("toolCallId", ""))
        return None if index is None else self.parts[index]

    def open_call(self, chunk: Chunk) -> Part:
        part = self.call(chunk)
        if part is None:
            name = chunk["toolName"]
            kind = "dynamic-tool" if chunk.get("dynamic") else f"tool-{name}"
            part = self.append({"type": kind, "toolCallId": chunk["toolCallId"], "toolName": name})
            part["state"] = ToolState.INPUT_STREAMING.value
        _merge_metadata(part, "callProviderMetadata", chunk)
        _take(part, chunk, "title", "toolMetadata", "inputEncoding")
        if chunk.get("providerExecuted"):
            part["providerExecuted"] = True
        return part

    def settle_input(self, part: Part) -> None:
        """Give the part its final input and forget the raw text it was written in."""
        pieces = self.pieces.pop(self.calls[part["toolCallId"]], [])
        raw = "".join([part.pop("rawInput", "") or "", *pieces])
        if "input" not in part:
            part["input"] = to_input_object(raw)


def _metadata(draft: _Draft, chunk: Chunk) -> None:
    added = chunk.get("messageMetadata")
    if isinstance(added, dict):
        draft.head["metadata"] = _merged(draft.head.get("metadata"), added)


def _start(draft: _Draft, chunk: Chunk) -> None:
    if not draft.head["id"]:
        draft.head["id"] = chunk.get("messageId") or ""
    _metadata(draft, chunk)


def _finish(draft: _Draft, chunk: Chunk) -> None:
    draft.finish_reason = chunk.get("finishReason") or draft.finish_reason
    _metadata(draft, chunk)


def _error(draft: _Draft, chunk: Chunk) -> None:
    draft.error_text = chunk["errorText"]


def _start_step(draft: _Draft, _chunk: Chunk) -> None:
    draft.append({"type": _STEP_START})
    draft.has_shown_in_step = False


def _reset_step(draft: _Draft, _chunk: Chunk) -> None:
    draft.join()
    starts = [index for index, part in enumerate(draft.parts) if part.get("type") == _STEP_START]
    if starts:
        del draft.parts[starts[-1] + 1 :]
        draft.open_ids = dict.fromkeys(_TEXTS)
        draft.index_parts()


def _text_start(draft: _Draft, chunk: Chunk) -> None:
    kind = chunk["type"].partition("-")[0]
    part = draft.append({"type": kind, "text": "", "state": "streaming"})
    _merge_metadata(part, "providerMetadata", chunk)
    draft.open_ids[kind] = chunk["id"]


def _text_delta(draft: _Draft, chunk: Chunk) -> None:
    kind = chunk["type"].partition("-")[0]
    if kind not in draft.last:
        _text_start(draft, {"type": kind, "id": chunk["id"]})
    index = draft.last[kind]
    draft.pieces.setdefault(index, []).append(chunk["delta"])
    _merge_metadata(draft.parts[index], "providerMetadata", chunk)


def _text_end(draft: _Draft, chunk: Chunk) -> None:
    kind = chunk["type"].partition("-")[0]
    draft.open_ids[kind] = None
    if kind in draft.last:
        part = draft.parts[draft.last[kind]]
        part["state"] = "done"
        _merge_metadata(part, "providerMetadata", chunk)
        if "citations" in chunk:
            part["citations"] = chunk["citations"]
        if kind == "text" and _was_thought(part):
            part["type"] = "reasoning"
            draft.last["reasoning"] = draft.last.pop("text")


def _was_thought(part: Part) -> bool:
    """Whether the end of a text says that it was reasoning."""
    ours = part.get("providerMetadata", {}).get(OURS)
    return isinstance(ours, dict) and ours.get("wasThought") is True


def _copy(draft: _Draft, chunk: Chunk) -> None:
    draft.append(cast("Part", chunk.copy()))


def _data(draft: _Draft, chunk: Chunk) -> None:
    if chunk.get("transient"):
        return
    replaced = replaced_text(chunk)
    if replaced and "text" in draft.last:
        draft.join()
        part = draft.parts[draft.last["text"]]
        part["text"] = part["text"].removesuffix(replaced)
    key = (chunk["type"], chunk.get("id", ""))
    if "id" in chunk and key in draft.data_parts:
        draft.parts[draft.data_parts[key]]["data"] = chunk["data"]
    else:
        draft.append(cast("Part", {name: value for name, value in chunk.items() if name != "transient"}))


def _input_start(draft: _Draft, chunk: Chunk) -> None:
    draft.open_call(chunk)


def _input_delta(draft: _Draft, chunk: Chunk) -> None:
    part = draft.call(chunk)
    if part is not None:
        draft.pieces.setdefault(draft.calls[chunk["toolCallId"]], []).append(chunk["inputTextDelta"])
        _take(part, chunk, "input")


def _input_available(draft: _Draft, chunk: Chunk) -> None:
    part = draft.open_call(chunk)
    part["input"] = to_input_object(chunk["input"])
    if part.get("state") == ToolState.INPUT_STREAMING:
        part["state"] = ToolState.INPUT_AVAILABLE.value
    draft.settle_input(part)


def _input_error(draft: _Draft, chunk: Chunk) -> None:
    part = draft.open_call(chunk)
    part["state"] = ToolState.OUTPUT_ERROR.value
    if chunk["input"] is not None:
        part["input"] = chunk["input"]
    part["errorText"] = chunk["errorText"]
    draft.settle_input(part)


def _approval_request(draft: _Draft, chunk: Chunk) -> None:
    part = draft.call(chunk)
    if part is not None:
        draft.settle_input(part)
        part["state"] = ToolState.APPROVAL_REQUESTED.value
        approval: JSONObject = {"id": chunk["approvalId"]}
        given: Mapping[str, object] = chunk
        approval.update((to, given[key]) for key, to in _APPROVAL_FIELDS.items() if key in given)
        part["approval"] = cast("Approval", approval)


def _approval_response(draft: _Draft, chunk: Chunk) -> None:
    for index in draft.calls.values():
        part = draft.parts[index]
        approval = part.get("approval")
        if part.get("state") == ToolState.APPROVAL_REQUESTED and approval and approval.get("id") == chunk["approvalId"]:
            part["state"] = ToolState.APPROVAL_RESPONDED.value
            part["approval"] = {**approval, "approved": chunk["approved"]}
            if "reason" in chunk:
                part["approval"]["reason"] = chunk["reason"]


def _output(draft: _Draft, chunk: Chunk) -> None:
    part = draft.call(chunk)
    if part is None:
        return
    draft.settle_input(part)
    part.pop("output", None)
    part.pop("errorText", "")
    part.pop("preliminary", False)
    if chunk["type"] == "tool-output-available":
        part["state"] = ToolState.OUTPUT_AVAILABLE.value
        part["output"] = chunk["output"]
        if chunk.get("preliminary"):
            part["preliminary"] = True
    else:
        part["state"] = ToolState.OUTPUT_ERROR.value
        part["errorText"] = chunk["errorText"]
    _merge_metadata(part, "resultProviderMetadata", chunk)
    _take(part, chunk, "toolMetadata")
    if chunk.get("providerExecuted"):
        part["providerExecuted"] = True


def _denied(draft: _Draft, chunk: Chunk) -> None:
    part = draft.call(chunk)
    if part is not None:
        draft.settle_input(part)
        part["state"] = ToolState.OUTPUT_DENIED.value
        known: Approval = part.get("approval") or {"id": part["toolCallId"]}
        part["approval"] = {"id": part["toolCallId"], **known, "approved": False}


def _merge_metadata(part: Part, key: _ProviderMetadata, chunk: Chunk) -> None:
    added = chunk.get("providerMetadata")
    if isinstance(added, dict):
        part[key] = _merged(part.get(key), added)


def _merged(known: JSONValue, added: JSONObject) -> JSONObject:
    return {**known, **added} if isinstance(known, dict) else dict(added)


def _take(part: Part, chunk: Mapping[str, object], *keys: str) -> None:
    for key in keys:
        if key in chunk:
            part[key] = chunk[key]  # type: ignore[literal-required]  # fields that both have, of one type


_ACCEPTED_IN: Final[Mapping[str, frozenset[ToolState]]] = {
    "tool-input-start": frozenset(),
    "tool-input-delta": frozenset({ToolState.INPUT_STREAMING}),
    "tool-input-available": frozenset({ToolState.INPUT_STREAMING, ToolState.APPROVAL_REQUESTED}),
    "tool-input-error": states_before(ToolState.OUTPUT_ERROR),
    "tool-approval-request": states_before(ToolState.APPROVAL_REQUESTED) | {ToolState.APPROVAL_REQUESTED},
    "tool-output-denied": states_before(ToolState.OUTPUT_DENIED) - {ToolState.APPROVAL_RESPONDED},
}
"""States of a known call in which a chunk counts. In others it is dropped: the first write wins."""

_HANDLERS: Final[Mapping[str, Callable[[_Draft, Chunk], None]]] = {
    "start": _start,
    "start-step": _start_step,
    _STEP_START: _start_step,
    "reset-step": _reset_step,
    "finish": _finish,
    "message-metadata": _metadata,
    "text-start": _text_start,
    "text-delta": _text_delta,
    "text-end": _text_end,
    "reasoning-start": _text_start,
    "reasoning-delta": _text_delta,
    "reasoning-end": _text_end,
    "tool-input-start": _input_start,
    "tool-input-delta": _input_delta,
    "tool-input-available": _input_available,
    "tool-input-error": _input_error,
    "tool-approval-request": _approval_request,
    "tool-approval-response": _approval_response,
    "tool-output-available": _output,
    "tool-output-error": _output,
    "tool-output-denied": _denied,
    "source-url": _copy,
    "source-document": _copy,
    "file": _copy,
    "reasoning-file": _copy,
    "custom": _copy,
    "steering-message": _copy,
    "error": _error,
}
