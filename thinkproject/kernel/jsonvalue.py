"""JSON as a type, and the few things everybody does with it.

`JSONValue` is the one place where `Any` stands for "some JSON value": at borders, never inside.
"""

import hashlib
import json
from typing import Any, TypeAlias

import msgspec

JSONValue: TypeAlias = Any
JSONObject: TypeAlias = dict[str, Any]


# Built once: `json.dumps` with options builds an encoder for each call, and this runs for every chunk.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


def dump(value: JSONValue) -> str:
    """Encode as compact JSON text; non-ASCII stays readable, lone surrogates are escaped.

    Errors: `ValueError` for NaN and infinities, `TypeError` for what JSON cannot carry.
    """
    text = _encode(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _encode_ascii(value)
    return text


_decode = msgspec.json.Decoder().decode


def load(text: str | bytes) -> JSONValue:
    """Decode JSON text. Errors: `ValueError`, also for NaN, infinities and nesting deeper than Python's stack."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _load_slowly(text)


def _load_slowly(text: str | bytes) -> JSONValue:
    """Decode with Python's own module, which takes more: lone surrogates, other encodings, numbers beyond a float."""
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except RecursionError as error:
        raise ValueError("JSON is nested too deeply") from error


def byte_size(value: JSONValue) -> int:
    """Size in UTF-8 bytes of the compact encoding."""
    return len(dump(value).encode())


def fingerprint(value: JSONValue) -> str:
    """Hash that is equal for equal values whatever the order of their keys (hex, 32 characters)."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def refuse_constant(name: str) -> JSONValue:
    """Refuse what Python would read as a number and JSON does not have. Errors: `ValueError`."""
    raise ValueError(f"JSON has no {name}")


def is_nested_deeper(value: JSONValue, levels: int) -> bool:
    """Whether arrays and objects lie in each other more than `levels` deep. Walks without recursion.

    Deep nesting would exhaust the stack of code that walks the value recursively.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        below: list[JSONValue] = []
        for node in level:
            below += node.values() if isinstance(node, dict) else node
        level = [node for node in below if isinstance(node, dict | list)]
        if not level:
            return False
    return bool(level)
