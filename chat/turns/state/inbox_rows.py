"""The inbox of an agent in a room, as its turns take it: up to fifty messages at the begin of one.

All functions are sync and run inside the caller's transaction.
"""

from typing import Final

from django.db.models import QuerySet

from chat.instances.addresses import INBOX
from chat.instances.rows import hold_instance
from chat.models import AgentInstance, AgentMessage, Turn
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject

FROM_INBOX: Final = "inbox"
"""Name in a turn's options: true where it takes what is in the inbox when it begins, false where it goes on from one
that has."""

MAX_TAKEN: Final = 50
"""Messages of one turn; what is more is for the next one."""


def room_id_of(instance: AgentInstance) -> str:
    """The room in which an instance has its inbox: the one above it where it is a member of that, else itself."""
    is_member = instance.name == INBOX and instance.parent_id is not None
    return str(instance.parent_id if is_member else instance.pk)


def waiting_messages(instance: AgentInstance) -> QuerySet[AgentMessage]:
    """Messages in the inbox of an instance that no turn has taken, in order."""
    rows = AgentMessage.objects.filter(room_id=room_id_of(instance), target=instance.agent)
    return rows.filter(processed_at=None, turn=None).order_by("seq")


def is_drained(turn: Turn) -> bool:
    """Whether a turn that is for the inbox finds nothing there. From here on nothing enters it before the commit."""
    if not turn.options.get(FROM_INBOX):
        return False
    hold_instance(turn.instance)
    return not waiting_messages(turn.instance).exists()


def take_messages(turn: Turn) -> list[Message]:
    """Take what is in the inbox for this turn, as the messages of its conversation. It holds the instance's row."""
    rows = list(waiting_messages(turn.instance)[:MAX_TAKEN])
    AgentMessage.objects.filter(pk__in=[row.pk for row in rows]).update(turn=turn)
    return [_as_message(row) for row in rows]


def _as_message(row: AgentMessage) -> Message:
    about: JSONObject = {"seq": row.pk, "sender": row.sender, "requestId": row.request_id}
    text = f"[{row.sender}]\n{row.content}" if row.sender else row.content
    return {
        "id": new_id("msg"),
        "role": "user",
        "parts": [{"type": "text", "text": text}],
        "metadata": {"agentMessage": about},
    }
