"""Reduces a message to row size: drops provider metadata always, and content only as far as needed.

`sanitise` then `fit_row`; both are idempotent and return the same object when there is nothing to do. Whatever is cut
is handed to the caller's `Spill` first, so that the original can be kept elsewhere; the message says what was cut.
Source: sanitising and row-size rules of the wire protocol (docs/design/sessions.md).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from sessions_app.core.messages.parts import is_tool, state_of
from sessions_app.core.messages.shapes import OURS, Message, Part
from sessions_app.core.messages.shortening import json_length, shorten, text_head, text_length
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size, dump

ROW_MAX_BYTES: Final = 1_800_000
OUTPUT_CHARS: Final = 1000  # a tool output above this is shortened to it
TEXT_CHARS: Final = 1000  # a text above this is cut
TEXT_HEAD_CHARS: Final = 500  # what is left of a cut text
RESERVED_BYTES: Final = 4096  # for the frame of a message and the marks of what was dropped
OMITTED_TEXT: Final = "[{count} parts omitted for storage ({size} bytes).]"

_PROVIDER_FIELDS: Final = ("providerMetadata", "callProviderMetadata")
_SCRAPS: Final = frozenset({"itemId", "reasoningEncryptedContent"})
_KEPT_FIELDS: Final = frozenset({"type", "state", "toolCallId", "toolName", "mediaType", "sourceId", "id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Something that a stored message loses. `field` is the part's field that is cut, empty for the whole part."""

    message_id: str
    part_index: int
    field: str
    tool_call_id: str
    original: JSONValue


Spill = Callable[[Cut], str | None]
"""Keeps an original and gives a URL for it, or nothing. Called before the message is cut."""


def sanitise(message: Message) -> Message:
    """Drop provider data that cannot be used again; the same object when there is none of it.

    OpenAI's item ids and encrypted reasoning go, other provider metadata stays. Blank reasoning goes unless metadata
    remain with it (a redacted thought must be sent back to its provider).
    """
    parts = [_without_scraps(part) for part in message["parts"]]
    parts = [part for part in parts if not _is_blank_reasoning(part)]
    old = message["parts"]
    if len(parts) == len(old) and all(new is before for new, before in zip(parts, old, strict=True)):
        return message
    return {**message, "parts": parts}


def _without_scraps(part: Part) -> Part:
    for field in _PROVIDER_FIELDS:
        metadata = part.get(field)
        if not isinstance(metadata, dict):
            continue
        openai = metadata.get("openai")
        if not isinstance(openai, dict) or not _SCRAPS & openai.keys():
            continue
        kept = {key: value for key, value in openai.items() if key not in _SCRAPS}
        others = {key: value for key, value in metadata.items() if key != "openai"}
        remaining = {**metadata, "openai": kept} if kept else others
        part = cast("Part", {key: value for key, value in part.items() if key != field})
        if remaining:
            part[field] = remaining
    return part


def _is_blank_reasoning(part: Part) -> bool:
    return (
        part.get("type") == "reasoning"
        and not str(part.get("text") or "").strip()
        and not any(_is_of_providers(part.get(field)) for field in _PROVIDER_FIELDS)
    )


def _is_of_providers(metadata: JSONValue) -> bool:
    """Whether metadata hold more than this product's own."""
    return bool(metadata) and not (isinstance(metadata, dict) and metadata.keys() == {OURS})


def fit_row(message: Message, *, max_bytes: int = ROW_MAX_BYTES, spill: Spill | None = None) -> Message:
    """Give a message of at most so many bytes; the same object when it fits.

    In this order, each only while needed: tool outputs of an assistant (all long ones, in their shape), texts (oldest
    first), every other large field of a part (largest first), whole parts from the middle. `metadata` then holds
    `compactedToolOutputs` (call ids), `compactedTextParts`, `compactedParts` (indices) and, where `spill` gave a URL,
    `spilled` (index and field to URL).
    """
    if byte_size(message) <= max_bytes:
        return message
    row = _Row(message, max_bytes, spill)
    for step in (row.cut_outputs, row.cut_texts, row.cut_fields, row.drop_metadata, row.drop_parts):
        step()
        if row.fits():
            break
    return row.message()


class _Row:
    """One message on its way to fitting. Holds copies; the original is never changed."""

    def __init__(self, message: Message, max_bytes: int, spill: Spill | None) -> None:
        self._base = message
        self._parts: list[Part] = list(message["parts"])
        self._metadata: JSONObject = dict(message.get("metadata") or {})
        self._max_bytes = max_bytes
        self._spill = spill
        self._over = byte_size(message) - max_bytes

    def fits(self) -> bool:
        """Measure exactly."""
        self._over = byte_size(self.message()) - self._max_bytes
        return self._over <= 0

    def message(self) -> Message:
        """Put the message together again."""
        message: Message = {**self._base, "parts": self._parts}
        message.pop("metadata", None)
        if self._metadata:
            message["metadata"] = self._metadata
        return message

    def cut_outputs(self) -> None:
        """Shorten every long tool output of an assistant's message."""
        if self._base["role"] != "assistant":
            return
        for index, part in enumerate(self._parts):
            if state_of(part) is ToolState.OUTPUT_AVAILABLE and json_length(part.get("output")) > OUTPUT_CHARS:
                self._replace(index, "output", shorten(part["output"], OUTPUT_CHARS))
                self._mark("compactedToolOutputs", part.get("toolCallId"))

    def cut_texts(self) -> None:
        """Cut long texts, oldest first, until the message fits."""
        for index, part in enumerate(self._parts):
            if self._over <= 0 and self.fits():
                return
            text = part.get("text")
            if part.get("type") == "text" and isinstance(text, str) and text_length(text) > TEXT_CHARS:
                self._replace(index, "text", _cut_text(text))
                self._mark("compactedTextParts", index)

    def cut_fields(self) -> None:
        """Cut any other large field of a part, largest first, until the message fits."""
        fields = [
            (byte_size(value), index, field)
            for index, part in enumerate(self._parts)
            for field, value in part.items()
            if field not in _KEPT_FIELDS
        ]
        for size, index, field in sorted(fields, key=lambda entry: (-entry[0], entry[1])):
            if size <= OUTPUT_CHARS or (self._over <= 0 and self.fits()):
                return
            self._replace(index, field, _cut_value(self._parts[index], field))
            self._mark("compactedParts", index)

    def drop_metadata(self) -> None:
        """Remove metadata except the record of removed content."""
        own = ("compactedToolOutputs", "compactedTextParts", "compactedParts", "spilled")
        self._metadata = {key: self._metadata[key] for key in own if key in self._metadata}

    def drop_parts(self) -> None:
        """Replace parts in the middle by one line, so many that the message fits."""
        first, last = self._kept_ends()
        dropped = self._parts[first:last]
        self._metadata = {"compactedParts": [first], **self._small_spills()}
        self._keep(first, "", dropped)
        line = OMITTED_TEXT.format(count=len(dropped), size=byte_size(dropped))
        self._parts = [*self._parts[:first], {"type": "text", "text": line}, *self._parts[last:]]

    def _kept_ends(self) -> tuple[int, int]:
        """Number of parts kept at the beginning, and the start of those kept at the end."""
        # One lone surrogate anywhere makes the whole row plain ASCII: then every part counts as that.
        measure = _ascii_size if dump(self.message()).isascii() else byte_size
        sizes = [measure(part) + 1 for part in self._parts]
        room = self._max_bytes - byte_size(self._base["id"]) - measure(self._small_spills()) - RESERVED_BYTES
        first, last = 0, len(sizes)
        while first < last:
            is_head = first <= len(sizes) - last
            size = sizes[first] if is_head else sizes[last - 1]
            if size > room:
                break
            room -= size
            first, last = (first + 1, last) if is_head else (first, last - 1)
        return first, last

    def _small_spills(self) -> JSONObject:
        spilled = self._metadata.get("spilled")
        return {"spilled": spilled} if spilled and byte_size(spilled) < self._max_bytes // 4 else {}

    def _replace(self, index: int, field: str, value: JSONValue) -> None:
        part = self._parts[index]
        original: JSONValue = part.get(field)
        self._keep(index, field, original)
        self._over += byte_size(value) - byte_size(original)
        self._parts[index] = cast("Part", {**part, field: value})

    def _keep(self, index: int, field: str, original: JSONValue) -> None:
        if self._spill is None:
            return
        call_id = str(self._parts[index].get("toolCallId") or "") if field else ""
        cut = Cut(message_id=self._base["id"], part_index=index, field=field, tool_call_id=call_id, original=original)
        url = self._spill(cut)
        if url:
            kept = self._metadata.get("spilled")
            name = f"{index}.{field}" if field else str(index)
            self._metadata["spilled"] = {**(kept if isinstance(kept, dict) else {}), name: url}

    def _mark(self, name: str, entry: JSONValue) -> None:
        marks = self._metadata.get(name)
        known = marks if isinstance(marks, list) else []
        if entry not in known:
            self._metadata[name] = [*known, entry]


def _ascii_size(value: JSONValue) -> int:
    return len(json.dumps(value, ensure_ascii=True, separators=(",", ":")))


def _cut_text(text: str) -> str:
    head = text_head(text, TEXT_HEAD_CHARS)
    return f"[Text truncated for storage ({text_length(text)} chars). First {TEXT_HEAD_CHARS} chars: {head}...]"


def _cut_value(part: Part, field: str) -> JSONValue:
    value: JSONValue = part.get(field)
    if field == "url":
        return "about:blank"  # half a data URL is no image
    if field == "input" and is_tool(part) and not isinstance(value, dict):
        return {}
    return shorten(value, OUTPUT_CHARS)
