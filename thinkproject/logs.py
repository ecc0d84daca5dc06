r"""Logging: one format, no query strings, no secrets, and no line that a value made.

Whatever a value holds, a record is one line, with its traceback below it and indented: line breaks, escape sequences of
terminals and other characters that are not shown are written as `\n`, `\x1b`, `\u202e`.
Addresses in logs lose their query (`?token=…`), credentials in headers and URLs and the values of configured secrets
are blotted out, in messages and in tracebacks alike.
"""

import json
import logging
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

BLOT = "…"
_PATTERNS = [
    (re.compile(r"(?<=[\w/])\?[\w.~%+-]+=[^\s\"'<>]*"), f"?{BLOT}"),  # queries of addresses
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {BLOT}"),
    (re.compile(r"(://[^/\s:@]*):[^/\s@]+@"), rf"\1:{BLOT}@"),
    (re.compile(r"\b(sk-|think_)[\w-]{16,}"), rf"\1{BLOT}"),
    (re.compile(r"(/sign-in/)[\w-]{16,}"), rf"\1{BLOT}"),
]
_PLAIN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_HIDDEN = re.compile(r"[^\x20-\x7e]")
INDENT = "  "
_SIMPLE = (str, int, float, type(None))  # anything else may hold data that was not meant for logs
_secrets: list[str] = []


def redact(text: str) -> str:
    """Return the text without queries, credentials and configured secrets."""
    for secret in _secrets:
        text = text.replace(secret, BLOT)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def escaped(text: str) -> str:
    """Return the text with an escape for each character that would not be shown as itself, on one line."""
    return text if text.isprintable() else _HIDDEN.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else found[0].encode("unicode_escape").decode()


class TextFormatter(logging.Formatter):
    """One line a record, then its traceback, indented."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Format, redact and escape; the fields of `extra` follow the message."""
        extra = "".join(f" {key}={value!r}" for key, value in _extra(record).items())
        below = "" if not record.exc_info else f"\n{self.formatException(record.exc_info)}"
        below += "" if not record.stack_info else f"\n{self.formatStack(record.stack_info)}"
        lines = redact(below).split("\n")[1:]
        shown = [escaped(redact(self.formatMessage(record) + extra)), *(INDENT + escaped(each) for each in lines)]
        return "\n".join(shown)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the base class
        """Make the first line, not yet redacted."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the fields of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Format, redact and escape."""
        entry: dict[str, Any] = {
            "at": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        entry |= {key: redact(value) if isinstance(value, str) else value for key, value in _extra(record).items()}
        if record.exc_info:
            entry["traceback"] = redact(self.formatException(record.exc_info))
        return _HIDDEN.sub(
            _json_shown, json.dumps(entry, ensure_ascii=False, default=lambda value: redact(repr(value)))
        )


def _json_shown(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def configuration(level: str, form: str, *, secrets: Iterable[str]) -> dict[str, Any]:
    """Return Django's LOGGING. Everything goes to standard error; the starter of the process keeps the files."""
    _secrets[:] = [value for secret in secrets for value in _parts(secret) if len(value) > 5]
    formatter = JsonFormatter if form == "json" else TextFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"level": level, "handlers": ["stderr"]},
        "loggers": {
            "django": {"level": level, "handlers": [], "propagate": True},
            "django.server": {"level": level, "handlers": [], "propagate": True},
            "axes": {"level": "WARNING"},  # a line for each attempt; ours says what matters
            "httpx": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            "mcp": {"level": "WARNING"},  # several lines for each request
            "mcp.client": {"level": "CRITICAL"},  # it logs what a server's program says, which may be a secret
            "openai": {"level": "WARNING"},
            "daphne": {"level": "WARNING"},
            "uvicorn": {"level": "WARNING"},  # its line for each socket holds the query
            "uvicorn.error": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},  # a line for each task received
            "celery.app.trace": {"level": "WARNING"},  # and one for each done
            "celery.beat": {"level": "WARNING"},
            "psycopg.pool": {"level": "WARNING"},  # three lines for each call of the bridge
        },
    }


def _parts(secret: str) -> list[str]:
    password = urlsplit(secret).password if "://" in secret else secret
    return [password] if password else []


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    fields = vars(record).items()
    return {key: value for key, value in fields if key not in _PLAIN_FIELDS and isinstance(value, _SIMPLE)}
