"""The shapes of messages and their parts, as they are stored and as clients know them (UI messages of the AI SDK)."""

from typing import Final, Required, TypedDict, TypeVar

from typing_extensions import ReadOnly

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

OURS: Final = "think"
"""The key of this product in a part's `providerMetadata`; what is below it is never sent to a provider."""

AUTHOR: Final = "thinkAuthor"
"""The key in a message's metadata of who wrote it, where that is not the owner of the session. Read, never stored."""

CALLED_BY: Final = "calledBy"
"""Below `OURS` in a call's metadata: the tool through which the model made the call (`tools_app.core.deferral`)."""


WRITTEN_BY: Final = "writtenBy"
"""Metadata of an answer that a person wrote or changed in the model's place: `owner` or `staff`."""


class Approval(TypedDict, total=False):
    """The approval of a tool call: a request, and the decision once there is one."""

    id: Required[str]
    approved: bool
    reason: str
    requestReason: str
    descriptor: JSONObject
    inputSchemaInput: JSONValue
    signature: str
    isAutomatic: bool
    edited: bool  # ours: the person changed the arguments; the part's input has the changed ones
    originalInput: JSONValue  # ours: the arguments as the model wrote them, where they were changed


class Part(TypedDict, total=False):
    """A part of any type: `type` decides which other fields there are. Extra fields of later versions are kept."""

    type: Required[str]
    state: str  # of a text or reasoning part: streaming or done; of a tool part: a `ToolState`
    text: str
    toolCallId: str
    toolName: str
    title: str
    input: JSONValue
    rawInput: str  # of an input that is still written
    output: JSONValue
    errorText: str
    preliminary: bool
    providerExecuted: bool
    approval: Approval
    providerMetadata: JSONObject
    callProviderMetadata: JSONObject
    resultProviderMetadata: JSONObject
    toolMetadata: JSONObject
    inputEncoding: str
    url: str
    mediaType: str
    filename: str
    sourceId: str
    citations: list[JSONObject]
    id: str  # of a data part or a steering message
    data: JSONValue
    kind: str  # of a custom part
    parts: list["Part"]  # of a steering message
    pruned: bool  # the model is not sent the output any more; never stored
    prunedChars: int  # the length of that output; never stored
    pauseSeconds: int  # of a question's first part: the time since the message before, from 300 on; never stored


class Message(TypedDict, total=False):
    """A UI message."""

    id: Required[str]
    role: Required[str]
    parts: Required[list[Part]]
    metadata: JSONObject
    sentAt: str  # ISO, of a user's message as models read it; never stored, never sent to clients


class NewMessage(TypedDict, total=False):
    """A UI message as input: without an id it gets one, without a role it is a user's."""

    id: ReadOnly[str]  # read-only, so that a `Message` is one as well
    role: ReadOnly[str]
    parts: Required[list[Part]]
    metadata: JSONObject
    sentAt: str  # of no effect: a message that a hook has read may be given as input


MessageT = TypeVar("MessageT", Message, NewMessage)
"""Either of the two, whichever was given."""


class Content(TypedDict, total=False):
    """The content column of a stored message."""

    parts: Required[list[Part]]
    metadata: JSONObject | None  # absent or nothing where the message has none
