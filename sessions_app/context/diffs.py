"""Changes a session made to memory: its own blocks and documents, and its user's.

Of the user's memory, which other sessions change as well, only what was changed in this one counts.
"""

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from django.db.models import Q
from django.db.models.functions import MD5, Length

from sessions_app.core.text.text_diff import MAX_CHARS, TOO_LONG, Step, Stretch, TextDiff, diff_texts, joined, stretches
from sessions_app.messages.derived import message_subject
from sessions_app.models import ContextChange

MAX_CHANGES: Final = 500
"""The number of newest ones that are listed."""

MAX_STRETCHES: Final = 50
_COMPACTIONS: Final = "compaction:"
_TAKEN_AWAY: Final = frozenset(["delete", "remove"])
_NOTHING: Final = hashlib.md5(b"", usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDiff:
    """The change of one block, or of one document under a key of it.

    `status`: added, modified or deleted. `of`: whose it is, session or user. `diff`: lines that came and went.
    """

    label: str
    key: str | None
    of: Literal["session", "user"]
    status: Literal["added", "modified", "deleted"]
    diff: TextDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDiff:
    """All changes of a session, latest first. `is_cut`: there were more."""

    documents: list[DocumentDiff]
    is_cut: bool

    @property
    def additions(self) -> int:
        """Lines that came."""
        return sum(document.diff.additions for document in self.documents)

    @property
    def deletions(self) -> int:
        """Lines that went."""
        return sum(document.diff.deletions for document in self.documents)


def session_diff(session_id: str) -> SessionDiff:
    """Read a session's changes. Two queries; texts too long to compare are not read.

    What was changed back, and what was erased from the history, is not in it.
    """
    changes = _changes(session_id)
    changed = [each for each in stretches(change.step for change in reversed(changes[:MAX_CHANGES])) if each.is_change]
    kept = changed[:MAX_STRETCHES]
    by_id = {change.step.id: change for change in changes}
    texts = _texts(
        each for each in kept if by_id[each.first.id].before_chars + by_id[each.last.id].after_chars <= MAX_CHARS
    )
    of_document: dict[Hashable, list[Stretch]] = {}
    for stretch in kept:
        of_document.setdefault(stretch.last.text, []).insert(0, stretch)
    return SessionDiff(
        documents=[_document(by_id[each[-1].last.id], each, texts) for each in of_document.values()],
        is_cut=len(changes) > MAX_CHANGES or len(changed) > len(kept),
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """A change without its texts."""

    step: Step
    subject: str
    of: Literal["session", "user"]
    action: str
    before_chars: int
    after_chars: int


def _changes(session_id: str) -> list[_Change]:
    """The newest changes that a session made, newest first, and one more than are listed."""
    of_messages = Q(subject__startswith=_COMPACTIONS) | Q(subject__startswith=message_subject(""))
    mine = ContextChange.objects.filter(Q(session_id=session_id) | Q(made_in_id=session_id))
    rows = mine.exclude(of_messages).order_by("-pk")
    columns = ("pk", "subject", "session_id", "action", MD5("before"), MD5("after"), Length("before"), Length("after"))
    return [
        _Change(
            step=Step(id=pk, text=(subject, owner is None), before=before, after=after),
            subject=subject,
            of="user" if owner is None else "session",
            action=action,
            before_chars=before_chars,
            after_chars=after_chars,
        )
        for pk, subject, owner, action, before, after, before_chars, after_chars in rows.values_list(*columns)[
            : MAX_CHANGES + 1
        ]
    ]


def _texts(wanted: Iterable[Stretch]) -> dict[int, tuple[str, str]]:
    ids = {step.id for stretch in wanted for step in (stretch.first, stretch.last)}
    rows = ContextChange.objects.filter(pk__in=ids) if ids else ContextChange.objects.none()
    return {pk: (before, after) for pk, before, after in rows.values_list("pk", "before", "after")}


def _document(newest: _Change, of_document: Sequence[Stretch], texts: Mapping[int, tuple[str, str]]) -> DocumentDiff:
    kind, _, rest = newest.subject.partition(":")
    label, _, key = rest.partition("/")
    return DocumentDiff(
        label=label,
        key=key if kind == "entry" else None,
        of=newest.of,
        status=_status(of_document[0].first.before, newest),
        diff=joined([_compared(stretch, texts) for stretch in of_document]),
    )


def _compared(stretch: Stretch, texts: Mapping[int, tuple[str, str]]) -> TextDiff:
    if stretch.first.id not in texts or stretch.last.id not in texts:
        return TOO_LONG
    return diff_texts(texts[stretch.first.id][0], texts[stretch.last.id][1])


def _status(mark_before: str, newest: _Change) -> Literal["added", "modified", "deleted"]:
    if newest.action in _TAKEN_AWAY or not newest.after_chars:
        return "deleted"
    return "added" if mark_before == _NOTHING else "modified"
