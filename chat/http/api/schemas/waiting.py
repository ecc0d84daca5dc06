"""Schemas of messages that wait for their turn."""

from ninja import Schema

from chat.http.api.schemas.common import Id, Input, MessageIn


class WaitingMessageIn(Input):
    """Other content of a message that waits. `version`: of the message that is changed."""

    message: MessageIn
    version: int


class WaitingMessageOut(Schema):
    """The version that the message has now."""

    version: int


class QueueIn(Input):
    """The turns that wait, all of them, in the order in which they are to run."""

    turn_ids: list[Id]
