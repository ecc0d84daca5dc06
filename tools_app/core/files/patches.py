"""Changes of files as one patch that `git apply` takes: texts, binary files, links, renames. Pure.

The format is that of git's own `diff --binary` (git-diff: "Generating patch text with -p", "binary" in git-apply):
blobs are named by their whole SHA-1, without which git refuses binary hunks.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tools_app.core.files.diffs import unified
from tools_app.errors import FileFailed

_NO_BLOB: Final = "0" * 40
_LINE_BYTES: Final = 52
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n"}


@dataclass(frozen=True, slots=True)
class Blob:
    """A file, or a link with its target as content."""

    content: bytes
    is_link: bool = False

    @property
    def name(self) -> str:
        """Its name in a repository."""
        head = f"blob {len(self.content)}\0".encode()
        return hashlib.sha1(head + self.content, usedforsecurity=False).hexdigest()

    @property
    def mode(self) -> str:
        """Its mode in a repository: a workspace has no others."""
        return "120000" if self.is_link else "100644"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedFile:
    """A file before and after. `None`: there is none. `path`: absolute in the workspace."""

    path: str
    before: Blob | None
    after: Blob | None


_Renamed: TypeAlias = dict[str, PatchedFile]


def git_patch(files: Iterable[PatchedFile]) -> bytes:
    """One patch, by path. A file that is gone and one with the same bytes that is new are a rename.

    Files in a `.git` are left out: git refuses patches of them. Equal files are left out as well.
    """
    changed = [each for each in files if each.before != each.after and not is_of_git(each.path)]
    renamed = _renames(changed)
    gone = {each.path for each in renamed.values()}
    pieces: list[str] = []
    for each in sorted(changed, key=lambda file: file.path):
        if each.path in renamed:
            pieces.append(_rename(renamed[each.path].path, each.path))
        elif each.path not in gone:
            pieces += _pieces(each)
    return "".join(pieces).encode()


def is_of_git(path: str) -> bool:
    """Whether a path is in the data of a repository, which git alone reads and writes."""
    return ".git" in path.split("/")


def _renames(changed: Sequence[PatchedFile]) -> _Renamed:
    """Files that are gone by the path at which their bytes are now."""
    left = {each.before: each for each in changed if each.after is None and each.before and each.before.content}
    found: _Renamed = {}
    for each in changed:
        if each.before is None and each.after in left:
            found[each.path] = left.pop(each.after)
    return found


def _rename(source: str, target: str) -> str:
    old, new = _name("a", source), _name("b", target)
    return (
        f"diff --git {old} {new}\nsimilarity index 100%\n"
        f"rename from {_name('', source)}\nrename to {_name('', target)}\n"
    )


def _pieces(file: PatchedFile) -> list[str]:
    before, after = file.before, file.after
    if before is not None and after is not None and before.is_link != after.is_link:
        gone = PatchedFile(path=file.path, before=before, after=None)
        return [*_pieces(gone), *_pieces(PatchedFile(path=file.path, before=None, after=after))]
    old, new = _name("a", file.path), _name("b", file.path)
    lines = [f"diff --git {old} {new}\n"]
    if before is None and after is not None:
        lines.append(f"new file mode {after.mode}\n")
    elif before is not None and after is None:
        lines.append(f"deleted file mode {before.mode}\n")
    names = [_NO_BLOB if each is None else each.name for each in (before, after)]
    mode = f" {before.mode}" if before is not None and after is not None and before.is_link else ""
    lines.append(f"index {names[0]}..{names[1]}{mode}\n")
    text = _text_diff(file)
    if text is None:
        sides = (b"" if each is None else each.content for each in (after, before))
        return [*lines, "GIT binary patch\n", *(_literal(content) for content in sides)]
    if text:
        lines.append(f"--- {'/dev/null' if before is None else _ended(old)}\n")
        lines.append(f"+++ {'/dev/null' if after is None else _ended(new)}\n")
    return [*lines, text]


def _text_diff(file: PatchedFile) -> str | None:
    """The hunks; `None` where it is no text, or too long to be compared."""
    texts = []
    for blob in (file.before, file.after):
        content = b"" if blob is None else blob.content
        if b"\0" in content:
            return None
        try:
            texts.append(content.decode())
        except UnicodeDecodeError:
            return None
    try:
        found = unified(texts[0], texts[1], "a", "b")
    except FileFailed:  # too many lines
        return None
    return found.split("\n", 2)[2] if found else ""


def _literal(content: bytes) -> str:
    packed = zlib.compress(content)
    lines = [f"literal {len(content)}\n"]
    for at in range(0, len(packed), _LINE_BYTES):
        piece = packed[at : at + _LINE_BYTES]
        size = len(piece)
        sign = chr(ord("A") + size - 1) if size <= 26 else chr(ord("a") + size - 27)
        lines.append(f"{sign}{base64.b85encode(piece, pad=True).decode()}\n")
    return "".join([*lines, "\n"])


def _name(side: str, path: str) -> str:
    """A name, quoted where git would not read it otherwise."""
    name = f"{side}{path}" if side else path.lstrip("/")
    if not any(each in _ESCAPES for each in name):
        return name
    return f'"{"".join(_ESCAPES.get(each, each) for each in name)}"'


def _ended(name: str) -> str:
    """A name with the tab that ends one which has spaces."""
    return f"{name}\t" if " " in name and not name.startswith('"') else name
