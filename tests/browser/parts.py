"""Messages as they are stored, and their parts."""

from typing import Any

PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def said(message_id: str, role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": message_id, "role": role, "parts": list(parts)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "state": "done"}


def message(message_id: str, role: str, words: str) -> dict[str, Any]:
    return said(message_id, role, text(words))


def call(number: int, **more: Any) -> dict[str, Any]:
    """A settled tool call."""
    return {
        "type": "tool-read_file",
        "toolCallId": f"c{number}",
        "toolName": "read_file",
        "state": "output-available",
        "input": {"path": f"src/a/rather/long/path/of/some/module_{number}.py", "limit": 200},
        "output": f"line {number}\n" * 3,
        **more,
    }
