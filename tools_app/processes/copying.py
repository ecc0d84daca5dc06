"""Copies a workspace into a directory for a command, and finds out what the command changed there.

The directory is the command's own: nothing in it is followed or believed, and it is read when every process is gone.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from tools_app.core.files.differences import differences
from tools_app.core.files.paths import MOUNT, chain, normalise, without_mount
from tools_app.core.files.workspace import Entry, EntryKind, Operation, Workspace
from tools_app.core.permissions.file_rules import FileDeed, refused_files
from tools_app.errors import FileFailed
from tools_app.processes.isolation import MAX_ENTRIES, NOBODY

MAX_FILE_BYTES: Final = 64_000_000
HELD_BYTES: Final = 4_000_000
"""A larger file is copied in pieces."""

MAX_NAMED: Final = 50
MAX_PLACE_BYTES: Final = 4000
"""The longest path that the system takes is a little longer."""
PAGE_BYTES: Final = 4096
"""What a file takes of a disk at least, and whole multiples of it."""
Signature: TypeAlias = tuple[int, int, int, int]
"""Size, inode, and the times of content and inode: whatever changes a file changes one of them."""


@dataclass(slots=True)
class Copy:
    """A workspace in a directory. `skipped`: files that are not there and are left alone: too large, or by a rule."""

    folder: Path
    base: dict[str, Entry] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    signatures: dict[str, Signature] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    _left: int = 0
    _unseen: set[str] = field(default_factory=set)

    def place(self, path: str) -> Path:
        """The place of a path of the workspace."""
        return self.folder / path.lstrip("/")

    def write(self, entry: Entry, data: bytes) -> None:
        """Make a file. Scripts may be run."""
        self.place(entry.path).write_bytes(data)
        self.made(entry, is_program=data.startswith(b"#!"))

    def made(self, entry: Entry, *, is_program: bool) -> None:
        """Note a file that was made, and give it to the command."""
        target = self.place(entry.path)
        target.chmod(0o755 if is_program else 0o644)
        give(target)
        self.signatures[entry.path] = _signature(target.lstat())

    def make(self, entries: Iterable[Entry]) -> None:
        """Make directories and links, parents first."""
        for entry in entries:
            if entry.kind is EntryKind.DIRECTORY:
                self.place(entry.path).mkdir()
            elif entry.kind is EntryKind.SYMLINK:
                self.place(entry.path).symlink_to(
                    f"{MOUNT}{entry.target}" if entry.target.startswith("/") else entry.target
                )
            else:
                continue
            give(self.place(entry.path))

    def operations(self, *, most: int) -> list[Operation]:
        """The changes of the command. `most`: bytes of all changed files; those beyond are not kept.

        Errors: none; files that cannot be taken are named in `errors`.
        """
        self._left = most
        kinds: dict[str, EntryKind] = {path: self.base[path].kind for path in self.skipped}
        files: dict[str, bytes] = {}
        links: dict[str, str] = {}
        for path, found in self._found():
            if path in self.skipped:
                self._complain(path, "was not given to the command, so it is left as it is")
            elif stat.S_ISDIR(found.st_mode):
                kinds[path] = EntryKind.DIRECTORY
            elif stat.S_ISLNK(found.st_mode):
                kinds[path] = EntryKind.SYMLINK
                links[path] = _target(os.readlink(self.place(path)))
            elif stat.S_ISREG(found.st_mode):
                with self._seeing(path):
                    self._take(path, found, kinds, files)
            else:
                self._complain(path, "is no file, directory or link, so it is not kept")
        if self._unseen:  # is as it was, for all that is known
            for path, entry in self.base.items():
                if path not in kinds and any(each in self._unseen for each in ("/", *chain(path))):
                    kinds[path] = entry.kind
        return differences(self.base, kinds, files, links)

    def _take(self, path: str, found: os.stat_result, kinds: dict[str, EntryKind], files: dict[str, bytes]) -> None:
        if self.signatures.get(path) == _signature(found):
            kinds[path] = EntryKind.FILE
            return
        if found.st_size <= min(MAX_FILE_BYTES, self._left):
            kinds[path] = EntryKind.FILE
            self._left -= found.st_size
            self.place(path).chmod(0o600)
            files[path] = self.place(path).read_bytes()
            return
        self._complain(path, f"is larger than {MAX_FILE_BYTES} bytes, or too much was written: it is not kept")
        if path in self.base:
            kinds[path] = self.base[path].kind  # as it was

    def _found(self) -> Iterable[tuple[str, os.stat_result]]:
        """Everything in the directory whose name a workspace can have, parents first."""
        waiting = ["/"]
        count = 0
        while waiting:
            directory = waiting.pop()
            for name in self._names(directory):
                path = f"{directory.rstrip('/')}/{name}"
                count += 1
                if count > MAX_ENTRIES:
                    self._unseen.add("/")
                    self._complain(path, f"and all further ones: there are more than {MAX_ENTRIES} entries")
                    return
                if not _is_normal(path):
                    self._complain(path, "has a name that a workspace cannot have, so it is not kept")
                    continue
                found = None
                with self._seeing(path):
                    found = self.place(path).lstat()
                if found is not None:
                    yield path, found
                    waiting += [path] if stat.S_ISDIR(found.st_mode) else []

    def _names(self, directory: str) -> list[str]:
        names: list[str] = []
        with self._seeing(directory):
            self.place(directory).chmod(0o700)
            names += sorted(os.listdir(self.place(directory)))
        return names

    @contextlib.contextmanager
    def _seeing(self, path: str) -> Iterator[None]:
        """Leave alone what cannot be read, such as a path that is longer here than the system takes."""
        try:
            yield
        except OSError as error:
            self._unseen.add(path)
            self._complain(path, f"could not be read, so it is left as it was: {error.strerror}")

    def _complain(self, path: str, words: str) -> None:
        if len(self.errors) < MAX_NAMED:
            self.errors.append(f"{path.encode('ascii', 'backslashreplace').decode()!r} {words}")


async def copied(workspace: Workspace, folder: Path, *, most: int) -> Copy:
    """Copy a workspace into an empty directory. `most`: bytes of all files; what is beyond is skipped."""
    copy = Copy(folder)
    entries = await workspace.glob("/**/*", limit=MAX_ENTRIES)
    copy.base = {entry.path: entry for entry in entries}
    if len(entries) == MAX_ENTRIES:
        copy.errors.append(f"The workspace has more than {MAX_ENTRIES} entries; the command saw the first ones.")
    copy.skipped = {entry.path for entry in entries if len(os.fsencode(copy.place(entry.path))) > MAX_PLACE_BYTES}
    paths = [entry.path for entry in entries if entry.kind is EntryKind.FILE]
    copy.skipped |= await asyncio.to_thread(refused_files, FileDeed.READ, paths)
    await asyncio.to_thread(copy.make, [entry for entry in entries if entry.path not in copy.skipped])
    left = most
    wanted = []
    for entry in entries:
        if entry.kind is not EntryKind.FILE or entry.path in copy.skipped:
            continue
        size = -(-entry.size // PAGE_BYTES) * PAGE_BYTES
        if entry.size > MAX_FILE_BYTES or size > left:
            copy.skipped.add(entry.path)
            continue
        left -= size
        wanted.append(entry.path)
    async for entry, data in workspace.read_many(wanted, max_bytes=HELD_BYTES):
        if data is None and entry.size > MAX_FILE_BYTES:  # it has grown
            copy.skipped.add(entry.path)
            continue
        copy.base[entry.path] = entry
        if data is None:
            await _write_large(workspace, copy, entry)
        else:
            await asyncio.to_thread(copy.write, entry, data)
    gone = [path for path in wanted if path not in copy.signatures and path not in copy.skipped]
    for path in gone:
        del copy.base[path]
    return copy


async def _write_large(workspace: Workspace, copy: Copy, entry: Entry) -> None:
    """Make a file whose bytes are never held at once."""
    target = copy.place(entry.path)
    with target.open("wb") as file:
        async for piece in workspace.read_stream(entry.path):
            await asyncio.to_thread(file.write, piece)
    copy.made(entry, is_program=False)


def _target(text: str) -> str:
    """The target of a link, as the workspace has it."""
    return without_mount(text) or text


def _is_normal(path: str) -> bool:
    try:
        return normalise(path) == path
    except FileFailed:
        return False


def _signature(found: os.stat_result) -> Signature:
    return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def give(path: Path) -> None:
    """Make the command's user the owner."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
