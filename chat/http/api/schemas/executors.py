"""Schemas of programs that run calls of tools."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from chat.http.api.schemas.common import Input, Text
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class CallsToClaim(Input):
    """The tools that the program has, and how many calls it takes at once."""

    tools: Annotated[list[ToolName], Field(min_length=1, max_length=100)]
    limit: Annotated[int, Field(ge=1, le=20)] = 1


class ExecutorCallOut(Schema):
    """A call that was claimed. `fence` goes with all that is said of it.

    `idempotency_key` is the same when the call runs again: hand it to what must happen once. `shared`: what the agent
    has added. `lease_seconds`: how long the claim lasts without a heartbeat.
    """

    job_id: str
    fence: int
    tool: str
    input: JSONObject
    call_id: str
    agent: str
    instance_name: str
    attempt: int
    idempotency_key: str
    shared: JSONObject
    output_schema: JSONObject | None
    lease_seconds: float
    created_at: datetime


class HeldCall(Input):
    """A call that was claimed, by its job and the fence of the claim."""

    job_id: Text
    fence: Annotated[int, Field(ge=0, le=2**53)]


class CallHeartbeat(HeldCall):
    """`progress`: shown to people as far as it goes, in place of what was there."""

    progress: JSONObject | None = None


class CallHeartbeatOut(Schema):
    """`is_stopping`: the call is not wanted any more; whatever is said of it, it ends as cancelled."""

    is_stopping: bool
    lease_seconds: float


class CallCompletion(HeldCall):
    """The result of a call."""

    output: JSONValue = None


class CallFailure(HeldCall):
    """Why a call failed, for the model. `may_retry`: whether trying again may help; its tool says how often."""

    message: Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00]*$")]
    may_retry: bool = False


class CallEndOut(Schema):
    """The status of a call after its end: completed, failed, cancelled; pending where it is tried again."""

    status: str
