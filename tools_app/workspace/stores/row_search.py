"""Searches in the rows of one workspace: little of each entry, and the contents of many files by ranges of keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from thinkproject.kernel.statements import Statement
from tools_app.core.files.workspace import BriefEntry, EntryKind
from tools_app.core.origins import Origin
from tools_app.models import StoredWorkspace, WorkspaceEntry
from tools_app.workspace.stores.keys import HEAD_CHARS, below_prefix

_DENSE: Final = 1.5
"""How many entries of a range are read for each one that is wanted."""
_GROWN_BYTES: Final = 64 * 1024
_KINDS: Final = {kind.value: kind for kind in EntryKind}
_CONTENTS: Final = Statement(
    "SELECT path_key, storage_name, content FROM think_tools_workspaceentry "
    "WHERE workspace_id = %s AND path_key >= %s AND path_key <= %s AND kind = 'file' AND size <= %s"
)


@dataclass(frozen=True, slots=True)
class RowSearch:
    """As `tree.Searching`. `read_all`: that of the tree."""

    row: StoredWorkspace | None
    read_all: Callable[[Sequence[BriefEntry]], list[bytes | None]]

    def brief(self, prefix: str) -> list[BriefEntry]:
        """As `Searching.brief`: one query."""
        if self.row is None:
            return []
        rows = WorkspaceEntry.objects.filter(below_prefix(prefix), workspace_id=self.row.pk).order_by("path_key")
        found = sorted(rows.values_list("path", "kind", "size", "origin"), key=itemgetter(0))  # they nearly are
        return [
            BriefEntry(path, _KINDS[kind], size, Origin(origin) if origin else None, ordinal)
            for ordinal, (path, kind, size, origin) in enumerate(found)
        ]

    def texts(self, files: Sequence[BriefEntry], *, max_bytes: int) -> list[bytes | None]:
        """As `Searching.texts`: one query over a range where that has little else in it."""
        first, last = files[0], files[-1]
        is_dense = first.ordinal >= 0 and last.ordinal - first.ordinal < _DENSE * len(files)
        if self.row is None or not is_dense or max(len(first.path), len(last.path)) > HEAD_CHARS:
            return [None if data is not None and len(data) > max_bytes else data for data in self.read_all(files)]
        room = min(max_bytes, max(_GROWN_BYTES, *(each.size for each in files)))  # what is not wanted may be large
        rows = _CONTENTS.all_in_binary(self.row.pk, first.path, last.path, room)
        found = {path: (name, content) for path, name, content in rows}
        return [self._content(each, *found.get(each.path, ("", None))) for each in files]

    def _content(self, entry: BriefEntry, storage_name: str, content: bytes | None) -> bytes | None:
        if storage_name:
            return self.read_all([entry])[0]
        return None if content is None else bytes(content)
