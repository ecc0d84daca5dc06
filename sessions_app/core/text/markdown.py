"""A message as Markdown, to read. Texts stay as they were written; tool calls are fenced blocks."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from sessions_app.core.messages.parts import is_tool, tool_name
from sessions_app.core.messages.shapes import Part
from thinkproject.kernel.jsonvalue import JSONValue

_SPEAKERS: Final = {"user": "User", "assistant": "Assistant", "system": "System"}


def to_markdown(role: str, parts: Iterable[Part], note: str = "") -> str:
    """One message as Markdown: a heading with the author, a note on it, then its parts. Reasoning is quoted."""
    head = [f"## {_SPEAKERS.get(role, role)}", *([f"*{note}*"] if note else ())]
    pieces = [*head, *(piece for part in parts for piece in _piece(part))]
    return "\n\n".join(pieces) + "\n\n"


def _piece(part: Part) -> Iterator[str]:
    kind = part.get("type")
    if kind == "text" and part.get("text"):
        yield str(part["text"]).strip("\n")
    elif kind == "reasoning" and part.get("text"):
        yield "\n".join(f"> {line}".rstrip() for line in str(part["text"]).strip("\n").splitlines())
    elif is_tool(part):
        yield f"**Tool:** `{tool_name(part)}`"
        if "input" in part:
            yield _fenced(part["input"])
        if part.get("errorText"):
            yield f"**Error:** {part['errorText']}"
        elif "output" in part:
            yield _fenced(part["output"])
    elif kind == "file":
        yield f"**File:** {part.get('filename') or part.get('mediaType')}"
    elif kind == "source-url":
        yield f"**Source:** <{part.get('url')}>"


def _fenced(value: JSONValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{'' if isinstance(value, str) else 'json'}\n{text}\n{fence}"
