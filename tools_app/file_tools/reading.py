"""The tool `read`."""

import asyncio
import codecs
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast

from pydantic import Field

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.encodings import HEAD_BYTES, PLAIN, Encoding, detected, detected_head, named
from tools_app.core.files.media_types import sniff_head
from tools_app.core.files.operations import CanReadStream, ReadOperations
from tools_app.core.files.paths import name_of
from tools_app.core.files.reading import LineWindow, Page, kind_of, numbered, shown_size
from tools_app.core.files.workspace import EntryKind
from tools_app.core.tool import Tool
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.errors import FileFailed
from tools_app.file_tools.documents import AS_TEXT, document_of, why_unreadable
from tools_app.file_tools.making import (
    EncodingField,
    Input,
    PathField,
    about_paths,
    file_tool,
    not_found,
    own_path,
    refused,
)

MAX_MEDIA_BYTES: Final = 3_670_016
"""3.5 MiB: the largest picture or PDF that a model is given."""

MAX_READ_BYTES: Final = 16 * 1024 * 1024
"""A larger text is read in pieces."""

UNKNOWN: Final = "If it is a text, read it again with its encoding, such as windows-1251 or shift_jis."


class ReadInput(Input):
    """Read a file: text with line numbers, at most 2000 lines; documents as text; pictures and PDFs are shown."""

    path: PathField
    offset: Annotated[int | None, Field(ge=1, description="First line, from 1.")] = None
    limit: Annotated[int | None, Field(ge=1, description="Number of lines.")] = None
    encoding: EncodingField = None


def create_read_tool(operations: ReadOperations, *, name: str = "read") -> Tool:
    """Make the tool that reads a file: a page of numbered lines, or a picture or PDF as media."""

    async def read(path: str, offset: int | None, limit: int | None, encoding: str | None) -> JSONObject | ToolOutput:
        path = await own_path(operations, path)
        wanted = Wanted(path=path, offset=offset, limit=limit, encoding=named(encoding) if encoding else None)
        try:
            entry = await operations.stat(path)
            if entry is None:
                return await not_found(operations, path)
            if entry.kind is EntryKind.DIRECTORY:
                return refused(f"{path} is a directory, not a file")
            if entry.size > MAX_READ_BYTES and isinstance(operations, CanReadStream):
                return await _large(operations, wanted, entry.size)
            if entry.size > MAX_READ_BYTES:
                return refused(f"Could not read file: {path} has {shown_size(entry.size)}, which is too much to read")
            data = await operations.read_bytes(path)
        except FileFailed as error:
            return refused(f"Could not read file: {error.message}")
        if data is None:
            return await not_found(operations, path)
        return await asyncio.to_thread(shown, wanted, data)

    return about_paths(operations, "read", file_tool("read", name, ReadInput, read))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The lines of a file that are to be shown. `encoding`: as it was named; `None`: as its bytes tell."""

    path: str
    offset: int | None
    limit: int | None
    encoding: Encoding | None = None


def shown(wanted: Wanted, data: bytes) -> JSONObject | ToolOutput:
    """A file as models get it: numbered lines of its text, or media, or facts and why it cannot be shown.

    Blocks for seconds. Errors: `FileFailed` (`EILSEQ`) for bytes that are none of the encoding that was named.
    """
    name = name_of(wanted.path)
    if wanted.encoding is None:
        wants_text = wanted.offset is not None or wanted.limit is not None
        document = document_of(wanted.path, data, lambda text: _page_of(wanted, text), wants_text=wants_text)
        if document is not None:
            return cast("JSONObject | ToolOutput", document)
    kind, media_type = ("text", "") if wanted.encoding else kind_of(data, name)
    if kind == "text":
        encoding = wanted.encoding or detected(data) or PLAIN
        text = encoding.decode(data, path=wanted.path).encode(errors="surrogateescape").decode(errors="replace")
        return _page_of(wanted, text, encoding)
    value = _described(wanted, kind, media_type, len(data))
    if kind == "binary":
        is_odd_text = b"\0" not in data and len(data) > 0
        note = f"{why_unreadable(data, name)} {UNKNOWN if is_odd_text else ''}".strip()
        return value | {"unsupported": True, "note": note}
    if kind == "file":
        value["note"] = AS_TEXT
    if len(data) > MAX_MEDIA_BYTES:
        return value | {"unsupported": True, "note": f"Files of this kind are shown up to {MAX_MEDIA_BYTES} bytes."}
    return ToolOutput(value=value, media=[Media(data=data, name=name)])


def _page_of(wanted: Wanted, text: str, encoding: Encoding = PLAIN) -> JSONObject:
    return _paged(wanted, numbered(text, offset=wanted.offset or 1, limit=wanted.limit), encoding)


async def _large(operations: CanReadStream, wanted: Wanted, size: int) -> JSONObject:
    """A page of a text that is read in pieces, and never held whole."""
    head = b""
    window = LineWindow(wanted.offset or 1, wanted.limit)
    decoder: codecs.IncrementalDecoder | None = None
    encoding = wanted.encoding
    async for piece in operations.read_stream(wanted.path):
        data = piece
        if decoder is None:
            head += piece
            if len(head) < min(HEAD_BYTES, size):
                continue
            encoding = encoding or detected_head(head[:HEAD_BYTES])
            if encoding is None:
                media_type = sniff_head(head[:HEAD_BYTES], name_of(wanted.path))
                return _described(wanted, "binary", media_type, size) | {"unsupported": True}
            data, decoder = head.removeprefix(encoding.mark), encoding.decoder()
        await asyncio.to_thread(_feed, window, decoder, data)
    return _paged(wanted, window.page(), encoding or PLAIN)


def _feed(window: LineWindow, decoder: codecs.IncrementalDecoder, data: bytes) -> None:
    window.feed(decoder.decode(data))


def _described(wanted: Wanted, kind: str, media_type: str, size: int) -> dict[str, Any]:
    """The facts about a file that is no text."""
    return {
        "kind": kind,
        "path": wanted.path,
        "name": name_of(wanted.path),
        "mediaType": media_type,
        "sizeBytes": size,
    }


def _paged(wanted: Wanted, page: Page, encoding: Encoding) -> JSONObject:
    path = wanted.path
    if page.first > max(page.total_lines, 1):
        return refused(f"Could not read file: {path} has {page.total_lines} lines, so there is no line {page.first}")
    value: JSONObject = {"path": path, "content": page.content, "totalLines": page.total_lines}
    if wanted.offset is not None or wanted.limit is not None:
        value |= {"fromLine": page.first, "toLine": page.last}
    return value if encoding.is_plain else value | {"encoding": encoding.description}
