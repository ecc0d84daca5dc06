"""The limits that hold for a person, and how much of each is used now. Reads only.

Counted as the limits themselves count, so that a limit says it is full when the next request is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from django.utils import timezone

from chat.files import attachments
from chat.files.conf import file_settings
from chat.instances.conf import quota_settings
from chat.models import AgentInstance, AgentRun, Attachment, MessageCount
from chat.turns.conf import turn_settings
from chat.turns.policies import asked_lately
from fibers.core.schedules.states import ScheduleStatus
from fibers.models import Fiber
from fibers.models.schedules import Schedule
from fibers.schedules.conf import schedule_settings
from sessions_app.messages.usage import StoredMessages, stored_messages
from tools_app.workspace import quotas
from tools_app.workspace.conf import workspace_settings

MINUTE: Final = 60
COUNTED_HERE: Final = 10_000
"""Messages up to which they are counted for the page."""

LimitName = Literal[
    "turns",
    "delegated_turns",
    "conversations",
    "messages",
    "message_bytes",
    "uploads",
    "files",
    "file_bytes",
    "workspace_bytes",
    "workspace_entries",
    "runs",
    "background",
    "schedules",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitView:
    """A limit, and what is used of it. `window_seconds`: it is a pace; 0: it is room, or what is there at a time."""

    name: LimitName
    used: int
    limit: int
    unit: Literal["count", "bytes"] = "count"
    window_seconds: int = 0


def limits_of_person(user_id: Any) -> list[LimitView]:
    """The limits that hold for a person, the paces first. Eleven queries at most, whatever there is.

    A limit that is switched off is left out.
    """
    found = [*_paces(user_id), *_room(user_id), *_at_work(user_id)]
    return [view for view in found if view.limit > 0]


def _paces(user_id: Any) -> list[LimitView]:
    conf = turn_settings
    since = timezone.now() - timedelta(seconds=MINUTE)
    uploads = Attachment.objects.filter(owner_id=user_id, created_at__gte=since)
    return [
        _pace("turns", conf.turns_per_minute, lambda: len(asked_lately(user_id))),
        _pace(
            "delegated_turns", conf.delegated_turns_per_minute, lambda: len(asked_lately(user_id, is_delegated=True))
        ),
        _pace("uploads", file_settings.per_minute, uploads.count),
    ]


def _pace(name: LimitName, limit: int, count: Callable[[], int]) -> LimitView:
    return LimitView(name=name, used=count() if limit > 0 else 0, limit=limit, window_seconds=MINUTE)


def _room(user_id: Any) -> list[LimitView]:
    files, messages = attachments.usage(user_id), _messages(user_id)
    workspaces = quotas.usage(user_id)
    conf = quota_settings
    return [
        LimitView(
            name="conversations",
            used=AgentInstance.everything.filter(owner_id=user_id).count() if conf.instances_per_user else 0,
            limit=conf.instances_per_user,
        ),
        LimitView(name="messages", used=messages.count, limit=conf.messages_per_user),
        LimitView(name="message_bytes", used=messages.byte_count, limit=conf.messages_quota_bytes, unit="bytes"),
        LimitView(name="files", used=files.files, limit=file_settings.per_user),
        LimitView(name="file_bytes", used=files.byte_count, limit=file_settings.quota_bytes, unit="bytes"),
        LimitView(
            name="workspace_bytes", used=workspaces.byte_count, limit=workspace_settings.quota_bytes, unit="bytes"
        ),
        LimitView(name="workspace_entries", used=workspaces.entry_count, limit=workspace_settings.quota_entries),
    ]


def _messages(user_id: Any) -> StoredMessages:
    """The stored messages. The counter lacks what turns have stored since its last count, so few are counted here."""
    kept = MessageCount.objects.filter(owner_id=user_id).first()
    if kept is None or kept.message_count < COUNTED_HERE:
        return stored_messages(user_id)
    return StoredMessages(count=kept.message_count, byte_count=kept.byte_count)


def _at_work(user_id: Any) -> list[LimitView]:
    fibers = Fiber.objects.filter(owner_id=user_id, scope__isnull=False, finished_at=None)
    schedules = Schedule.objects.filter(owner_id=user_id).exclude(status=ScheduleStatus.ENDED)
    runs = AgentRun.objects.filter(owner_id=user_id, finished_at=None)
    return [
        LimitView(name="background", used=fibers.count(), limit=quota_settings.fibers_per_user),
        LimitView(name="runs", used=runs.count(), limit=turn_settings.runs_per_user),
        LimitView(name="schedules", used=schedules.count(), limit=schedule_settings.per_user),
    ]
