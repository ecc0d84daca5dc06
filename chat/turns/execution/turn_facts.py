"""Facts about a turn, read once per attempt."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, OuterRef

from chat.agent.base import InstanceKey
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn, TurnTrigger
from chat.turns.background.titles import needs_title
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """A runner's facts about its turn. Read once per attempt."""

    turn_id: str
    request_id: str
    key: InstanceKey
    session_id: str
    generation: int  # at its begin; one of the instance's other sessions may be cleared since
    trigger: TurnTrigger
    assistant_id: str
    leaf_id: str | None  # the message that the answer hangs below
    body: JSONObject
    accepted_at: datetime
    history: list[Message] | None = None  # the path to the leaf, where the begin has just read it
    is_untitled: bool = False  # its conversation has no title but its first words
    client_tools: tuple[JSONObject, ...] = ()  # as the last request of a client gave them

    @property
    def is_continuation(self) -> bool:
        """Whether the turn goes on without a new message."""
        return self.trigger is TurnTrigger.CONTINUE


def facts_of(turn: Turn, leaf_id: str | None, history: list[Message] | None = None) -> TurnFacts:
    """Facts about a turn whose answer hangs below this message. Needs its instance loaded."""
    return TurnFacts(
        turn_id=turn.pk,
        request_id=turn.request_id,
        key=key_of(turn.instance),
        session_id=turn.session_id,
        generation=turn.generation,
        trigger=TurnTrigger(turn.trigger),
        assistant_id=turn.assistant_id,
        leaf_id=leaf_id,
        body=turn.body,
        accepted_at=turn.accepted_at,
        history=history,
        is_untitled=needs_title(turn.instance),
        client_tools=tuple(turn.instance.client_tools),
    )


def holds_generation(instance_id: str, turn_id: str) -> bool:
    """Whether no clear came since the admission. Locks the row, so none can come before this transaction commits.

    The turn's generation is read, not remembered: where another session is cleared, this one's turns get the new one.
    That transaction holds the turn's fiber, as we do, so the two never overlap.
    """
    turn = Turn.objects.filter(pk=turn_id, generation=OuterRef("generation"))
    rows = AgentInstance.objects.filter(Exists(turn), pk=instance_id)
    return rows.update(generation=F("generation")) == 1


def has_content(message: Message) -> bool:
    """Whether there is anything to store: a part that is more than the beginning of a step."""
    return any(part.get("type") != "step-start" for part in message["parts"])
