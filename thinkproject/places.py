"""Where things of one data directory live. Standard library only: the supervisor and the settings both ask here."""

import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

SOCKET_PATH_LIMIT = 107  # of sockaddr_un, less the terminating zero
_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")


def directory_hash(data_dir: Path) -> str:
    """Return eight characters that tell two data directories apart."""
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
    """Make a directory that only this user can enter. Errors: `PermissionError` when somebody else owns it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to somebody else")
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)
