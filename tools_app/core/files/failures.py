"""Builds the errors of file operations: a POSIX name, a sentence, the path."""

from typing import Final

from thinkproject.kernel.phrases import Phrase
from tools_app.errors import FileConflict, FileFailed

_REASONS: Final = {
    "ENOENT": "no such file or directory",
    "EEXIST": "already exists",
    "EISDIR": "is a directory",
    "ENOTDIR": "not a directory",
    "ENOTEMPTY": "directory is not empty",
    "ELOOP": "too many symbolic links",
    "EINVAL": "invalid argument",
    "EPERM": "operation not permitted",
    "EFBIG": "file is too large",
    "ENAMETOOLONG": "name is too long",
    "ENOSPC": "no room left",
    "EIO": "input or output error",
}


def failed(errno: str, path: str, reason: str = "") -> FileFailed:
    """Build an error such as `ENOENT: no such file or directory: /a.txt`. `reason` replaces the usual words."""
    shown = path if len(path) <= 300 else path[:300] + "…"
    shown = shown.encode("unicode_escape").decode("ascii") if not shown.isprintable() else shown
    words = reason or _REASONS[errno]
    return FileFailed(
        Phrase("{errno}: {reason}: {path}", errno=errno, reason=words, path=shown), errno=errno, path=shown
    )


def conflict(path: str, version: str) -> FileConflict:
    """Build the error for another version than the expected one. `version`: the present one, empty if it is gone."""
    return FileConflict(
        Phrase("{path} has changed since it was read.", path=path), errno="EEXIST", path=path, version=version
    )
