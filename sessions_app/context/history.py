"""The history of context changes: author and time. Append-only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db.models import Q

from sessions_app.messages.derived import message_subject
from sessions_app.models import ContextChange
from thinkproject.kernel.append_only import erasing

MAX_PAGE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextActor:
    """The author of a change. `via`: model, code, api or admin; the user is known for the last two.

    `session_id`: of the session in which it is done, where it is done in one.
    """

    via: str = "code"
    user_id: int | None = None
    session_id: str | None = None

    @property
    def is_person(self) -> bool:
        """Whether a person did it, who expects to see it at once."""
        return self.via in {"api", "admin"}

    def within(self, session_id: str) -> "ContextActor":
        """The same, done in a session: of a user's memory it is known in which session it was changed."""
        return replace(self, session_id=session_id)


CODE: Final = ContextActor()
MODEL: Final = ContextActor(via="model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOwner:
    """The owner of context rows: one session, or one user and then all of that user's sessions."""

    session_id: str | None = None
    owner_id: int | None = None

    def __post_init__(self) -> None:
        if (self.session_id is None) == (self.owner_id is None):
            raise ValueError("a block belongs to a session or to a user")

    @property
    def row(self) -> dict[str, object]:
        """Columns that name the owner, in a row and in a filter."""
        return {"session_id": self.session_id, "owner_id": self.owner_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change, read."""

    id: int
    subject: str
    action: str
    before: str
    after: str
    via: str
    actor_id: int | None
    created_at: datetime


def note_change(
    owner: ContextOwner, subject: str, action: str, *, before: str = "", after: str = "", by: ContextActor = CODE
) -> None:
    """Add a row to the history, in the transaction of the change."""
    ContextChange.objects.create(
        **owner.row, **_author(owner, by), subject=subject, action=action, before=before, after=after
    )


def _author(owner: ContextOwner, by: ContextActor) -> dict[str, object]:
    made_in = by.session_id if owner.session_id is None else None
    return {"actor_id": by.user_id, "via": by.via, "made_in_id": made_in}


def note_deleted_entries(
    owner: ContextOwner, label: str, entries: Iterable[tuple[str, str]], *, by: ContextActor = CODE
) -> None:
    """Add a row for each of many entries (key and content) that are deleted, in one statement."""
    ContextChange.objects.bulk_create(
        [
            ContextChange(
                **owner.row,
                **_author(owner, by),
                subject=entry_subject(label, key),
                action="delete",
                before=content,
            )
            for key, content in entries
        ]
    )


def note_message(session_id: str, message_id: str, action: str, *, replaces: str = "", by: ContextActor) -> None:
    """Note who put a message into a session, in the transaction that does.

    **Shape:** `action`: add, edit or ask (for an answer). `replaces`: id of the message that it stands beside; texts
    are not kept here, because both versions stay in the session.
    """
    note_change(ContextOwner(session_id=session_id), message_subject(message_id), action, before=replaces, by=by)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAuthor:
    """The person who put a message there. `name`: empty when that user is gone. `replaces`: a message id or empty."""

    action: str
    name: str
    via: str
    replaces: str
    created_at: datetime


def message_authors(session_id: str, message_ids: Sequence[str]) -> dict[str, MessageAuthor]:
    """Authors by message id, of those messages that a person wrote in another's place. One query; none without ids."""
    if not message_ids:
        return {}
    subjects = {message_subject(message_id): message_id for message_id in message_ids}
    rows = ContextChange.objects.filter(session_id=session_id, subject__in=list(subjects)).select_related("actor")
    return {
        subjects[row.subject]: MessageAuthor(
            action=row.action,
            name="" if row.actor is None else row.actor.get_username(),
            via=row.via,
            replaces=row.before,
            created_at=row.created_at,
        )
        for row in rows.order_by("pk")
    }


def list_changes(
    owner: ContextOwner, *, subject: str = "", before_id: int | None = None, limit: int = 50
) -> list[Change]:
    """The latest changes, newest first; optionally of one subject, or before a given change. One query.

    Messages that people changed are listed only by their subject: they are seen in the conversation.
    """
    rows = ContextChange.objects.filter(**owner.row)
    rows = rows.filter(subject=subject) if subject else rows.exclude(subject__startswith=message_subject(""))
    if before_id is not None:
        rows = rows.filter(pk__lt=before_id)
    columns = ("pk", "subject", "action", "before", "after", "via", "actor_id", "created_at")
    found = rows.order_by("-pk").values_list(*columns)[: min(max(limit, 1), MAX_PAGE)]
    return [
        Change(id=pk, subject=subject, action=action, before=old, after=new, via=via, actor_id=actor, created_at=at)
        for pk, subject, action, old, new, via, actor, at in found
    ]


def erase_texts(owner: ContextOwner, label: str) -> int:
    """Take the texts out of a block's history, its entries included; who did what and when stays. Returns how many."""
    of_block = Q(subject=block_subject(label)) | Q(subject__startswith=entry_subject(label, ""))
    with erasing():
        return ContextChange.objects.filter(of_block, **owner.row).update(before="", after="")


def block_subject(label: str) -> str:
    """The subject of a block in the history."""
    return f"block:{label}"


def entry_subject(label: str, key: str) -> str:
    """The subject of an entry in the history."""
    return f"entry:{label}/{key}"
