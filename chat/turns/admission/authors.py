"""The author of a turn: the member who asked, known from the login; empty for the owner."""

from typing import Any

from chat.agent.base import InstanceKey
from chat.core.durable_names import TURN_FIBER
from chat.members.selectors import author_of
from chat.models import Turn
from fibers.context import current_fiber


def author_of_request(key: InstanceKey, actor_id: Any, via: str) -> str:
    """The member who asks. What a turn has admitted while it runs is asked by who asked for that turn.

    Staff who act through the admin act for the owner.
    """
    if actor_id is not None:
        return "" if via == "admin" else author_of(actor_id, key.owner_id)
    fiber = current_fiber()
    return author_of(fiber.owner_id, key.owner_id) if fiber is not None and fiber.name == TURN_FIBER else ""


def continued_author(session_id: str) -> str:
    """The author of the last turn: what goes on without a new message goes on with the rights of who asked."""
    rows = Turn.objects.filter(session_id=session_id).order_by("-position").values_list("author", flat=True)
    return rows.first() or ""
