"""Values of the API about the tree of a conversation's messages."""

from datetime import datetime

from ninja import Schema


class BranchNodeOut(Schema):
    """A message, or `message_count` messages in a row without a fork, named by the first of them."""

    id: str
    parent_id: str | None
    role: str
    text: str
    model: str
    created_at: datetime
    message_count: int
    is_shown: bool


class BranchesOut(Schema):
    """The tree, each node below the one that `parent_id` names. `is_cut`: the oldest messages are left out."""

    items: list[BranchNodeOut]
    is_cut: bool
