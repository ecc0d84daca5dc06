"""The sources of skills: a folder of the machine, a folder of a workspace, and code.

class Assistant(Think):
    def get_skills(self):
        return [SkillDirectory(BASE_DIR / "skills"), WorkspaceSkills(self.workspace)]
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sessions_app.core.context.documents import FILE_NAME
from tools_app.core.files.paths import joined, normalise, parent_of
from tools_app.core.files.workspace import Entry, EntryKind, Workspace
from tools_app.core.origins import Origin
from tools_app.errors import FileFailed, SkillInvalid
from tools_app.skills.front_matter import SkillHead, read_skill
from tools_app.skills.skill import FilesInCode, FilesInFolder, Loaded, Skill, SkillFault
from tools_app.workspace.stores.directory import DirectoryWorkspace

MAX_SKILLS: Final = 200
MAX_SKILL_BYTES: Final = 256 * 1024
MAX_KEPT: Final = 2_000
DEFAULT_FOLDER: Final = "/.agents/skills"


class _Kept:
    """Parsed skills of folders by place and version, the newest ones; for the whole process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str], tuple[SkillHead, str] | str] = OrderedDict()

    def get(self, key: tuple[str, str, str]) -> tuple[SkillHead, str] | str | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: tuple[str, str, str], value: tuple[SkillHead, str] | str) -> None:
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)


_kept: Final = _Kept()


class WorkspaceSkills:
    """The skills in a folder of a workspace, each in a folder of its own with a `SKILL.md`.

    People and models that write there add and change skills, which count from the next turn on. A folder that is not
    there has none. A skill has the origin of its file.
    """

    def __init__(self, workspace: Workspace, folder: str = DEFAULT_FOLDER) -> None:
        self._workspace = workspace
        self._folder = normalise(folder)
        self._foreign: Origin | None = getattr(workspace, "foreign", Origin.FILE)  # of a store of your own as well
        self._cache = ""

    async def load(self) -> Sequence[Loaded]:
        """As `SkillSource.load`. Reads what has changed since it was read last."""
        pattern = joined(self._folder, f"*/{FILE_NAME}")
        entries = [entry for entry in await self._workspace.glob(pattern) if entry.kind is EntryKind.FILE]
        found = {entry.path: _kept.get(self._key(entry)) for entry in entries[:MAX_SKILLS]} if self._cache else {}
        missing = [entry.path for entry in entries[:MAX_SKILLS] if found.get(entry.path) is None]
        async for entry, data in self._workspace.read_many(missing, max_bytes=MAX_SKILL_BYTES):
            found[entry.path] = _parsed(data)
            if self._cache:
                _kept.put(self._key(entry), _parsed(data))
        origins = {entry.path: entry.origin or self._foreign or Origin.TOOL for entry in entries}
        loaded = [
            self._skill(path, parsed, origins[path]) for path, parsed in sorted(found.items()) if parsed is not None
        ]
        if len(entries) > MAX_SKILLS:
            loaded.append(
                SkillFault(place=self._folder, reason=f"More than {MAX_SKILLS} skills; the rest is left out.")
            )
        return loaded

    def _key(self, entry: Entry) -> tuple[str, str, str]:
        return self._cache, entry.path, entry.version

    def _skill(self, path: str, parsed: tuple[SkillHead, str] | str, origin: Origin) -> Loaded:
        folder = parent_of(path)
        if isinstance(parsed, str):
            return SkillFault(place=path, reason=parsed)
        head, instructions = parsed
        return Skill(
            head=head,
            instructions=instructions,
            files=FilesInFolder(self._workspace, folder),
            origin=origin,
            place=path,
        )


class SkillDirectory(WorkspaceSkills):
    """The skills in a directory of the machine: part of the installation, like code. No link leads out of it.

    An edited file counts from the next turn on. A directory that is not there is a fault and has no skills.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        super().__init__(DirectoryWorkspace(self._path, is_trusted=True), "/")
        self._cache = str(self._path.absolute())

    async def load(self) -> Sequence[Loaded]:
        """As `SkillSource.load`."""
        if not self._path.is_dir():
            return [SkillFault(place=str(self._path), reason="There is no such directory.")]
        return await super().load()


class SkillsInCode:
    """Skills that a developer writes in code: `SkillsInCode({"invoices": (SKILL_MD, {"scripts/sum.js": "…"})})`.

    Shape: by a name for the log, the text of the `SKILL.md` and the skill's other files by path.
    """

    def __init__(self, skills: Mapping[str, tuple[str, Mapping[str, str | bytes]] | str]) -> None:
        self._loaded = [_in_code(name, given) for name, given in skills.items()]

    async def load(self) -> Sequence[Loaded]:
        """As `SkillSource.load`."""
        return self._loaded


def _in_code(name: str, given: tuple[str, Mapping[str, str | bytes]] | str) -> Loaded:
    text, contents = (given, {}) if isinstance(given, str) else given
    try:
        head, instructions = read_skill(text)
        return Skill(head=head, instructions=instructions, files=FilesInCode(contents), place=name)
    except (SkillInvalid, FileFailed) as error:
        return SkillFault(place=name, reason=error.message)


def _parsed(data: bytes | None) -> tuple[SkillHead, str] | str:
    """Head and instructions, or the reason why there are none."""
    if data is None:
        return f"{FILE_NAME} has more than {MAX_SKILL_BYTES} bytes."
    try:
        return read_skill(data.decode(errors="replace"))
    except SkillInvalid as error:
        return error.message
