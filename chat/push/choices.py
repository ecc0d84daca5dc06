"""The wishes of people about what is pushed to them, and the hours in which nothing is."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from chat.models import NoticeChoices, NoticeKind
from thinkproject.kernel.zones import find_zone


def choices_of(user_id: Any) -> NoticeChoices:
    """The wishes of a person; those that hold without a row are not stored."""
    return NoticeChoices.objects.filter(user_id=user_id).first() or NoticeChoices(user_id=user_id)


def change_choices(user_id: Any, **changes: Any) -> NoticeChoices:
    """Change some of a person's wishes."""
    row, _made = NoticeChoices.objects.update_or_create(user_id=user_id, defaults=changes)
    row.refresh_from_db()
    return row


def wants(choices: NoticeChoices, kind: str) -> bool:
    """Whether a person wants pushes of a kind. What a person asks for oneself is always wanted."""
    return kind == NoticeKind.TEST or bool(getattr(choices, kind))


def quiet_seconds(choices: NoticeChoices, now: datetime) -> float:
    """Seconds in which nothing is pushed from now on; 0 outside of the quiet hours. They may go over midnight."""
    begin, end = choices.quiet_from, choices.quiet_until
    if begin is None or end is None or begin == end:
        return 0.0
    there = now.astimezone(find_zone(choices.zone) or UTC)
    if not _is_between(there.time(), begin, end):
        return 0.0
    ends = there.replace(hour=end.hour, minute=end.minute, second=0, microsecond=0)
    if ends <= there:
        ends = (there + timedelta(days=1)).replace(hour=end.hour, minute=end.minute, second=0, microsecond=0)
    return max(1.0, ends.timestamp() - now.timestamp())


def _is_between(clock: time, begin: time, end: time) -> bool:
    return begin <= clock < end if begin < end else clock >= begin or clock < end
