"""Shapes of links for readers, as the API sends and takes them."""

from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import Field, StringConstraints

from chat.http.api.schemas.common import Id, Input
from chat.shares.services import MAX_DAYS


class ShareIn(Input):
    """A link to make. Units: `days` until it expires.

    `message_id`: the last message that it shows, on the path that is shown; the end of that path without one. `tools`,
    `files`, `reasoning`: whether it shows arguments and results of tools, attached files, thoughts.
    """

    message_id: Id | None = None
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 30
    tools: bool = False
    files: bool = False
    reasoning: bool = False


class ShareOut(Schema):
    """A link that works. `title`: of the conversation, as readers see it."""

    id: str
    instance_id: str
    message_id: str
    title: str
    tools: bool
    files: bool
    reasoning: bool
    created_at: datetime
    expires_at: datetime


class NewShareOut(ShareOut):
    """A link that was just made. `secret` and `path`, which has it, are shown this once."""

    secret: str
    path: str


class SharedSecretIn(Input):
    """The secret of a link."""

    secret: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ContinuedOut(Schema):
    """The conversation that was made of what a link shows."""

    instance_id: str
