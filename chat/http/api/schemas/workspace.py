"""API schemas of the files of a conversation."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema
from pydantic import StringConstraints

from chat.http.api.schemas.common import Input
from chat.http.api.schemas.from_values import shows
from tools_app.workspace.file_versions import FileVersion

FilePath = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]
NamePart = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


class WorkspaceOut(Schema):
    """The workspace of a conversation. `byte_limit`, `entry_limit`: of all workspaces of its owner together, if any.

    `can_write`: whether people may change its files. `file_limit`: bytes of the largest file. `has_repository`: it is
    a directory of the server with one.
    """

    can_write: bool
    has_repository: bool
    file_count: int
    directory_count: int
    byte_count: int
    byte_limit: int | None
    entry_limit: int | None
    file_limit: int


class WorkspaceEntryOut(Schema):
    """A file, directory or link. `version` changes with the content; `target` is a link's, as it was written."""

    path: str
    name: str
    kind: Literal["file", "directory", "symlink"]
    size: int
    media_type: str
    target: str
    version: str
    created_at: datetime
    modified_at: datetime


class WorkspaceEntriesOut(Schema):
    """The children of a directory: directories first, then by name."""

    path: str
    items: list[WorkspaceEntryOut]
    has_more: bool


class FileChangeOut(Schema):
    """Something that changed in a workspace."""

    kind: Literal["created", "updated", "deleted"]
    path: str
    entry_kind: Literal["file", "directory", "symlink"]


class FileChangesOut(Schema):
    """The changes that one request has made."""

    changes: list[FileChangeOut]


class TurnFileOut(Schema):
    """A file that a turn changed, before it and after it.

    `before`, `after`: texts; null where there was no file, where it is no text in UTF-8, and where it is too large to
    be shown (`is_cut`). `diff`: unified, with three lines of context; empty unless texts can be compared. `added`,
    `removed`: lines of it.
    """

    path: str
    kind: Literal["created", "updated", "deleted"]
    before: str | None
    after: str | None
    diff: str
    added: int
    removed: int
    is_cut: bool


class TurnFilesOut(Schema):
    """The changes of a turn in workspaces, by path; `has_more`: not all of them are shown."""

    items: list[TurnFileOut]
    has_more: bool


class DirectoryIn(Input):
    """A directory to make, with those above it."""

    path: FilePath


class MoveIn(Input):
    """An entry and the path that it is moved or copied to."""

    source: FilePath
    target: FilePath


class AttachmentIn(Input):
    """A file of a message, and the directory that a copy of it goes to."""

    file_id: Annotated[str, StringConstraints(max_length=64)]
    directory: FilePath = "/"


class DiffIn(Input):
    """A new content for a file, to be compared with what is stored."""

    path: FilePath
    content: str = Field(max_length=2_000_000)


class FileTextOut(Schema):
    """The text of a file, decoded and without a byte order mark; its line ends are as they are.

    `encoding`: in words. `can_be_saved`: false where encoding the text again would not give the same bytes.
    """

    path: str
    version: str
    text: str
    encoding: str
    can_be_saved: bool


class FileTextIn(Input):
    """A new text for a file. `version`: that was read, else any. `encoding`: a new one, such as `UTF-8`."""

    text: str = Field(max_length=2_000_000)
    version: str | None = Field(default=None, max_length=200)
    encoding: str | None = Field(default=None, max_length=50)


@shows(FileVersion)
class KeptVersionOut(Schema):
    """An earlier version of a file. `turn_id`: of the turn or undo that replaced it, empty for a person's change."""


class FileVersionsOut(Schema):
    """Earlier versions of a file, the newest first."""

    path: str
    items: list[KeptVersionOut]


class FileVersionOut(Schema):
    """The text of an earlier version, decoded from UTF-8."""

    path: str
    id: int
    text: str


class DiffOut(Schema):
    """A unified diff with three lines of context; empty when nothing differs."""

    diff: str


class FoundFilesOut(Schema):
    """Entries that match, sorted by path; `is_cut` when there are more."""

    items: list[WorkspaceEntryOut]
    is_cut: bool
