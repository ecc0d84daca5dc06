"""Entries of a catalogue: sentences that the sources say to people."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("chat", "fibers", "sessions_app", "tools_app", "thinkproject")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Entry:
    """A sentence, its plural and the context that tells it from an equal one, and the file that has it."""

    text: str
    plural: str = ""
    context: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """Text for people that no catalogue can have: its place, as `path:line`, and what is wrong with it."""

    place: str
    text: str

    def __str__(self) -> str:
        """One line for a report."""
        return f"{self.place}: {self.text}"


def python_files() -> Iterable[Path]:
    """The Python files of the product."""
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def template_files() -> Iterable[Path]:
    """The templates of the product. Links lead to files that are listed already."""
    for folder in (ROOT / "templates", *(ROOT / app / "templates" for app in APPS)):
        for path in sorted(folder.rglob("*.html")):
            if not any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(ROOT)):
                yield path


def relative(path: Path) -> str:
    """A file's name as catalogues and reports write it."""
    return path.relative_to(ROOT).as_posix()
