"""Schemas of tool calls that wait for an answer from outside their turn, and of decisions about them."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StringConstraints

from chat.http.api.schemas.common import Input
from chat.http.api.schemas.from_values import shows
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.questions import Offer


class SourceOut(Schema):
    """A text of strangers. `kind`: web, mcp or file; `source`: an address, a path, a server's name; it is theirs."""

    kind: str
    source: str


@shows(Offer)
class OfferOut(Schema):
    """A rule that an approval for always adds: the tool, and its calls. `here_only`: for no other conversation."""


class OptionOut(Schema):
    """An option of a question."""

    label: str
    description: str = ""


class ChoiceOut(Schema):
    """A question with options. `multiple`: several may be chosen; `custom`: own words will do, too."""

    question: str
    header: str = ""
    options: list[OptionOut] = []
    multiple: bool = False
    custom: bool = True


class QuestionOut(Schema):
    """The question to a person about a call, in words for people.

    `tool_title`: the tool's name for people. `sentence`: the tool's own question with the arguments filled in, empty
    where it has none. `may_edit`: which arguments may be changed when approving: all of them (true), none (false), or
    those of these names. `input_schema`: the schema that changed arguments have to fit; null where none may change.
    `risk`: how much is at stake, empty where the tool does not say. `because`: the texts of strangers for which the
    injection guard asks; empty where the tool itself does. `key`: `doom_loop` where the model makes the same calls
    again and again; else empty. `offers`: the rules that `always` adds; empty where it may not be allowed for always.
    `rule`: the rule that asks, or empty. `choices`: what `answers` choose among.
    """

    tool_title: str
    sentence: str
    may_edit: bool | list[str]
    input_schema: JSONObject | None
    risk: Literal["", "low", "medium", "high"]
    because: list[SourceOut]
    key: str
    offers: list[OfferOut]
    rule: str
    choices: list[ChoiceOut]


class OpenCallOut(QuestionOut):
    """A tool call that waits for an answer. `needs`: a person's approval, or a result from a client."""

    call_id: str
    tool_name: str
    input: JSONValue
    needs: Literal["approval", "result"]
    turn_id: str
    message_id: str
    asked_at: datetime
    expires_at: datetime | None


class PendingApprovalOut(QuestionOut):
    """A call that you can decide. `title`: that of the conversation, `agent` its agent, `tool` the tool's name.

    `message_id`: the answer that the call is part of. `expires_at`: when it counts as denied; null for never.
    """

    call_id: str
    instance_id: str
    title: str
    agent: str
    message_id: str
    tool: str
    input: JSONValue
    requested_at: datetime
    expires_at: datetime | None


class PendingApprovalsOut(Schema):
    """A page of calls that you can decide, newest first. `count`: how many there are over all pages.

    `next_cursor`: give it as `cursor` for the next page; null at the end.
    """

    items: list[PendingApprovalOut]
    count: int
    next_cursor: str | None


class ApprovalIn(Input):
    """A decision. `input`: the arguments it is about. `continues`: go on by itself once nothing is open.

    `edited_input`: all arguments that the approved call runs with instead, where its tool lets people change them.
    `always`: store what the question offers, for this conversation or for all of yours; other open questions that it
    covers are settled, too. `deny_all`: refuse all open questions of the conversation. `answers`: to a question with
    choices, a list of texts for each.
    """

    approved: bool
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")] = ""
    input: JSONObject | None = None
    edited_input: JSONObject | None = None
    continues: bool = True
    always: Literal["conversation", "owner"] | None = None
    deny_all: bool = False
    answers: list[list[Annotated[str, StringConstraints(max_length=4000)]]] | None = None


class DecisionIn(Input):
    """One decision of several: as `ApprovalIn`, about the call of this id."""

    call_id: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]+$")]
    approved: bool
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")] = ""
    input: JSONObject | None = None
    edited_input: JSONObject | None = None
    answers: list[list[Annotated[str, StringConstraints(max_length=4000)]]] | None = None


class DecisionsIn(Input):
    """A decision for each open question of a conversation."""

    decisions: list[DecisionIn] = Field(min_length=1, max_length=200)
    continues: bool = True


class ResultIn(Input):
    """The result of a client's call: an output, or why there is none."""

    output: JSONValue = None
    error_text: Annotated[str, StringConstraints(max_length=10_000)] | None = None
    continues: bool = True


class AnsweredOut(Schema):
    """Whether the answer counted, and the turn that goes on from it. `not_continued`: why there is none.

    `rules`: the ids of those that it added. `settled`: other calls of the conversation that it settled.
    """

    accepted: bool
    turn_id: str | None
    not_continued: str | None
    rules: list[str] = []
    settled: list[str] = []


class ApprovalEventOut(Schema):
    """An event of a tool call. `actor_id`: null for events of the product itself.

    `edited_input`: of an approval that changed the arguments, those that the call runs with.
    """

    kind: str
    actor_id: int | str | None
    via: str
    reason: str
    edited_input: JSONObject | None
    created_at: datetime


class ActionOut(Schema):
    """An effect of an action. `status`: pending (its outcome is not known), settled, or failed (it did not happen).

    `output`: its result, of a failed one the error. `undo`: the name of what can undo it; `undo_status`: empty,
    running, done or failed.
    """

    id: int
    instance_id: str
    action: str
    key: str
    status: Literal["pending", "settled", "failed"]
    input: JSONValue
    output: JSONValue
    undo: str
    undo_status: Literal["", "running", "done", "failed"]
    turn_id: str
    call_id: str
    created_at: datetime
    settled_at: datetime | None


class ActionsOut(Schema):
    """A page of effects, newest first. `next_cursor`: give it as `cursor` for the next page; null at the end."""

    items: list[ActionOut]
    next_cursor: str | None
