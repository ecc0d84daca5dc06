"""Skills in a folder: each is a folder with a `SKILL.md` in it, or a Markdown file."""

from collections.abc import Collection
from pathlib import Path

from sessions_app.context.skill_catalog import BlockPlace, Documents
from sessions_app.core.context.documents import FILE_NAME

__all__ = ["SkillFolder"]


class SkillFolder(Documents):
    """A provider of the skills below a folder; their keys are the names of the folders or files.

    Hidden files and what leads out of the folder are passed over. A folder that is not there has no skills.
    """

    def __init__(self, path: str | Path, *, keys: Collection[str] | None = None, seconds: float = 2.0) -> None:
        super().__init__(_Folder(Path(path)), keys=keys, seconds=seconds)


class _Folder:
    def __init__(self, root: Path) -> None:
        self._root = root

    def places(self) -> list[BlockPlace]:
        if not self._root.is_dir():
            return []
        found = []
        for path in sorted(self._root.iterdir()):
            document = path / FILE_NAME if path.is_dir() else path
            is_document = document.name == FILE_NAME or document.suffix == ".md"
            if not path.name.startswith(".") and is_document and self._is_inside(document):
                found.append(BlockPlace(path.name if path.is_dir() else path.stem, str(document)))
        return found

    def read(self, address: str, max_bytes: int) -> bytes | None:
        path = Path(address)
        if not self._is_inside(path):
            return None
        try:
            with path.open("rb") as file:
                return file.read(max_bytes)
        except OSError:  # gone since it was listed
            return None

    def _is_inside(self, path: Path) -> bool:
        return path.is_file() and path.resolve().is_relative_to(self._root.resolve())
