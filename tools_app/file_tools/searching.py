"""The tool `grep`."""

import asyncio
import codecs
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.files.encodings import HEAD_BYTES, PLAIN, detected_head
from tools_app.core.files.joined import JoinedFiles, joined
from tools_app.core.files.operations import CanReadBytes, CanReadMany, CanReadStream, CanSearchMany, GrepOperations
from tools_app.core.files.searching import MAX_FILE_BYTES, LineMatch, Search, searchable
from tools_app.core.files.workspace import BriefEntry, EntryKind
from tools_app.core.guard.reach import held_back, note_here
from tools_app.core.permissions.secret_files import secret_among
from tools_app.core.tool import Tool
from tools_app.errors import FileFailed, ToolInputInvalid
from tools_app.file_tools.finding import HINT
from tools_app.file_tools.making import IgnoredField, Input, about_paths, file_tool, own_pattern, refused

MAX_MATCHES: Final = 200
MAX_SECONDS: Final = 40.0
"""After that the search ends with what it has. Expressions are linear, but a workspace may be large."""

_BATCH_FILES: Final = 500
_BATCH_BYTES: Final = 4 * 1024 * 1024
_AT_ONCE: Final = 16


class GrepInput(Input):
    """Search lines of text files for a regular expression of RE2; ends after 200 matching lines."""

    query: Annotated[str, Field(description="Without backreferences and lookaround.")]
    include: Annotated[str, Field(description="Which files, as /src/**/*.py")] = "**/*"
    fixed_string: Annotated[bool, Field(alias="fixedString", description="Take query as plain text.")] = False
    case_sensitive: Annotated[bool, Field(alias="caseSensitive")] = False
    context_lines: Annotated[int, Field(alias="contextLines", ge=0, le=10, description="Lines around each match.")] = 0
    include_ignored: IgnoredField = False


@dataclass(slots=True)
class _Found:
    """The matches so far."""

    matches: list[JSONValue] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    searched: int = 0
    with_matches: int = 0
    too_large: int = 0
    binary: int = 0
    out_of_time: bool = False

    @property
    def room(self) -> int:
        return MAX_MATCHES - len(self.matches)


def create_grep_tool(operations: GrepOperations, *, name: str = "grep") -> Tool:
    """Make the tool that searches in files. Those that can be read many at once are searched quickly."""

    async def grep(
        query: str,
        include: str,
        fixed_string: bool,
        case_sensitive: bool,
        context_lines: int,
        include_ignored: bool,
    ) -> JSONObject:
        try:
            search = Search(query, is_fixed=fixed_string, is_case_sensitive=case_sensitive, context_lines=context_lines)
        except ToolInputInvalid as error:
            return refused(f"Invalid regex: {error.message}")
        pattern = await own_pattern(operations, include)
        with held_back():  # names are returned with their lines
            found_files = await _listed(operations, pattern, include_ignored)
        secret = secret_among([entry.path for entry in found_files]) - {pattern}
        files = [entry for entry in found_files if entry.path not in secret]
        small = [entry for entry in files if entry.size <= MAX_FILE_BYTES]
        large = [entry.path for entry in files if entry.size > MAX_FILE_BYTES]
        found = _Found()
        ends_at = time.monotonic() + MAX_SECONDS
        with held_back() as texts:
            await _search(operations, small, search, found, ends_at)
            await _search_large(operations, large, search, found, ends_at)
        for text in texts:
            if text.source in found.paths:  # of the others only the absence of matches is returned
                note_here(text.origin, text.source)
        value = _value(query, found)
        if len(files) < len(found_files):
            value["secretFilesLeftOut"] = len(found_files) - len(files)
        if not files and "**" not in include:
            value["note"] = HINT
        return value

    return about_paths(operations, "grep", file_tool("grep", name, GrepInput, grep))


async def _listed(operations: GrepOperations, pattern: str, include_ignored: bool) -> list[BriefEntry]:
    if isinstance(operations, CanSearchMany):
        found = await operations.find_brief(pattern, ignored=include_ignored)
    else:
        entries = await operations.glob(pattern, ignored=include_ignored)
        found = [BriefEntry.of(each) for each in entries]
    return [each for each in found if each.kind is EntryKind.FILE]


async def _search(
    operations: GrepOperations, files: Sequence[BriefEntry], search: Search, found: _Found, ends_at: float
) -> None:
    async with contextlib.aclosing(_batches(operations, files, found)) as batches:
        async for batch in batches:
            # Off the loop, which serves others meanwhile: RE2 lets go of the interpreter while it matches.
            await asyncio.to_thread(_search_batch, batch, search, found, ends_at)
            if found.room <= 0 or found.out_of_time:
                return


async def _search_large(
    operations: GrepOperations, paths: Sequence[str], search: Search, found: _Found, ends_at: float
) -> None:
    """Search files in pieces, without holding one whole. Context ends where a piece does."""
    if not isinstance(operations, CanReadStream):
        found.too_large += len(paths)
        return

    def is_late() -> bool:
        found.out_of_time = time.monotonic() >= ends_at
        return found.out_of_time

    for path in paths:
        before, is_text = 0, None
        with contextlib.suppress(FileFailed):  # gone since it was listed
            async for block in _blocks(operations.read_stream(path)):
                is_text = block is not None
                if block is None or found.room <= 0 or is_late():
                    break
                data, is_whole = block
                lines = await asyncio.to_thread(search.lines_of, data, found.room, is_late, before=before)
                found.with_matches += bool(lines) and path not in found.paths
                found.paths |= {path} if lines else set()
                found.matches += [_match(path, line) for line in lines]
                before += data.count(b"\n") + is_whole
        found.searched += is_text is True
        found.binary += is_text is False
        if found.room <= 0 or found.out_of_time:
            return


async def _blocks(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bool] | None]:
    """Lines of a text in UTF-8, some at a time, without the last newline; `None` for what is no text.

    With each, whether its last line is whole: one that is longer than a batch comes in pieces.
    """
    head, rest = b"", b""
    decoder: codecs.IncrementalDecoder | None = None
    async for piece in pieces:
        data = piece
        if decoder is None:
            head += piece
            if len(head) < HEAD_BYTES:
                continue
            encoding = detected_head(head[:HEAD_BYTES])
            if encoding is None and searchable(head) is None:
                yield None
                return
            encoding = encoding or PLAIN
            data, decoder = head.removeprefix(encoding.mark), encoding.decoder()
        rest += await asyncio.to_thread(_decoded, decoder, data)
        if len(rest) <= _BATCH_BYTES:
            continue
        end = rest.rfind(b"\n")
        yield (rest[:end], True) if end >= 0 else (rest, False)
        rest = rest[end + 1 :] if end >= 0 else b""
    if rest:
        yield rest, False


def _decoded(decoder: codecs.IncrementalDecoder, data: bytes) -> bytes:
    return decoder.decode(data).encode()


def _search_batch(batch: Sequence[JoinedFiles], search: Search, found: _Found, ends_at: float) -> None:
    def is_late() -> bool:
        found.out_of_time = time.monotonic() >= ends_at
        return found.out_of_time

    for path, data in _left_over(batch, search, found):
        if is_late():
            return
        text = searchable(data)
        if text is None:
            found.binary += 1
            continue
        found.searched += 1
        lines = search.lines_of(text, found.room, is_late)
        found.with_matches += bool(lines)
        found.paths |= {path} if lines else set()
        found.matches += [_match(path, line) for line in lines]
        if found.room <= 0:
            return


def _left_over(batch: Sequence[JoinedFiles], search: Search, found: _Found) -> Iterator[tuple[str, bytes]]:
    """The files that have to be looked at one by one: plain texts without a match are looked through at once."""
    for some in batch:
        if some.data.isascii() and b"\0" not in some.data and not search.may_match(some.data):
            found.searched += len(some.paths)
        else:
            yield from some.each()


async def _batches(
    operations: GrepOperations, files: Sequence[BriefEntry], found: _Found
) -> AsyncGenerator[list[JoinedFiles], None]:
    if isinstance(operations, CanSearchMany):
        async for some in operations.read_found(files, max_bytes=MAX_FILE_BYTES):
            yield some
        return
    paths = [each.path for each in files]
    batch: list[tuple[str, bytes]] = []
    size = 0
    async with contextlib.aclosing(_files(operations, paths)) as read:
        async for path, data in read:
            if data is None:
                found.too_large += 1  # it has grown since it was listed
                continue
            batch.append((path, data))
            size += len(data)
            if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
                yield joined(batch)
                batch, size = [], 0
    if batch:
        yield joined(batch)


async def _files(operations: GrepOperations, paths: Sequence[str]) -> AsyncGenerator[tuple[str, bytes | None], None]:
    if isinstance(operations, CanReadMany):
        async for entry, data in operations.read_many(paths, max_bytes=MAX_FILE_BYTES):
            yield entry.path, data
        return
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        texts = await asyncio.gather(*(_data(operations, path) for path in some))
        for path, data in zip(some, texts, strict=True):
            if data is not None:
                yield path, data


async def _data(operations: GrepOperations, path: str) -> bytes | None:
    """The bytes of a file; `None` if it is gone or has become something else since it was listed."""
    try:
        text = await operations.read_file(path)
        if text is not None and "\ufffd" in text and isinstance(operations, CanReadBytes):
            return await operations.read_bytes(path)
    except FileFailed:
        return None
    return None if text is None else text.encode("utf-8", "replace")


def _match(path: str, line: LineMatch) -> JSONValue:
    if line.context:
        return {"file": path, "line": line.number, "context": line.context}
    return f"{path}:{line.number}: {line.text}"


def _value(query: str, found: _Found) -> JSONObject:
    value: JSONObject = {
        "query": query,
        "filesSearched": found.searched,
        "filesWithMatches": found.with_matches,
        "totalMatches": len(found.matches),
        "matches": found.matches,
    }
    if found.room <= 0 or found.out_of_time:
        value["truncated"] = True
    notes = []
    if found.too_large:
        value["filesSkipped"] = found.too_large
        notes.append(f"{found.too_large} files above 1 MiB were not searched.")
    if found.binary:
        notes.append(f"{found.binary} files are no text and were not searched.")
    if found.out_of_time:
        notes.append(f"The search ended after {MAX_SECONDS:g} s: search in fewer files.")
    return value | {"note": " ".join(notes)} if notes else value
