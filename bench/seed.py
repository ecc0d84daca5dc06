"""Stores conversations: of so many messages, or one message at a time. Runs within an installation, called by a `Hand`.

Rows are written as the services would leave them.
"""

import time

from django.contrib.auth.models import User
from django.core.management.color import no_style
from django.db import connection
from django.utils import timezone

from bench.chats import SENTENCES
from chat.agent.base import InstanceKey
from chat.instances.rows import ensure_instance
from chat.runtime.add_messages import add_messages
from sessions_app.core.messages import shapes
from sessions_app.core.messages.messages import to_content
from sessions_app.models import Message, Session
from thinkproject.kernel.jsonvalue import byte_size

USER = "alice"
WARM_UP = 5


def make_conversations(counts: list[int]) -> dict[str, dict[str, str]]:
    """Store a conversation of each length; returns their names and ids."""
    made = {str(count): make_conversation(count) for count in counts}
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return made


def make_alike(count: int, how_many: int, name: str = "alike") -> list[dict[str, str]]:
    """Store several conversations of one length; returns their names and ids."""
    made = [make_conversation(count, f"{name}-{number}") for number in range(how_many)]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return made


def make_conversation(count: int, name: str = "") -> dict[str, str]:
    """Store one conversation of the user's."""
    owner = User.objects.get(username=USER)
    key = InstanceKey(owner_id=owner.pk, agent="assistant", name=name or f"long-{count}")
    instance = ensure_instance(key)
    first = (Message.objects.order_by("-pk").values_list("pk", flat=True).first() or 0) + 1
    Message.objects.bulk_create(
        (new_message(first, index, str(instance.session_id)) for index in range(count)), batch_size=2_000
    )
    Session.objects.filter(pk=instance.session_id).update(active_leaf_id=first + count - 1)
    reset_sequence(Message)
    return {"name": key.name, "id": instance.pk}


def time_adding(name: str, count: int) -> list[float]:
    """Add messages one at a time through the API for programs; returns the seconds of each call."""
    owner = User.objects.get(username=USER)
    key = InstanceKey(owner_id=owner.pk, agent="assistant", name=name)
    times = []
    for number in range(count + WARM_UP):
        began = time.perf_counter()
        add_messages(key, [{"role": "user", "parts": [{"type": "text", "text": f"{number}. {SENTENCES}"}]}])
        times.append(time.perf_counter() - began)
    return times[WARM_UP:]


def new_message(first: int, index: int, session_id: str) -> Message:
    """One row of the conversation."""
    message: shapes.Message = {
        "id": f"{session_id}-{index}",
        "role": ("user", "assistant")[index % 2],
        "parts": [{"type": "text", "text": SENTENCES}],
    }
    return Message(
        pk=first + index,
        session_id=session_id,
        message_id=message["id"],
        parent_id=first + index - 1 if index else None,
        depth=index,
        role=message["role"],
        content=to_content(message),
        byte_size=byte_size(message),
        placed_at=timezone.now(),
    )


def reset_sequence(model: type) -> None:
    """Have the next row numbered after those that came with numbers."""
    with connection.cursor() as cursor:
        for sql in connection.ops.sequence_reset_sql(no_style(), [model]):
            cursor.execute(sql)
