"""Schemas of what agents have besides their conversation: state, methods, code that ran, skills, workspaces."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema

from chat.conversations.abilities import SkillView
from chat.conversations.offers import OfferedTool
from chat.http.api.schemas.common import Id, Input, Name
from chat.http.api.schemas.from_values import shows
from chat.http.api.schemas.models import AgentOut
from chat.reads.declarations import Declarations, Method
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


class StateOut(Schema):
    """The synced state of an agent. `version` 0: it was never set, and `state` is what the agent begins with."""

    state: JSONValue
    version: int


class StateIn(Input):
    """A new state, as a whole. With `version` it is stored only over that one."""

    state: JSONValue
    version: Annotated[int, Field(ge=0)] | None = None


class MethodIn(Input):
    """A call of a method. `args`: by position."""

    args: Annotated[list[JSONValue], Field(max_length=100)] = []


class MethodOut(Schema):
    """The result of a method. `items`: what a streaming one gave before its result, null for any other."""

    result: JSONValue
    items: list[JSONValue] | None


@shows(Method)
class MethodInfoOut(Schema):
    """A method that clients may call. `signature`: its parameters as its class declares them."""


@shows(Declarations)
class AgentDetailOut(AgentOut):
    """The declarations of an agent class.

    `chats`: it holds conversations. `sub_agents`: those that clients may open below it. `config_access`: what
    clients may do with its configuration, which fits `config_schema`. `tool_names`: which of all its tools it has, by
    name and pattern; null for all.
    """

    methods: list[MethodInfoOut]
    config_access: Literal["private", "read", "write"]


@shows(OfferedTool)
class OfferedToolOut(Schema):
    """A tool of an agent class. `title`: for people, empty where it has none. `asks`: its calls may ask a person."""


class OffersOut(Schema):
    """The tools that an agent's class gives it, and sentences about its reach, in the language of the caller."""

    tools: list[OfferedToolOut]
    reach: list[str]


class SubAgentIn(Input):
    """A sub-agent to open below a conversation. The same agent and name is the same sub-agent."""

    agent: Name
    name: Name


class RunIn(Input):
    """Work for another agent. `input`: a text, or JSON. `run_id`: your own; the same one is the same run."""

    agent: Name
    input: JSONValue
    run_id: Id | None = None
    display: JSONObject | None = None


@shows(SkillView)
class SkillOut(Schema):
    """A skill that the agent can read. `fault`: why it cannot."""


class ExecutionOut(Schema):
    """Code that a model wrote and that ran. `call_id`: the tool call with the code.

    `outcome`: how it ended (`ok`, `error`, `timeout`, …), empty until then. `value`: what it returned.
    """

    id: int
    turn_id: str
    call_id: str
    code: str
    status: Literal["running", "waiting", "succeeded", "failed"]
    outcome: str
    value: JSONValue
    error: str
    console: list[JSONValue]
    duration_ms: int
    created_at: datetime
    ended_at: datetime | None


class ExecutionCallOut(Schema):
    """A call of a tool that code made. `was_asked`: a person had to decide."""

    ordinal: int
    name: str
    input: JSONValue
    status: Literal["begun", "asked", "running", "waiting", "succeeded", "failed"]
    was_asked: bool
    output: JSONValue
    duration_ms: int


class ExecutionDetailOut(ExecutionOut):
    """An execution with its calls, in the order of the code."""

    calls: list[ExecutionCallOut]


class ExecutionPageOut(Schema):
    """A page of executions, newest first. `next_cursor`: for the next page, null at the end."""

    items: list[ExecutionOut]
    next_cursor: str | None


class WorkspaceUseOut(Schema):
    """A workspace that a conversation may use. `name`: under which its agent opens it."""

    name: str
    workspace_id: str
    can_write: bool
    is_own: bool


class WorkspaceUseIn(Input):
    """The workspace to attach: that of another conversation of yours, or one by its id."""

    instance_id: Id | None = None
    workspace_id: Id | None = None
    can_write: bool = False
