"""The tools `list` and `find`."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final

from pydantic import Field

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.gitignore import FILE_NAME
from tools_app.core.files.operations import (
    CanReadMany,
    CanReadText,
    CanSearchMany,
    CanStat,
    FindOperations,
    ListOperations,
)
from tools_app.core.files.paths import chain, joined
from tools_app.core.files.reading import shown_size
from tools_app.core.files.workspace import BriefEntry, Entry, EntryKind
from tools_app.core.guard.reach import held_back
from tools_app.core.tool import Tool
from tools_app.errors import FileFailed
from tools_app.file_tools.making import (
    IgnoredField,
    Input,
    about_paths,
    file_tool,
    not_found,
    own_path,
    own_pattern,
    refused,
)
from tools_app.workspace.ignoring import ignored_ones

MAX_LISTED: Final = 1_000
MAX_FOUND: Final = 200
MAX_IGNORE_BYTES: Final = 256 * 1024
HINT: Final = "A pattern without ** matches in one directory only: **/*.py finds files of any directory."


class ListInput(Input):
    """List a directory: its directories first, then its files with their sizes."""

    path: Annotated[str, Field(description="The directory.")] = "/"
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="Entries at most.")] = 200
    offset: Annotated[int, Field(ge=0, description="Entries to skip.")] = 0
    include_ignored: IgnoredField = False


class FindInput(Input):
    """Find files and directories by a pattern of paths: *.md finds files of the root only, **/*.md all."""

    pattern: Annotated[str, Field(description="As /src/**/test_[!a]?.{js,ts}")]
    include_ignored: IgnoredField = False


def create_list_tool(operations: ListOperations, *, name: str = "list") -> Tool:
    """Make the tool that lists a directory, a page at a time.

    Where the operations can `stat`, a missing directory is an error; where they can read files, `.gitignore` counts.
    A page is counted before what is ignored is left out.
    """

    async def list_directory(path: str, limit: int, offset: int, include_ignored: bool) -> JSONObject:
        path = await own_path(operations, path)
        entries = await operations.read_dir(path, limit=limit + 1, offset=offset)
        if not entries and isinstance(operations, CanStat):
            found = await operations.stat(path)
            if found is None:
                return await not_found(operations, path, "Directory")
            if found.kind is not EntryKind.DIRECTORY:
                return refused(f"{path} is a file, not a directory")
        page = entries[:limit]
        shown = page if include_ignored else await _left(operations, path, page)
        value: JSONObject = {"path": path, "count": len(shown), "entries": [_listed(entry) for entry in shown]}
        if len(shown) < len(page):
            value["ignored"] = len(page) - len(shown)
        if len(entries) > limit:
            value |= {"hasMore": True, "nextOffset": offset + limit}
        return value

    return about_paths(operations, "list", file_tool("list", name, ListInput, list_directory))


def create_find_tool(operations: FindOperations, *, name: str = "find") -> Tool:
    """Make the tool that finds entries by a pattern: all are counted, 200 are named."""

    async def find(pattern: str, include_ignored: bool) -> JSONObject:
        wanted = await own_pattern(operations, pattern)
        search = operations.find_brief if isinstance(operations, CanSearchMany) else operations.glob
        entries: Sequence[BriefEntry | Entry] = await search(wanted, ignored=include_ignored)
        files = [entry.path + "/" * _is_directory(entry) for entry in entries[:MAX_FOUND]]
        value: JSONObject = {"pattern": pattern, "count": len(entries), "files": files}
        if len(entries) > MAX_FOUND:
            value |= {"truncated": True, "showing": MAX_FOUND}
        if not entries and "**" not in pattern:
            value["note"] = HINT
        return value

    return about_paths(operations, "find", file_tool("find", name, FindInput, find))


async def _left(operations: ListOperations, path: str, page: list[Entry]) -> list[Entry]:
    """The entries of a directory that its own file and those above it leave; all within one that is ignored."""
    directories = ["/", *chain(path)] if path != "/" else ["/"]
    files = [each async for each in _ignore_files(operations, directories)]
    paths = [(path, True), *((joined(path, entry.name), _is_directory(entry)) for entry in page)]
    is_whole, *flags = await ignored_ones(files, paths)
    return [entry for entry, is_ignored in zip(page, flags, strict=True) if is_whole or not is_ignored]


async def _ignore_files(operations: ListOperations, directories: list[str]) -> AsyncIterator[tuple[str, str]]:
    if isinstance(operations, CanReadMany):
        paths = {joined(directory, FILE_NAME): directory for directory in directories}
        with held_back():  # rules choose names, no text of theirs is returned
            found = [each async for each in operations.read_many(list(paths), max_bytes=MAX_IGNORE_BYTES)]
        for entry, data in found:
            if data is not None and entry.path in paths:
                yield paths[entry.path], data.decode("utf-8", "replace")
    elif isinstance(operations, CanReadText):
        for directory in directories:
            try:
                with held_back():
                    text = await operations.read_file(joined(directory, FILE_NAME))
            except FileFailed:  # a directory of that name
                text = None
            if text is not None:
                yield directory, text


def _is_directory(entry: BriefEntry | Entry) -> bool:
    return entry.kind is EntryKind.DIRECTORY


def _listed(entry: Entry) -> str:
    match entry.kind:
        case EntryKind.DIRECTORY:
            return f"{entry.name}/"
        case EntryKind.SYMLINK:
            return f"{entry.name} -> {entry.target}"
        case _:
            return f"{entry.name} ({shown_size(entry.size)})"
