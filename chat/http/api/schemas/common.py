"""Request and response schemas of the API, parsed at the edge; inside the product are dataclasses."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema
from pydantic import ConfigDict, StringConstraints

from chat.agent.values.turns import Submission
from chat.conversations.list import InstanceSummary
from chat.core.model.chosen_model import MAX_EFFORT, MAX_NAME, MAX_OUTPUT_TOKENS, MAX_TEMPERATURE
from chat.http.api.schemas.from_values import Amount, shows
from chat.http.api.schemas.marks import OriginOut, UndoneMarkOut
from chat.instances.config import ConfigView
from chat.reads.activity import Activity
from chat.reads.transcripts import AnswerTotals, TurnStepView, TurnView
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

Id = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00]+$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00]+$")]

Text = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
Title = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]

ModelName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00-\x1f]+$")]
Effort = Annotated[str, StringConstraints(min_length=1, max_length=MAX_EFFORT, pattern=r"^[^\x00-\x1f]+$")]


class Input(Schema):
    """A request body: an unknown field is an error, not a silent loss."""

    model_config = ConfigDict(extra="forbid")


class Problem(Schema):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    data: JSONObject


class ModelChoice(Input):
    """A conversation's choice; null leaves a value to the agent. A choice replaces the former one as a whole."""

    model: ModelName | None = None
    reasoning_effort: Effort | None = None
    temperature: Annotated[float, Field(ge=0, le=MAX_TEMPERATURE)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=MAX_OUTPUT_TOKENS)] | None = None


class InstanceIn(Input):
    """A new conversation. Without a name it gets a generated one; a name that exists opens that conversation.

    `title_is_provisional`: the title is only made of the first words; one that a model writes may take its place.
    `temporary`: it is in no list and no search, writes no memory, and is removed within a day of its last message.
    `project_id`: the project that it begins in.
    """

    agent: Name
    name: Name | None = None
    title: Title = ""
    title_is_provisional: bool = False
    model_choice: ModelChoice | None = None
    temporary: bool = False
    project_id: Id | None = None


class InstancePatch(Input):
    """Changes of a conversation. `seen`: the owner is looking at it now. `model_choice` null: the agent's own model.

    `temporary: false` keeps a temporary one. An ordinary one cannot become temporary.
    `project_id` null: in no project.
    """

    title: Title | None = None
    pinned: bool | None = None
    archived: bool | None = None
    temporary: Literal[False] | None = None
    seen: Literal[True] | None = None
    model_choice: ModelChoice | None = None
    project_id: Id | None = None


class InstancesQuery(Schema):
    """Filter of the list of conversations. `project`: an id, `any` for those in a project, `none` for the others."""

    agent: Text = ""
    search: Text = ""
    parent: Text = ""
    archived: bool = False
    pinned: bool | None = None
    project: Text = ""


class RetryOut(Schema):
    """The model refused or failed and is asked again at `retry_at`. `attempt`: the next one, of at most `attempts`."""

    code: str
    attempt: int
    attempts: int
    retry_at: datetime


@shows(InstanceSummary)
class InstanceOut(Schema):
    """A conversation in the list. `is_read_only`: its agent is gone, so it can be read and not continued.

    `is_running`: a turn runs or waits for its place. `retry`: it waits to ask the model again.
    `waiting_count`: how many calls at the end of the shown path wait for a decision or a result. `has_failed`: the last
    turn of the shown path failed, and nothing followed. `guard`: differs after every change of its
    injection guard (`get_guard`), and is empty where no text of strangers was in it. `plans`: it is in plan mode.
    `undone`: there is something to redo.
    `session_id`: its current history; `keeps_sessions`: its agent keeps several. `model_choice`: null for nothing.
    `temporary`: it is in no list and no search, writes no memory, and is removed within a day of its last message.
    `role`: yours. `is_shared`: it has members. Pins, what was seen and `project_id` are its owner's alone.
    `path`: behind `/agents/` in the address of its socket, encoded; a sub-agent's leads over its parents, of which
    `parent_id` is the one right above it.
    """

    retry: RetryOut | None
    undone: UndoneMarkOut | None
    forked_from: OriginOut | None
    model_choice: ModelChoice | None


class InstancePageOut(Schema):
    """A page of conversations. `next_cursor`: give it as `cursor` for the next page; nothing at the end."""

    items: list[InstanceOut]
    has_more: bool
    next_cursor: str | None


class WaitOut(Schema):
    """A wait of a parked turn. `until`: when it continues without an answer; null for no limit.

    `since`: when the turn parked for it; nothing of a wait that an older version stored.
    """

    kind: str
    label: str
    call_id: str
    since: datetime | None
    until: datetime | None


class UsedModelOut(Schema):
    """A model that answered a part of a turn: its calls, their tokens, in and out, and their cost."""

    name: str
    calls: int
    tokens: int
    cost: Amount


class ModelSwitchOut(Schema):
    """A switch from a model that failed to the next one. `call`: the number of the turn's model call, from 0.

    `code`: the error's, or `resting`: it had failed in another turn shortly before and was not asked.
    """

    call: int
    from_model: str
    to_model: str
    code: str


class ModelReportOut(Schema):
    """The models that answered a turn, in the order of their use, and the switches between them."""

    models: list[UsedModelOut]
    switches: list[ModelSwitchOut]


@shows(TurnView)
class TurnOut(Schema):
    """A turn: one request and its answer. Units: `duration_ms` from start to end.

    `parent_id`: the turn whose answer it goes on from, after a decision or a result. `delivery`: what its message does
    while another turn runs. `answered_by`: the turn whose answer has taken its message in; this one has ended as
    `skipped` then. `retry_of`: of an answer that was asked for again, the turn that had answered, or failed to.

    `waits`: what a running turn waits for that holds no worker meanwhile. `retry`: set while its model is to be asked
    again. `changed_file_count`: files of workspaces that it has changed, known when it has ended; `/turns/{id}/files`
    has them. `model_report`: set when it has ended and its models were switched, or several answered. `end_reason`: why
    the answer is over although its model wanted to call tools: `step_limit` (of `max_steps`) or `stop_condition`.
    """

    model_report: ModelReportOut | None
    waits: list[WaitOut]
    retry: RetryOut | None


class AdmittedTurnOut(TurnOut):
    """A turn just admitted. `accepted`: false when this request had been admitted before, or was dropped by policy."""

    accepted: bool


class TurnPageOut(Schema):
    """Turns, newest first. `next_cursor`: give it as `cursor` for the next page; nothing at the end."""

    items: list[TurnOut]
    has_more: bool
    next_cursor: str | None


@shows(TurnStepView)
class StepOut(Schema):
    """One settled step of a turn's journal."""


@shows(AnswerTotals)
class AnswerOut(Schema):
    """The sums of the turns of one answer, `turn_ids` in order, as far as they are in the page.

    Units: `duration_ms` without the time between the turns.
    """


class MessageOut(Schema):
    """A message in its place. `sibling_ids`: oldest first, with itself; `position`: its index among them.

    `version`: differs after each change of the message.

    `answer`: an answer that waited for a decision or a result is several messages, each with its own turn; the last one
    has the sums. Null for an answer of one turn.

    Units: `tool_ms` by tool call id, of calls that have ended.
    """

    id: str
    role: str
    parts: list[JSONValue]
    metadata: JSONValue = None
    parent_id: str | None
    sibling_ids: list[str]
    position: int
    created_at: datetime
    queued: bool = False
    version: int
    turn: TurnOut | None = None
    answer: AnswerOut | None = None
    tool_ms: dict[str, int] = {}


@shows(Activity)
class ActivityOut(Schema):
    """The activity of a running turn. `since`: when it began, by the server's clock.

    `kind`: it asks a `model`, runs a `tool`, waits for the time of a `retry`, or is parked (`waiting`). `name`: the
    tool's, or what it waits for; null otherwise: the model's name is in the stream.
    """

    kind: Literal["model", "tool", "retry", "waiting"]


class RunningTurnOut(TurnOut):
    """The turn that runs or waits first. Its answer is in its stream, from the beginning.

    `activity`: null before it has begun.
    """

    turn_id: str
    activity: ActivityOut | None


class TranscriptOut(Schema):
    """A page of a path, root first, and the queued messages. `has_newer`: the path continues below the page.

    `compacting`: whether a summary of older messages is `waiting` for its place or `running`.

    `leaf_id` ends the path that the page is of, `shown_leaf_id` the one that the conversation shows.

    `version` counts the changes of the history that the page is of: of two pages the one with less is older.
    """

    session_id: str | None
    version: int
    items: list[MessageOut]
    queued: list[MessageOut]
    has_more: bool
    has_newer: bool
    leaf_id: str | None
    shown_leaf_id: str | None
    running: RunningTurnOut | None
    failed: TurnOut | None
    compacting: Literal["", "waiting", "running"]


class LeafIn(Input):
    """The sibling to select."""

    message_id: Id


class LeafOut(Schema):
    """The end of the path that is shown now."""

    leaf_id: str


class MessageIn(Input):
    """A user message. File parts refer to uploaded files by their URL."""

    id: Id | None = None
    parts: list[JSONObject] = Field(min_length=1, max_length=200)
    metadata: JSONObject | None = None


class AddedMessageIn(MessageIn):
    """A message that is stored and not answered. An assistant's holds texts only."""

    role: Literal["user", "assistant"] = "user"


class MessagesIn(Input):
    """Messages to store in one chain: below `parent_id` (null: a new beginning) or, without one, at the end."""

    messages: list[AddedMessageIn] = Field(min_length=1, max_length=100)
    parent_id: Id | None = None


class MessagesOut(Schema):
    """The ids of stored messages, in order."""

    ids: list[str]


class SubmissionIn(Input):
    """Messages to be answered together, in their turn. `metadata` is the caller's own and comes back unchanged."""

    messages: list[MessageIn] = Field(min_length=1, max_length=100)
    metadata: JSONObject = {}


@shows(Submission)
class SubmissionOut(Schema):
    """Messages that were handed in. `accepted`: false when this key had been handed in before."""


class TurnIn(Input):
    """A request for a turn.

    `submit-message`: a new `message`, below `parent_id` (null: a new beginning) or, without one, at the end.
    `edit-message`: a new `message` beside the user message `message_id`.
    `regenerate-message`: another answer, beside the answer `message_id` or below the user message.
    `continue`: go on from the end of the shown path, for instance from an answer that was edited.

    `delivery`: what a new message does while another turn runs: `queue` waits for its turn, `steer` is taken in by the
    answer between two of its steps, `interrupt` stops that answer and is the next. Without it the class decides.
    `resume: false` stores the message and starts nothing: the next turn reads it before its own.
    """

    trigger: Literal["submit-message", "regenerate-message", "edit-message", "continue"] = "submit-message"
    message: MessageIn | None = None
    parent_id: Id | None = None
    message_id: Id | None = None
    request_id: Id | None = None
    body: JSONObject = {}
    delivery: Literal["queue", "steer", "interrupt"] | None = None
    resume: bool = True


class CancelOut(Schema):
    """Whether there was something to cancel."""

    cancelled: bool


class ResumedOut(Schema):
    """Whether there was something to resume."""

    resumed: bool


class ConfigIn(Input):
    """A complete configuration. `version`: of the one it replaces, so that concurrent changes are not lost."""

    config: JSONValue
    version: int | None = None


@shows(ConfigView)
class ConfigOut(Schema):
    """A configuration.

    `version` 0: it was never set. `config_schema`: the schema that it has to fit, where its class has one.
    """


class FileLimitsOut(Schema):
    """The largest file that can be attached, in bytes, and the media types that may be."""

    max_bytes: int
    types: list[str]


class SentFileOut(Schema):
    """A file in a message of a conversation. `role`: of the newest message that has it, which `message_id` names."""

    id: str
    url: str
    name: str
    media_type: str
    byte_size: int
    message_id: str
    role: str


class FileOut(Schema):
    """An uploaded file. A message refers to it: `{type: "file", url, mediaType, filename}`.

    `note`: a sentence about what models cannot read of it, and what to do; empty where they can.
    """

    id: str
    url: str
    name: str
    media_type: str
    byte_size: int
    sha256: str
    created_at: datetime
    note: str
