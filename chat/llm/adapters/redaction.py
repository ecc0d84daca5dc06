"""Take secrets out of text and JSON before they reach a log or the admin. Pure.

Redaction errs on the safe side: what looks like a credential goes, even when it was none.
"""

import base64
import hashlib
import re
from functools import lru_cache
from typing import Final

from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

REDACTED: Final = "[redacted]"
MAX_LOGGED_CHARACTERS: Final = 2000
_LONG_DATA_URL: Final = 256
_LONGEST_KEY: Final = 64  # of those whose answer is kept
_SECRET_KEY: Final = re.compile(
    r"api[-_]?key|authorization|password|secret|access[-_]?token|credential|^token$", re.IGNORECASE
)
_SECRET_TEXT: Final = re.compile(
    r"\b(?:sk|pk|rk|key|gsk|xai|hf|ghp|gho|AIza|AKIA)[-_]?[A-Za-z0-9][A-Za-z0-9_\-*.]{10,}"
    r"|\b[Bb]earer\s+[^\s\"',;]+"
    r"|(?i:(?:api[-_ ]?key|token|password|secret)[\"']?\s*(?::|=|is|provided:)\s*[\"']?)[^\s\"',;}]+"
)


def redact_text(text: str, *, secrets: tuple[str, ...] = ()) -> str:
    """Replace anything that is or resembles a credential, and truncate to the size of a log line."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, REDACTED)
    text = _SECRET_TEXT.sub(REDACTED, text)
    return text if len(text) <= MAX_LOGGED_CHARACTERS else text[:MAX_LOGGED_CHARACTERS] + "…"


def redact_body(body: JSONObject, forms: KeptForms = NO_FORMS) -> JSONObject:
    """Return a copy of a request body without credentials; long data URLs become type, size and hash.

    `forms`: of its messages. Those that nothing is taken out of are themselves.
    """
    return {key: _redact_all(value, forms) if key == "messages" else _redact(key, value) for key, value in body.items()}


def _redact_all(messages: JSONValue, forms: KeptForms) -> JSONValue:
    if not isinstance(messages, list):
        return _redact("messages", messages)
    return [forms.made(each, "redacted", _redacted) for each in messages]


def _redacted(value: JSONValue) -> JSONValue:
    """The value without credentials; itself where there are none in it."""
    found = _redact("", value)
    return value if found == value else found


def _redact(key: str, value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        # A tool's schema may well have a property named "token"; only plain values are secrets.
        return {name: _redact(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_redact("", item) for item in value]
    if not isinstance(value, str):
        return value
    if _is_secret(key[:_LONGEST_KEY]) or (len(key) > _LONGEST_KEY and _SECRET_KEY.search(key)):
        return REDACTED
    if value.startswith("data:") and len(value) > _LONG_DATA_URL:
        return _shorten_data_url(value)
    return value


@lru_cache(maxsize=1024)
def _is_secret(key: str) -> bool:
    """Whether a key of this name has a secret for its value. The keys of a long conversation are always the same."""
    return _SECRET_KEY.search(key) is not None


def _shorten_data_url(url: str) -> str:
    head, _, encoded = url.partition(",")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        raw = encoded.encode()
    return f"{head},[{len(raw)} bytes, sha256 {hashlib.sha256(raw).hexdigest()[:16]}]"
