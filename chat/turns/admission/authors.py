"""The author of a turn: the member who asked, known from the login; empty for the owner."""

from typing import Any, Final

from chat.agent.base import InstanceKey
from chat.core.durable_names import TURN_FIBER
from chat.errors import TurnConflict
from chat.members import policy
from chat.members.selectors import author_of, role_of, user_key
from chat.models import AgentInstance, Role, Turn
from fibers.context import current_fiber
from thinkproject.kernel.phrases import Phrase

GONE: Final = Phrase("The person who asked for this does not write in this conversation any more. Ask again instead.")


def author_of_request(key: InstanceKey, actor_id: Any, via: str) -> str:
    """The member who asks. What a turn has admitted while it runs is asked by who asked for that turn.

    Staff who act through the admin act for the owner.
    """
    if actor_id is not None:
        return "" if via == "admin" else author_of(actor_id, key.owner_id)
    fiber = current_fiber()
    return author_of(fiber.owner_id, key.owner_id) if fiber is not None and fiber.name == TURN_FIBER else ""


def continued_author(instance: AgentInstance, session_id: str) -> str:
    """The author of the last turn: what goes on without a new message goes on with the rights of who asked.

    Errors: `TurnConflict` where that person may not ask any more.
    """
    rows = Turn.objects.filter(session_id=session_id).order_by("-position").values_list("author", flat=True)
    author = rows.first() or ""
    if not may_go_on(instance, author):
        raise TurnConflict(GONE)
    return author


def may_go_on(instance: AgentInstance, author: str) -> bool:
    """Whether the author of a turn may still ask, so that what follows from it may run. No query for the owner."""
    return not author or policy.allows(role_of(user_key(author), instance), Role.WRITER)
