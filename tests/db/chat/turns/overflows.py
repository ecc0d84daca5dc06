"""Conversations that outgrow a model's context."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.test import override_settings

from chat.models import AgentInstance
from sessions_app.core.messages import shapes
from sessions_app.messages import services
from sessions_app.models import Compaction, Session
from thinkproject.kernel.aio import db

from .conftest import Room

CHARS = 4_000
EXCHANGES = 6


def text(role: str, number: int, chars: int = CHARS) -> shapes.Message:
    words = f"{role} {number} " + "word " * (chars // 5)
    return {"id": f"{role}{number}", "role": role, "parts": [{"type": "text", "text": words}]}


async def session_of(room: Room) -> Session:
    instance = await db(lambda: AgentInstance.objects.get(agent=room.key.agent, name=room.key.name))
    return await db(lambda: Session.objects.get(pk=instance.session_id))


async def talked(room: Room, *messages: shapes.Message) -> Session:
    """A conversation that has gone on for a while."""
    await room.say("say: hi")
    room.model.requests.clear()
    session = await session_of(room)
    given = messages or [text(role, n) for n in range(EXCHANGES) for role in ("user", "assistant")]
    await db(services.append_messages, session.pk, list(given))
    return session


async def compactions(session: Session) -> int:
    return await db(Compaction.objects.filter(session=session).count)


@contextmanager
def limits(context: int, output: int) -> Iterator[None]:
    with override_settings(THINK_MODEL_LIMITS={"scripted/": {"context": context, "output": output}}):
        yield


OVERFLOWS = "context overflow above 30000 characters\nsay: fits"
