"""Whether a conversation waits for somebody: a person's approval, or a result that a client has to bring."""

from chat.agent import InstanceKey
from chat.instance_rows import find_instance
from sessions_app import selectors
from sessions_app.core.messages import Role
from sessions_app.core.parts import ToolState, is_settled, state_of
from tools_app.selectors import unfinished_calls

NEWEST = 50
"""How many messages of the shown path are looked at: what lies further back was settled by the turns since."""


def has_pending_interaction(key: InstanceKey) -> bool:
    """Whether a call of the shown path waits for an approval or for its client.

    A message is stored when its turn ends, so a call without a result in it is not at work. One that the server had
    begun died with its worker: nobody can answer it, and the next turn says so.
    """
    instance = find_instance(key)
    if instance is None or instance.session_id is None:
        return False
    page = selectors.path_page(instance.session_id, limit=NEWEST)
    answers = [message for message in page.messages if message.role == Role.ASSISTANT]
    parts = [part for message in answers for part in message.parts if not is_settled(part)]
    if any(state_of(part) is ToolState.APPROVAL_REQUESTED for part in parts):
        return True
    waiting = {str(part.get("toolCallId")) for part in parts if state_of(part) is ToolState.INPUT_AVAILABLE}
    return bool(waiting - unfinished_calls({m.turn_id for m in answers})) if waiting else False
