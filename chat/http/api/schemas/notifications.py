"""Shapes of what is pushed to people, as the API sends and takes them."""

from datetime import datetime, time
from typing import Annotated

from ninja import Schema
from pydantic import Field, StringConstraints

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80, pattern=r"^[^\x00]*$")]


class PushDeviceOut(Schema):
    """A browser that is pushed to. `fingerprint`: SHA-256 of its address, by which a browser knows itself."""

    id: str
    name: str
    fingerprint: str
    created_at: datetime
    used_at: datetime | None


class NoticeChoicesOut(Schema):
    """The kinds of pushes that a person wants, and the hours in which there are none, in `zone`."""

    decision: bool
    answer: bool
    schedule: bool
    quiet_from: time | None
    quiet_until: time | None
    zone: str


class NotificationsOut(Schema):
    """A person's wishes and devices. `public_key`: what a browser binds a new device to."""

    public_key: str
    choices: NoticeChoicesOut
    devices: list[PushDeviceOut]


class NoticeChoicesPatch(Schema):
    """Changes of wishes; what is left out stays. Both ends of the quiet hours, or null for both."""

    decision: bool | None = None
    answer: bool | None = None
    schedule: bool | None = None
    quiet_from: time | None = None
    quiet_until: time | None = None
    zone: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None


class PushDeviceIn(Schema):
    """A browser to push to, as `PushSubscription.toJSON()` has it."""

    name: Line
    endpoint: Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=r"^[!-~]+$")]
    public_key: Annotated[str, Field(min_length=1, max_length=100)]
    auth_secret: Annotated[str, Field(min_length=1, max_length=40)]
