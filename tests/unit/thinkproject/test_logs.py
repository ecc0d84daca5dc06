"""Logs hold no query strings and no secrets, in messages and in tracebacks."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from thinkproject import logs

SECRET = "canary-0123456789"


@pytest.fixture(autouse=True)
def _with_secret() -> Iterator[None]:
    before = list(logs._secrets)
    logs.configuration("INFO", "text", secrets=[SECRET, "postgres://user:db-canary-1@h/n", ""])
    yield
    logs._secrets[:] = before


def _record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "t", "levelname": "INFO", "msg": message, "args": args, **extra})


@pytest.mark.parametrize(
    "text",
    [
        "GET /agents/a/b?token=think_abcdefghijklmnopqrst HTTP/1.1",
        "Authorization: Bearer think_abcdefghijklmnopqrst",
        f"key {SECRET} was refused",
        "connecting to postgres://user:db-canary-1@h/n failed",
        "redis://:abcdefghijklmnopqrst@h:6379/0",
        "opened /sign-in/abcdefghijklmnopqrstuv",
        "provider said sk-abcdefghijklmnopqrstuv",
    ],
)
def test_what_must_not_be_read_is_blotted_out(text: str) -> None:
    said = logs.TextFormatter().format(_record(text))
    for canary in ("abcdefghijklmnopqrst", SECRET, "db-canary-1"):
        assert canary not in said


def test_a_traceback_is_redacted_too() -> None:
    try:
        raise ValueError(f"bad key {SECRET}")
    except ValueError:
        record = _record("failed", exc_info=sys.exc_info())
    for formatter in (logs.TextFormatter(), logs.JsonFormatter()):
        said = formatter.format(record)
        assert "ValueError" in said
        assert SECRET not in said


def test_json_lines_carry_the_fields_of_extra() -> None:
    said = json.loads(logs.JsonFormatter().format(_record("turn %s", "done", turn_id="trn_1", token=SECRET)))
    assert said["message"] == "turn done"
    assert said["turn_id"] == "trn_1"
    assert SECRET not in said["token"]


def test_ordinary_text_is_left_alone() -> None:
    text = "Was it done? Yes: 3 of 4 in /var/think, see docs"
    assert logs.redact(text) == text


FORGED = "x\n2026-11-26 20:00:00,000 ERROR think: forged\r\x1b[31m\x9b31m\u202e\u2028\x00\x85"


def test_no_value_makes_a_line_or_reaches_a_terminal() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError:
        record = _record(f"{FORGED} %s", FORGED, exc_info=sys.exc_info(), stack_info=FORGED, value=FORGED, number=1)
    first, *below = logs.TextFormatter().format(record).split("\n")
    assert first.count("forged") == 3
    assert first.endswith(" number=1")
    assert below[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in below)
    said = logs.JsonFormatter().format(record)
    assert json.loads(said)["value"] == FORGED
    for line in (first, *below, said):
        assert line.isprintable(), line


def test_what_can_be_shown_is_shown_as_it_is() -> None:
    text = "Übergröße — 漢字 \\n 'quoted'"
    assert logs.TextFormatter().format(_record(text)).endswith(text)
    assert text.split(maxsplit=1)[0] in logs.JsonFormatter().format(_record(text))
