"""Type and id of a large frame, found at the two ends of its text before it is decoded.

Published clients write `type` last and their lists before it, others write it first. Quotes inside of strings are
escaped, so a match is a key of the frame, unless the frame was built to mislead. The answer therefore decides how a
large frame is handled, never what it means.
"""

import re
from typing import Final

ENDS_CHARS: Final = 512

_TYPE = re.compile(r'"type"\s*:\s*"(cf_agent_use_chat_request|cf_agent_chat_messages)"')
_SEND = re.compile(r'"type"\s*:\s*"(send)"')
_ID = re.compile(r'"(?:id|requestId)"\s*:\s*"([^"\\\x00-\x1f]{1,128})"')


def is_chat_request(text: str) -> bool:
    """Whether a frame is a chat request."""
    return _find(_TYPE, text) == "cf_agent_use_chat_request"


def is_send(text: str) -> bool:
    """Whether a frame of the AI SDK's own socket asks for a turn. Its `requestId` comes before its `id`."""
    return _find(_SEND, text) is not None


def is_message_list(text: str) -> bool:
    """Whether a frame is the client's own list of messages, which the server ignores."""
    return _find(_TYPE, text) == "cf_agent_chat_messages"


def request_id(text: str) -> str | None:
    """The request id of a frame that is not decoded, for the error frame."""
    return _find(_ID, text)


def byte_length(text: str) -> int:
    """Bytes of a text in UTF-8, counted without a copy where that is possible."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _find(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text[:ENDS_CHARS]) or pattern.search(text[-ENDS_CHARS:])
    return None if found is None else found[1]
