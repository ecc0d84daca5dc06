"""The codec of the socket: text to client frames, server frames to text. The only one in Python.

`parse` is the border: what comes out is checked, what is wrong raises `FrameInvalid`, what is not ours is `Foreign`,
for the agent's `on_message`. Other wire names: `extension_frames`, `chunks`. Source: `docs/reference/protocol.md`.
"""

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from chat.errors import FrameInvalid
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.json_pieces import JSONTooComplex
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, is_nested_deeper, load

MAX_DEPTH: Final = 100  # nesting of JSON that a client may send
MAX_ID_CHARS: Final = 128
TOO_COMPLEX: Final = "The request holds too many values."


def _check_id(value: str) -> str:
    if not 1 <= len(value) <= MAX_ID_CHARS or not value.isprintable():
        raise ValueError(f"an id has 1 to {MAX_ID_CHARS} printable characters")
    return value


def _mend_surrogates(value: JSONValue) -> JSONValue:
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value


Id = Annotated[str, AfterValidator(_check_id)]
Text = Annotated[str, BeforeValidator(_mend_surrogates)]


class _Frame(BaseModel):
    """Base of all client frames: immutable, exact types, names as on the wire or as in Python."""

    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True, extra="ignore")


F = TypeVar("F", bound=_Frame)


class ClientTool(_Frame):
    """A tool that the browser runs; `parameters` is a JSON Schema."""

    name: Annotated[Text, Field(min_length=1, max_length=MAX_ID_CHARS)]
    description: Text = ""
    parameters: JSONObject = Field(default_factory=dict)


class ChatRequest(_Frame):
    """A submit, an edit or a regeneration.

    Shape: `messages` is the client's whole visible list, each with an id, a role and parts; it proves nothing but what
    the user wants. `body` holds the custom fields. `client_tools`, and `delivery`, ours alone, may be absent (`None`).
    """

    id: Id
    messages: list[JSONObject]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    body: JSONObject = Field(default_factory=dict)
    client_tools: tuple[ClientTool, ...] | None = None
    delivery: Literal["queue", "steer", "interrupt"] | None = None


class Cancel(_Frame):
    """Stop the request."""

    id: Id


class Clear(_Frame):
    """Delete the conversation's messages."""


class PushMessages(_Frame):
    """The client's list, which the server does not believe: ignored."""


class ResumeRequest(_Frame):
    """Ask whether there is a stream to join."""

    probe_id: Id | None = Field(default=None, alias="probeId")


class ResumeAck(_Frame):
    """Ask for the replay of a request."""

    id: Id


class ToolResult(_Frame):
    """The browser's result of a call."""

    tool_call_id: Id = Field(alias="toolCallId")
    tool_name: Text = Field(default="", alias="toolName")
    output: Any = None
    state: Literal["output-available", "output-error"] | None = None
    error_text: Text | None = Field(default=None, alias="errorText")
    auto_continue: bool = Field(default=False, alias="autoContinue")
    client_tools: tuple[ClientTool, ...] | None = Field(default=None, alias="clientTools")


class ToolApproval(_Frame):
    """A person's decision about a call. Ours alone: `edited_input`, `reason`, `always`, `deny_all`, `answers`."""

    tool_call_id: Id = Field(alias="toolCallId")
    approved: bool
    reason: Annotated[Text, Field(max_length=1_000)] = ""
    edited_input: JSONObject | None = Field(default=None, alias="editedInput")
    always: Literal["conversation", "owner"] | None = None
    deny_all: bool = Field(default=False, alias="denyAll")
    answers: list[list[Text]] | None = None
    auto_continue: bool = Field(default=False, alias="autoContinue")


class StateUpdate(_Frame):
    """The client sets the agent's state."""

    state: Any


class Rpc(_Frame):
    """Call a method of the agent."""

    id: Text
    method: Text
    args: list[Any]


class ChooseModel(_Frame):
    """Choose the model of the conversation; `None` goes back to the agent's own. The shape is checked where it is set.

    `id` names the error frame of a choice that is refused.
    """

    id: Id
    model_choice: Any = None


class Ping(_Frame):
    """Ask whether the line still carries anything. `typing`: this person is here, which the others are to learn."""

    typing: bool | None = None


class Foreign(_Frame):
    """Not a frame of the protocol: for the agent's `on_message`."""

    text: str


ClientFrame: TypeAlias = (
    ChatRequest
    | Cancel
    | Clear
    | PushMessages
    | ResumeRequest
    | ResumeAck
    | ToolResult
    | ToolApproval
    | StateUpdate
    | ChooseModel
    | Ping
    | Rpc
)

_CHAT_REQUEST: Final = "cf_agent_use_chat_request"
_RPC: Final = "rpc"
_PLAIN: Final[dict[str, type[ClientFrame]]] = {
    "cf_agent_chat_request_cancel": Cancel,
    "cf_agent_chat_clear": Clear,
    "cf_agent_chat_messages": PushMessages,
    "cf_agent_stream_resume_request": ResumeRequest,
    "cf_agent_stream_resume_ack": ResumeAck,
    "cf_agent_tool_result": ToolResult,
    "cf_agent_tool_approval": ToolApproval,
    "cf_agent_state": StateUpdate,
    "think_model_choice": ChooseModel,
    "think_ping": Ping,
}
_ROLES: Final = ("user", "assistant", "system")  # a tuple: clients send values that do not hash

Load: TypeAlias = Callable[[str], JSONValue]
"""Decodes JSON text. Errors: `ValueError`; `JSONTooComplex` for what it refuses to decode."""


def parse(text: str | bytes, *, decode: Load = load) -> ClientFrame | Foreign:
    """Read one frame of a client.

    Errors: `FrameInvalid` for a known type with wrong content; its `request_id` is set when the frame opened a request,
    which must then end with an error frame.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        raw = decode(text)
    except JSONTooComplex as error:
        raise FrameInvalid(TOO_COMPLEX) from error
    except ValueError:
        return Foreign(text=text)
    kind = raw.get("type") if isinstance(raw, dict) else None
    if kind == _RPC:
        return _parse_rpc(raw, text)
    if kind == _CHAT_REQUEST:
        return _parse_request(raw, decode)
    model = _PLAIN.get(kind) if isinstance(kind, str) else None
    if model is None:
        return Foreign(text=text)
    return _check(model, raw, request_id=_known_id(raw) if model is ChooseModel else None)


def _parse_rpc(raw: JSONObject, text: str) -> Rpc | Foreign:
    try:
        return Rpc.model_validate(_shallow(raw, None))
    except (ValidationError, FrameInvalid):
        return Foreign(text=text)


def _parse_request(raw: JSONObject, decode: Load) -> ChatRequest:
    request_id, known_id = raw.get("id"), _known_id(raw)
    init = raw.get("init")
    if not isinstance(init, dict) or init.get("method") != "POST":
        raise _invalid("The request's method must be POST.", known_id)
    return _request_of(_parse_body(init.get("body"), known_id, decode), request_id, known_id)


def _known_id(raw: JSONObject) -> str | None:
    try:
        return _check_id(raw["id"]) if isinstance(raw.get("id"), str) else None
    except ValueError:
        return None


def parse_request_body(body: str | JSONObject, request_id: str) -> ChatRequest:
    """Parse the body of an HTTP post, or one that is decoded. Errors: `FrameInvalid`."""
    return _request_of(_parse_body(body, request_id) if isinstance(body, str) else body, request_id, request_id)


def _request_of(body: JSONObject, request_id: JSONValue, known_id: str | None) -> ChatRequest:
    trigger = body.pop("trigger", None)
    values: JSONObject = {"id": request_id, "messages": _messages_in(body, trigger, known_id)}
    if trigger == "regenerate-message":
        values["trigger"] = trigger
    values["client_tools"] = _client_tools(body.pop("clientTools", None))
    values |= {"delivery": body.pop("thinkDelivery", None), "body": body}
    request = _check(ChatRequest, values, request_id=known_id)
    for message in request.messages:
        _check_message(message, known_id)
    return request


def _messages_in(body: JSONObject, trigger: JSONValue, request_id: str | None) -> JSONValue:
    """The client's list. Pages that follow the SDK's guides send the last message alone, or none for a new answer."""
    messages = body.pop("messages", None)
    if messages is not None:
        return messages
    message = body.pop("message", None)
    if message is None:
        return [] if trigger == "regenerate-message" else None
    if not isinstance(message, dict):
        raise _invalid("The request's 'message' must be an object, or its 'messages' a list.", request_id)
    return [message]


def _parse_body(body: JSONValue, request_id: str | None, decode: Load = load) -> JSONObject:
    if not isinstance(body, str):
        raise _invalid("The request has no body.", request_id)
    try:
        value = decode(body)
    except JSONTooComplex as error:
        raise _invalid(TOO_COMPLEX, request_id) from error
    except ValueError as error:
        raise _invalid("The request's body is not JSON.", request_id) from error
    if not isinstance(value, dict):
        raise _invalid("The request's body must be an object.", request_id)
    return _shallow(value, request_id)


def _check_message(message: JSONObject, request_id: str | None) -> None:
    message_id, parts = message.get("id"), message.get("parts")
    if not isinstance(message_id, str) or not 1 <= len(message_id) <= MAX_ID_CHARS or not message_id.isprintable():
        raise _invalid("Each message needs an id.", request_id)
    if message.get("role") not in _ROLES:
        raise _invalid("Each message needs a role: user, assistant or system.", request_id)
    if not isinstance(parts, list) or not all(isinstance(p, dict) and isinstance(p.get("type"), str) for p in parts):
        raise _invalid("Each message needs a list of parts with a type.", request_id)
    if not isinstance(message.get("metadata", {}), dict | None):
        raise _invalid("A message's metadata must be an object.", request_id)


def _client_tools(tools: JSONValue) -> JSONValue:
    """Drop all but the last of tools with the same name; anything but a list is left to the validator."""
    if not isinstance(tools, list):
        return tools
    named = {tool["name"]: tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)}
    return tuple(named.values()) if all(isinstance(t, dict) and t.get("name") in named for t in tools) else tools


def _check(model: type[F], raw: JSONObject, *, request_id: str | None) -> F:
    if model is ToolResult:
        raw = {**raw, "clientTools": _client_tools(raw.get("clientTools"))}
    try:
        return model.model_validate(_shallow(raw, request_id))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(step) for step in problem["loc"])
        what = "request" if model is ChatRequest else "frame"
        raise _invalid(f"The {what}'s {where!r}: {problem['msg']}.", request_id) from None


def _invalid(message: str, request_id: str | None) -> FrameInvalid:
    return FrameInvalid(message, request_id=request_id) if request_id else FrameInvalid(message)


def _shallow(value: JSONObject, request_id: str | None) -> JSONObject:
    if is_nested_deeper(value, MAX_DEPTH):
        raise _invalid(f"The frame is nested deeper than {MAX_DEPTH} levels.", request_id)
    return value


# Encoders: server frames, and client frames for our own clients


def encode(frame: ClientFrame) -> str:
    """Encode a client frame, for the Python client and tests; the inverse of `parse`."""
    if isinstance(frame, ChatRequest):
        tools = None if frame.client_tools is None else [tool.model_dump() for tool in frame.client_tools]
        body = {"messages": frame.messages, "trigger": frame.trigger, **frame.body}
        body |= _present({"clientTools": tools, "thinkDelivery": frame.delivery})
        return dump({"type": _CHAT_REQUEST, "id": frame.id, "init": {"method": "POST", "body": dump(body)}})
    kind = _RPC if isinstance(frame, Rpc) else next(name for name, model in _PLAIN.items() if type(frame) is model)
    values = frame.model_dump(by_alias=True, exclude_defaults=isinstance(frame, ToolApproval))
    if not isinstance(frame, StateUpdate | ChooseModel):
        values = {key: value for key, value in values.items() if value is not None}
    return dump({"type": kind, **values})


def identity(name: str, agent: str, *, state_follows: bool = False) -> str:
    """Send the identity of the instance. With `state_follows` a `state` frame must come next."""
    return _frame("cf_agent_identity", name=name, agent=agent, stateFollows=state_follows)


def state(value: JSONValue) -> str:
    """Send the agent's state."""
    return dump({"type": "cf_agent_state", "state": value})


def state_error(text: str) -> str:
    """Refuse a state update of the client."""
    return _frame("cf_agent_state_error", error=text)


PONG: Final = dump({"type": "think_pong"})
"""The answer to `Ping`."""


def rpc_ok(call_id: str, *result: JSONValue, done: bool = True) -> str:
    """Answer a call. Without a result the key is absent; `done=False` is one item of a streamed answer.

    Errors: `TypeError` or `ValueError` when JSON cannot carry the result.
    """
    frame = {"type": _RPC, "id": call_id, "success": True, "done": done}
    return dump({**frame, "result": result[0]} if result else frame)


def rpc_error(call_id: str, text: str) -> str:
    """Fail a call."""
    return dump({"type": _RPC, "id": call_id, "success": False, "error": text})


def messages(items: Sequence[Message], *, connect: bool = False, version: tuple[str, int] | None = None) -> str:
    """Send the transcript; the client replaces its list by it. `version`: its session and the number of a change."""
    return messages_of(dump(list(items)), connect=connect, version=version)


def messages_of(text: str, *, connect: bool = False, version: tuple[str, int] | None = None) -> str:
    """Send a transcript whose list is encoded already."""
    session_id, number = version or (None, None)
    rest = dump(_present({"connect": connect, "sessionId": session_id, "version": number}))[1:]
    return f'{{"type":"cf_agent_chat_messages","messages":{text}{"," if len(rest) > 1 else ""}{rest}'


def message_updated(message: Message) -> str:
    """Send one changed message; the client finds it by id or by a shared tool call."""
    return _frame("cf_agent_message_updated", message=message)


def clear() -> str:
    """Notify the other clients that the conversation was cleared."""
    return _frame("cf_agent_chat_clear")


def resuming(request_id: str, probe_id: str | None = None) -> str:
    """Offer a stream; the client acknowledges and gets the replay."""
    return _frame("cf_agent_stream_resuming", id=request_id, probeId=probe_id)


def resume_none(*, reason: str | None = None, probe_id: str | None = None) -> str:
    """There is nothing to resume."""
    return _frame("cf_agent_stream_resume_none", reason=reason, probeId=probe_id)


def pending(request_id: str | None = None, probe_id: str | None = None) -> str:
    """Ask to wait: a turn was accepted and has not begun to stream."""
    return _frame("cf_agent_stream_pending", id=request_id, probeId=probe_id)


def recovering(is_recovering: bool, request_id: str | None = None) -> str:
    """A turn's recovery began, or ended."""
    frame = {"type": "cf_agent_chat_recovering", "recovering": is_recovering}
    return dump({**frame, "id": request_id} if request_id else frame)


_RESPONSE: Final = "cf_agent_use_chat_response"


def chunk_frame(
    request_id: str, body: str, seq: int | None, *, replay: bool = False, continuation: bool = False
) -> str:
    """Wrap one chunk's JSON text. The hot path: the text is only quoted, never decoded.

    Shape: `seq` is the chunk's offset in the stream, `None` for a chunk that was not stored.
    """
    flags = ""
    if seq is not None:
        flags = f',"seq":{seq}'
    if replay:
        flags += ',"replay":true'
    if continuation:
        flags += ',"continuation":true'
    return f'{{"type":"{_RESPONSE}","id":{_quote(request_id)},"body":{_quote(body)},"done":false{flags}}}'


def _quote(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return encode_basestring_ascii(text)
    return encode_basestring(text)


def done(
    request_id: str,
    outcome: str | None = "completed",
    *,
    message_ids: Sequence[str] | None = None,
    body: str = "",
    replay: bool = False,
    continuation: bool = False,
) -> str:
    """End a request; exactly one such frame (or a terminal `error`) ends each."""
    return _response(
        request_id,
        body=body,
        done=True,
        outcome=outcome,
        messageIds=message_ids,
        replay=replay,
        continuation=continuation,
    )


def error(
    request_id: str,
    text: str,
    *,
    done: bool = True,
    message_ids: Sequence[str] | None = None,
    continuation: bool = False,
) -> str:
    """Report a failure in words for people. With `done` it also ends the request, else a `done` frame must follow."""
    return _response(request_id, body=text, done=done, error=True, messageIds=message_ids, continuation=continuation)


def refusal(request_id: str, text: str, *, message_ids: Sequence[str] | None = None) -> str:
    """End a request that was not accepted, in words for people: nothing of it is stored."""
    return _response(request_id, body=text, done=True, error=True, refused=True, messageIds=message_ids)


def replay_complete(request_id: str, *, continuation: bool = False) -> str:
    """End the replay of a stream that is still live."""
    return _response(request_id, body="", done=False, replay=True, replayComplete=True, continuation=continuation)


def _response(request_id: str, *, body: str, done: bool, **optional: JSONValue) -> str:
    return dump({"type": _RESPONSE, "id": request_id, "body": body, "done": done, **_present(optional)})


def _frame(kind: str, **values: JSONValue) -> str:
    return dump({"type": kind, **_present(values)})


def _present(values: JSONObject) -> JSONObject:
    """Leave out the optional fields that are absent (`None`) or off (`False`)."""
    return {key: value for key, value in values.items() if value is not None and value is not False}
