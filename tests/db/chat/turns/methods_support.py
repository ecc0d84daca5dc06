"""What the tests of the methods share."""

from chat.models import Turn
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.aio import db

from .conftest import Room


def user(text: str, message_id: str = "") -> Message:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def said(text: str, message_id: str) -> Message:
    return {"id": message_id, "role": "assistant", "parts": [{"type": "text", "text": text}]}


async def count_turns() -> int:
    return await db(Turn.objects.count)


async def texts(room: Room) -> list[str]:
    return [text for _, text in await room.texts()]
