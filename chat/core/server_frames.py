"""The codec's other direction: text of the server to frames, for clients in Python. `frames.py` writes what this reads.

`parse_server` gives `None` for what is no frame, is of a type nobody knows or is malformed: clients ignore all three.
Source: `docs/reference/protocol.md`.
"""

from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from thinkproject.kernel.jsonvalue import JSONObject, load


class _Frame(BaseModel):
    """What all server frames share: immutable, exact types, names as on the wire or as in Python."""

    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True, extra="ignore")


class Identity(_Frame):
    """Whom the client talks to. With `state_follows` the next frame is the state."""

    name: str
    agent: str
    state_follows: bool = Field(default=False, alias="stateFollows")


class State(_Frame):
    """The agent's state, as it is now."""

    state: Any


class StateError(_Frame):
    """The state that this client set was refused."""

    error: str


class McpServers(_Frame):
    """The MCP servers, their tools, prompts and resources."""

    mcp: JSONObject


class RpcAnswer(_Frame):
    """An answer of a call; `done` is false for one item of a streamed answer."""

    id: str
    success: bool
    done: bool = True
    result: Any = None
    error: str = ""


class Transcript(_Frame):
    """The messages; they replace what the client had. `connect`: the one of this connection."""

    messages: list[JSONObject]
    connect: bool = False


class MessageUpdated(_Frame):
    """One stored message changed."""

    message: JSONObject


class Cleared(_Frame):
    """Another client cleared the conversation."""


class Response(_Frame):
    """A chunk, the end of a replay, an error, or the end of a request."""

    id: str
    body: str
    done: bool
    error: bool = False
    replay: bool = False
    replay_complete: bool = Field(default=False, alias="replayComplete")
    continuation: bool = False
    seq: int | None = None
    message_ids: list[str] | None = Field(default=None, alias="messageIds")
    outcome: str | None = None


class Resuming(_Frame):
    """A stream may be joined."""

    id: str
    probe_id: str | None = Field(default=None, alias="probeId")


class Pending(_Frame):
    """A turn was accepted and has not begun."""

    id: str | None = None
    probe_id: str | None = Field(default=None, alias="probeId")


class ResumeNone(_Frame):
    """There is nothing to join."""

    reason: str | None = None
    probe_id: str | None = Field(default=None, alias="probeId")


class Recovering(_Frame):
    """An interrupted turn is being recovered, or no longer is."""

    recovering: bool
    id: str | None = None


ServerFrame: TypeAlias = (
    Identity
    | State
    | StateError
    | McpServers
    | RpcAnswer
    | Transcript
    | MessageUpdated
    | Cleared
    | Response
    | Resuming
    | Pending
    | ResumeNone
    | Recovering
)

_MODELS: Final[dict[str, type[ServerFrame]]] = {
    "cf_agent_identity": Identity,
    "cf_agent_state": State,
    "cf_agent_state_error": StateError,
    "cf_agent_mcp_servers": McpServers,
    "rpc": RpcAnswer,
    "cf_agent_chat_messages": Transcript,
    "cf_agent_message_updated": MessageUpdated,
    "cf_agent_chat_clear": Cleared,
    "cf_agent_use_chat_response": Response,
    "cf_agent_stream_resuming": Resuming,
    "cf_agent_stream_pending": Pending,
    "cf_agent_stream_resume_none": ResumeNone,
    "cf_agent_chat_recovering": Recovering,
}


def parse_server(text: str | bytes) -> ServerFrame | None:
    """Read one frame of the server; `None` for what a client ignores. Never raises."""
    try:
        raw = load(text)
    except ValueError:
        return None
    kind = raw.get("type") if isinstance(raw, dict) else None
    model = _MODELS.get(kind) if isinstance(kind, str) else None
    if model is None:
        return None
    try:
        return model.model_validate(raw)
    except ValidationError:
        return None
