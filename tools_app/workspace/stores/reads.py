"""The methods of a workspace that change nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice
from typing import IO, Final

from tools_app.core.files.diffs import unified
from tools_app.core.files.encodings import shown_text
from tools_app.core.files.failures import failed
from tools_app.core.files.gitignore import MAX_RULES
from tools_app.core.files.globs import GlobPattern, compile_glob
from tools_app.core.files.paths import below, chain, normalise, parent_of
from tools_app.core.files.workspace import Entry, EntryKind, WorkspaceInfo
from tools_app.core.guard.reach import is_reading, note_here
from tools_app.core.guard.rules import MAX_SOURCES
from tools_app.core.origins import Origin
from tools_app.core.permissions.file_rules import FileDeed, check_files, refused_files
from tools_app.errors import FileFailed
from tools_app.workspace.ignoring import ignored_ones
from tools_app.workspace.stores.bridge import Bridge, read_piece, skip
from tools_app.workspace.stores.planning import Plan
from tools_app.workspace.stores.tree import Tree

_BATCH_PATHS: Final = 200
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
        work = partial(_matching, pattern=compiled, limit=limit if ignored else None, ignored=ignored)
        found, above, files = await self._reading(work)
        if files:
            paths = [(entry.path, entry.kind is EntryKind.DIRECTORY) for entry in found]
            flags = await ignored_ones(files, paths)
            found = [entry for entry, is_ignored in zip(found, flags, strict=True) if not is_ignored]
        found = found if limit is None else found[:limit]
        self._note_names(found, above)
        return found

    async def diff(self, path: str, other: str) -> str:
        """A unified diff of two files with three lines of context. Errors: `ENOENT`, `EISDIR`, `EFBIG`."""
        return await self._compare(path, await self._text(path), other, await self._text(other))

    async def diff_content(self, path: str, content: str) -> str:
        """A unified diff of a file and a new content for it. Errors: as `diff`."""
        return await self._compare(path, await self._text(path), path, content)

    async def info(self) -> WorkspaceInfo:
        """The totals."""
        return await self._reading(lambda tree: tree.info())

    def _note_names(self, entries: Iterable[Entry], above: Mapping[str, Origin] | None = None) -> None:
        """Have the call that is shown these paths learn whose they are; `above`: directories that have an origin."""
        if not is_reading():
            return
        marks = above or {}
        origins = ((entry.path, entry.origin or self.foreign or marks.get(parent_of(entry.path))) for entry in entries)
        for path, origin in islice(((path, each) for path, each in origins if each is not None), MAX_SOURCES + 1):
            note_here(origin, path)

    async def _text(self, path: str) -> str:
        data = await self.read_bytes(path)
        if data is None:
            raise failed("ENOENT", path)
        return (await asyncio.to_thread(shown_text, data))[0]

    async def _compare(self, path: str, before: str, other: str, after: str) -> str:
        return await asyncio.to_thread(unified, before, after, normalise(path), normalise(other))


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


def _note(entry: Entry, foreign: Origin | None) -> None:
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


def _matching(
    tree: Tree, *, pattern: GlobPattern, limit: int | None, ignored: bool
) -> tuple[list[Entry], dict[str, Origin], list[tuple[str, str]]]:
    """The entries, and the origins of the directories that their paths name, as far as these have one.

    And the `.gitignore` files that count, each as directory and text; none if `ignored`.
    """
    prefix = below(normalise(pattern.prefix))
    start = normalise(prefix)
    anchor = _entry(tree, path=start, follow=False)
    if anchor is None or anchor.path != start or anchor.kind is not EntryKind.DIRECTORY:
        return [], {}, []  # also where a link is on the way: links are not entered
    found: list[Entry] = []
    files: list[Entry] = []
    above: dict[str, Origin] = {}
    for entry in tree.scan(prefix):
        if entry.kind is EntryKind.DIRECTORY and (origin := entry.origin or above.get(parent_of(entry.path))):
            above[entry.path] = origin
        if pattern.matches(entry.path):
            found.append(entry)
        if not ignored and entry.name == _IGNORE_FILE and entry.kind is EntryKind.FILE:
            files.append(entry)
        if ignored and limit is not None and len(found) >= limit:
            break
    return found, above, [] if ignored else _texts(tree, [*_above(tree, start), *files])


def _above(tree: Tree, directory: str) -> list[Entry]:
    """The `.gitignore` files of the directories above one."""
    paths = [f"{'' if each == '/' else each}/{_IGNORE_FILE}" for each in ["/", *chain(directory)][:-1]]
    found = tree.find(paths) if directory != "/" else {}
    return [found[path] for path in paths if path in found and found[path].kind is EntryKind.FILE]


def _texts(tree: Tree, files: Sequence[Entry]) -> list[tuple[str, str]]:
    """Directory and text of `.gitignore` files, the nearest to the root first, as long as they are few and small."""
    small = sorted((each for each in files if each.size <= _MAX_IGNORE_BYTES), key=lambda each: len(each.path))
    few = small[:MAX_RULES]
    sizes = accumulate(each.size for each in few)
    few = [each for each, size in zip(few, sizes, strict=True) if size <= _MAX_IGNORE_BYTES]
    contents = zip(few, tree.read_all(few), strict=True)
    return [(parent_of(each.path), (data or b"").decode(errors="replace")) for each, data in contents]
