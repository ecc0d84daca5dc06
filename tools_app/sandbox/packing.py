"""Bytes in the JSON of calls: base64 under a key of its own, as the runners of code write and read them."""

import base64
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

BYTES: Final = "$bytes"


def packed(data: bytes) -> JSONObject:
    """The bytes as a value of JSON."""
    return {BYTES: base64.b64encode(data).decode("ascii")}


def unpacked(value: JSONValue) -> bytes | None:
    """The bytes of a value; `None` where it holds none. Errors: `ValueError` for what is no base64."""
    text = value.get(BYTES) if isinstance(value, dict) else None
    return base64.b64decode(text, validate=True) if isinstance(text, str) else None
