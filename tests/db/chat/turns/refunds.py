"""Refunds of the agent with actions, who may make them, and what is shown of a call."""

from django.contrib.auth.models import Permission, User

from sessions_app.core.messages.shapes import Part
from tests.db.chat.turns.agents.answering import Desk
from thinkproject.kernel.aio import db

REFUND = 'call tool refund {"order": "A-1", "amount": 5} id=one\nsay: It says {result}.'


def grant_to(user_id: int | None, *, granted: bool = True) -> None:
    assert user_id is not None
    permission = Permission.objects.get(codename="change_user")
    user = User.objects.get(pk=user_id)
    (user.user_permissions.add if granted else user.user_permissions.remove)(permission)


async def grant(desk: Desk, *, granted: bool = True) -> None:
    await db(grant_to, desk.room.key.owner_id, granted=granted)


async def part(desk: Desk, call_id: str = "one") -> Part:
    """The part of a call."""
    parts = [each for message in await desk.room.transcript() for each in message["parts"]]
    return [each for each in parts if each.get("toolCallId") == call_id][-1]
