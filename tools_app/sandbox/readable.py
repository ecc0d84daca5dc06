"""Files for code that runs as another user, in a place where that user can read them.

A guest that runs as another user cannot enter a private folder, such as the home of root. What it needs of one (the
program Deno, the runners, Python) is put into a folder that every user can enter:

- Each file or folder is an entry, named by the hash of its content: checkouts of one version share it, others have
  their own. An entry appears whole, as it is made beside and renamed.
- The folder and all that is in it belong to this user, who alone may write there. One that does not is not used, nor
  one below a folder in which others could put something else in its place.
- A large file of this user is a hard link where the file system has both; else it is copied, once for all processes.
- A process holds a lock on each entry that it uses. What none has held for two weeks goes when another one is added.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from thinkproject.kernel.trees import remove_tree
from tools_app.sandbox.conf import sandbox_settings

OWN_PLACE: Final = Path("/var/cache/think-sandbox")
LOCK: Final = "lock"
WORK: Final = ".work-"
GONE: Final = ".gone-"
LARGE_BYTES: Final = 1 << 20
MAX_FILES: Final = 2_000
IDLE_SECONDS: Final = 14 * 24 * 3600.0
WORK_SECONDS: Final = 24 * 3600.0
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
OTHERS_ENTER: Final = stat.S_IROTH | stat.S_IXOTH

_making: Final = threading.Lock()
_known: Final[dict[tuple[object, ...], Path]] = {}
"""Where a file or folder lies for others, by its path and the state of its files."""
_held: Final[dict[Path, IO[str]]] = {}
"""Entries that this process uses, with their locks."""


def readable(path: Path) -> Path:
    """A path to the same file or folder that every user can read: its own, or that of an entry.

    Blocks: the first time for the hash of its content, and for a copy. Errors: `OSError` where there is no place for
    an entry, or nothing to read.
    """
    real = path.resolve(strict=True)
    if is_open(real):
        return real
    files = list(_files(real))
    identity = (real, *((str(file), *_state(file)) for file in files))
    with _making:
        found = _known.get(identity)
        if found is None or not found.exists():
            found = _known[identity] = _entry_somewhere(real)
        return found


def places() -> list[Path]:
    """Folders for entries, in the order in which they are tried."""
    if sandbox_settings.copies_dir:
        return [Path(sandbox_settings.copies_dir)]
    temporary = dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp")))  # noqa: S108 - ours within is checked
    return [OWN_PLACE, *(folder / f"think-sandbox-{os.geteuid()}" for folder in temporary)]


def _files(real: Path) -> Iterator[Path]:
    """The file itself, or all that are in a folder. Errors: `OSError` where they are too many."""
    if not real.is_dir():
        yield real
        return
    count = 0
    for folder, folders, files in os.walk(real):
        folders.sort()
        for name in sorted(files):
            count += 1
            if count > MAX_FILES:
                raise OSError(f"{real} has more than {MAX_FILES} files")
            yield Path(folder, name)


def is_open(path: Path) -> bool:
    """Whether every user can read a file, or all that is in a folder. Errors: `OSError` where it is not there."""
    real = path.resolve(strict=True)
    files = list(_files(real))
    inside = {folder for file in files for folder in file.parents if folder.is_relative_to(real)}
    return (
        all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents)
        and all(folder.stat().st_mode & OTHERS_ENTER == OTHERS_ENTER for folder in inside)
        and all(_is_readable(file.stat()) for file in files)
    )


def _is_readable(state: os.stat_result) -> bool:
    """Whether every user can read a file, and run it where it is a program."""
    wanted = OTHERS_ENTER if state.st_mode & stat.S_IXUSR else stat.S_IROTH
    return state.st_mode & wanted == wanted


def _state(file: Path) -> tuple[int, ...]:
    state = file.stat()
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _entry_somewhere(real: Path) -> Path:
    reasons = []
    for place in places():
        try:
            _prepare(place)
            return _entry(place, real)
        except OSError as error:
            reasons.append(f"{place}: {error.strerror or error}")
    raise OSError(f"another user cannot read {real}, and there is no place for a copy ({'; '.join(reasons)})")


def _prepare(place: Path) -> None:
    """Make the folder for entries, unless it is there. Errors: `OSError` where others could change what is in it."""
    parent = place.parent.resolve(strict=True)
    for folder in (parent, *parent.parents):
        state = folder.stat()
        is_shared = state.st_mode & OTHERS_WRITE and not state.st_mode & stat.S_ISVTX
        if state.st_uid not in {0, os.geteuid()} or is_shared:
            raise PermissionError(f"others can write to {folder}")
        if not state.st_mode & stat.S_IXOTH:
            raise PermissionError(f"others cannot enter {folder}")
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o755)
    _check(place)
    if place.lstat().st_mode & OTHERS_ENTER != OTHERS_ENTER:
        place.chmod(0o755)  # the mask of this process took it away
    if os.statvfs(place).f_flag & os.ST_NOEXEC:
        raise PermissionError("no program may run from there")


def _check(folder: Path) -> None:
    """Errors: `OSError` for what is no folder of this user, or one to which others can write."""
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & OTHERS_WRITE:
        raise PermissionError(f"{folder} is no folder to which this user alone can write")


def _entry(place: Path, real: Path) -> Path:
    found = place / _hash(real)
    if not _hold(found):
        sweep(place)
        found = _made(place, real)
        if not _hold(found):
            raise FileNotFoundError(f"{found} has gone")
    return found / real.name


def _made(place: Path, real: Path) -> Path:
    """Make an entry, which another process may do at the same time: both have the same in it."""
    work = Path(tempfile.mkdtemp(prefix=WORK, dir=place))
    try:
        _take(real, work / real.name)
        (work / LOCK).touch(mode=0o600)
        entry = place / _hash(work / real.name)  # of what is there now, if the file was changed meanwhile
        work.chmod(0o755)
        try:
            work.rename(entry)
        except OSError:
            if not entry.is_dir():
                raise
        return entry
    finally:
        with contextlib.suppress(OSError):
            remove_tree(work)


def _take(real: Path, target: Path) -> None:
    if real.is_dir():
        target.mkdir()
    for file in _files(real):
        copy = target / file.relative_to(real)
        copy.parent.mkdir(parents=True, exist_ok=True)
        _take_file(file, copy)
    for folder, _, _ in os.walk(target):
        Path(folder).chmod(0o755)


def _take_file(file: Path, copy: Path) -> None:
    state = file.stat()
    if not stat.S_ISREG(state.st_mode):
        raise OSError(f"{file} is no file")
    is_ours = state.st_uid == os.geteuid() and not state.st_mode & OTHERS_WRITE
    if is_ours and _is_readable(state) and state.st_size >= LARGE_BYTES:
        with contextlib.suppress(OSError):  # another file system, or one without links
            os.link(file, copy)
            return
    shutil.copyfile(file, copy)
    copy.chmod(0o755 if state.st_mode & stat.S_IXUSR else 0o644)


def _hash(real: Path) -> str:
    """The hash of the name, the names within and the contents."""
    made = hashlib.sha256(f"{real.name}\0".encode())
    for file in _files(real):
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256").hexdigest()
        made.update(f"{file.relative_to(real)}\0{os.access(file, os.X_OK)}\0{content}\0".encode())
    return made.hexdigest()[:32]


def _hold(entry: Path) -> bool:
    """Keep an entry from being removed while this process lives. False where there is none."""
    if entry in _held and entry.exists():
        return True
    try:
        _check(entry)
        lock = (entry / LOCK).open("r+")
    except FileNotFoundError:
        return False
    fcntl.flock(lock, fcntl.LOCK_SH)
    try:
        is_there = os.path.samestat(os.fstat(lock.fileno()), (entry / LOCK).stat())
    except FileNotFoundError:
        is_there = False
    if not is_there:  # it was just being removed
        lock.close()
        return False
    os.utime(entry / LOCK)
    _held[entry] = lock
    return True


def sweep(place: Path) -> None:
    """Remove entries that no process has held for long, and what was left half made."""
    for each in place.iterdir():
        with contextlib.suppress(OSError):
            if each.name.startswith((WORK, GONE)):
                if time.time() - each.stat().st_mtime > WORK_SECONDS:
                    remove_tree(each)
            elif time.time() - (each / LOCK).stat().st_mtime > IDLE_SECONDS:
                _remove(each)


def _remove(entry: Path) -> None:
    """Remove an entry whole. Errors: `OSError` where a process holds it."""
    with (entry / LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gone = entry.with_name(f"{GONE}{entry.name}-{os.getpid()}")
        entry.rename(gone)
    remove_tree(gone)
