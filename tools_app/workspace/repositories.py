"""A workspace that is a directory with a repository, as git itself sees it: what differs from the last commit.

Git works beside the repository, never in it: with a folder of its own for configuration, index and what it writes, and
with the repository's objects to read. So nothing that stands in the repository runs a program (hooks, filters, external
diffs, monitors), no configuration but that of line ends and modes counts, there is no remote to ask, and `git status`
says the same afterwards. Processor time, clock, memory and output are bounded.
"""

import os
import re
import resource
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import EntryKind
from tools_app.errors import FileFailed
from tools_app.workspace.stores.directory import DirectoryWorkspace

MAX_CHANGES: Final = 1_000
MAX_PATCH_BYTES: Final = 32 * 1024 * 1024
MAX_DIFFERENCE_BYTES: Final = 512 * 1024
"""Of one file, as it is shown. A patch has more."""

SECONDS: Final = 20.0
_MEMORY_BYTES: Final = 2 * 1024 * 1024 * 1024
_WRITTEN_BYTES: Final = 256 * 1024 * 1024
_MAX_HEAD_BYTES: Final = 4 * 1024 * 1024
_MAX_INDEX_BYTES: Final = 128 * 1024 * 1024
_AT_ONCE: Final = 2
"""Processes of git that one process has at once; others wait."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHA_256_CHARS: Final = 64
_BRANCH: Final = "refs/heads/"
_KEPT_SETTINGS: Final = ("core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.symlinks")
_KEPT_VALUE: Final = re.compile(r"[a-z]{1,10}")
_KINDS: Final[dict[str, Literal["created", "updated", "deleted"]]] = {"A": "created", "D": "deleted"}
_WINDOWS: Final = ("-c", "core.packedGitWindowSize=64m", "-c", "core.packedGitLimit=512m")
_places = threading.BoundedSemaphore(_AT_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryChange:
    """A file that differs from the last commit. `was`: its former path, where it was moved.

    `staged`: how much of the difference is in the index, for the next commit.
    """

    path: str
    kind: Literal["created", "updated", "deleted"]
    is_tracked: bool
    staged: Literal["none", "part", "all"] = "none"
    was: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryDifference:
    """The difference of one file. `diff`: its hunks, unified; empty where there is no text to compare.

    That is so of binary files, of those that were only moved or have another mode, and where it `is_cut`: too large.
    """

    path: str
    diff: str
    added: int
    removed: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryState:
    """A repository. `branch`: empty without one; `commit`: empty before the first.

    `changes`: files that lie in the directory as the commit does not have them. What is ignored is not among them.
    """

    branch: str
    commit: str
    changes: Sequence[RepositoryChange]
    has_more: bool = False


class Repository:
    """The repository at the root of a directory. Sync: each method starts git, and takes up to 20 s.

    Errors of all: `FileFailed` with `ENOENT` where there is none, with `EINVAL` for one that is kept elsewhere in parts
    (a worktree, a submodule, borrowed objects), with `EIO` where git is not installed, fails, or takes too long.
    """

    def __init__(self, directory: DirectoryWorkspace) -> None:
        self._directory = directory

    def state(self) -> RepositoryState:
        """The branch, and the files that differ from its last commit."""
        with self._beside() as git:
            staged = git.names("diff", "--cached", "--no-renames", "--name-only", git.base)
            new = git.take_new()
            further = git.names("diff", "--no-renames", "--name-only")
            changes = [_with_staging(each, staged, further) for each in git.changes(new)]
        return RepositoryState(
            branch=git.branch, commit=git.commit, changes=changes[:MAX_CHANGES], has_more=len(changes) > MAX_CHANGES
        )

    def difference(self, path: str, was: str = "") -> RepositoryDifference:
        """The difference of one file from the last commit. `was`: its former path, as `state` has it.

        Errors: also `FileFailed` with `ENOENT` for a file that does not differ.
        """
        wanted = f"/{path.removeprefix('/')}"
        paths = [each.removeprefix("/") for each in (path, was) if each]
        if any(part in {"", ".", ".."} for each in paths for part in each.split("/")):  # git gives no such name
            raise failed("ENOENT", wanted)
        with self._beside() as git:
            new = git.take_new(*paths)
            if all(each.path != wanted for each in git.changes(new, *paths)):
                raise failed("ENOENT", wanted, "does not differ from the last commit")
            try:
                found = git.run("diff", *_PLAIN, git.base, "--", *paths, most=MAX_DIFFERENCE_BYTES)
            except FileFailed as failure:
                if failure.errno != "EFBIG":
                    raise
                return RepositoryDifference(path=wanted, diff="", added=0, removed=0, is_cut=True)
        return _difference(wanted, found.decode(errors="replace"))

    def patch(self) -> bytes:
        """All that differs as one patch for `git apply`, with new files, those that were moved, and binary ones."""
        with self._beside() as git:
            git.take_new()
            return git.run("diff", "--binary", *_PLAIN, git.base)

    @contextmanager
    def _beside(self) -> Iterator["_Git"]:
        """A folder of git's own that stands for this repository until the end."""
        root = self._directory.root
        self._check()
        name, commit = self._head()
        with _places, tempfile.TemporaryDirectory(prefix="think-git-") as made:
            folder = Path(made)
            for each in ("objects", "refs", "info"):
                (folder / each).mkdir()
            git = _Git(folder, root, name.removeprefix(_BRANCH) if name.startswith(_BRANCH) else "", commit)
            (folder / "HEAD").write_text(f"{commit or 'ref: refs/heads/none'}\n")
            self._copy_index(folder / "index")
            (folder / "info" / "exclude").write_bytes(self._read("/.git/info/exclude", _MAX_HEAD_BYTES) or b"")
            (folder / "config.of").write_bytes(self._read("/.git/config", _MAX_HEAD_BYTES) or b"")
            (folder / "config").write_text(git.own_config())
            yield git

    def _copy_index(self, index: Path) -> None:
        """Copy the list of staged files, with its time: git trusts none that changed since, in the same second too."""
        entry = self._directory.read_now(lambda tree: tree.find(["/.git/index"])).get("/.git/index")
        content = self._read("/.git/index", _MAX_INDEX_BYTES)
        if entry is not None and content:
            index.write_bytes(content)
            second = int(entry.modified_at.timestamp())
            os.utime(index, (second, second))

    def _check(self) -> None:
        """See to it that it is whole, and here. Nothing of another place is read in its name."""
        wanted = ("/.git", "/.git/objects", "/.git/objects/pack", "/.git/objects/info", "/.git/refs")
        found = self._directory.read_now(lambda tree: tree.find([*wanted, "/.git/objects/info/alternates"]))
        if "/.git" not in found:
            raise failed("ENOENT", "/.git", "this directory has no repository")
        whole = all(path in found and found[path].kind is EntryKind.DIRECTORY for path in ("/.git", "/.git/objects"))
        if not whole or any(path in found and found[path].kind is not EntryKind.DIRECTORY for path in wanted):
            raise failed("EINVAL", "/.git", "parts of this repository are kept elsewhere")
        if "/.git/objects/info/alternates" in found:
            raise failed("EINVAL", "/.git", "this repository borrows objects of another one")

    def _head(self) -> tuple[str, str]:
        """The name of the reference at which the repository stands, and the commit; either may be empty."""
        name, seen = (self._read("/.git/HEAD", _MAX_HEAD_BYTES) or b"").decode(errors="replace").strip(), 0
        while name.startswith("ref: "):
            name, seen = name.removeprefix("ref: ").strip(), seen + 1
            if seen > 5 or not name.startswith("refs/") or ".." in name:
                raise failed("EINVAL", "/.git/HEAD", "names no reference of this repository")
            value = self._read(f"/.git/{name}", _MAX_HEAD_BYTES)
            text = self._packed(name) if value is None else value.decode(errors="replace").strip()
            if not text.startswith("ref: "):
                return name, self._commit_of(text)
            name = text
        return "", self._commit_of(name)

    def _packed(self, name: str) -> str:
        for line in (self._read("/.git/packed-refs", _MAX_INDEX_BYTES) or b"").decode(errors="replace").splitlines():
            commit, _, found = line.partition(" ")
            if found == name:
                return commit
        return ""

    def _commit_of(self, text: str) -> str:
        if text and not _COMMIT.fullmatch(text):
            raise failed("EINVAL", "/.git/HEAD", "names no commit")
        return text

    def _read(self, path: str, limit: int) -> bytes | None:
        """A file of the repository, which no link leads out of."""
        entry = self._directory.read_now(lambda tree: tree.find([path])).get(path)
        if entry is None or entry.kind is not EntryKind.FILE:
            return None
        if entry.size > limit:
            raise failed("EFBIG", path)
        return self._directory.read_now(lambda tree: tree.read_all([entry]))[0]


_PLAIN_TREES: Final = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
_PLAIN: Final = ("--find-renames", *_PLAIN_TREES)
"""Git would start another git in each submodule, with the configuration of that."""


@dataclass(frozen=True, slots=True)
class _Git:
    """Git with a folder of its own that stands for a repository."""

    folder: Path
    root: Path
    branch: str
    commit: str

    @property
    def base(self) -> str:
        """The commit, or the empty tree before the first."""
        return self.commit or "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

    def take_new(self, *within: str) -> set[str]:
        """Have differences include files that are not tracked; returns their paths. Repositories below are none."""
        listed = self.run("ls-files", "--others", "--exclude-standard", "-z", "--", *within).split(b"\0")
        paths = [path for path in listed if path and not path.endswith(b"/")]
        if paths:
            words = ("--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
            self.run("add", *words, sent=b"\0".join(paths))
        return {f"/{os.fsdecode(path)}" for path in paths}

    def names(self, *words: str) -> set[str]:
        """The paths that a command of git names."""
        listed = self.run(*words, *_PLAIN_TREES, "-z").split(b"\0")
        return {f"/{os.fsdecode(path)}" for path in listed if path}

    def changes(self, new: Collection[str], *within: str) -> Iterator[RepositoryChange]:
        """Files that differ from the commit; `new`: those that are not tracked."""
        fields = self.run("diff", "--name-status", "-z", *_PLAIN, self.base, "--", *within).split(b"\0")
        return _changes([os.fsdecode(field) for field in fields], new)

    def own_config(self) -> str:
        """The configuration to work with: of the repository's, what says how its files lie on the disk."""
        lines = ["[core]", "bare = false", "repositoryformatversion = 1"]
        listed = self.run("config", "--file", str(self.folder / "config.of"), "--no-includes", "--list", "-z")
        for pair in listed.decode(errors="replace").split("\0"):
            key, _, value = pair.partition("\n")
            if key in _KEPT_SETTINGS and _KEPT_VALUE.fullmatch(value):
                lines.append(f"{key.removeprefix('core.')} = {value}")
        if len(self.commit) == _SHA_256_CHARS:
            lines += ["[extensions]", "objectFormat = sha256"]
        return "\n".join([*lines, ""])

    def run(self, *words: str, sent: bytes = b"", most: int = 0) -> bytes:
        """The output of a command, with so many bytes at most. Errors: `FileFailed` with `EIO`, `EFBIG`."""
        most = most or MAX_PATCH_BYTES
        program = shutil.which("git", path=os.defpath)
        if program is None:
            raise failed("EIO", "/.git", "git is not installed here")
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
            given.write(sent)
            given.seek(0)
            process = subprocess.Popen(  # noqa: S603 - git, with words of ours
                [program, "--no-pager", *_WINDOWS, *words],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.root,
                env=self._environment(),
                start_new_session=True,
            )
            found, is_late = _output(process, most)
            errors.seek(0)
            reason = errors.read(500).decode(errors="replace").strip().partition("\n")[0]
        if len(found) > most:
            raise failed("EFBIG", "/.git", "git has more to say than is shown")
        if is_late:
            raise failed("EIO", "/.git", "git takes too long here")
        if process.returncode:
            raise failed("EIO", "/.git", f"git failed: {reason or process.returncode}")
        return found

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "LC_ALL": "C.UTF-8",
            "HOME": str(self.folder),
            "GIT_DIR": str(self.folder),
            "GIT_WORK_TREE": str(self.root),
            "GIT_OBJECT_DIRECTORY": str(self.folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.root / ".git" / "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
        }


def _output(process: "subprocess.Popen[bytes]", most: int) -> tuple[bytes, bool]:
    """Output of a process of a session of its own, with one byte more than is taken; and whether the clock ended it."""
    assert process.stdout is not None, "is a pipe"
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    clock = threading.Timer(SECONDS, end)
    clock.start()
    try:
        for kind, limit in (
            (resource.RLIMIT_AS, _MEMORY_BYTES),
            (resource.RLIMIT_CPU, int(SECONDS)),
            (resource.RLIMIT_FSIZE, _WRITTEN_BYTES),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(ProcessLookupError):  # it has ended
                resource.prlimit(process.pid, kind, (limit, limit))
        found = process.stdout.read(most + 1)
        if len(found) > most:
            process.kill()
        process.wait()
        return found, late.is_set()
    finally:
        clock.cancel()
        process.kill()
        process.stdout.close()
        process.wait()


def _changes(fields: Sequence[str], new: Collection[str]) -> Iterator[RepositoryChange]:
    """Changes as `git diff --name-status -z` has them: a letter, the former path if it was moved, the path."""
    rest = iter(fields)
    for letter in rest:
        if not letter:
            continue
        was = f"/{next(rest)}" if letter[0] == "R" else ""
        path = f"/{next(rest)}"
        kind = _KINDS.get(letter[0], "updated")
        yield RepositoryChange(path=path, kind=kind, is_tracked=path not in new, was=was)


def _with_staging(change: RepositoryChange, staged: Collection[str], further: Collection[str]) -> RepositoryChange:
    """`staged`: where the index differs from the commit; `further`: where the files differ from the index."""
    if not change.is_tracked or change.path not in staged:
        return change
    return replace(change, staged="part" if change.path in further else "all")


def _difference(path: str, found: str) -> RepositoryDifference:
    """The hunks of a patch of one file, which begin at the first line with a place."""
    lines = found.split("\n")  # no other sign ends a line
    first = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    hunks = lines[first:]
    added, removed = (sum(line.startswith(sign) for line in hunks) for sign in "+-")
    return RepositoryDifference(path=path, diff="\n".join(hunks), added=added, removed=removed)
