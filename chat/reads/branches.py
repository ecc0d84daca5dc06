"""The forks of a conversation, with the models that answered. Reads only."""

from dataclasses import dataclass

from chat.models import Turn
from sessions_app.messages.branches import BranchNode, branch_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchView:
    """A node of the tree and the name of the model that gave it; empty where none did or several messages are one."""

    node: BranchNode
    model: str


def branches_of(session_id: str | None) -> tuple[list[BranchView], bool]:
    """The tree of a conversation's history, and whether older messages are missing from it. One query more than it."""
    if session_id is None:
        return [], False
    tree = branch_tree(session_id)
    turn_ids = {node.turn_id for node in tree.items if node.message_count == 1 and node.role == "assistant"}
    models = dict(Turn.objects.filter(pk__in=turn_ids).values_list("pk", "model_name"))
    return [BranchView(node=node, model=_model_of(node, models)) for node in tree.items], tree.is_cut


def _model_of(node: BranchNode, models: dict[str, str]) -> str:
    is_answer = node.message_count == 1 and node.role == "assistant"
    return models.get(node.turn_id, "") if is_answer else ""
