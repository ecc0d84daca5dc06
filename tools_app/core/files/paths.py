"""Paths within a workspace: one spelling for each, none outside of the root. Pure.

A path is absolute, has no `.`, `..`, empty component or trailing slash, and consists of characters that can be shown on
one line. `normalise` is the only way from what a model, a person or an archive wrote to such a path.
"""

import unicodedata
from collections.abc import Iterable
from typing import Final

from tools_app.core.files.failures import failed

MAX_CHARS: Final = 4096
MAX_DEPTH: Final = 100
MAX_NAME_BYTES: Final = 255
"""Bytes of one component as UTF-8, which is what file systems allow."""

WORKSPACE_NAME: Final = r"^[a-zA-Z][a-zA-Z0-9_]*\Z"
"""What a workspace may be called."""

MOUNT: Final = "/workspace"
"""Where programs find the workspace: its file `/a.py` is `/workspace/a.py` to them."""

_REFUSED: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Controls (NUL and newline among them), lone surrogates, and what starts a new line."""

_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the order in which a name is shown."""


def normalise(path: str) -> str:
    """Return the one spelling of a path; a missing leading slash is added, `..` stops at the root.

    Errors: `ENAMETOOLONG` beyond 4096 characters, 100 components or 255 bytes in one; `EINVAL` for control characters,
    newlines, bidirectional marks and lone surrogates.
    """
    if len(path) > MAX_CHARS:
        raise failed("ENAMETOOLONG", path)
    _check_characters(path)
    components: list[str] = []
    for component in path.split("/"):
        if component == "..":
            if components:
                components.pop()
        elif component not in {"", "."}:
            components.append(component)
    if len(components) > MAX_DEPTH:
        raise failed("ENAMETOOLONG", path, "too many directories within each other")
    if any(len(component.encode()) > MAX_NAME_BYTES for component in components):
        raise failed("ENAMETOOLONG", path)
    normal = "/" + "/".join(components)
    if len(normal) > MAX_CHARS:  # with the slash that was missing
        raise failed("ENAMETOOLONG", path)
    return normal


def without_mount(path: str) -> str | None:
    """The path, or pattern, that programs name below `MOUNT`, from the root of the workspace; `None` for any other."""
    return path[len(MOUNT) :] or "/" if is_within(path, MOUNT) else None


def check_target(target: str, path: str) -> None:
    """Check the target of a link at `path`. Errors: `EINVAL` where it is blank, too long or has refused characters."""
    if not target.strip() or len(target) > MAX_CHARS:
        raise failed("EINVAL", path, "the target of a link has 1 to 4096 characters")
    _check_characters(target)


def parent_of(path: str) -> str:
    """The directory that holds a path; the root's is the root."""
    return path[: path.rfind("/")] or "/"


def name_of(path: str) -> str:
    """The last component; empty for the root."""
    return path[path.rfind("/") + 1 :]


def joined(directory: str, name: str) -> str:
    """The path of a name in a directory."""
    return f"/{name}" if directory == "/" else f"{directory}/{name}"


def chain(path: str) -> list[str]:
    """A path with every directory above it except the root, outermost first."""
    return [path[:at] for at, char in enumerate(path) if char == "/" and at] + ([path] if path != "/" else [])


def chains(paths: Iterable[str]) -> list[str]:
    """The chains of several paths, each path once."""
    return list(dict.fromkeys(each for path in paths for each in chain(path)))


def below(directory: str) -> str:
    """The prefix that all paths below a directory have, and no other path has."""
    return "/" if directory == "/" else f"{directory}/"


def is_within(path: str, directory: str) -> bool:
    """Whether a path is a directory or below it."""
    return path == directory or path.startswith(below(directory))


def _check_characters(text: str) -> None:
    if text.isascii() and text.isprintable():
        return
    if any(char in _BIDI or unicodedata.category(char) in _REFUSED for char in text):
        raise failed("EINVAL", text, "a name has no control characters, line breaks or direction marks")
