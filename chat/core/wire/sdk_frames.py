"""The codec of the AI SDK's own socket (`WebSocketChatTransport`): text to client frames, server frames to text.

Each frame is an object with a `type` and a `requestId` that the client chose. Source: `docs/reference/protocol.md`,
"The AI SDK's own socket".
"""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chat.core.wire.frames import MAX_DEPTH, TOO_COMPLEX, Id, Load, Text
from chat.errors import FrameInvalid
from thinkproject.kernel.json_pieces import JSONTooComplex
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, is_nested_deeper, load


class _Frame(BaseModel):
    """Base of the client's frames: immutable, exact types."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    request_id: Id = Field(alias="requestId")


class Send(_Frame):
    """Ask for a turn. `chat_id` is the page's own word for its chat and names no conversation: the URL does.

    Shape: `messages` as a page of `useChat` posts them; `headers` in lower case, of the request and not of HTTP.
    """

    chat_id: Text = Field(alias="id")
    messages: list[JSONObject]
    trigger: Literal["submit-message", "regenerate-message"]
    message_id: Text | None = Field(default=None, alias="messageId")
    headers: dict[str, str] = Field(default_factory=dict)
    body: JSONObject = Field(default_factory=dict)

    def as_post(self) -> JSONObject:
        """The body that the SDK's HTTP transport would post."""
        return {
            **self.body,
            "id": self.chat_id,
            "messages": self.messages,
            "trigger": self.trigger,
            "messageId": self.message_id,
        }


class Resume(_Frame):
    """Ask for what is being answered. `last_sequence`: of the last chunk that the client has; nothing for all of it."""

    chat_id: Text = Field(alias="id")
    last_sequence: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = Field(default=None, alias="lastSequence")
    headers: dict[str, str] = Field(default_factory=dict)
    body: JSONObject = Field(default_factory=dict)


class Abort(_Frame):
    """Stop what an earlier request asked for."""


SdkFrame: TypeAlias = Send | Resume | Abort

_KINDS: Final[dict[JSONValue, type[SdkFrame]]] = {"send": Send, "resume": Resume, "abort": Abort}


def parse(text: str, *, decode: Load = load) -> SdkFrame:
    """Read one frame. Errors: `FrameInvalid`, with its `request_id` where the frame has one to answer to."""
    try:
        raw = decode(text)
    except JSONTooComplex as error:
        raise FrameInvalid(TOO_COMPLEX) from error
    except ValueError as error:
        raise FrameInvalid("The frame is not JSON.") from error
    if not isinstance(raw, dict):
        raise FrameInvalid("The frame must be an object with a type and a requestId.")
    kind, request_id = raw.get("type"), _request_id(raw)
    model = _KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise _invalid("The frame's type must be send, resume or abort.", request_id)
    if is_nested_deeper(raw, MAX_DEPTH):
        raise _invalid(f"The frame is nested deeper than {MAX_DEPTH} levels.", request_id)
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(step) for step in problem["loc"])
        raise _invalid(f"The frame's {where!r}: {problem['msg']}.", request_id) from None


def _request_id(raw: JSONObject) -> str:
    """The frame's id if an answer can carry it, else nothing."""
    try:
        return Abort.model_validate({"requestId": raw.get("requestId")}).request_id
    except ValidationError:
        return ""


def _invalid(message: str, request_id: str) -> FrameInvalid:
    return FrameInvalid(message, request_id=request_id) if request_id else FrameInvalid(message)


def start(request_id: str) -> str:
    """There is something to resume, and its chunks follow."""
    return dump({"type": "start", "requestId": request_id})


def chunk(request_id: str, sequence: int, text: str) -> str:
    """Wrap one chunk's JSON text, which is never decoded. `sequence`: from 0, without gaps in one answer."""
    return f'{{"type":"chunk","requestId":{dump(request_id)},"sequence":{sequence},"chunk":{text}}}'


def end(request_id: str) -> str:
    """The request has been answered."""
    return dump({"type": "end", "requestId": request_id})


def error(request_id: str, text: str) -> str:
    """The request has failed, in words for people. An id that no request has is ignored by the SDK's client."""
    return dump({"type": "error", "requestId": request_id, "errorText": text})


def no_active(request_id: str) -> str:
    """There is nothing to resume."""
    return dump({"type": "no-active", "requestId": request_id})
