"""The to-do list of a conversation, for clients. Reads only."""

from chat.models import AgentInstance
from chat.turns.state.active import running_turn_id
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.todo_tools import current_todos


def todo_list(instance: AgentInstance) -> list[JSONObject]:
    """The list of the shown path, with what a running answer has written. At most three queries."""
    if instance.session_id is None:
        return []
    return current_todos(instance.session_id, running_turn_id(instance))
