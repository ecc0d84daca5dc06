"""News for people who are elsewhere: whom they concern, and one push to one device.

Both run as fibers after the transaction that has noted them (`chat/push/starting.py`). A push is sent at least once,
and its tag lets the second take the place of the first. Whether it still concerns the person is asked right before.
"""

import secrets
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from django.utils import timezone
from yarl import URL

from chat.members.selectors import people_in, role_of
from chat.models import AgentInstance, NoticeKind, PushDevice, Role, Turn
from chat.push import keys
from chat.push.choices import choices_of, quiet_seconds, wants
from chat.push.devices import note_used
from chat.push.encryption import SALT_BYTES, encrypt, from_base64, to_base64
from chat.push.message import message_of
from chat.push.starting import start_push
from chat.turns.admission.tool_answers import may_answer
from fibers.context import FiberContext
from fibers.errors import Failed
from fibers.waits import Wait
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.calls.services import Actor
from tools_app.core.tool_calls import CallStatus
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.posting import post
from tools_app.mcp.conf import mcp_settings
from tools_app.models import ToolCallRecord

TTL_SECONDS: Final = 24 * 3600
"""How long a push service keeps a push for a device that it cannot reach."""
SENDER: Final = "ThinkForDjango-push/1"
GONE: Final = (404, 410)
"""Answers of a push service about a device that has gone."""
_TOO_MANY: Final = 429
_FAULT: Final = 500
_NEVER: Final = 0
_TOPIC_CHARS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPush:
    """A push that can be sent."""

    endpoint: str
    body: bytes
    headers: tuple[tuple[str, str], ...]


async def spread_notice(context: FiberContext) -> JSONValue:
    """Start a push for each device of each person whom the news concern."""
    await db(_spread, context)
    return None


async def push(context: FiberContext) -> JSONValue:
    """Push to one device, unless it has become pointless. In the quiet hours it waits for their end.

    Errors: `Failed` for what may pass; tried again with pauses.
    """
    news: JSONObject = context.payload
    for number in range(3):  # the quiet hours may have been changed while it waited
        ready = await db(_prepare, news)
        if ready is None:
            return None
        if isinstance(ready, ReadyPush):
            return await _send(str(news["device_id"]), ready)
        wait = Wait(key=f"quiet-{number}", kind="quiet", seconds=ready)
        if await context.recorded(wait.step_key) is None:
            await context.wait(wait)  # parks
    return None


async def _send(device_id: str, ready: ReadyPush) -> JSONValue:
    try:
        await post(ready.endpoint, ready.body, ready.headers, networks=mcp_settings.private_networks, sender=SENDER)
    except FetchFailed as error:
        if error.status in GONE:
            await db(_forget, device_id)
            return {"status": error.status}
        is_final = error.reason == "disallowed_url" or (400 <= error.status < _FAULT and error.status != _TOO_MANY)
        raise Failed(error.code, error.message, is_final=is_final) from error
    await db(note_used, device_id)
    return None


def _forget(device_id: str) -> None:
    PushDevice.objects.filter(pk=device_id).delete()


def _spread(context: FiberContext) -> None:
    news: JSONObject = context.payload
    with context.fenced():
        for device in PushDevice.objects.filter(user_id__in=_people(news), user__is_active=True):
            start_push(device, news, about=str(context.key))


def _people(news: JSONObject) -> list[Any]:
    """Keys of the people who may want to know; each push looks closer."""
    if news["kind"] != NoticeKind.DECISION:
        return [news["user_id"]]
    instance = AgentInstance.objects.filter(pk=news["instance_id"]).first()
    return [] if instance is None else [each.user_id for each in people_in(instance)]


def _prepare(news: JSONObject) -> ReadyPush | float | None:
    """The push; or the seconds that it has to wait; or nothing where it has no point any more."""
    device = PushDevice.objects.filter(pk=news["device_id"], user__is_active=True).first()
    if device is None:
        return None
    kind, choices = NoticeKind(news["kind"]), choices_of(device.user_id)
    if not wants(choices, kind):
        return None
    quiet = _NEVER if kind == NoticeKind.TEST else quiet_seconds(choices, timezone.now())
    if quiet:
        return quiet
    place = _place(kind, news, device.user_id)
    return None if place is None else _encrypted(device, kind, *place)


def _encrypted(device: PushDevice, kind: NoticeKind, instance_id: str, message_id: str) -> ReadyPush:
    message = message_of(kind, language=device.language, instance_id=instance_id, message_id=message_id)
    body = encrypt(
        message.encoded(),
        to=from_base64(device.public_key),
        auth=from_base64(device.auth_secret),
        salt=secrets.token_bytes(SALT_BYTES),
    )
    audience = str(URL(device.endpoint).origin())
    topic = to_base64(sha256(message.tag.encode()).digest())[:_TOPIC_CHARS]
    headers = (
        ("Authorization", keys.signed_for(audience, subject=keys.subject_of(device.origin), now=int(time.time()))),
        ("Content-Encoding", "aes128gcm"),
        ("Content-Type", "application/octet-stream"),
        ("TTL", str(TTL_SECONDS)),
        ("Topic", topic),
        ("Urgency", "high" if kind == NoticeKind.DECISION else "normal"),
    )
    return ReadyPush(endpoint=device.endpoint, body=body, headers=headers)


def _place(kind: NoticeKind, news: JSONObject, user_id: Any) -> tuple[str, str] | None:
    """The conversation and the message that news lead to; nothing where they do not concern this person any more."""
    if kind == NoticeKind.TEST:
        return "", ""
    instance = AgentInstance.objects.filter(pk=news["instance_id"]).first()
    if instance is None or role_of(user_id, instance) is None:
        return None
    if kind == NoticeKind.DECISION:
        return _open_question(instance, int(news["call"]), user_id)
    if kind == NoticeKind.ANSWER:
        return _unseen_answer(instance, str(news["turn_id"]), user_id)
    return instance.pk, ""


def _open_question(instance: AgentInstance, row_id: int, user_id: Any) -> tuple[str, str] | None:
    row = ToolCallRecord.objects.filter(pk=row_id, scope=instance.pk, status=CallStatus.ASKED).first()
    is_over = row is None or (row.expires_at is not None and row.expires_at <= timezone.now())
    if row is None or is_over or not may_answer(instance, row, Actor(user_id=user_id, via="api")):
        return None
    return instance.pk, Turn.objects.filter(pk=row.turn_id).values_list("assistant_id", flat=True).first() or ""


def _unseen_answer(instance: AgentInstance, turn_id: str, user_id: Any) -> tuple[str, str] | None:
    turn = Turn.objects.filter(pk=turn_id, instance=instance).first()
    if turn is None or turn.finished_at is None:
        return None
    is_seen = role_of(user_id, instance) is Role.OWNER and (
        instance.seen_at is not None and instance.seen_at >= turn.finished_at
    )
    return None if is_seen else (instance.pk, turn.assistant_id)
