"""A skill, its files, and the sources that skills come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from sessions_app.core.context.documents import FILE_NAME
from tools_app.core.files.failures import failed
from tools_app.core.files.paths import is_within, joined, name_of, normalise
from tools_app.core.files.workspace import EntryKind, Workspace
from tools_app.core.origins import Origin
from tools_app.skills.front_matter import SkillHead

MAX_FILES: Final = 200
MAX_FILE_BYTES: Final = 8 * 1024 * 1024
_IGNORED: Final = frozenset({".git", "node_modules", ".DS_Store", "__pycache__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """A file of a skill besides its `SKILL.md`. `path`: below the skill, as `references/style.md`."""

    path: str
    size: int


class SkillFiles(Protocol):
    """The files of one skill."""

    async def list(self) -> Sequence[SkillFile]:
        """The files, sorted by path; at most 200."""

    async def read(self, path: str) -> bytes | None:
        """The bytes of a file; `None` where there is none. Errors: `FileFailed` for what cannot or may not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Instructions for a kind of task, with the files that belong to them.

    `origin` and `place`: where its text comes from; `place` is for people.
    """

    head: SkillHead
    instructions: str
    files: SkillFiles
    origin: Origin = Origin.TOOL
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFault:
    """A skill that could not be loaded, and the reason."""

    place: str
    reason: str


Loaded: TypeAlias = Skill | SkillFault


class SkillSource(Protocol):
    """Gives skills. Asked once an attempt; what cannot be loaded is a `SkillFault` and never an exception."""

    async def load(self) -> Sequence[Loaded]:
        """The skills, each once."""


class FilesInCode:
    """Files that a developer gives with a skill, by path."""

    def __init__(self, contents: Mapping[str, str | bytes]) -> None:
        self._contents = {
            normalise(path).removeprefix("/"): data.encode() if isinstance(data, str) else data
            for path, data in contents.items()
        }

    async def list(self) -> Sequence[SkillFile]:
        """As `SkillFiles.list`."""
        return [SkillFile(path=path, size=len(data)) for path, data in sorted(self._contents.items())][:MAX_FILES]

    async def read(self, path: str) -> bytes | None:
        """As `SkillFiles.read`."""
        return self._contents.get(normalise(path).removeprefix("/"))


class FilesInFolder:
    """The files of a folder in a workspace; nothing outside of the folder is listed or read."""

    def __init__(self, workspace: Workspace, folder: str) -> None:
        self._workspace = workspace
        self._folder = folder

    async def list(self) -> Sequence[SkillFile]:
        """As `SkillFiles.list`. Links are left out."""
        found = await self._workspace.glob(f"{_literal(self._folder)}/**/*", limit=MAX_FILES * 5)
        files = [
            SkillFile(path=entry.path.removeprefix(f"{self._folder}/"), size=entry.size)
            for entry in found
            if entry.kind is EntryKind.FILE and entry.path != joined(self._folder, FILE_NAME)
        ]
        return [file for file in files if not _IGNORED & set(file.path.split("/"))][:MAX_FILES]

    async def read(self, path: str) -> bytes | None:
        """As `SkillFiles.read`. Errors: `EPERM` for a link that leads out of the skill, `EFBIG`."""
        wanted = joined(self._folder, normalise(path).removeprefix("/"))
        entry = await self._workspace.stat(wanted)
        if entry is None:
            return None
        if not is_within(await self._workspace.realpath(wanted), self._folder):
            raise failed("EPERM", path, "it is outside of the skill")
        if entry.kind is not EntryKind.FILE:
            raise failed("EISDIR", path)
        if entry.size > MAX_FILE_BYTES:
            raise failed("EFBIG", path)
        return await self._workspace.read_bytes(wanted)


def _literal(path: str) -> str:
    """A path as a pattern that matches nothing else."""
    return "".join(f"[{char}]" if char in "*?[{" else char for char in path)


def extension_of(path: str) -> str:
    """The ending of a file's name in lower case, with its dot."""
    name = name_of(f"/{path}")
    return f".{name.rsplit('.', 1)[1].lower()}" if "." in name else ""
