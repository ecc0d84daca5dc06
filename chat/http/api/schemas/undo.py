"""API schemas of undo and redo."""

from datetime import datetime
from typing import Literal

from ninja import Field, Schema

from chat.http.api.schemas.common import Input
from chat.http.api.schemas.workspace import TurnFileOut


class UndoFileOut(Schema):
    """A file that an undo is about. `fate`: what becomes of it.

    `hindrance`: why it stays as it is. `changed`: another hand changed it since; `changes` is then what would be lost,
    and naming `id` and `version` in `overwrite` puts it back all the same. `too_large`: a turn keeps only so much.
    `no_access`: its workspace may not be written to from here. `size`: bytes of what comes back.
    """

    id: int
    version: int
    path: str
    kind: str
    fate: Literal["created", "updated", "deleted"]
    size: int
    hindrance: Literal["", "changed", "too_large", "no_access"]
    changes: TurnFileOut | None = None


class UndoEffectOut(Schema):
    """An effect of an action in what is taken back. `can_undo`: it has a compensation that has not run."""

    id: int
    turn_id: str
    action: str
    input: object
    undo_status: str
    can_undo: bool


class RevertOut(Schema):
    """An undo, or with `redoes` a redo of one. `left_count`: files that stayed as they were."""

    id: str
    instance_id: str
    turn_id: str
    redoes: str | None
    includes_files: bool
    includes_messages: bool
    file_count: int
    left_count: int
    created_at: datetime


class UndoPreviewOut(Schema):
    """The effect that an undo or a redo would have.

    `files`: the hindered ones first, then by path; `has_more`: not all are listed. `file_count`: of those that
    change; `conflict_count`, `left_count`: of those that stay, by `changed` or otherwise.
    `leaf_id`: the message that would end the shown path, empty for an empty one; null where the path stays.
    `question`: text of the message that is taken back. `turn_count`: turns that are taken back together.
    `keeps_files`: false for a workspace whose files are not kept, so that only messages can be taken back.
    """

    files: list[UndoFileOut]
    has_more: bool
    file_count: int
    conflict_count: int
    left_count: int
    leaf_id: str | None
    question: str
    turn_count: int
    effects: list[UndoEffectOut]
    is_busy: bool
    keeps_files: bool


class RedoPreviewOut(Schema):
    """The undo that a redo would take back, and what it would do; both null where there is none."""

    revert: RevertOut | None
    preview: UndoPreviewOut | None


class OverwriteIn(Input):
    """A conflict that is to be overwritten, with the version that was seen."""

    id: int
    version: int


class UndoIn(Input):
    """An undo of a turn and of all that followed it."""

    files: bool = True
    messages: bool = True
    overwrite: list[OverwriteIn] = Field(default=[], max_length=1000)


class RedoIn(Input):
    """A redo of this undo."""

    revert_id: str = Field(max_length=64)
    overwrite: list[OverwriteIn] = Field(default=[], max_length=1000)


class UndoneOut(Schema):
    """An undo that was made. `left`: files that stay as they are, at most 200."""

    revert: RevertOut
    left: list[UndoFileOut]


class RevertsOut(Schema):
    """Undos and redos of a conversation, newest first."""

    items: list[RevertOut]


class EffectUndoneOut(Schema):
    """The result of a compensation."""

    output: object
