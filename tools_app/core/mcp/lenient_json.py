"""JSON as editors keep it in their settings: with comments, and commas behind the last item. Pure."""

import json
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONValue, refuse_constant
from thinkproject.kernel.phrases import Phrase
from tools_app.errors import McpServerInvalid

_SPACE: Final = " \t\r\n"


def load_lenient(text: str) -> JSONValue:
    """Decode it. Errors: `McpServerInvalid` with the line and column, also for a key that an object has twice."""
    strict = without_extras(text.removeprefix("\ufeff"))
    try:
        return json.loads(strict, object_pairs_hook=_object, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise McpServerInvalid(
            Phrase(
                "This cannot be read at line {line}, column {column}. A configuration is JSON; comments are allowed.",
                line=error.lineno,
                column=error.colno,
            )
        ) from error
    except (ValueError, RecursionError) as error:
        raise McpServerInvalid("This cannot be read: it is nested too deeply, or has a number that is none.") from error


def without_extras(text: str) -> str:
    """Replace comments and last commas by spaces, so that all that is left stands where it stood."""
    found = list(text)
    comma = -1  # of the last comma behind an item, with nothing but space and comments behind it
    before = "["
    at = 0
    while at < len(text):
        end = _end_of_piece(text, at)
        if text.startswith(("//", "/*"), at):
            found[at:end] = [char if char in "\r\n" else " " for char in text[at:end]]
        elif text[at] not in _SPACE:
            if text[at] in "}]" and comma >= 0:
                found[comma] = " "
            comma = at if text[at] == "," and before not in "[{,:" else -1
            before = text[at]
        at = end
    return "".join(found)


def _end_of_piece(text: str, at: int) -> int:
    """The end of the text in quotes or of the comment that begins here, or of the single character."""
    if text[at] == '"':
        end = at + 1
        while end < len(text) and text[end] != '"':
            end += 2 if text[end] == "\\" else 1
        return min(end + 1, len(text))
    if text.startswith("//", at):
        ends = [end for end in (text.find("\n", at), text.find("\r", at)) if end >= 0]
        return min(ends, default=len(text))
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    return at + 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise McpServerInvalid(Phrase("{name!r} is there twice. Keep one of them.", name=twice[:100]))
    return found
