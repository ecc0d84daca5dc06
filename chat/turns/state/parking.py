"""Answers for parked turns: a waiting tool receives its answer and its turn continues."""

from chat.agent.base import InstanceKey
from chat.errors import CallNotFound
from chat.instances.rows import find_instance
from chat.turns.state.active import active_turns
from fibers import services
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.phrases import Phrase
from tools_app.models import ToolCallRecord


def answer_wait(key: InstanceKey, call_id: str, value: JSONValue, *, wait: str) -> bool:
    """Answer a tool call's wait. `wait`: the key given by the tool, or the kind.

    Durability: committed when this returns; the turn goes on whenever a worker takes it. False when the wait has been
    answered or is over: the first answer wins. Errors: `CallNotFound` when no turn that is under way has this call.
    """
    instance = find_instance(key)
    turns = {} if instance is None else {turn.pk: turn for turn in active_turns(instance.pk)}
    row = ToolCallRecord.objects.filter(turn_id__in=turns, call_id=call_id).only("turn_id").first()
    if row is None:
        raise CallNotFound(Phrase("No running turn of this conversation has a call {id!r}.", id=call_id))
    return services.answer_wait(turns[row.turn_id].fiber_id, f"{call_id}:{wait}"[:150], value)
