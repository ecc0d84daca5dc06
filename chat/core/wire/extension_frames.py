"""Frames of extensions: MCP servers, agents used as tools, session events, and the product's own.

One shape serves both directions: the server makes and encodes it, clients in Python get it from `parse_server`. A shape
that is wrong cannot be made (`pydantic.ValidationError`). Objects of MCP keep the fields that we do not know; elsewhere
they are left out. Source: `docs/reference/protocol.md`.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from thinkproject.kernel.jsonvalue import JSONObject, dump


class WireShape(BaseModel):
    """Base of all server frames: immutable, exact types, names as on the wire or as in Python."""

    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True, extra="ignore")


# MCP servers

McpConnection: TypeAlias = Literal[
    "authenticating", "connecting", "connected", "discovering", "ready", "failed", "not-connected"
]


class McpServer(WireShape):
    """One server. `auth_url`: where a person signs in. `error` may be a stranger's text: escape it."""

    name: str
    server_url: str
    auth_url: str | None = None
    state: McpConnection
    error: str | None = None
    instructions: str | None = None
    capabilities: JSONObject | None = None


class _McpObject(WireShape):
    """An object of the MCP protocol, all its fields kept, and the id of its server."""

    model_config = ConfigDict(extra="allow")

    name: str
    server_id: str = Field(alias="serverId")


class McpTool(_McpObject):
    """A tool; `inputSchema` is a JSON Schema."""

    input_schema: JSONObject = Field(alias="inputSchema")


class McpPrompt(_McpObject):
    """A prompt."""


class McpResource(_McpObject):
    """A resource."""

    uri: str


class McpState(WireShape):
    """All servers of an agent by id, with their tools."""

    servers: dict[str, McpServer] = Field(default_factory=dict)
    tools: list[McpTool] = Field(default_factory=list)
    prompts: list[McpPrompt] = Field(default_factory=list)
    resources: list[McpResource] = Field(default_factory=list)


class McpServers(WireShape):
    """The MCP servers, their tools, prompts and resources: on connect, also when empty, and on every change."""

    mcp: McpState


def mcp_servers(mcp: McpState | None = None) -> str:
    """Send the MCP servers; without any, the empty lists clients expect."""
    value = McpServers(mcp=mcp or McpState())
    return dump({"type": "cf_agent_mcp_servers", **value.model_dump(by_alias=True)})


# Runs of agents that are used as tools


class _RunEvent(WireShape):
    run_id: str = Field(alias="runId")


class RunStarted(_RunEvent):
    """A run began. `order` is its place among the runs that are shown; `input_preview` any JSON."""

    kind: Literal["started"] = "started"
    agent_type: str = Field(alias="agentType")
    order: int
    input_preview: Any = Field(default=None, alias="inputPreview")
    display: JSONObject | None = None


class RunChunk(_RunEvent):
    """A chunk of the run's answer, as JSON text. `unstored_id` when it has no place in the run's log."""

    kind: Literal["chunk"] = "chunk"
    body: str
    unstored_id: str | None = Field(default=None, alias="unstoredId")


class RunFinished(_RunEvent):
    """The run ended well."""

    kind: Literal["finished"] = "finished"
    summary: str


class RunFailed(_RunEvent):
    """The run ended with an error."""

    kind: Literal["error"] = "error"
    error: str


class RunAborted(_RunEvent):
    """The run was stopped."""

    kind: Literal["aborted"] = "aborted"
    reason: str | None = None


class RunInterrupted(_RunEvent):
    """The parent waits no longer for the run, which may still go on."""

    kind: Literal["interrupted"] = "interrupted"
    error: str
    reason: (
        Literal[
            "no-progress",
            "window-exceeded",
            "not-tailable",
            "inspect-timeout",
            "inspect-failed",
            "recovery-deadline",
            "budget-exceeded",
        ]
        | None
    ) = None
    child_still_running: bool | None = Field(default=None, alias="childStillRunning")


RunEvent: TypeAlias = RunStarted | RunChunk | RunFinished | RunFailed | RunAborted | RunInterrupted


class AgentToolEvent(WireShape):
    """A progress event of a sub-agent's run, for clients of the parent.

    `sequence`: 0 for `started`, stored chunk i is i + 1, the end comes after the last. `replay`: sent on connect.
    """

    parent_tool_call_id: str | None = Field(default=None, alias="parentToolCallId")
    sequence: Annotated[int, Field(ge=0)]
    replay: bool = False
    event: Annotated[RunEvent, Field(discriminator="kind")]


def agent_tool_event(
    event: RunEvent, *, sequence: int, parent_tool_call_id: str | None = None, replay: bool = False
) -> str:
    """Send an event of a child's run to the clients of its parent."""
    frame = AgentToolEvent(
        parent_tool_call_id=parent_tool_call_id, sequence=sequence, replay=replay, event=event
    ).model_dump(by_alias=True, exclude_none=True)
    if not replay:
        del frame["replay"]
    return dump({"type": "agent-tool-event", **frame})


# The list of conversations


class ConversationLine(WireShape):
    """A conversation in the list: its title, and what stands beside it. As `title`, `is_running`, … of the API."""

    id: str
    title: str
    is_running: bool = Field(alias="isRunning")
    waiting_count: int = Field(alias="waitingCount")
    has_failed: bool = Field(alias="hasFailed")
    guard: str = ""  # differs after every change of its injection guard
    plans: bool = False  # it is in plan mode
    retry_at: str | None = Field(default=None, alias="retryAt")  # when its model is asked again
    project_id: str | None = Field(default=None, alias="projectId")  # the owner's alone


def conversation_changed(line: ConversationLine) -> str:
    """Send the line of one of the user's conversations. Only for clients that asked for it in their address."""
    return dump({"type": "think_conversation", **line.model_dump(by_alias=True)})


def projects_changed() -> str:
    """Notify that a project of the user's was made, changed or removed. The API has them. For clients of the list."""
    return dump({"type": "think_projects"})


# The model of a conversation


class ModelChosen(WireShape):
    """The conversation's choice and the model that answers next, after a change and on connect.

    `model_choice` `None`: the agent's own. `model`: `None` where it is not known. `model_notice`: what of the choice
    does not count, and why. Only for clients that asked for the product's own frames.
    """

    instance_id: str | None = Field(alias="instanceId")
    model_choice: JSONObject | None
    model: str | None
    model_notice: str = ""


def model_chosen(value: ModelChosen) -> str:
    """Send the choice of a model."""
    return dump({"type": "think_model_choice", **value.model_dump(by_alias=True)})


# People


def people_changed() -> str:
    """Notify that a member was added, has another role, or is none any more. The API has who is there."""
    return dump({"type": "think_people"})


def person_here(author: str, *, is_typing: bool) -> str:
    """Notify that a person has the conversation open. `author`: as messages name this person, empty for the owner."""
    return dump({"type": "think_presence", "author": author, "typing": is_typing})


# The session


class Compacted(WireShape):
    """The effect of a compaction; fields may be added."""

    model_config = ConfigDict(extra="allow")

    tokens_before: int = Field(alias="tokensBefore")


class SessionPhase(WireShape):
    """The session's usage of its context, and whether it is being compacted. Published clients ignore it.

    `warning`: 25, 50 or 75 where a turn has just passed this percent of the threshold.
    """

    phase: Literal["idle", "compacting"]
    token_estimate: int = Field(alias="tokenEstimate")
    token_threshold: int | None = Field(default=None, alias="tokenThreshold")
    warning: int | None = None
    compacted: Compacted | None = None


class SessionError(WireShape):
    """A compaction failed. Published clients ignore it."""

    error: str


def session_phase(value: SessionPhase) -> str:
    """Send the size of the session's context. A threshold that is not set is `null`."""
    frame = value.model_dump(by_alias=True)
    for optional in ("warning", "compacted"):
        if frame[optional] is None:
            del frame[optional]
    return dump({"type": "cf_agent_session", **frame})


def session_error(text: str) -> str:
    """Send the failure of a compaction."""
    return dump({"type": "cf_agent_session_error", "error": text})
