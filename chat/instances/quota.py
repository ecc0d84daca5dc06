"""Storage quotas per user. Checked where rows are created, so that every entry point has the same limit.

Counted in rows, not in a cache: right across processes and after a restart. What is counted before it is inserted is
counted while the owner's row is locked (`lock_owner`): parallel requests of one user would all see room for one more.
Messages have a counter of their own (`count_messages`), as counting the rows of a long history takes too long.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Final

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from chat.conf import AccessSettings
from chat.errors import QuotaExceeded
from chat.models import AgentInstance, MessageCount
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.messages.usage import stored_messages
from thinkproject.kernel.jsonvalue import byte_size
from thinkproject.kernel.statements import Statement

RECOUNT: Final = timedelta(hours=1)
"""How long the total of a counter is believed: it does not learn of what turns store and of what is deleted."""
RECOUNT_AT_LIMIT: Final = timedelta(minutes=1)
"""The same where the total says that there is no room: it may have been made."""

_MINUTE: Final = timedelta(minutes=1)
_conf = AccessSettings()


def lock_owner(owner_id: int) -> None:
    """Lock the user's row until the transaction ends, for a count and an insert that belong together.

    One statement on PostgreSQL, none on SQLite, whose transactions have one writer. Inserting rows that refer to the
    user is not kept waiting. Order of locks: fiber, instance, owner; a holder of the owner's row takes no fiber and no
    instance that it does not hold, and only sessions of instances that it holds.
    """
    if not connection.features.has_select_for_update:
        return
    user = get_user_model()._meta
    assert user.pk is not None
    _lock_statement(user.db_table, user.pk.column).one(user.pk.get_db_prep_save(owner_id, connection))


@lru_cache(maxsize=1)
def _lock_statement(table: str, key: str) -> Statement:
    return Statement(f'SELECT 1 FROM "{table}" WHERE "{key}" = %s :lock:')  # noqa: S608 - names of the user model


def check_instance_quota(owner_id: int | None) -> None:
    """Look whether the user may make one more conversation, in the transaction that makes it. Locks the owner's row.

    Errors: `QuotaExceeded` when the user keeps `THINK_INSTANCES_PER_USER` conversations, sub-agents among them.
    """
    limit = _conf.instances_per_user
    if not limit or owner_id is None:
        return
    lock_owner(owner_id)
    # Bounded: looks whether there is a row at the limit instead of counting all.
    if AgentInstance.objects.filter(owner_id=owner_id)[limit - 1 : limit].exists():
        raise QuotaExceeded(f"You can keep {limit} conversations; delete some first.", limit=limit)


def recount_if_due(owner_id: int | None, messages: Sequence[NewMessage] = ()) -> None:
    """Bring the counter in step with the stored messages, where it is old or leaves no room for these. One query else.

    Not inside the transaction that counts: a refusal there would undo it, and every refusal would read them all again.
    """
    if owner_id is None:
        return
    row = MessageCount.objects.filter(owner_id=owner_id).first()
    if row is None:  # made with the first message that is counted
        return
    age = timezone.now() - row.counted_at
    is_due = age > RECOUNT or (age > RECOUNT_AT_LIMIT and not _has_room(row, len(messages), _size(messages)))
    if not is_due:
        return
    with transaction.atomic():
        # The first update locks the row: no other writer counts between the query of the messages and the second
        # update.
        if MessageCount.objects.filter(pk=row.pk, counted_at=row.counted_at).update(counted_at=timezone.now()):
            stored = stored_messages(owner_id)
            MessageCount.objects.filter(pk=row.pk).update(message_count=stored.count, byte_count=stored.byte_count)


def count_added(owner_id: int | None, messages: Sequence[NewMessage]) -> None:
    """Count messages as `count_messages` does."""
    if owner_id is not None and messages:
        count_messages(owner_id, len(messages), _size(messages))


def count_messages(owner_id: int, count: int, byte_count: int, *, paced: int | None = None) -> None:
    """Count messages that are to be stored without a turn of their own, in the transaction that stores them.

    One conditional UPDATE, which is atomic on both databases. `paced` says how many of them must fit into the minute,
    all by default: an import needs room for its first message and then fills the minute, but does not stop within it.
    Errors: `QuotaExceeded` beyond `THINK_MESSAGES_PER_MINUTE`, `THINK_MESSAGES_PER_USER` and
    `THINK_MESSAGES_QUOTA_BYTES`; then nothing is counted.
    """
    if not (_conf.messages_per_minute or _conf.messages_per_user or _conf.messages_quota_bytes):
        return
    rows = MessageCount.objects.filter(owner_id=owner_id)
    needed = count if paced is None else paced
    if _count(rows, count, byte_count, needed):
        return
    row = _counter_of(owner_id)  # there may have been none
    if _count(rows, count, byte_count, needed):
        return
    if not _has_room(row, count, byte_count):
        raise QuotaExceeded(
            "You have no room for more messages; delete some conversations first.",
            max_messages=_conf.messages_per_user,
            max_bytes=_conf.messages_quota_bytes,
        )
    raise QuotaExceeded(
        f"You can store {_conf.messages_per_minute} messages within a minute. Please wait a little.",
        retry_after_seconds=60,
    )


def _count(rows: QuerySet[MessageCount], count: int, byte_count: int, needed: int) -> bool:
    is_over = Q(minute_started_at__lte=Now() - _MINUTE)
    if _conf.messages_per_minute and needed:
        rows = rows.filter(is_over | Q(minute_count__lte=_conf.messages_per_minute - needed))
    if _conf.messages_per_user:
        rows = rows.filter(message_count__lte=_conf.messages_per_user - count)
    if _conf.messages_quota_bytes:
        rows = rows.filter(byte_count__lte=_conf.messages_quota_bytes - byte_count)
    return bool(
        rows.update(
            minute_count=Case(When(is_over, then=Value(count)), default=F("minute_count") + count),
            minute_started_at=Case(When(is_over, then=Now()), default=F("minute_started_at")),
            message_count=F("message_count") + count,
            byte_count=F("byte_count") + byte_count,
        )
    )


def _counter_of(owner_id: int) -> MessageCount:
    """The user's storage counter, created from the stored attachments if missing."""
    row = MessageCount.objects.filter(owner_id=owner_id).first()
    if row is not None:
        return row
    stored = stored_messages(owner_id)
    made = {"message_count": stored.count, "byte_count": stored.byte_count, "counted_at": timezone.now()}
    return MessageCount.objects.get_or_create(owner_id=owner_id, defaults=made)[0]


def _has_room(row: MessageCount, count: int, byte_count: int) -> bool:
    most, most_bytes = _conf.messages_per_user, _conf.messages_quota_bytes
    has_rows = not most or row.message_count + count <= most
    return has_rows and (not most_bytes or row.byte_count + byte_count <= most_bytes)


def _size(messages: Sequence[NewMessage]) -> int:
    return sum(byte_size(message) for message in messages)
