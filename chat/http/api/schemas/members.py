"""Shapes of people in a conversation, as the API sends and takes them."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StringConstraints

from chat.members.services import MAX_DAYS
from chat.models import Role

GivenRole = Literal["reader", "writer", "approver"]


class PersonOut(Schema):
    """A person in a conversation. `id`: of the membership, null for the owner. `is_you`: the caller.

    `author`: as `thinkAuthor` in the metadata of this person's messages names it; those of the owner name none.
    """

    id: str | None
    author: str
    name: str
    role: Role
    is_you: bool
    invited_by: str | None
    since: datetime


class PeopleOut(Schema):
    """The owner, then the members in the order in which they came. `role`: yours.

    `former`: names of those who were members, by what messages name as their author.
    """

    role: Role
    items: list[PersonOut]
    former: dict[str, str]


class MemberIn(Schema):
    """A person to add, by name."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=150, pattern=r"^[^\x00]*$")]
    role: GivenRole = "reader"


class RoleIn(Schema):
    """A role to give."""

    role: GivenRole


class MemberOut(Schema):
    """A membership."""

    id: str
    instance_id: str
    role: Role


class InvitationIn(Schema):
    """An invitation to make. Units: `days` until it expires."""

    role: GivenRole = "reader"
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 7


class InvitationOut(Schema):
    """An invitation that can be accepted."""

    id: str
    role: Role
    made_by: str | None
    created_at: datetime
    expires_at: datetime


class NewInvitationOut(InvitationOut):
    """An invitation that was just made. `secret` and `path`, which has it, are shown this once."""

    secret: str
    path: str


class AcceptIn(Schema):
    """The secret of an invitation."""

    secret: Annotated[str, StringConstraints(min_length=1, max_length=200)]
