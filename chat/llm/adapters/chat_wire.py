"""The events of a Chat Completions stream as values, and the reading of one: the last place that sees its bytes.

What is no valid UTF-8 or holds half a character (some servers cut a text between two chunks in the middle of an emoji)
is read all the same; the halves are joined by `HalfCharacters`.
"""

import json
import re
from typing import Final, Literal

import msgspec

from chat.llm.adapters.transport import DONE
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

_OF_ANSWERS: Final = frozenset({"id", "choices", "usage"})
_HIGH: Final = ("\ud800", "\udbff")  # the first halves of characters beyond the first plane


class WireDelta(msgspec.Struct, gc=False):
    """A piece of the answer. `tool_calls` are read as they are: what is in one beyond the known goes back with it."""

    content: JSONValue = None
    tool_calls: JSONValue = None
    reasoning_content: JSONValue = None
    reasoning: JSONValue = None
    reasoning_text: JSONValue = None
    refusal: JSONValue = None
    reasoning_details: JSONValue = None
    thinking_blocks: JSONValue = None
    reasoning_opaque: JSONValue = None
    extra_content: JSONValue = None
    function_call: JSONValue = None


class WireChoice(msgspec.Struct, gc=False):
    """One alternative; only the first is read. `message` comes from servers that answer in one piece."""

    index: int | None = 0
    delta: WireDelta | None = None
    message: WireDelta | None = None
    finish_reason: JSONValue = None
    usage: JSONValue = None
    error: JSONValue = None


class WireChunk(msgspec.Struct, gc=False):
    """One event of the stream."""

    id: JSONValue = None
    model: JSONValue = None
    choices: list[WireChoice] | None = None
    usage: JSONValue = None
    error: JSONValue = None
    service_tier: JSONValue = None
    system_fingerprint: JSONValue = None
    x_groq: JSONValue = None


decode: Final = msgspec.json.Decoder(WireChunk).decode
"""Read an event. Errors: `msgspec.DecodeError`, `UnicodeDecodeError`."""


class PlainFunction(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """More of the arguments of a call."""

    arguments: str
    name: Literal[""] | None = None


class PlainCall(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A piece of a call that says nothing but that."""

    index: int
    function: PlainFunction
    id: str | None = None
    type: str | None = None


class PlainDelta(msgspec.Struct, gc=False):
    """A piece of the answer without anything that is rare."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[PlainCall] | None = None
    reasoning_text: None = None
    refusal: None = None
    reasoning_details: None = None
    thinking_blocks: None = None
    reasoning_opaque: None = None
    extra_content: None = None
    function_call: None = None


class PlainChoice(msgspec.Struct, gc=False):
    """The one alternative of a plain chunk."""

    delta: PlainDelta
    index: Literal[0] | None = 0
    finish_reason: None = None
    usage: None = None
    error: None = None


class PlainChunk(msgspec.Struct, gc=False):
    """A chunk as nearly all are: a piece of text, of reasoning or of a call. One with more is of another type."""

    choices: tuple[PlainChoice]
    usage: None = None
    error: None = None
    x_groq: None = None


decode_plain: Final = msgspec.json.Decoder(PlainChunk).decode
"""Read an event that has nothing rare in it. Errors: `msgspec.DecodeError`, `UnicodeDecodeError`, for all others."""

END: Final = WireChunk()
"""The end mark, in a list of chunks."""

_SILENCE: Final = frozenset({b"", b"null", b"ping", b"pong", b"keep-alive", b"keepalive", b"heartbeat"})
_space: Final = re.compile(r"\s*").match
_read_value: Final = json.JSONDecoder(strict=False).raw_decode


def decode_odd(data: bytes) -> list[WireChunk]:
    """Read an event that `decode` refuses: any number of chunks. Halves of characters are lone surrogates in them.

    Errors: `ValueError` where something in it is none.
    """
    if data.strip().lower() in _SILENCE:
        return []
    text, at, chunks = data.decode("utf-8", "surrogateescape"), 0, list[WireChunk]()
    try:
        while (at := _space(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches everywhere
            if is_end_mark(text[at : at + len(DONE)].encode("utf-8", "replace")):
                return [*chunks, END]
            value, at = _read_value(text, at)
            chunks.append(msgspec.convert(_mended(value), WireChunk, strict=False))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return chunks


def _mended(value: JSONValue) -> JSONValue:
    """A chunk whose choices are what they should be: a list of objects."""
    value = value[0] if isinstance(value, list) and value else value
    choices = value.get("choices") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(choices, list | dict):
        listed = choices if isinstance(choices, list) else [choices]
        return {**value, "choices": [choice for choice in listed if isinstance(choice, dict)]}
    return value


def is_end_mark(data: bytes) -> bool:
    """Whether an event says that the answer is over; not all servers write the mark in capitals."""
    return data == DONE or (data[:1] == b"[" and data.strip().upper() == DONE)


def odd_error(data: bytes) -> JSONValue:
    """The error in an event without an answer, in any of the shapes that servers give it; `None` where it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("choices") is not None:
        return None
    base = value.get("base_resp")
    if isinstance(base, dict):
        return _error(base.get("status_code"), base.get("status_msg")) if base.get("status_code") else None
    for key in ("errors", "detail", "error_msg", "error_message"):
        if value.get(key):
            return _error(value.get("error_code") or value.get("code") or value.get("status"), value[key])
    words = value.get("message") or value.get("msg")
    is_error = "error" in (value.get("object"), value.get("type"), value.get("status"))
    if not words or not (is_error or not value.keys() & _OF_ANSWERS):
        return None
    return _error(value.get("code") or value.get("status_code") or value.get("status") or value.get("type"), words)


def _error(code: JSONValue, message: JSONValue) -> JSONObject:
    return {"code": "" if code is None else str(code), "message": message}


class HalfCharacters:
    """Joins characters that were cut between two chunks. One for each text that grows by itself."""

    def __init__(self) -> None:
        self._halves: dict[str, str] = {}

    def join(self, name: str, text: str) -> str:
        """The text of the named stream as far as its characters are whole; the rest waits for what follows."""
        text = self._halves.pop(name, "") + text
        if text.isascii():
            return text
        kept = len(text) - _open_end(text)
        if kept < len(text):
            self._halves[name] = text[kept:]
        return _whole(text[:kept])

    def rest(self, name: str) -> str:
        """The characters of the named stream that are still open at its end, as replacement characters."""
        return _whole(self._halves.pop(name, ""))


def _open_end(text: str) -> int:
    """Length of the end of a text that may be the beginning of a character."""
    if _HIGH[0] <= text[-1] <= _HIGH[1]:
        return 1
    for length in (1, 2, 3):
        lead = ord(text[-length]) - 0xDC00 if len(text) >= length else 0
        if 0xC0 <= lead <= 0xF7:
            needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return length if length < needed else 0
        if not 0x80 <= lead < 0xC0:
            return 0
    return 0


def _whole(text: str) -> str:
    """A text without surrogates: pairs and escaped bytes become their characters, what is left is replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        try:
            return paired.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        except UnicodeEncodeError:
            return paired.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
