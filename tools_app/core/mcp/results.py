"""Results of a server's tools, resources and prompts, for a model: text, values and files, bounded. Pure."""

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.errors import ToolError

MAX_FILES: Final = 16
EMPTY: Final = "(no output)"


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
        """The whole: a value if there is one, else the texts."""
        text = "\n\n".join(self.texts)
        return ToolOutput(value=(text or ("" if self.media else EMPTY)) if value is None else value, media=self.media)


def tool_output(result: JSONObject, *, max_bytes: int) -> ToolOutput:
    """The output of a tool call. A value that the server structured stands for its text, which repeats it.

    Errors: `ToolError` with the server's text where the server says that the call failed.
    """
    reader = _read(result.get("content") or (), max_bytes)
    if result.get("isError"):
        raise ToolError("\n\n".join(reader.texts) or "The server says that the call failed.")
    return reader.output(result.get("structuredContent"))


def resource_output(result: JSONObject, *, max_bytes: int) -> ToolOutput:
    """The content of a resource."""
    reader = ResultReader(max_bytes=max_bytes)
    for resource in result.get("contents") or ():
        reader.add_resource(resource)
    return reader.output()


def prompt_output(result: JSONObject, *, max_bytes: int) -> ToolOutput:
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
