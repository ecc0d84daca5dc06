"""Changes of turns as a person reviews them: files, their hunks, and what it takes to have one back as it was.

The texts are the one before the turns and the one that they left. A hunk goes back by a change of what is there now, if
that is still what the turns left: a file that another hand has changed since is a conflict, and stays.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from django.db.models import Q

from tools_app.core.files.hunks import Hunk, hunks_of, without_hunks
from tools_app.core.files.media_types import sniff
from tools_app.core.files.patches import is_of_git
from tools_app.core.files.paths import name_of
from tools_app.core.origins import Origin
from tools_app.models import FileBackup, StoredWorkspace, WorkspaceEntry
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.keys import key_of
from tools_app.workspace.stores.planning import Plan
from tools_app.workspace.stores.tree import StoredContent
from tools_app.workspace.turn_files import FileDifference, changed_files, compared
from tools_app.workspace.undo import Undoable, undoable

_DIGEST_CHARS: Final = 32
Standing = Literal["", "changed", "too_large", "no_access", "as_before"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedFile:
    """A file that turns changed. `hunks`: none where it is no text that can be compared.

    `id`: of its first backup. `version`: of what is there now, 0: nothing. `digest`: names the change as a whole.
    `standing`: why nothing of it can be taken back: as in `Undoable`, or `as_before`: by now it is as it was.
    """

    id: int
    version: int
    standing: Standing
    digest: str
    difference: FileDifference
    hunks: Sequence[Hunk]

    @property
    def marks(self) -> list[str]:
        """The names of all that can be kept of it: of its hunks, or of the whole."""
        return [each.id for each in self.hunks] or [self.digest]


def reviewed_files(some: Q, *, may_write: Q, limit: int) -> tuple[list[ReviewedFile], bool]:
    """The files that this part of the backups changed, by path, and whether there are more. Seconds for long texts.

    Files in a `.git` are left out: what is in them says something to git alone.
    """
    standing = {each.id: each for each in undoable(some, may_write=may_write)}
    found: list[ReviewedFile] = []
    changed = changed_files(some, limit=limit + 1)
    for each in compared(file for file in changed[:limit] if not is_of_git(file.path)):
        known = standing.get(each.id)
        found.append(
            ReviewedFile(
                id=each.id,
                version=known.version if known is not None else 0,
                standing=known.hindrance if known is not None else "as_before",
                digest=_digest(each.id, known, each.path),
                difference=each,
                hunks=hunks_of(each.before or "", each.after or "", each.path) if each.diff else (),
            )
        )
    return found, len(changed) > limit


def put_back_hunks(file: ReviewedFile, hunks: Collection[Hunk], *, undo_id: str) -> None:
    """Write a file without some of its hunks. The caller has looked at its standing, in the same transaction.

    The state that it replaces is kept for `undo_id`, as an undo keeps it. Errors: `FileFailed`.
    """
    row = FileBackup.objects.select_related("workspace").defer("content").get(pk=file.id)
    before, after = file.difference.before or "", file.difference.after or ""
    data = without_hunks(before, after, hunks).encode()
    root = row.workspace.root
    workspace: DatabaseWorkspace | DirectoryWorkspace
    workspace = DirectoryWorkspace(root) if root else DatabaseWorkspace(row.workspace_id)
    entries = WorkspaceEntry.objects.filter(workspace_id=row.workspace_id, path_key=key_of(row.path))
    origin = next(iter(entries.values_list("origin", flat=True)), "")
    content = StoredContent(
        size=len(data), media_type=sniff(data, name_of(row.path)), data=data, origin=Origin(origin) if origin else None
    )

    def steps(plan: Plan) -> None:
        plan.put(row.path, content)

    workspace.in_turn(undo_id).change_now(steps)


def hold_workspaces(some: Q) -> None:
    """Keep all writers out of the workspaces of this part of the backups until the transaction ends."""
    ids = FileBackup.objects.filter(some).order_by("workspace_id").values_list("workspace_id", flat=True).distinct()
    list(StoredWorkspace.objects.select_for_update(no_key=True).filter(pk__in=list(ids)).order_by("pk"))


def at_file(file_id: int) -> Q | None:
    """Condition of the backups of one file; `None` where there is no such backup."""
    row = FileBackup.objects.only("workspace_id", "path_key").filter(pk=file_id).first()
    return None if row is None else Q(workspace_id=row.workspace_id, path_key=row.path_key)


def _digest(file_id: int, known: Undoable | None, path: str) -> str:
    version = "" if known is None else known.version
    return hashlib.sha256(f"{path}\0{file_id}\0{version}".encode()).hexdigest()[:_DIGEST_CHARS]
