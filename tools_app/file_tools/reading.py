"""The tool `read`."""

import asyncio
from typing import Annotated, Any, Final

from pydantic import Field

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.operations import ReadOperations
from tools_app.core.files.paths import name_of
from tools_app.core.files.reading import kind_of, numbered, shown_size
from tools_app.core.files.workspace import EntryKind
from tools_app.core.tool import Tool
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.errors import FileFailed
from tools_app.file_tools.making import Input, PathField, file_tool, not_found, own_path, refused

MAX_MEDIA_BYTES: Final = 3_670_016
"""3.5 MiB: the largest picture or PDF that a model is given."""

MAX_READ_BYTES: Final = 16 * 1024 * 1024


class ReadInput(Input):
    """Read a file: text with line numbers, at most 2000 lines; pictures and PDFs are shown to you."""

    path: PathField
    offset: Annotated[int | None, Field(ge=1, description="First line, from 1.")] = None
    limit: Annotated[int | None, Field(ge=1, description="Number of lines.")] = None


def create_read_tool(operations: ReadOperations, *, name: str = "read") -> Tool:
    """Make the tool that reads a file: a page of numbered lines, or a picture or PDF as media."""

    async def read(path: str, offset: int | None, limit: int | None) -> JSONObject | ToolOutput:
        path = await own_path(operations, path)
        try:
            entry = await operations.stat(path)
            if entry is None:
                return not_found(path)
            if entry.kind is EntryKind.DIRECTORY:
                return refused(f"{path} is a directory, not a file")
            if entry.size > MAX_READ_BYTES:
                return refused(f"Could not read file: {path} has {shown_size(entry.size)}, which is too much to read")
            data = await operations.read_bytes(path)
        except FileFailed as error:
            return refused(f"Could not read file: {error.message}")
        if data is None:
            return not_found(path)
        return await asyncio.to_thread(_shown, path, data, offset, limit)

    return file_tool("read", name, ReadInput, read)


def _shown(path: str, data: bytes, offset: int | None, limit: int | None) -> JSONObject | ToolOutput:
    name = name_of(path)
    kind, media_type = kind_of(data, name)
    if kind == "text":
        return _page(path, data.decode("utf-8", "replace").removeprefix("\ufeff"), offset, limit)
    value: dict[str, Any] = {
        "kind": kind,
        "path": path,
        "name": name,
        "mediaType": media_type,
        "sizeBytes": len(data),
    }
    if kind == "binary":
        return value | {"unsupported": True}
    if len(data) > MAX_MEDIA_BYTES:
        return value | {"unsupported": True, "note": f"Files of this kind are shown up to {MAX_MEDIA_BYTES} bytes."}
    return ToolOutput(value=value, media=[Media(data=data, name=name)])


def _page(path: str, text: str, offset: int | None, limit: int | None) -> JSONObject:
    page = numbered(text, offset=offset or 1, limit=limit)
    if page.first > max(page.total_lines, 1):
        return refused(f"Could not read file: {path} has {page.total_lines} lines, so there is no line {page.first}")
    value: JSONObject = {"path": path, "content": page.content, "totalLines": page.total_lines}
    if offset is not None or limit is not None:
        value |= {"fromLine": page.first, "toLine": page.last}
    return value
