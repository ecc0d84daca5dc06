"""Searches in the rows of one workspace: little of each entry, and the contents of many files by ranges of keys.

A driver takes longer to make the values of a row than the database does to find it. So the columns of all entries come
as one list each, and PostgreSQL puts the contents of some files together, which come as one value.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, TypeAlias

from django.db import connection

from thinkproject.kernel.statements import Statement
from tools_app.core.files.joined import TOGETHER, JoinedFiles, joined
from tools_app.core.files.workspace import BriefEntry, EntryKind
from tools_app.core.origins import Origin
from tools_app.models import StoredWorkspace
from tools_app.workspace.stores.keys import HEAD_CHARS, range_below

_DENSE: Final = 1.5
"""How many entries of a range are read for each one that is wanted."""
_GROWN_BYTES: Final = 64 * 1024
_KINDS: Final = {kind.value: kind for kind in EntryKind}
_ORIGINS: Final[dict[str, Origin | None]] = {"": None} | {origin.value: origin for origin in Origin}

_Content: TypeAlias = tuple[str, bytes | None]
"""Its name in storage, empty if it has none, and its bytes otherwise."""

_BRIEF: Final = (
    "SELECT {list}(path), {list}(kind), {list}(size), {list}(origin) FROM think_tools_workspaceentry "
    "WHERE workspace_id = %s AND path_key >= %s AND path_key < %s AND path >= %s AND path < %s"
)
_BRIEF_OF: Final = {
    "postgresql": Statement(_BRIEF.format(list="ARRAY_AGG")),
    "sqlite": Statement(_BRIEF.format(list="JSON_GROUP_ARRAY")),
}
_CONTENTS: Final = Statement(
    "SELECT path, storage_name, content FROM think_tools_workspaceentry "
    "WHERE workspace_id = %s AND path_key >= %s AND path_key <= %s AND kind = 'file' AND size <= %s"
)
_JOINED: Final = Statement(
    "SELECT at, paths, sizes, names, data FROM UNNEST(%s::text[], %s::text[]) WITH ORDINALITY AS r (first, last, at), "
    "LATERAL (SELECT ARRAY_AGG(path) AS paths, ARRAY_AGG(COALESCE(LENGTH(content), 0)) AS sizes, "
    "CASE WHEN BOOL_OR(storage_name <> '') THEN ARRAY_AGG(storage_name) END AS names, "
    "STRING_AGG(COALESCE(content, ''), '\\x0a') AS data FROM think_tools_workspaceentry "
    "WHERE workspace_id = %s AND path_key >= r.first AND path_key <= r.last AND kind = 'file' AND size <= %s) AS f "
    "WHERE paths IS NOT NULL"
)
"""Of PostgreSQL: the files of many ranges, those of each put together."""


@dataclass(frozen=True, slots=True)
class RowSearch:
    """As `tree.Searching`. `read_all`: that of the tree."""

    row: StoredWorkspace | None
    read_all: Callable[[Sequence[BriefEntry]], list[bytes | None]]

    def brief(self, prefix: str) -> list[BriefEntry]:
        """As `Searching.brief`: one query."""
        if self.row is None:
            return []
        lists = _BRIEF_OF[connection.vendor].all(self.row.pk, *range_below(prefix))[0]
        paths, kinds, sizes, origins = map(_list, lists)
        entries = zip(paths, map(_KINDS.__getitem__, kinds), sizes, map(_ORIGINS.__getitem__, origins), strict=True)
        found = sorted(entries, key=itemgetter(0))  # they nearly are
        return [BriefEntry._make((*entry, ordinal)) for ordinal, entry in enumerate(found)]

    def joined(self, files: Sequence[BriefEntry], *, max_bytes: int) -> list[JoinedFiles]:
        """As `Searching.joined`: one query over a range where that has little else in it."""
        first, last = files[0], files[-1]
        is_dense = first.ordinal >= 0 and last.ordinal - first.ordinal < _DENSE * len(files)
        if self.row is None or not is_dense or not _is_range(files):
            return self._one_by_one(files, max_bytes)
        room = min(max_bytes, max(_GROWN_BYTES, *(each.size for each in files)))  # what is not wanted may be large
        if connection.vendor == "postgresql":
            return self._ranges(self.row, files, room)
        rows = _CONTENTS.all(self.row.pk, first.path, last.path, room)
        return self._joined_of(files, {path: (name, content) for path, name, content in rows})

    def _one_by_one(self, files: Sequence[BriefEntry], max_bytes: int) -> list[JoinedFiles]:
        pairs = zip(files, self.read_all(files), strict=True)
        return joined([(each.path, data) for each, data in pairs if data is not None and len(data) <= max_bytes])

    def _ranges(self, row: StoredWorkspace, files: Sequence[BriefEntry], room: int) -> list[JoinedFiles]:
        """As the database puts them together, where nothing else is in the range of some files."""
        parts = [files[start : start + TOGETHER] for start in range(0, len(files), TOGETHER)]
        ranges = [(part[0].path, part[-1].path) if _is_range(part) else ("", "") for part in parts]
        rows = _JOINED.all_in_binary([first for first, _ in ranges], [last for _, last in ranges], row.pk, room)
        found = {at: some for at, *some in rows}
        read: list[JoinedFiles] = []
        for at, part in enumerate(parts, 1):
            if at not in found:
                read += [] if _is_range(part) else self._one_by_one(part, room)
                continue
            paths, sizes, names, data = found[at]
            group = JoinedFiles(paths, sizes, data)
            if names is None and paths == [each.path for each in part]:
                read.append(group)
                continue
            pairs = zip(group.each(), names or [""] * len(paths), strict=True)
            read += self._joined_of(part, {path: (name, content) for (path, content), name in pairs})
        return read

    def _joined_of(self, files: Sequence[BriefEntry], found: Mapping[str, _Content]) -> list[JoinedFiles]:
        read = ((each.path, self._content(each, *found.get(each.path, ("", None)))) for each in files)
        return joined([(path, data) for path, data in read if data is not None])

    def _content(self, entry: BriefEntry, storage_name: str, content: bytes | None) -> bytes | None:
        if storage_name:
            return self.read_all([entry])[0]
        return None if content is None else bytes(content)


def _is_range(files: Sequence[BriefEntry]) -> bool:
    """Whether the keys of files lie between the paths of the first and the last: those of long paths are others."""
    return max(len(files[0].path), len(files[-1].path)) <= HEAD_CHARS


def _list(value: Any) -> list[Any]:
    """A list as the database gives it; of no rows there is none."""
    found: list[Any] = json.loads(value) if isinstance(value, str) else value or []
    return found
