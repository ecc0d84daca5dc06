"""Shapes of the injection guard."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field

from chat.http.api.schemas.common import Input


class GuardTextOut(Schema):
    """A text of strangers. `source`: an address, a path, a server's name; shown as text, it is theirs.

    `message_id` and `call_id`: where it is in the conversation; both empty for what is in no message, as the
    descriptions of a server. `number`: its place among all.
    """

    number: int
    origin: Literal["web", "mcp", "file"]
    source: str
    message_id: str
    call_id: str
    seen_at: datetime


class RelaxedOut(Schema):
    """The weakening of the guard by the agent's class, with its reason."""

    reason: str
    trusts: list[str]
    allows: list[str]
    is_off: bool


class GuardOut(Schema):
    """The injection guard of a conversation's current history.

    `is_guarded`: calls that change or send something ask a person now. `decision`: the last one: `ask`, `until_new`
    (allowed until there is further text), `conversation` (allowed here), or empty. `count`: texts so far; `texts`: the
    newest fifty, newest first.
    """

    is_guarded: bool
    decision: Literal["", "ask", "until_new", "conversation"]
    decided_by: str
    decided_at: datetime | None
    count: int
    texts: list[GuardTextOut]
    relaxed: RelaxedOut | None


class GuardIn(Input):
    """A decision. `seen`: the `count` that was shown to the person who decides; later texts are not covered."""

    decision: Literal["ask", "until_new", "conversation"]
    seen: Annotated[int, Field(ge=0, le=2_147_483_647)]
