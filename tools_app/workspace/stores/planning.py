"""Follows links and works out what operations change, before anything is written. The same for all stores."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from tools_app.core.files.failures import conflict, failed
from tools_app.core.files.paths import below, chain, chains, check_target, normalise, parent_of
from tools_app.core.files.workspace import Entry, EntryKind, FileChange
from tools_app.core.guard.reach import note_here, written_here
from tools_app.workspace.stores.tree import Changes, Committed, Planned, StoredContent, Tree

MAX_LINKS: Final = 40


@dataclass(frozen=True, slots=True)
class PathPlace:
    """A path whose links are followed, and what stands there."""

    path: str
    found: Entry | Planned | None

    @property
    def kind(self) -> EntryKind | None:
        """The kind of what is there."""
        return None if self.found is None else self.found.kind

    @property
    def entry(self) -> Entry | None:
        """The stored entry, for plans that have not changed anything yet."""
        return self.found if isinstance(self.found, Entry) else None


class Plan:
    """Stored entries with changes on top, which later steps of the same plan see."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._known: dict[str, Entry | None] = {}
        self._planned: dict[str, Planned] = {}
        self._removed: dict[str, Entry] = {}
        self._going: Counter[str] = Counter()  # removed entries, by their directory

    def prefetch(self, paths: Iterable[str]) -> None:
        """Look up these paths and the directories above them in few queries."""
        self._look_up(chains(paths))

    def resolve(self, path: str, *, follow: bool = True) -> PathPlace:
        """Follow the links of a path; the last component only where `follow`.

        Errors: `ELOOP` after 40 links, `ENOTDIR` below a file, those of `normalise`.
        """
        path = normalise(path)
        for _ in range(MAX_LINKS + 1):
            onward = self._step(path, follow=follow)
            if isinstance(onward, PathPlace):
                return onward
            path = onward
        raise failed("ELOOP", path)

    def put(self, path: str, content: StoredContent, *, expected: str | None = None) -> str:
        """Write a file with its parents. Returns its path. Errors: `EISDIR`, `ENOTDIR`; `FileConflict`."""
        place = self.resolve(path)
        if place.kind is EntryKind.DIRECTORY:
            raise failed("EISDIR", place.path)
        self.check_version(place, expected)
        self.make_parents(place.path)
        self._add(place, EntryKind.FILE, content=content)
        return place.path

    def make_directory(self, path: str, *, recursive: bool) -> None:
        """Make a directory. Errors: as `Workspace.mkdir`."""
        place = self.resolve(path, follow=recursive)
        if place.path == "/" or (recursive and place.kind is EntryKind.DIRECTORY):
            return
        if place.found is not None:
            raise failed("EEXIST", place.path)
        if not recursive and self._look(parent_of(place.path)) is None:
            raise failed("ENOENT", parent_of(place.path))
        self.make_parents(place.path)
        self._add(place, EntryKind.DIRECTORY)

    def link(self, path: str, target: str, *, replaces: bool) -> None:
        """Make a link with its parents. Errors: `EEXIST` unless `replaces`, `EISDIR`, `EINVAL`."""
        place = self.resolve(path, follow=False)
        check_target(target, place.path)
        if place.found is not None and not replaces:
            raise failed("EEXIST", place.path)
        if place.kind is EntryKind.DIRECTORY:
            raise failed("EISDIR", place.path)
        self.make_parents(place.path)
        self._add(place, EntryKind.SYMLINK, target=target)

    def remove(self, place: PathPlace) -> None:
        """Remove what is at a place, with all below it. Errors: `EPERM` for the root."""
        if place.path == "/":
            raise failed("EPERM", "/")
        inside = below(place.path)
        for path in [each for each in self._planned if each == place.path or each.startswith(inside)]:
            planned = self._planned.pop(path)
            if path == place.path and planned.before is not None:
                self._remove(planned.before)
        if isinstance(place.found, Entry):
            self._remove(place.found)

    def make_parents(self, path: str) -> None:
        """Make the directories above a path whose links are followed."""
        for parent in chain(parent_of(path)):
            if self._look(parent) is None:
                self._add(PathPlace(parent, None), EntryKind.DIRECTORY)

    def check_version(self, place: PathPlace, expected: str | None) -> None:
        """Compare versions; `None` accepts any, an empty one nothing that is there. Errors: `FileConflict`."""
        if expected is None:
            return
        is_planned = isinstance(place.found, Planned)
        present = place.entry.version if place.entry else ""
        if is_planned or present != expected:
            raise conflict(place.path, present)

    def check_empty(self, place: PathPlace) -> None:
        """Look whether anything would be left in a directory. Errors: `ENOTEMPTY`."""
        inside = below(place.path)
        if any(path.startswith(inside) for path in self._planned):
            raise failed("ENOTEMPTY", place.path)
        if place.entry is None or place.kind is not EntryKind.DIRECTORY:
            return
        children = self._tree.children(place.path, limit=self._going[place.path] + 1)
        if any(child.path not in self._removed for child in children):
            raise failed("ENOTEMPTY", place.path)

    def changes(self) -> Changes | None:
        """The changes to carry out; `None` where there are none."""
        if not self._removed and not self._planned:
            return None
        return Changes(removed=list(self._removed.values()), planned=list(self._planned.values()))

    def _step(self, path: str, *, follow: bool) -> "PathPlace | str":
        """The place of a path, or the path to go on with where a link is in the way."""
        components = chain(path)
        self._look_up(components)
        for component in components:
            found = self._look(component)
            is_last = component == path
            if found is None:
                return PathPlace(path, None)
            if found.kind is EntryKind.SYMLINK and (follow or not is_last):
                if found.origin is not None:  # what follows names the target
                    note_here(found.origin, component)
                start = "" if found.target.startswith("/") else below(parent_of(component))
                return normalise(start + found.target + path[len(component) :])
            if found.kind is not EntryKind.DIRECTORY and not is_last:
                raise failed("ENOTDIR", path)
        return PathPlace(path, self._look(path))

    def _look(self, path: str) -> Entry | Planned | None:
        if path == "/":
            return self._tree.root()
        if path in self._planned:
            return self._planned[path]
        if self._removed and any(each in self._removed for each in chain(path)):
            return None
        return self._known[path]

    def _remove(self, entry: Entry) -> None:
        self._going[parent_of(entry.path)] += entry.path not in self._removed
        self._removed[entry.path] = entry

    def _look_up(self, paths: Collection[str]) -> None:
        wanted = [path for path in paths if path not in self._known]
        if wanted:
            found = self._tree.find(wanted)
            self._known.update({path: found.get(path) for path in wanted})

    def _add(
        self, place: PathPlace, kind: EntryKind, *, content: StoredContent | None = None, target: str = ""
    ) -> None:
        before = place.found.before if isinstance(place.found, Planned) else place.found
        self._planned[place.path] = Planned(path=place.path, kind=kind, content=content, target=target, before=before)


def changes_of(done: Committed) -> list[FileChange]:
    """The events of what was done: first what is gone, then what is new or different."""
    removed = {entry.path: entry.kind for entry in done.removed}
    new = {entry.path for entry in done.entries}
    gone = [FileChange(kind="deleted", path=path, entry_kind=kind) for path, kind in removed.items() if path not in new]
    return gone + [
        FileChange(kind="updated" if entry.path in removed else "created", path=entry.path, entry_kind=entry.kind)
        for entry in done.entries
    ]


def is_own_child(source: str, target: str) -> bool:
    """Whether a target is below a source."""
    return target.startswith(below(source))


def renamed(entry: Entry, source: str, target: str) -> Entry:
    """An entry at or below `source`, once that is `target`. The new name may be that of strangers."""
    origin = entry.origin or (written_here() if entry.path == source else None)
    return replace(entry, path=moved(entry.path, source, target), origin=origin)


def moved(path: str, source: str, target: str) -> str:
    """The new path of something at or below `source`, when that becomes `target`."""
    return target + path[len(source) :]
