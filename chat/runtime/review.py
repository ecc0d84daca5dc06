"""Review of what turns changed in files: by file and by hunk a person keeps it, or has it back as it was.

To keep a change writes no file: it is a mark on this very change, and a later change of the same lines has none. To
take one back is an undo like any other (`chat.runtime.undo`): of files alone, kept under its own row, so that a redo
brings it back. Nothing is overwritten that another hand has changed since.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q

from chat.errors import UndoImpossible
from chat.models import AgentInstance, KeptChange, Revert, Turn, new_revert_id
from chat.runtime.undo import kept_since, may_write, quiet, store_revert, turns_since
from tools_app.core.files.failures import conflict, failed
from tools_app.core.files.patches import git_patch
from tools_app.errors import FileConflict
from tools_app.workspace.reviewing import (
    ReviewedFile,
    at_file,
    hold_workspaces,
    put_back_hunks,
    reviewed_files,
)
from tools_app.workspace.turn_files import patched_files
from tools_app.workspace.undo import undo_files

MAX_FILES: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Changed files by path. `kept`: names of hunks, and of changes without any, that a person keeps."""

    files: Sequence[ReviewedFile]
    kept: frozenset[str]
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewChoice:
    """A part of a review: of a file, as it was seen, these hunks; all of it without any."""

    file_id: int
    version: int
    hunks: Collection[str] = ()


def review(instance: AgentInstance, turn_ids: Collection[str] = (), *, limit: int = MAX_FILES) -> Review:
    """Look at the files that these turns of a conversation changed, or all of its turns. Nothing is changed.

    What was taken back of it counts: only what is left is in the review. Takes seconds for long texts.
    """
    scope = _scope(instance, turn_ids)
    if scope is None:
        return Review(files=(), kept=frozenset())
    files, has_more = reviewed_files(scope.some, may_write=may_write(instance), limit=limit)
    names = [mark for file in files for mark in file.marks]
    kept = KeptChange.objects.filter(instance=instance, digest__in=names).values_list("digest", flat=True)
    return Review(files=files, kept=frozenset(kept), has_more=has_more)


def keep_changes(
    instance: AgentInstance, choice: ReviewChoice, *, turn_ids: Collection[str] = (), is_kept: bool = True
) -> None:
    """Mark a part of the review as kept, or no longer. Safe to call twice. Errors: `FileConflict` for what is gone."""
    some, _ = _narrowed(instance, turn_ids, choice)
    file = _seen(some, choice, writable=may_write(instance))
    names = list(choice.hunks) or file.marks
    if is_kept:
        rows = [KeptChange(instance=instance, digest=name) for name in names]
        KeptChange.objects.bulk_create(rows, ignore_conflicts=True)
    else:
        KeptChange.objects.filter(instance=instance, digest__in=names).delete()


def undo_changes(
    instance: AgentInstance, choice: ReviewChoice, *, turn_ids: Collection[str] = (), actor_id: Any
) -> Revert:
    """Have a part of the review back as it was before. Durability: one transaction.

    Errors: `FileConflict` where the file is no longer what was seen, or another hand has changed it since: nothing is
    overwritten; `UndoBusy` while an agent works here; `FileFailed` where it cannot be put back.
    """
    with quiet(instance) as held:
        some, scope = _narrowed(held, turn_ids, choice)
        hold_workspaces(some)
        file = _seen(some, choice, writable=may_write(held))
        _check_standing(file)
        revert = Revert(
            id=new_revert_id(),
            instance=held,
            session_id=scope.turn.session_id,
            turn_id=scope.turn.pk,
            includes_files=True,
            file_count=1,
            actor_id=actor_id,
        )
        hunks = [each for each in file.hunks if each.id in choice.hunks]
        if hunks and len(hunks) < len(file.hunks) and file.difference.kind == "updated":
            put_back_hunks(file, hunks, undo_id=revert.pk)
        else:
            done, _ = undo_files(some, undo_id=revert.pk, may_write=may_write(held))
            if not done:
                raise _changed(file)
        store_revert(revert)
        return revert


def patch_of(instance: AgentInstance, turn_ids: Collection[str] = ()) -> bytes:
    """Write one patch that `git apply` takes, from the files before these turns, or all, to what they left.

    Files whose bytes are not kept, or are too many, are named above it; git passes such lines over.
    """
    scope = _scope(instance, turn_ids)
    if scope is None:
        return b""
    files, unknown = patched_files(scope.some, limit=MAX_FILES)
    notes = [f"# not in this patch, its content is not kept: {path}\n" for path in unknown]
    return "".join(notes).encode() + git_patch(files)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Condition of backups, and the first of the turns."""

    some: Q
    turn: Turn


def _scope(instance: AgentInstance, turn_ids: Collection[str]) -> _Scope | None:
    turns = Turn.objects.filter(instance=instance).order_by("position")
    if not turn_ids:
        first = turns.first()
        return None if first is None else _Scope(kept_since(first, turns_since(first)), first)
    found = list(turns.filter(pk__in=turn_ids))
    if len(found) != len(set(turn_ids)):
        raise UndoImpossible
    ids = [turn.pk for turn in found]
    undone = Revert.objects.filter(instance=instance, turn_id__in=ids).values_list("pk", flat=True)
    return _Scope(Q(turn_id__in=ids) | Q(turn_id__in=list(undone)), found[0])


def _narrowed(instance: AgentInstance, turn_ids: Collection[str], choice: ReviewChoice) -> tuple[Q, _Scope]:
    """Condition of the backups of one file. Errors: `UndoImpossible` for one that nothing is kept of."""
    scope = _scope(instance, turn_ids)
    place = at_file(choice.file_id)
    if scope is None or place is None:
        raise UndoImpossible
    return scope.some & place, scope


def _seen(some: Q, choice: ReviewChoice, *, writable: Q) -> ReviewedFile:
    """The file, if it is what was seen. Errors: `FileConflict`; `UndoImpossible` where no change is left."""
    file = next(iter(reviewed_files(some, may_write=writable, limit=1)[0]), None)
    if file is None or file.id != choice.file_id:
        raise UndoImpossible
    if file.version != choice.version or not set(choice.hunks) <= {each.id for each in file.hunks}:
        raise _changed(file)
    return file


def _check_standing(file: ReviewedFile) -> None:
    match file.standing:
        case "":
            return
        case "changed" | "as_before":
            raise _changed(file)
        case _:
            raise failed("EPERM", file.difference.path)


def _changed(file: ReviewedFile) -> FileConflict:
    return conflict(file.difference.path, str(file.version or ""))
