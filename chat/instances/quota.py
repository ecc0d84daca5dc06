"""Storage quotas per user. Checked where rows are created, so that every entry point has the same limit.

Counted in rows, not in a cache: right across processes and after a restart. What is counted before it is inserted is
counted while the owner's row is locked (`lock_owner`): parallel requests of one user would all see room for one more.
Messages have a counter of their own (`count_messages`), as counting the rows of a long history takes too long.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from chat.errors import QuotaExceeded
from chat.instances.conf import quota_settings
from chat.models import AgentInstance, MessageCount
from fibers.models import Fiber
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.messages.usage import stored_messages
from thinkproject.kernel.jsonvalue import byte_size
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.statements import Columns, Statement

RECOUNT: Final = timedelta(hours=1)
"""How long the total of a counter is believed: it does not learn of what turns store and of what is deleted."""
RECOUNT_AT_LIMIT: Final = timedelta(minutes=1)
"""The same where the total says that there is no room: it may have been made."""

ENDS_SOON_SECONDS: Final = 30
"""When to ask again where something has to end first, at a time that is not known."""

_NO_LIMIT: Final = 2**62

_COUNTER: Final = Columns(MessageCount)
_OWNER: Final = Columns(MessageCount, ("owner_id",))
_FIND: Final = Statement("SELECT :counter: FROM think_chat_messagecount WHERE owner_id = %s", counter=_COUNTER)
_COUNT: Final = Statement(
    """
    UPDATE think_chat_messagecount SET
        minute_count = CASE WHEN minute_started_at <= :later: THEN %s ELSE minute_count + %s END,
        minute_started_at = CASE WHEN minute_started_at <= :later: THEN :now: ELSE minute_started_at END,
        message_count = message_count + %s,
        byte_count = byte_count + %s
    WHERE owner_id = %s AND (minute_started_at <= :later: OR minute_count <= %s)
        AND message_count <= %s AND byte_count <= %s
    """
)


def check_instance_quota(owner_id: int | None) -> None:
    """Look whether the user may make one more conversation, in the transaction that makes it. Locks the owner's row.

    Errors: `QuotaExceeded` when the user keeps `THINK_INSTANCES_PER_USER` conversations, sub-agents and deleted ones
    among them.
    """
    limit = quota_settings.instances_per_user
    if not limit or owner_id is None:
        return
    lock_owner(owner_id)
    # Bounded: looks whether there is a row at the limit instead of counting all.
    if AgentInstance.everything.filter(owner_id=owner_id)[limit - 1 : limit].exists():
        raise QuotaExceeded(Phrase("You can keep {limit} conversations. Delete some first.", limit=limit), limit=limit)


def check_fiber_quota(owner_id: int | None) -> None:
    """Look whether the user's agents may start one more fiber, in the transaction that starts it. Locks the owner.

    Errors: `QuotaExceeded` beyond `THINK_FIBERS_PER_USER` and `THINK_FIBERS_PER_MINUTE`.
    """
    limit, pace = quota_settings.fibers_per_user, quota_settings.fibers_per_minute
    if owner_id is None or not (limit or pace):
        return
    lock_owner(owner_id)
    mine = Fiber.objects.filter(owner_id=owner_id, scope__isnull=False)
    # Bounded, as above.
    if limit and mine.filter(finished_at=None).order_by()[limit - 1 : limit].exists():
        raise QuotaExceeded(
            Phrase(
                "You can have {limit} pieces of background work at a time. Wait until some have ended.", limit=limit
            ),
            retry_after_seconds=ENDS_SOON_SECONDS,
        )
    recent = mine.filter(created_at__gt=Now() - timedelta(minutes=1)).order_by()
    if pace and recent[pace - 1 : pace].exists():
        raise QuotaExceeded(
            Phrase("You can start {limit} pieces of background work within a minute. Wait a moment.", limit=pace),
            retry_after_seconds=60,
        )


def recount_if_due(owner_id: int | None, messages: Sequence[NewMessage] = ()) -> None:
    """Bring the counter in step with the stored messages, where it is old or leaves no room for these. One query else.

    Not inside the transaction that counts: a refusal there would undo it, and every refusal would read them all again.
    """
    if owner_id is None:
        return
    row = _find(owner_id)
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
    conf = quota_settings
    if not (conf.messages_per_minute or conf.messages_per_user or conf.messages_quota_bytes):
        return
    needed = count if paced is None else paced
    if _count(owner_id, count, byte_count, needed):
        return
    row = _counter_of(owner_id)  # there may have been none
    if _count(owner_id, count, byte_count, needed):
        return
    if not _has_room(row, count, byte_count):
        raise QuotaExceeded(
            "There is no room for more messages. Delete some conversations first.",
            max_messages=conf.messages_per_user,
            max_bytes=conf.messages_quota_bytes,
        )
    age = (timezone.now() - _counter_of(owner_id).minute_started_at).total_seconds()
    raise QuotaExceeded(
        Phrase(
            "You can store {limit} messages within a minute.",
            limit=conf.messages_per_minute,
        ),
        retry_after_seconds=min(60.0, 60 - age),
    )


def _count(owner_id: int, count: int, byte_count: int, needed: int) -> bool:
    conf = quota_settings
    most_now = conf.messages_per_minute - needed if conf.messages_per_minute and needed else _NO_LIMIT
    most = conf.messages_per_user - count if conf.messages_per_user else _NO_LIMIT
    most_bytes = conf.messages_quota_bytes - byte_count if conf.messages_quota_bytes else _NO_LIMIT
    minute_ago = -60.0
    added = (minute_ago, count, count, minute_ago, count, byte_count)
    return _COUNT.run(*added, *_owner(owner_id), minute_ago, most_now, most, most_bytes) > 0


def _find(owner_id: int) -> MessageCount | None:
    row = _FIND.one(*_owner(owner_id))
    return None if row is None else _COUNTER.build(row)


def _owner(owner_id: int) -> list[Any]:
    return _OWNER.prepare({"owner_id": owner_id})


def _counter_of(owner_id: int) -> MessageCount:
    """The user's storage counter, created from the stored attachments if missing."""
    row = _find(owner_id)
    if row is not None:
        return row
    stored = stored_messages(owner_id)
    made = {"message_count": stored.count, "byte_count": stored.byte_count, "counted_at": timezone.now()}
    return MessageCount.objects.get_or_create(owner_id=owner_id, defaults=made)[0]


def _has_room(row: MessageCount, count: int, byte_count: int) -> bool:
    most, most_bytes = quota_settings.messages_per_user, quota_settings.messages_quota_bytes
    has_rows = not most or row.message_count + count <= most
    return has_rows and (not most_bytes or row.byte_count + byte_count <= most_bytes)


def _size(messages: Sequence[NewMessage]) -> int:
    return sum(byte_size(message) for message in messages)
