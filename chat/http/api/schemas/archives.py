"""API schemas of archives of other products."""

from datetime import datetime

from ninja import Schema

from chat.http.api.schemas.common import Input, Name


class UnreadableOut(Schema):
    """A conversation that cannot be read, by its title or place. `reason`: a sentence in English."""

    name: str
    reason: str


class ArchivePreview(Schema):
    """Result of the look through an archive. `products`: conversations of each product.

    `known_count`: are here already; `grown_count`: of these, have more messages in the archive than here.
    `left_out`: kinds of what will not be shown, and how often: `hidden`, `empty`, `unknown`, `file`, `link`.
    `unreadable` names the first hundred.
    """

    products: dict[str, int]
    conversation_count: int
    known_count: int
    grown_count: int
    message_count: int
    file_count: int
    unreadable_count: int
    unreadable: list[UnreadableOut]
    left_out: dict[str, int]


class ArchiveReport(Schema):
    """Result of an import. `stopped`: why it ended before its end, else empty. The rest as in the preview.

    `left_out` has one kind more, `shortened`: messages that were too large for a row.
    """

    added_count: int
    known_count: int
    grown_count: int
    message_count: int
    file_count: int
    unreadable_count: int
    unreadable: list[UnreadableOut]
    left_out: dict[str, int]
    stopped: str


class ArchiveOut(Schema):
    """An import. `status`: `reading`, `ready`, `importing`, `done`, `stopped` or `failed`.

    `seen_count`: conversations that the work under way has passed. `error`: empty, or a sentence for people.
    """

    id: str
    name: str
    byte_size: int
    agent: str
    status: str
    seen_count: int
    preview: ArchivePreview | None
    report: ArchiveReport | None
    error: str
    created_at: datetime


class ArchivesOut(Schema):
    """The newest imports first, at most 50, and the size that an upload may have."""

    items: list[ArchiveOut]
    max_bytes: int


class ArchiveStartIn(Input):
    """The agent whose conversations they will be."""

    agent: Name
