"""Effects of actions of one user, over all of the user's conversations. Reads only."""

from typing import Any

from chat.reads.approvals import position
from tools_app.actions.ledger import effects_of
from tools_app.models import ActionRecord


def own_effects(owner_id: Any, *, cursor: str = "", limit: int = 50) -> tuple[list[ActionRecord], str | None]:
    """A page of a user's effects, newest first, and the cursor of the next one; `None` at the end. One query.

    Errors: `InputInvalid` for a cursor that is none.
    """
    rows = effects_of(owner_id)
    found = list((rows.filter(pk__lt=position(cursor)) if cursor else rows)[: limit + 1])
    page = found[:limit]
    return page, str(page[-1].pk) if len(found) > limit else None
