"""Paths of one data directory. Standard library only: used by the supervisor and the settings."""

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

SOCKET_PATH_LIMIT = 107  # of sockaddr_un, less the terminating zero
PRIVATE_UMASK = 0o077
"""For `make run` and all that it starts: what they make is for this user alone."""
_OURS = ("secret_key", "run.lock", "think.sqlite3", "redis", "logs", "files")
_KEPT_PRIVATE = "files"  # its files are written with a mode of their own (STORAGES), and there may be very many
_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")


def directory_hash(data_dir: Path) -> str:
    """Return eight characters that identify a data directory."""
    return hashlib.sha256(str(data_dir).encode()).hexdigest()[:8]


def redis_socket(data_dir: Path) -> Path:
    """Return the path of the embedded Redis' socket: in the data directory, or in a short private one when too long."""
    path = data_dir / "redis" / "redis.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT and _PLAIN.fullmatch(str(path)):
        return path
    name = f"think-{os.getuid()}-{directory_hash(data_dir)}"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    for base in (runtime, tempfile.gettempdir(), "/tmp"):  # noqa: S108 - private_directory() checks owner and mode
        short = Path(base) / name / "redis.sock"
        if base and len(os.fsencode(short)) <= SOCKET_PATH_LIMIT and _PLAIN.fullmatch(str(short)):
            return short
    return Path("/tmp") / name / "redis.sock"  # noqa: S108 - as above


def redis_url(data_dir: Path) -> str:
    """Return the URL of the embedded Redis."""
    return f"unix://{quote(str(redis_socket(data_dir)))}"


def private_directory(path: Path) -> None:
    """Make a directory that only this user can enter. Errors: `PermissionError` when another user owns it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to another user")
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)


def private_data_directory(path: Path) -> None:
    """Create the data directory, private to this user; permissions of an existing one are tightened.

    A directory that is not ours stays as it is: one of another user (a volume), one with other things in it, and
    one that all may write to, such as `/tmp`. Errors: `OSError` when it cannot be made.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        return
    names = set(os.listdir(path))
    is_ours = not names or not names.isdisjoint(_OURS)
    if is_ours and not path.stat().st_mode & stat.S_ISVTX and path.stat().st_uid == os.getuid():
        path.chmod(0o700)


def close_files(data_dir: Path) -> None:
    """Take from others what earlier versions let them read below the data directory. Links are not followed."""
    for name in _ours_below(data_dir):
        found = name.lstat()
        is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        if is_plain and found.st_uid == os.getuid() and found.st_mode & PRIVATE_UMASK:
            name.chmod(stat.S_IMODE(found.st_mode) & ~PRIVATE_UMASK)


def _ours_below(data_dir: Path) -> Iterator[Path]:
    for name in ("secret_key", "model.json", _KEPT_PRIVATE):
        if (data_dir / name).exists():
            yield data_dir / name
    for pattern in ("think.sqlite3*", "beat-schedule*"):
        yield from data_dir.glob(pattern)
    for folder in ("logs", "redis"):
        if (data_dir / folder).is_dir():
            yield data_dir / folder
            yield from (data_dir / folder).rglob("*")
