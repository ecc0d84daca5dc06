"""API schemas of the review of changed files."""

from typing import Literal

from ninja import Field, Schema

from chat.http.api.schemas.common import Input
from chat.http.api.schemas.marks import UndoneMarkOut


class HunkOut(Schema):
    """A place in which a file differs. `place`: as unified diffs begin it; `lines`: with their signs, without ends.

    `ends_open`: the last line of the text, old or new, has no newline and is in this hunk. `is_kept`: a person has
    looked at it and keeps it.
    """

    id: str
    place: str
    lines: list[str]
    ends_open: bool
    is_kept: bool


class ReviewedFileOut(Schema):
    """A file that turns changed. `version`: of what is there now, to be sent with a decision.

    `standing`: why nothing of it can be taken back: `changed` by another hand since, `too_large` to be kept,
    `no_access`, or `as_before` already; empty where it can. `hunks`: empty where it is no text, or too large
    (`is_cut`). `is_kept`: all of it.
    """

    id: int
    version: int
    path: str
    kind: Literal["created", "updated", "deleted"]
    standing: Literal["", "changed", "too_large", "no_access", "as_before"]
    added: int
    removed: int
    is_cut: bool
    is_kept: bool
    hunks: list[HunkOut]


class ReviewOut(Schema):
    """Changed files by path; `has_more`: not all of them are listed. `kept_count`: files that are kept whole.

    `undone`: what this request has taken back; a redo brings it back.
    """

    files: list[ReviewedFileOut]
    has_more: bool
    kept_count: int
    undone: UndoneMarkOut | None = None


class ReviewIn(Input):
    """A decision about a file, or some of its hunks: `keep` it, look at it again (`reopen`), `undo` it."""

    action: Literal["keep", "reopen", "undo"]
    file_id: int
    version: int
    hunks: list[str] = Field(default=[], max_length=1000)
    turns: list[str] = Field(default=[], max_length=50)


class RepositoryChangeOut(Schema):
    """A file that differs from the last commit. `was`: its former path, where it was moved.

    `staged`: how much of the difference is in the index, for the next commit.
    """

    path: str
    kind: Literal["created", "updated", "deleted"]
    is_tracked: bool
    staged: Literal["none", "part", "all"]
    was: str


class RepositoryDifferenceOut(Schema):
    """The difference of one file from the last commit. `diff`: its hunks, unified, with three lines of context.

    It is empty of binary files, of those that were only moved or have another mode, and where it `is_cut`: too large.
    `added`, `removed`: lines.
    """

    path: str
    diff: str
    added: int
    removed: int
    is_cut: bool


class RepositoryOut(Schema):
    """A repository. `branch`: empty without one; `commit`: empty before the first."""

    branch: str
    commit: str
    changes: list[RepositoryChangeOut]
    has_more: bool
