"""The codec's other direction: text of the server to frames, for clients in Python.

`frames.py` and `extension_frames.py` write what this reads.

`parse_server` returns `None` for text that is no frame, malformed or of an unknown type: clients ignore all three.
Source: `docs/reference/protocol.md`.
"""

from typing import Any, Final, TypeAlias

from pydantic import Field, ValidationError

from chat.core.wire.extension_frames import (
    AgentToolEvent,
    McpServers,
    ModelChosen,
    SessionError,
    SessionPhase,
    WireShape,
)
from thinkproject.kernel.jsonvalue import JSONObject, load


class Identity(WireShape):
    """The identity of the agent. With `state_follows` the next frame is the state."""

    name: str
    agent: str
    state_follows: bool = Field(default=False, alias="stateFollows")


class State(WireShape):
    """The agent's state, as it is now."""

    state: Any


class StateError(WireShape):
    """The state that this client set was refused."""

    error: str


class RpcAnswer(WireShape):
    """An answer of a call; `done` is false for one item of a streamed answer."""

    id: str
    success: bool
    done: bool = True
    result: Any = None
    error: str = ""


class Transcript(WireShape):
    """The messages, replacing the client's. `connect`: the first transcript of this connection.

    `version`: the number of the last change of the session that is in it for certain; sent to the product's pages.
    """

    messages: list[JSONObject]
    connect: bool = False
    session_id: str | None = Field(default=None, alias="sessionId")
    version: int | None = None


class MessageUpdated(WireShape):
    """One stored message changed."""

    message: JSONObject


class Cleared(WireShape):
    """Another client cleared the conversation."""


class Response(WireShape):
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
    refused: bool = False


class Resuming(WireShape):
    """A stream may be joined."""

    id: str
    probe_id: str | None = Field(default=None, alias="probeId")


class Pending(WireShape):
    """A turn was accepted and has not begun."""

    id: str | None = None
    probe_id: str | None = Field(default=None, alias="probeId")


class ResumeNone(WireShape):
    """There is nothing to join."""

    reason: str | None = None
    probe_id: str | None = Field(default=None, alias="probeId")


class Recovering(WireShape):
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
    | AgentToolEvent
    | SessionPhase
    | SessionError
    | ModelChosen
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
    "agent-tool-event": AgentToolEvent,
    "cf_agent_session": SessionPhase,
    "cf_agent_session_error": SessionError,
    "think_model_choice": ModelChosen,
}


def parse_server(text: str | bytes) -> ServerFrame | None:
    """Decode one server frame; `None` for a frame that clients ignore. Never raises."""
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
