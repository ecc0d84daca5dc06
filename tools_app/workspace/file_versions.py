"""Earlier versions of one file: what was kept of it before turns, and before people replaced a turn's work."""

from dataclasses import dataclass
from datetime import datetime

from tools_app.core.files.paths import normalise
from tools_app.core.files.workspace import EntryKind
from tools_app.models import FileBackup
from tools_app.workspace.stores.keys import key_of
from tools_app.workspace.turn_files import rows_of, state_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """A version that stood until `replaced_at`. `turn_id`: of the turn or undo that replaced it, empty for a person's.

    `size` in bytes. `is_kept`: its content can be read.
    """

    id: int
    replaced_at: datetime
    turn_id: str
    size: int
    is_kept: bool


def versions_of(workspace_id: str, path: str, *, limit: int) -> list[FileVersion]:
    """Versions of the file at a path that are kept, the newest first. Two queries."""
    ids = FileBackup.objects.filter(
        workspace_id=workspace_id, path_key=key_of(normalise(path)), kind=EntryKind.FILE.value
    ).order_by("-pk")
    rows = rows_of(ids.values_list("pk", flat=True)[:limit])
    return [_version(rows[pk]) for pk in sorted(rows, reverse=True)]


def version_text(workspace_id: str, path: str, version_id: int) -> str | None:
    """The text of a version of this file; `None` where it is not kept, too large to be shown, or no text."""
    same = FileBackup.objects.filter(pk=version_id, workspace_id=workspace_id, path_key=key_of(normalise(path)))
    row = rows_of(same.values_list("pk", flat=True)).get(version_id)
    state = None if row is None or row.kind != EntryKind.FILE.value else state_of(row)
    if state is None or state.content is None or b"\0" in state.content:
        return None
    try:
        return state.content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _version(row: FileBackup) -> FileVersion:
    state = state_of(row)
    is_kept = state is not None and state.content is not None
    return FileVersion(id=row.pk, replaced_at=row.created_at, turn_id=row.turn_id, size=row.size, is_kept=is_kept)
