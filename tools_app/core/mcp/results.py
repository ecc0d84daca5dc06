"""Results of a server's tools, resources and prompts, for a model: text, values and files, bounded. Pure."""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.errors import ToolError

RESULT_BYTES: Final = 8 * 1024 * 1024
"""Of one answer of a server."""
MAX_FILES: Final = 16
EMPTY: Final = "(no output)"
TEXT: Final = "text"
STRUCTURED: Final = "structuredContent"
"""The fields of an output that is a text and a value."""


class ResultReader:
    """Reads the content of one result. `max_bytes`: of its files together, decoded."""

    def __init__(self, *, max_bytes: int) -> None:
        self._room = max_bytes
        self.texts: list[str] = []
        self.media: list[Media] = []

    def add(self, block: JSONObject) -> None:
        """Take in one block of content."""
        match block.get("type"):
            case "text":
                self.texts.append(str(block.get("text", "")))
            case "image" | "audio" as kind:
                self._file(block.get("data"), str(block.get("mimeType", "")), f"{kind}-{len(self.media) + 1}")
            case "resource":
                self.add_resource(block.get("resource"))
            case "resource_link":
                self.texts.append(f"[resource {block.get('name', '')}: {block.get('uri', '')}]")
            case kind:
                self.texts.append(f"[content of the type {str(kind)[:40]!r} is not shown]")

    def add_resource(self, resource: Any) -> None:
        """Take in the content of a resource."""
        if not isinstance(resource, dict):
            return
        uri = str(resource.get("uri", ""))
        if isinstance(resource.get("text"), str):
            self.texts.append(f"[{uri}]\n{resource['text']}")
        elif resource.get("blob") is not None:
            name = uri.rstrip("/").rpartition("/")[2][:80] or "resource"
            self._file(resource["blob"], str(resource.get("mimeType", "")), name)

    def _file(self, data: Any, media_type: str, name: str) -> None:
        try:
            content = base64.b64decode(str(data), validate=True)
        except (binascii.Error, ValueError):
            self.texts.append(f"[{name}: this file cannot be read]")
            return
        if len(self.media) >= MAX_FILES or len(content) > self._room:
            self.texts.append(f"[{name}: this file is too large, {len(content)} bytes]")
            return
        self._room -= len(content)
        kind = media_type.partition("/")[2].partition("+")[0].partition(";")[0]
        self.media.append(Media(data=content, name=name if "." in name or not kind else f"{name}.{kind}"))

    def output(self, value: JSONValue = None) -> ToolOutput:
        """The whole: what the texts say, the value, or both where the texts say more than the value."""
        texts = self.texts if value is None else _not_said_by(value, self.texts)
        text = "\n\n".join(texts)
        if value is None:
            return ToolOutput(value=text or ("" if self.media else EMPTY), media=self.media)
        if not text:
            return ToolOutput(value=value, media=self.media)
        is_empty = value in ({}, [], "")
        return ToolOutput(value=text if is_empty else {TEXT: text, STRUCTURED: value}, media=self.media)


def tool_output(result: JSONObject, *, max_bytes: int = RESULT_BYTES) -> ToolOutput:
    """The output of a tool call: its text, the value that the server structured, or both.

    Shape: `{"text": …, "structuredContent": …}` where the server gives both and they differ. What both say is there
    once, as the value. Errors: `ToolError` with all that the server gave, as text, where it says that the call failed.
    """
    reader = _read(result.get("content") or (), max_bytes)
    value = result.get(STRUCTURED)
    if result.get("isError"):
        texts = [*reader.texts, *([] if value in (None, {}, []) or not _adds(value, reader.texts) else [dump(value)])]
        raise ToolError("\n\n".join(texts) or "The server says that the call failed.")
    return reader.output(value)


def resource_output(result: JSONObject, *, max_bytes: int = RESULT_BYTES) -> ToolOutput:
    """The content of a resource."""
    reader = ResultReader(max_bytes=max_bytes)
    for resource in result.get("contents") or ():
        reader.add_resource(resource)
    return reader.output()


def prompt_output(result: JSONObject, *, max_bytes: int = RESULT_BYTES) -> ToolOutput:
    """The messages of a prompt, each as `role: text`."""
    reader = ResultReader(max_bytes=max_bytes)
    for message in result.get("messages") or ():
        before = len(reader.texts)
        reader.add(message.get("content") or {})
        reader.texts[before:] = [f"{message.get('role', 'user')}: {text}" for text in reader.texts[before:]]
    return reader.output()


def _read(content: Iterable[JSONObject], max_bytes: int) -> ResultReader:
    reader = ResultReader(max_bytes=max_bytes)
    for block in content:
        reader.add(block)
    return reader


def _not_said_by(value: JSONValue, texts: list[str]) -> list[str]:
    """The texts without those that repeat the value, or all of one of its fields."""
    fields = list(value.values()) if isinstance(value, dict) else []
    items = fields[0] if len(fields) == 1 else value
    if isinstance(items, list) and len(items) == len(texts) and all(map(_is_said, texts, items)):
        return []  # a block for each item
    alone = fields if len(fields) == 1 else [field for field in fields if isinstance(field, str)]
    return [text for text in texts if text.strip() and not any(_is_said(text, each) for each in (value, *alone))]


def _adds(value: JSONValue, texts: list[str]) -> bool:
    """Whether the value is more than what the texts say."""
    return not texts or len(_not_said_by(value, texts)) == len(texts)


def _is_said(text: str, value: JSONValue) -> bool:
    """Whether the text is this value: as it is, or as JSON with any spaces and order of its keys."""
    if isinstance(value, str) and text.strip() == value.strip():
        return True
    try:
        return _are_equal(json.loads(text), value)
    except (ValueError, RecursionError):
        return False


def _are_equal(one: JSONValue, other: JSONValue) -> bool:
    """Equality of JSON, in which `true` is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other
