"""Marks of a conversation in the list of conversations, beside its own columns."""

from ninja import Schema


class OriginOut(Schema):
    """The origin of a fork: an existing message of another conversation."""

    instance_id: str
    message_id: str
    title: str


class UndoneMarkOut(Schema):
    """The undo that a redo would take back: what it took back."""

    id: str
    file_count: int
    includes_messages: bool
