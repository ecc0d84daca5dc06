"""JSON mode: a body as messages, kept as they were written. Pure.

A message is stored as the text of its value and a comma, so that any run of messages is an array once it has brackets.
"""

import json
import re
from typing import Final

from chat.durable_streams.errors import StreamRequestInvalid
from thinkproject.kernel.jsonvalue import refuse_constant

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder(parse_constant=refuse_constant, parse_int=str, parse_float=str).raw_decode


def split_messages(body: bytes) -> bytes:
    """The messages of a body, an array flattened by one level. Empty for `[]`. Errors: `StreamRequestInvalid`."""
    try:
        text = body.decode("utf-8")
        begin = _skip(text, 0)
        if text[begin : begin + 1] != "[":
            end = _value(text, begin)
            _check_end(text, end)
            return text[begin:end].encode() + b","
        return _flattened(text, begin).encode()
    except (ValueError, IndexError, RecursionError) as error:
        raise StreamRequestInvalid("The body is not valid JSON.") from error


def boundaries(data: bytes) -> list[int]:
    """The ends of the messages in stored bytes, in order."""
    text, at, found, size = data.decode("utf-8"), 0, [], 0
    while at < len(text):
        end = _value(text, at) + 1
        size += len(text[at:end].encode())
        found.append(size)
        at = end
    return found


def as_array(data: bytes) -> bytes:
    """Stored messages as one JSON array."""
    return b"[" + data[:-1] + b"]"


def _flattened(text: str, begin: int) -> str:
    pieces: list[str] = []
    at = _skip(text, begin + 1)
    if text[at] == "]":
        _check_end(text, at + 1)
        return ""
    while True:
        end = _value(text, at)
        pieces.append(text[at:end])
        at = _skip(text, end)
        if text[at] == "]":
            _check_end(text, at + 1)
            return ",".join(pieces) + ","
        if text[at] != ",":
            raise ValueError(text[at])
        at = _skip(text, at + 1)


def _value(text: str, at: int) -> int:
    return int(_decode(text, at)[1])


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _check_end(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise ValueError("more than one value")
