"""Loaded documents still in the model's context. Pure; stored messages are never changed.

A document that was unloaded, or that a later call loaded again, is replaced by a short note where the model reads it.
"""

from collections.abc import Collection, Iterable
from typing import Final

from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tool_states import ToolState

LOAD_TOOL: Final = "load_context"
UNLOAD_TOOL: Final = "unload_context"


def loaded_name(label: str, key: str) -> str:
    """The record of a loaded document in a session."""
    return f"{label}:{key}"


def unloaded_note(key: str) -> str:
    """Placeholder of an unloaded document."""
    return f"[skill unloaded: {key}]"


def without_unloaded(history: Iterable[Message], added: Iterable[Message], loaded: Collection[str]) -> list[Message]:
    """Give the messages, root first, with every document that is not loaded any more as a note.

    Shape: `loaded` is what the session had loaded when the turn began; `added` is what the turn added since.
    """
    gone: set[str] = set()
    newest_first = [_noted(message, gone, None) for message in reversed(list(added))]
    newest_first += [_noted(message, gone, loaded) for message in reversed(list(history))]
    return newest_first[::-1]


def _noted(message: Message, gone: set[str], loaded: Collection[str] | None) -> Message:
    """The message as it is read; `gone` collects the documents that nothing above may show any more."""
    parts = list(message["parts"])
    is_changed = False
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        found = _document(part)
        if found is None:
            continue
        name, key, is_load = found
        if is_load and (name in gone or (loaded is not None and name not in loaded)):
            parts[index] = {**part, "output": unloaded_note(key)}
            is_changed = True
        gone.add(name)
    return {**message, "parts": parts} if is_changed else message


def _document(part: Part) -> tuple[str, str, bool] | None:
    """The document that a settled call loaded or unloaded: name, key, and the direction."""
    kind = part.get("type")
    tool = part.get("toolName") if kind == "dynamic-tool" else str(kind).removeprefix("tool-")
    given = part.get("input")
    if (
        tool not in {LOAD_TOOL, UNLOAD_TOOL}
        or part.get("state") != ToolState.OUTPUT_AVAILABLE
        or not isinstance(given, dict)
    ):
        return None
    label, key = given.get("label"), given.get("key")
    if not isinstance(label, str) or not isinstance(key, str):
        return None
    if tool == LOAD_TOOL and str(part.get("output")).startswith((f"{NOT_FOUND}: ", "Error: ")):
        return None
    return loaded_name(label, key), key, tool == LOAD_TOOL


NOT_FOUND: Final = "Not found"
