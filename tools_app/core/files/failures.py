"""Builds the errors of file operations: a POSIX name, a sentence, the path."""

from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
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
    shown = _shown(path)
    words = reason or _REASONS[errno]
    return FileFailed(
        Phrase("{errno}: {reason}: {path}", errno=errno, reason=words, path=shown), errno=errno, path=shown
    )


def refused(path: str, reason: str, rule: JSONObject) -> FileFailed:
    """Build the error for a file that a rule keeps from code. Data: also `rule`, as details of calls have it."""
    shown = _shown(path)
    words = Phrase("{errno}: {reason}: {path}", errno="EACCES", reason=reason, path=shown)
    return FileFailed(words, errno="EACCES", path=shown, rule=rule)


def conflict(path: str, version: str) -> FileConflict:
    """Build the error for another version than the expected one. `version`: the present one, empty if it is gone."""
    return FileConflict(
        Phrase("{path} has changed since it was read.", path=path), errno="EEXIST", path=path, version=version
    )


def _shown(path: str) -> str:
    shown = path if len(path) <= 300 else path[:300] + "…"
    return shown if shown.isprintable() else shown.encode("unicode_escape").decode("ascii")
