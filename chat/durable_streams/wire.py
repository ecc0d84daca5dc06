"""Headers of requests, and the framing of answers. Pure.

Offsets are two numbers of 16 digits with `_` between them: the order of the texts is that of the positions.
"""

import base64
import random
import re
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from chat.durable_streams.errors import StreamRequestInvalid
from thinkproject.kernel.jsonvalue import JSONObject, dump
from thinkproject.kernel.phrases import Phrase

DEFAULT_TYPE: Final = "application/octet-stream"
BEGINNING: Final = "-1"
NOW: Final = "now"
CURSOR_SECONDS: Final = 20
MOST: Final = 2**53 - 1
MAX_TTL: Final = 10 * 365 * 24 * 3600
_CURSOR_EPOCH: Final = 1_728_432_000  # 2024-10-09T00:00:00Z
_OFFSET: Final = re.compile(r"(\d{16})_(\d{16})", re.ASCII)
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_EXPIRES: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TYPE: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+*-]+\s*(;.*)?", re.ASCII)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerClaim:
    """A writer's id, its epoch, and the number of what it sends."""

    id: str
    epoch: int
    seq: int


def format_offset(position: int, life: int = 0) -> str:
    """The offset of a position. `life`: of streams that may begin anew."""
    return f"{life:016d}_{position:016d}"


def parse_offset(text: str) -> tuple[int, int]:
    """Life and position of an offset. Errors: `StreamRequestInvalid`."""
    found = _OFFSET.fullmatch(text)
    if found is None:
        raise StreamRequestInvalid("This is no offset of a stream.")
    return int(found[1]), int(found[2])


def parse_number(text: str, name: str) -> int:
    """A decimal number without sign and leading zeros. Errors: `StreamRequestInvalid`."""
    if _NUMBER.fullmatch(text) is None or int(text) > MOST:
        raise StreamRequestInvalid(Phrase("{name} is not a whole number in its usual form.", name=name))
    return int(text)


def parse_ttl(text: str | None) -> int | None:
    """Seconds of a `Stream-TTL`. Errors: `StreamRequestInvalid`."""
    if text is None:
        return None
    seconds = parse_number(text, "Stream-TTL")
    if seconds > MAX_TTL:
        raise StreamRequestInvalid("Stream-TTL is more than ten years.")
    return seconds


def parse_expires(text: str | None) -> datetime | None:
    """The time of a `Stream-Expires-At`. Errors: `StreamRequestInvalid`."""
    if text is None:
        return None
    try:
        moment = parse_datetime(text) if _EXPIRES.fullmatch(text) else None
        if moment is not None:
            return moment.astimezone(timezone.get_default_timezone())
    except (ValueError, OverflowError):
        pass
    raise StreamRequestInvalid("Stream-Expires-At is no time as 2030-01-31T12:00:00Z.")


def parse_type(text: str | None) -> str | None:
    """A content type as it is stored, or nothing. Errors: `StreamRequestInvalid`."""
    text = (text or "").strip()
    if not text:
        return None
    if len(text) > 200 or _TYPE.fullmatch(text) is None:
        raise StreamRequestInvalid("The content type is not valid.")
    return text


def media_type(content_type: str) -> str:
    """The type without parameters, in lower case: what two types are compared by."""
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    """Whether a stream of this type has messages."""
    return media_type(content_type) == "application/json"


def is_text(content_type: str) -> bool:
    """Whether events carry the bytes of this type as text."""
    return media_type(content_type).startswith("text/") or is_json(content_type)


def parse_producer(id_: str | None, epoch: str | None, seq: str | None) -> ProducerClaim | None:
    """The three headers of a producer, all or none. Errors: `StreamRequestInvalid`."""
    if id_ is None and epoch is None and seq is None:
        return None
    if id_ is None or epoch is None or seq is None:
        raise StreamRequestInvalid("A producer sends Producer-Id, Producer-Epoch and Producer-Seq together.")
    if not id_.strip() or len(id_) > 200:
        raise StreamRequestInvalid("Producer-Id has 1 to 200 characters.")
    return ProducerClaim(id=id_, epoch=parse_number(epoch, "Producer-Epoch"), seq=parse_number(seq, "Producer-Seq"))


def is_true(text: str | None) -> bool:
    """Whether a header says `true`; anything else is as if it were absent."""
    return text is not None and text.strip().lower() == "true"


def next_cursor(given: str | None) -> str:
    """The cursor of a live answer: the number of the present interval, and beyond the reader's own if that is ahead."""
    current = int(time.time() - _CURSOR_EPOCH) // CURSOR_SECONDS
    if given is not None and _NUMBER.fullmatch(given) and int(given) >= current:
        return str(int(given) + max(1, random.randint(1, 3600) // CURSOR_SECONDS))  # noqa: S311 - spreads caches
    return str(current)


def data_event(data: bytes, *, as_text: bool) -> bytes:
    """An SSE event with a stream's bytes: as text by lines, whatever ends them, or as base64."""
    text = data.decode("utf-8", "replace") if as_text else base64.b64encode(data).decode()
    lines = _LINE_END.split(text)
    return ("event: data\n" + "".join(f"data:{line}\n" for line in lines) + "\n").encode()


def control_event(*, offset: str, cursor: str, is_up_to_date: bool, is_closed: bool) -> bytes:
    """The SSE event after each data event: where its reader is."""
    control: JSONObject = {"streamNextOffset": offset}
    if not is_closed:
        control["streamCursor"] = cursor
    if is_up_to_date:
        control["upToDate"] = True
    if is_closed:
        control["streamClosed"] = True
    return f"event: control\ndata:{dump(control)}\n\n".encode()
