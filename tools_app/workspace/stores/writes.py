"""The methods of a workspace that change something. Each is one plan, carried out at once."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from typing import Final, TypeGuard, TypeVar

from tools_app.core.files.failures import failed
from tools_app.core.files.paths import MAX_CHARS, MAX_DEPTH, below, normalise
from tools_app.core.files.workspace import (
    Entry,
    EntryKind,
    FileChange,
    Link,
    MakeDirectory,
    Operation,
    Put,
    Remove,
)
from tools_app.core.guard.reach import written_as, written_here
from tools_app.core.permissions.file_rules import FileDeed, check_files, is_judging
from tools_app.errors import FileConflict
from tools_app.workspace.stores.planning import PathPlace, Plan, changes_of, is_own_child, moved
from tools_app.workspace.stores.reads import Reads
from tools_app.workspace.stores.tree import Committed, StoredContent, Tree

T = TypeVar("T")
_APPEND_TRIES: Final = 20


class Writes(Reads):
    """Writing, removing, copying. See `tools_app.core.files.workspace.Workspace` for what each method promises."""

    async def write_file(
        self, path: str, content: str | bytes, *, media_type: str = "", expected_version: str | None = None
    ) -> Entry:
        """Write a file, with its parent directories. Errors: `EISDIR`, `EFBIG`, `ENOSPC`; `FileConflict`."""
        return await self._put(path, self._content(path, _encoded(content), media_type), expected_version)

    async def write_stream(
        self,
        path: str,
        chunks: AsyncIterable[bytes],
        *,
        media_type: str = "",
        expected_version: str | None = None,
    ) -> Entry:
        """Write a file from pieces; what does not fit into memory goes through a temporary file. Errors: as above."""
        normalise(path)
        return await self._put(path, await self._spooled(path, chunks, media_type), expected_version)

    async def append_file(self, path: str, content: str | bytes) -> Entry:
        """Add to the end of a file, which is made where there is none. What others add at the same time is not lost."""
        data = _encoded(content)
        entry = await self._append_small(path, data)
        for _ in range(_APPEND_TRIES if entry is None else 0):
            try:
                return await self._append_large(path, data)
            except FileConflict:
                continue
        if entry is None:
            raise failed("EIO", path, "the file changes too fast to add to it")
        return entry

    async def delete_file(self, path: str) -> bool:
        """Delete a file or a link; false where there is none. Errors: `EISDIR`."""

        def steps(plan: Plan) -> bool:
            place = plan.resolve(path, follow=False)
            if place.kind is EntryKind.DIRECTORY:
                raise failed("EISDIR", place.path)
            if place.found is not None:
                plan.remove(place)
            return place.found is not None

        return (await self._change(steps))[0]

    async def mkdir(self, path: str, *, recursive: bool = False) -> None:
        """Make a directory. Errors: `ENOENT`, `EEXIST`, `ENOTDIR`; `recursive` makes parents and accepts one there."""
        await self._change(lambda plan: plan.make_directory(path, recursive=recursive))

    async def rm(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Remove an entry. Errors: `EPERM` for the root, `ENOENT` unless `force`, `ENOTEMPTY` unless `recursive`."""

        def work(tree: Tree) -> tuple[None, Committed]:
            plan = Plan(tree)
            place = plan.resolve(path, follow=False)
            if place.found is None:
                if not force:
                    raise failed("ENOENT", place.path)
                return None, Committed()
            is_kept = place.kind is EntryKind.DIRECTORY and place.path != "/" and not recursive
            if is_kept and not tree.is_empty(place.path):
                raise failed("ENOTEMPTY", place.path)
            plan.remove(place)
            return None, _carried_out(tree, plan)

        await self._work(work)

    async def cp(self, source: str, target: str, *, recursive: bool = False) -> None:
        """Copy a file, or a directory where `recursive`. Errors: `ENOENT`, `EISDIR`, `EEXIST`; `EINVAL` into itself."""

        def work(tree: Tree) -> tuple[None, Committed]:
            plan = Plan(tree)
            origin = _existing(plan.resolve(source))
            if origin.kind is EntryKind.DIRECTORY and not recursive:
                raise failed("EISDIR", origin.path)
            place = plan.resolve(target)
            if place.path == origin.path or is_own_child(origin.path, place.path):
                raise failed("EINVAL", place.path, "cannot copy into itself")
            _check_relocating(tree, origin, place.path, FileDeed.READ)
            before = _make_room(tree, plan, origin, place)
            return None, _joined(before, entries=tree.copy(origin, place.path))

        await self._work(work)

    async def mv(self, source: str, target: str) -> None:
        """Move an entry; a file that is there is replaced, a directory refused. Errors: as `cp`; `EPERM` for `/`."""

        def work(tree: Tree) -> tuple[None, Committed]:
            plan = Plan(tree)
            origin = _existing(plan.resolve(source, follow=False))
            place = plan.resolve(target, follow=False)
            if origin.path == "/":
                raise failed("EPERM", "/")
            if place.path == origin.path:
                return None, Committed()
            if is_own_child(origin.path, place.path):
                raise failed("EINVAL", place.path, "cannot move into itself")
            _check_relocating(tree, origin, place.path, FileDeed.READ, FileDeed.DELETE)
            before = _make_room(tree, plan, origin, place)
            old, new = tree.move(origin, place.path)
            return None, _joined(before, removed=old, entries=new)

        await self._work(work)

    async def symlink(self, target: str, path: str) -> None:
        """Make a symbolic link at `path`, with parent directories. Errors: `EEXIST`, `EINVAL`."""
        await self._change(lambda plan: plan.link(path, target, replaces=False))

    async def apply(self, operations: Sequence[Operation]) -> list[FileChange]:
        """Do several things at once; see `Workspace.apply`. All are checked before the first is done."""
        contents = [self._content(each.path, each.content, each.media_type) for each in operations if _is_put(each)]

        def steps(plan: Plan) -> None:
            plan.prefetch([normalise(each.path) for each in operations])
            left = iter(contents)
            for each in operations:
                _plan_operation(plan, each, left)

        done = (await self._change(steps, contents))[1]
        known = {normalise(each.path) for each in operations}
        self._note_names(entry for entry in done.removed if entry.path not in known)
        return changes_of(done)

    async def write_contents(
        self,
        files: Sequence[tuple[str, StoredContent]],
        *,
        directories: Sequence[str] = (),
        links: Sequence[tuple[str, str]] = (),
    ) -> list[FileChange]:
        """Write many files at once, read while they are stored: `apply` for what does not fit into memory."""

        def steps(plan: Plan) -> None:
            plan.prefetch([normalise(path) for path in (*directories, *(path for path, _ in (*files, *links)))])
            for directory in directories:
                plan.make_directory(directory, recursive=True)
            for path, content in files:
                plan.put(path, content)
            for path, target in links:
                plan.link(path, target, replaces=True)

        return changes_of((await self._change(steps, [content for _, content in files]))[1])

    async def _put(self, path: str, content: StoredContent, expected: str | None) -> Entry:
        real, done = await self._change(lambda plan: plan.put(path, content, expected=expected), [content])
        return next(entry for entry in done.entries if entry.path == real)

    async def _append_small(self, path: str, data: bytes) -> Entry | None:
        """Add to a file while holding the lock; nothing where the file is to be too large for memory."""

        def work(tree: Tree) -> tuple[Entry | None, Committed]:
            plan = Plan(tree)
            entry = plan.resolve(path).entry
            if entry is not None and entry.kind is EntryKind.FILE and entry.size:
                if entry.size + len(data) >= self.inline_bytes:
                    return None, Committed()
                old = tree.read_all([entry])[0] or b""
            else:
                old = b""
            if len(old) + len(data) >= self.inline_bytes:
                return None, Committed()
            content = self._content(path, old + data)
            content.origin = content.origin or (entry.origin if entry is not None and old else None)
            real = plan.put(path, content)
            done = _carried_out(tree, plan)
            return next(each for each in done.entries if each.path == real), done

        return (await self._work(work))[0]

    async def _append_large(self, path: str, data: bytes) -> Entry:
        entry = await self.stat(path)
        origin = written_here() or (entry.origin if entry else None)

        async def whole() -> AsyncIterator[bytes]:
            if entry is not None and entry.kind is EntryKind.FILE:
                async for piece in self.read_stream(path):
                    yield piece
            yield data

        with written_as(origin):  # what is read here goes back to where it was
            return await self.write_stream(path, whole(), expected_version=entry.version if entry else "")

    async def _change(self, steps: Callable[[Plan], T], contents: Sequence[StoredContent] = ()) -> tuple[T, Committed]:
        """Plan and carry out."""

        def work(tree: Tree) -> tuple[T, Committed]:
            plan = Plan(tree)
            result = steps(plan)
            return result, _carried_out(tree, plan)

        return await self._work(work, contents)

    async def _work(
        self, work: Callable[[Tree], tuple[T, Committed]], contents: Sequence[StoredContent] = ()
    ) -> tuple[T, Committed]:
        """Run work that changes something, to its end even where the caller is cancelled, and report what changed."""

        async def whole() -> tuple[T, Committed]:
            try:
                found = await self._writing(work, contents)
            finally:
                for content in contents:
                    content.close()
            self._notify(changes_of(found[1]))
            return found

        return await asyncio.shield(whole())


def _carried_out(tree: Tree, plan: Plan) -> Committed:
    changes = plan.changes()
    if changes is None:
        return Committed()
    if is_judging():
        check_files(FileDeed.DELETE, (path for entry in changes.removed for path in _paths(tree, entry)))
        check_files(FileDeed.WRITE, (planned.path for planned in changes.planned))
    return tree.commit(changes)


def _check_relocating(tree: Tree, origin: Entry, target: str, *deeds: FileDeed) -> None:
    """Look whether code may do this to all at and below an entry, and write it at the target. Errors: `EACCES`."""
    if is_judging():
        paths = list(_paths(tree, origin))
        for deed in deeds:
            check_files(deed, paths)
        check_files(FileDeed.WRITE, (moved(path, origin.path, target) for path in paths))


def _paths(tree: Tree, entry: Entry) -> Iterator[str]:
    """The paths of an entry and of all below it."""
    yield entry.path
    if entry.kind is EntryKind.DIRECTORY:
        yield from (each.path for each in tree.scan(below(entry.path)))


def _existing(place: PathPlace) -> Entry:
    if place.entry is None:
        raise failed("ENOENT", place.path)
    return place.entry


def _make_room(tree: Tree, plan: Plan, origin: Entry, place: PathPlace) -> Committed:
    """Make the parents of a target and remove the file that is there. Errors: `EEXIST`, `ENOTDIR`, `ENAMETOOLONG`."""
    if place.kind is EntryKind.DIRECTORY:
        raise failed("EEXIST", place.path)
    if place.found is not None and origin.kind is EntryKind.DIRECTORY:
        raise failed("ENOTDIR", place.path)
    _check_lengths(tree, origin, place.path)
    if place.found is not None:
        plan.remove(place)
    plan.make_parents(place.path)
    return _carried_out(tree, plan)


def _check_lengths(tree: Tree, origin: Entry, target: str) -> None:
    """Look whether all below a directory has a path at the target. Errors: `ENAMETOOLONG`."""
    longer, deeper = len(target) - len(origin.path), target.count("/") - origin.path.count("/")
    if origin.kind is not EntryKind.DIRECTORY or (longer <= 0 and deeper <= 0):
        return
    for entry in tree.scan(below(origin.path)):
        if len(entry.path) + longer > MAX_CHARS or entry.path.count("/") + deeper > MAX_DEPTH:
            raise failed("ENAMETOOLONG", target)


def _joined(before: Committed, *, removed: Sequence[Entry] = (), entries: Sequence[Entry] = ()) -> Committed:
    return Committed(removed=[*before.removed, *removed], entries=[*before.entries, *entries])


def _plan_operation(plan: Plan, operation: Operation, contents: Iterator[StoredContent]) -> None:
    match operation:
        case Put():
            plan.put(operation.path, next(contents), expected=operation.expected_version)
        case MakeDirectory():
            plan.make_directory(operation.path, recursive=True)
        case Link():
            plan.link(operation.path, operation.target, replaces=True)
        case Remove():
            place = plan.resolve(operation.path, follow=False)
            plan.check_version(place, operation.expected_version)
            if not operation.recursive:
                plan.check_empty(place)
            if place.found is not None:
                plan.remove(place)


def _is_put(operation: Operation) -> TypeGuard[Put]:
    return isinstance(operation, Put)


def _encoded(content: str | bytes) -> bytes:
    return content.encode(errors="replace") if isinstance(content, str) else content
