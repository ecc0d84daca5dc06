"""The methods of a workspace that change nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice
from typing import IO, Final, TypeAlias, TypeVar

from tools_app.core.files.diffs import unified
from tools_app.core.files.encodings import shown_text
from tools_app.core.files.failures import failed
from tools_app.core.files.gitignore import MAX_RULES
from tools_app.core.files.globs import GlobPattern, compile_glob
from tools_app.core.files.joined import JoinedFiles, joined
from tools_app.core.files.paths import below, chain, normalise, parent_of
from tools_app.core.files.workspace import BriefEntry, Entry, EntryKind, WorkspaceInfo
from tools_app.core.guard.reach import is_reading, note_here
from tools_app.core.guard.rules import MAX_SOURCES
from tools_app.core.origins import Origin
from tools_app.core.permissions.file_rules import FileDeed, check_files, refused_files
from tools_app.errors import FileFailed
from tools_app.workspace.ignoring import ignored_ones
from tools_app.workspace.stores.bridge import Bridge, read_piece, skip
from tools_app.workspace.stores.planning import Plan
from tools_app.workspace.stores.tree import CanSearchRows, Tree

E = TypeVar("E", BriefEntry, Entry)
Matched: TypeAlias = tuple[list[E], dict[str, Origin], list[tuple[str, str]]]
_BATCH_PATHS: Final = 200
_PART_FILES: Final = 2_000
_BATCH_BYTES: Final = 4 * 1024 * 1024
_IGNORE_FILE: Final = ".gitignore"
_MAX_IGNORE_BYTES: Final = 1024 * 1024


class Reads(Bridge):
    """Reading, listing, comparing. See `tools_app.core.files.workspace.Workspace` for what each method promises."""

    async def stat(self, path: str) -> Entry | None:
        """The entry at a path, following links; `None` where there is none."""
        entry = await self._reading(partial(_entry, path=path))
        if entry is not None and entry.path != normalise(path):
            self._note_names([entry])  # where its links lead
        return entry

    async def lstat(self, path: str) -> Entry | None:
        """The entry at a path; a link in the last component is not followed."""
        return await self._reading(partial(_entry, path=path, follow=False))

    async def read_file(self, path: str) -> str | None:
        """The text of a file, undecodable bytes replaced; `None` where there is none."""
        data = await self.read_bytes(path)
        return None if data is None else data.decode(errors="replace")

    async def read_bytes(self, path: str) -> bytes | None:
        """The bytes of a file; `None` where there is none. Errors: `EISDIR`."""
        return await self._reading(partial(_bytes, path=path, store=self))

    async def read_stream(self, path: str, *, start: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a file from an offset, in pieces of 256 KiB. Errors: `ENOENT`, `EISDIR`, `EINVAL`."""
        if start < 0:
            raise failed("EINVAL", path, "an offset is not negative")
        file = await self._reading(partial(_opened, path=path, store=self))
        try:
            await skip(file, start)
            while piece := await read_piece(file):
                yield piece
        finally:
            file.close()

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> AsyncIterator[tuple[Entry, bytes | None]]:
        """Files with their bytes, in the order of the paths, whose spelling the entries have (normalised).

        Those that code may not read by a rule are left out.
        """
        for start in range(0, len(paths), _BATCH_PATHS):
            entries = await self._reading(partial(_files, paths=paths[start : start + _BATCH_PATHS]))
            for batch in _batches(entries, max_bytes):
                wanted = [entry for _, entry in batch if entry.size <= max_bytes]
                read = await self._reading(partial(_read_all, entries=wanted))
                found = dict(zip([entry.path for entry in wanted], read, strict=True))
                for path, entry in batch:
                    if found.get(entry.path, b"") is not None:
                        if found.get(entry.path) is not None:
                            _note(entry, self.foreign)
                        yield replace(entry, path=path), found.get(entry.path)

    async def exists(self, path: str) -> bool:
        """Whether there is an entry, be it a link that leads nowhere."""
        return await self.lstat(path) is not None

    async def file_exists(self, path: str) -> bool:
        """Whether there is a file; false for directories, and for links that lead nowhere or in a circle."""
        try:
            entry = await self.stat(path)
        except FileFailed as error:
            if error.errno == "ELOOP":
                return False
            raise
        return entry is not None and entry.kind is EntryKind.FILE

    async def read_dir(self, path: str = "/", *, limit: int = 1000, offset: int = 0) -> list[Entry]:
        """The direct children of a directory: directories, files, links, each by name. Errors: `ENOTDIR`."""
        if limit < 0 or offset < 0:
            raise failed("EINVAL", path, "limit and offset are not negative")
        found = await self._reading(partial(_children, path=path, limit=limit, offset=offset))
        self._note_names(found)
        return found

    async def readlink(self, path: str) -> str:
        """The target of a link. Errors: `ENOENT`, `EINVAL` for anything else."""
        entry = await self.lstat(path)
        if entry is None:
            raise failed("ENOENT", path)
        if entry.kind is not EntryKind.SYMLINK:
            raise failed("EINVAL", path, "not a symbolic link")
        self._note_names([entry])
        return entry.target

    async def realpath(self, path: str) -> str:
        """The path with every link resolved. Errors: `ENOENT`, `ELOOP`."""
        entry = await self.stat(path)
        if entry is None:
            raise failed("ENOENT", path)
        return entry.path

    async def glob(self, pattern: str, *, limit: int | None = None, ignored: bool = True) -> list[Entry]:
        """Entries whose path matches, sorted by path; see `Workspace.glob`."""
        compiled = compile_glob(pattern)
        work = partial(_fully_matching, pattern=compiled, limit=limit if ignored else None, ignored=ignored)
        found, above = await _found(self, work)
        found = found if limit is None else found[:limit]
        self._note_names(found, above)
        return found

    async def find_brief(self, pattern: str, *, ignored: bool = True) -> list[BriefEntry]:
        """As `glob`, with what searches need of each entry. Much quicker in the database."""
        if type(self).glob is not Reads.glob:  # a store that lists other things finds those
            return [BriefEntry.of(each) for each in await self.glob(pattern, ignored=ignored)]
        found, above = await _found(self, partial(_briefly_matching, pattern=compile_glob(pattern), ignored=ignored))
        self._note_names(found, above)
        return found

    async def read_found(self, files: Sequence[BriefEntry], *, max_bytes: int) -> AsyncIterator[list[JoinedFiles]]:
        """The bytes of files that `find_brief` gave; see `CanSearchMany`. Those that code may not read are left out."""
        if type(self).read_many is not Reads.read_many:
            async for entry, data in self.read_many([each.path for each in files], max_bytes=max_bytes):
                yield [] if data is None else joined([(entry.path, data)])
            return
        unreadable = refused_files(FileDeed.READ, [each.path for each in files])
        wanted = [each for each in files if each.path not in unreadable and each.size <= max_bytes]
        for batch in _parts(wanted):
            read = await self._reading(partial(_joined_of, files=batch, max_bytes=max_bytes))
            if is_reading():
                marked = batch if self.foreign is not None else [each for each in batch if each.origin]
                there = {path for some in read for path in some.paths} if marked else set()
                for each in marked:
                    if each.path in there:
                        _note(each, self.foreign)
            yield read

    async def diff(self, path: str, other: str) -> str:
        """A unified diff of two files with three lines of context. Errors: `ENOENT`, `EISDIR`, `EFBIG`."""
        return await _compare(path, await _text(self, path), other, await _text(self, other))

    async def diff_content(self, path: str, content: str) -> str:
        """A unified diff of a file and a new content for it. Errors: as `diff`."""
        return await _compare(path, await _text(self, path), path, content)

    async def info(self) -> WorkspaceInfo:
        """The totals."""
        return await self._reading(lambda tree: tree.info())

    def _note_names(self, entries: Iterable[BriefEntry | Entry], above: Mapping[str, Origin] | None = None) -> None:
        """Have the call that is shown these paths learn whose they are; `above`: directories that have an origin."""
        if not is_reading():
            return
        marks = above or {}
        if self.foreign is None and not marks:
            entries = [entry for entry in entries if entry.origin is not None]
        origins = ((entry.path, entry.origin or self.foreign or marks.get(parent_of(entry.path))) for entry in entries)
        for path, origin in islice(((path, each) for path, each in origins if each is not None), MAX_SOURCES + 1):
            note_here(origin, path)


async def _text(store: Reads, path: str) -> str:
    data = await store.read_bytes(path)
    if data is None:
        raise failed("ENOENT", path)
    return (await asyncio.to_thread(shown_text, data))[0]


async def _compare(path: str, before: str, other: str, after: str) -> str:
    return await asyncio.to_thread(unified, before, after, normalise(path), normalise(other))


async def _found(store: Reads, work: Callable[[Tree], Matched[E]]) -> tuple[list[E], dict[str, Origin]]:
    """Run a search, and leave out what the `.gitignore` files that it gives exclude."""
    found, above, files = await store._reading(work)
    if files:
        paths = [(entry.path, entry.kind is EntryKind.DIRECTORY) for entry in found]
        flags = await ignored_ones(files, paths)
        found = [entry for entry, is_ignored in zip(found, flags, strict=True) if not is_ignored]
    return found, above


def _entry(tree: Tree, *, path: str, follow: bool = True) -> Entry | None:
    try:
        return Plan(tree).resolve(path, follow=follow).entry
    except FileFailed as error:
        if error.errno == "ENOTDIR":
            return None
        raise


def _file(tree: Tree, path: str) -> Entry | None:
    entry = _entry(tree, path=path)
    if entry is not None and entry.kind is not EntryKind.FILE:
        raise failed("EISDIR", entry.path)
    return entry


def _note(entry: BriefEntry | Entry, foreign: Origin | None) -> None:
    """Have the call that reads a file learn whose text it is, where that needs distrust."""
    origin = entry.origin or foreign
    if origin is not None and entry.size:
        note_here(origin, entry.path)


def _bytes(tree: Tree, *, path: str, store: Reads) -> bytes | None:
    entry = _file(tree, path)
    if entry is not None:
        check_files(FileDeed.READ, [entry.path])
        _note(entry, store.foreign)
    return None if entry is None else tree.read_all([entry])[0]


def _opened(tree: Tree, *, path: str, store: Reads) -> IO[bytes]:
    entry = _file(tree, path)
    if entry is None:
        raise failed("ENOENT", path)
    check_files(FileDeed.READ, [entry.path])
    _note(entry, store.foreign)
    return tree.open(entry)


def _read_all(tree: Tree, *, entries: Sequence[Entry]) -> list[bytes | None]:
    return tree.read_all(entries)


def _files(tree: Tree, *, paths: Sequence[str]) -> list[tuple[str, Entry]]:
    """The files among these paths, each with the spelling it was asked for."""
    normal = [normalise(path) for path in paths]
    plan = Plan(tree)
    plan.prefetch(normal)
    found = []
    for path in normal:
        try:
            entry = plan.resolve(path).entry
        except FileFailed as error:
            if error.errno not in {"ENOTDIR", "ELOOP"}:
                raise
            continue
        if entry is not None and entry.kind is EntryKind.FILE:
            found.append((path, entry))
    unreadable = refused_files(FileDeed.READ, [entry.path for _, entry in found])
    return [each for each in found if each[1].path not in unreadable]


def _batches(entries: Sequence[tuple[str, Entry]], max_bytes: int) -> list[list[tuple[str, Entry]]]:
    """Split so that the bytes read at once stay few."""
    batches: list[list[tuple[str, Entry]]] = []
    size = 0
    for path, entry in entries:
        weight = entry.size if entry.size <= max_bytes else 0
        if not batches or size + weight > _BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append((path, entry))
        size += weight
    return batches


def _children(tree: Tree, *, path: str, limit: int, offset: int) -> list[Entry]:
    entry = _entry(tree, path=path)
    if entry is None or limit == 0:
        return []
    if entry.kind is not EntryKind.DIRECTORY:
        raise failed("ENOTDIR", entry.path)
    return tree.children(entry.path, limit=limit, offset=offset)


def _fully_matching(tree: Tree, *, pattern: GlobPattern, limit: int | None, ignored: bool) -> Matched[Entry]:
    return _matching(tree, tree.scan, pattern=pattern, limit=limit, ignored=ignored)


def _briefly_matching(tree: Tree, *, pattern: GlobPattern, ignored: bool) -> Matched[BriefEntry]:
    def look(prefix: str) -> Iterable[BriefEntry]:
        if isinstance(tree, CanSearchRows):
            return tree.searching.brief(prefix)
        return map(BriefEntry.of, tree.scan(prefix))

    return _matching(tree, look, pattern=pattern, limit=None, ignored=ignored)


def _joined_of(tree: Tree, *, files: Sequence[BriefEntry], max_bytes: int) -> list[JoinedFiles]:
    if isinstance(tree, CanSearchRows):
        return tree.searching.joined(files, max_bytes=max_bytes)
    read = zip(files, tree.read_all(files), strict=True)
    return joined([(each.path, data) for each, data in read if data is not None and len(data) <= max_bytes])


def _parts(files: Sequence[BriefEntry]) -> Iterator[list[BriefEntry]]:
    """Split so that the bytes read at once stay few."""
    part: list[BriefEntry] = []
    size = 0
    for each in files:
        if part and (len(part) >= _PART_FILES or size + each.size > _BATCH_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += each.size
    if part:
        yield part


def _matching(
    tree: Tree, look: Callable[[str], Iterable[E]], *, pattern: GlobPattern, limit: int | None, ignored: bool
) -> Matched[E]:
    """The entries, and the origins of the directories that their paths name, as far as these have one.

    And the `.gitignore` files that count, each as directory and text; none if `ignored`.
    """
    prefix = below(normalise(pattern.prefix))
    start: str = normalise(prefix)
    anchor = _entry(tree, path=start, follow=False)
    if anchor is None or anchor.path != start or anchor.kind is not EntryKind.DIRECTORY:
        return [], {}, []  # also where a link is on the way: links are not entered
    seen = list(look(prefix) if limit is None else _until(look(prefix), pattern, limit))
    above: dict[str, Origin] = {}
    for entry in [each for each in seen if each.kind is EntryKind.DIRECTORY]:
        if origin := entry.origin or above.get(parent_of(entry.path)):
            above[entry.path] = origin
    takes_all = pattern.takes_all and prefix == pattern.prefix
    found = seen if takes_all else [each for each in seen if pattern.matches(each.path)]
    return found, above, [] if ignored else _ignoring(tree, start, seen)


def _ignoring(tree: Tree, start: str, seen: Sequence[BriefEntry | Entry]) -> list[tuple[str, str]]:
    """Directory and text of the `.gitignore` files above a directory and among these entries."""
    files: list[BriefEntry | Entry] = list(_above(tree, start))
    files += [each for each in seen if each.path.endswith(f"/{_IGNORE_FILE}") and each.kind is EntryKind.FILE]
    return _texts(tree, files)


def _until(entries: Iterable[E], pattern: GlobPattern, limit: int) -> Iterator[E]:
    """The entries up to the last one that counts."""
    count = 0
    for entry in entries:
        yield entry
        count += pattern.matches(entry.path)
        if count >= limit:
            return


def _above(tree: Tree, directory: str) -> list[Entry]:
    """The `.gitignore` files of the directories above one."""
    paths = [f"{'' if each == '/' else each}/{_IGNORE_FILE}" for each in ["/", *chain(directory)][:-1]]
    found = tree.find(paths) if directory != "/" else {}
    return [found[path] for path in paths if path in found and found[path].kind is EntryKind.FILE]


def _texts(tree: Tree, files: Sequence[BriefEntry | Entry]) -> list[tuple[str, str]]:
    """Directory and text of `.gitignore` files, the nearest to the root first, as long as they are few and small."""
    small = sorted((each for each in files if each.size <= _MAX_IGNORE_BYTES), key=lambda each: len(each.path))
    few = small[:MAX_RULES]
    sizes = accumulate(each.size for each in few)
    few = [each for each, size in zip(few, sizes, strict=True) if size <= _MAX_IGNORE_BYTES]
    contents = zip(few, tree.read_all(few), strict=True)
    return [(parent_of(each.path), (data or b"").decode(errors="replace")) for each, data in contents]
