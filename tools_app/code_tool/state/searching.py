"""Functions that search the lines of files: for a text, or for a regular expression of RE2."""

import asyncio
import threading
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.code_tool.state.arguments import flag, text
from tools_app.code_tool.state.data import read_bytes
from tools_app.code_tool.state.files import Function
from tools_app.core.files.searching import MAX_FILE_BYTES, Search, searchable
from tools_app.core.files.workspace import EntryKind, Workspace
from tools_app.core.guard.reach import held_back, note_here
from tools_app.errors import CodeInvalid, ToolInputInvalid

MAX_MATCHES: Final = 200


async def search_text(files: Workspace, value: JSONObject) -> JSONValue:
    """Lines of a file that match. Errors: `ENOENT`; `CodeInvalid` for a large file and an expression."""
    search = _search(value)
    data = await read_bytes(files, text(value, "path"))
    if flag(value, "regex") and len(data) > MAX_FILE_BYTES:
        raise CodeInvalid(f"A file of more than {MAX_FILE_BYTES} bytes is searched for a text only, not for a regex.")
    lines = await asyncio.to_thread(searchable, data)
    return await _matches(search, data if lines is None else lines, MAX_MATCHES)


async def search_files(files: Workspace, value: JSONObject) -> JSONValue:
    """Lines of many files that match. Files above 1 MiB and files that are no text are left out."""
    search = _search(value)
    with held_back():  # names are returned with their lines
        entries = await files.glob(text(value, "pattern", "/**/*"))
    paths = [entry.path for entry in entries if entry.kind is EntryKind.FILE]
    found: list[JSONObject] = []
    room = MAX_MATCHES
    with held_back() as texts:
        async for entry, data in files.read_many(paths, max_bytes=MAX_FILE_BYTES):
            lines = None if data is None else await asyncio.to_thread(searchable, data)
            if lines is None:
                continue
            matches = await _matches(search, lines, room)
            if matches:
                found.append({"path": entry.path, "matches": matches})
                room -= len(matches)
            if room <= 0:
                break
    shown = {entry["path"] for entry in found}
    for each in texts:
        if each.source in shown:
            note_here(each.origin, each.source)
    return found


def _search(value: JSONObject) -> Search:
    is_fixed, is_exact = not flag(value, "regex"), flag(value, "caseSensitive")
    try:
        return Search(text(value, "query"), is_fixed=is_fixed, is_case_sensitive=is_exact)
    except ToolInputInvalid as error:
        raise CodeInvalid(f"'query' cannot be searched for: {error.message}") from error


async def _matches(search: Search, data: bytes, limit: int) -> list[JSONValue]:
    """Search off the loop, no longer than the code waits for it."""
    is_left = threading.Event()
    try:
        lines = await asyncio.to_thread(search.lines_of, data, limit, is_left.is_set)
    finally:
        is_left.set()
    return [{"line": line.number, "text": line.text} for line in lines]


SEARCH_FUNCTIONS: Final[dict[str, Function]] = {"searchText": search_text, "searchFiles": search_files}
