"""The intent of a client's message array: a new message, an edit, a regeneration, or answers to tool calls.

Nothing else in the array is believed: it never rewrites what is stored, and assistant or system messages in it add
nothing. The array is the client's window of the path, so its first ids prove nothing either; its last message decides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from chat.core.wire.accumulator import tool_name
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONValue, fingerprint

REGENERATE: Final = "regenerate-message"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A stored message with an id of the array.

    Shape: `is_answered` when an assistant message follows it on the path; `is_elsewhere` when it belongs to another
    session of the instance.
    """

    message: Message
    is_answered: bool = False
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    """A new user message at the active leaf."""

    message: Message


@dataclass(frozen=True, slots=True)
class Edit:
    """A known user message with new content: a sibling of it, under an id of ours."""

    message_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the path as it stands: a known message without an answer, or nothing new at all (`None`)."""

    message_id: str | None


@dataclass(frozen=True, slots=True)
class AnswerAgain:
    """Another answer under this message, as a sibling of what followed it."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on after an assistant message, whose calls the array may answer."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The array does not belong here: end the request with this text and send the transcript."""

    text: str


Intent: TypeAlias = Append | Edit | Answer | AnswerAgain | Continue | Refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """A client's claim about a pending call; the tool service decides whether to accept it (the first answer wins)."""

    message_id: str
    call_id: str
    output: JSONValue = None
    error_text: str | None = None
    is_approved: bool | None = None  # None: it is a result, not a decision


def decide_intent(messages: Sequence[Message], trigger: str, known: Mapping[str, Known]) -> Intent:
    """Derive the intent from the last message of the array. `known`: stored messages by id."""
    if not messages:
        return Answer(None)
    last = messages[-1]
    stored = known.get(last["id"])
    if stored is not None and stored.is_elsewhere:
        return Refuse("This conversation has changed. Send your message again.")
    if trigger == REGENERATE:
        return _regenerate(messages, known)
    if last["role"] == "assistant":
        return Continue(last["id"]) if stored else Refuse("The message to continue is not known.")
    if last["role"] != "user" or (stored is not None and stored.message.get("role") != "user"):
        return Refuse("Only messages of a user can be sent.")
    if stored is None:
        return Append(last)
    if not is_same_content(last, stored.message):
        return Edit(last["id"], last)
    return AnswerAgain(last["id"]) if stored.is_answered else Answer(last["id"])


def _regenerate(messages: Sequence[Message], known: Mapping[str, Known]) -> Intent:
    """Find the last stored message; a user message that was never stored is not skipped."""
    for message in reversed(messages):
        stored = known.get(message["id"])
        if message["role"] == "user" and stored is None:
            return Append(message)
        if stored is None or stored.is_elsewhere:
            continue
        if message["role"] == "user" and not is_same_content(message, stored.message):
            return Edit(message["id"], message)
        return AnswerAgain(message["id"])
    return Refuse("The message to answer again is not known.")


def is_same_content(sent: Message, stored: Message) -> bool:
    """Whether two user messages are equal: texts and files in order, ignoring additions of the storage."""
    return list(_content(sent)) == list(_content(stored))


def _content(message: Message) -> Iterator[tuple[str, ...]]:
    for part in message.get("parts", []):
        if part.get("type") == "text" and part.get("text"):
            yield ("text", str(part["text"]))
        elif part.get("type") == "file":
            yield ("file", str(part.get("mediaType")), str(part.get("filename")), str(part.get("url")))


def call_answers(messages: Sequence[Message], known: Mapping[str, Known]) -> list[CallAnswer]:
    """Find answers in the array to calls that are pending in storage.

    Only a call with the same name and the same arguments is answered; settled ones never are.
    """
    pending = {
        part["toolCallId"]: (message_id, part)
        for message_id, entry in known.items()
        if not entry.is_elsewhere
        for part in _tool_parts(entry.message)
        if part.get("state") in (ToolState.INPUT_AVAILABLE, ToolState.APPROVAL_REQUESTED)
    }
    answers: dict[str, CallAnswer] = {}
    for message in messages:
        for part in _tool_parts(message) if message.get("role") == "assistant" else ():
            found = pending.get(part["toolCallId"])
            answer = _answer(*found, part) if found else None
            if answer is not None:
                answers.setdefault(answer.call_id, answer)
    return list(answers.values())


def _tool_parts(message: Message) -> Iterator[Part]:
    for part in message.get("parts", []):
        if tool_name(part) and isinstance(part.get("toolCallId"), str):
            yield part


def _answer(message_id: str, stored: Part, sent: Part) -> CallAnswer | None:
    if tool_name(stored) != tool_name(sent) or fingerprint(stored.get("input")) != fingerprint(sent.get("input")):
        return None
    call_id = stored["toolCallId"]
    state = sent.get("state")
    if stored["state"] == ToolState.APPROVAL_REQUESTED:
        return (
            _decision(message_id, call_id, sent)
            if state in (ToolState.APPROVAL_RESPONDED, ToolState.OUTPUT_DENIED)
            else None
        )
    if state == ToolState.OUTPUT_AVAILABLE:
        return CallAnswer(message_id=message_id, call_id=call_id, output=sent.get("output"))
    if state == ToolState.OUTPUT_ERROR:
        return CallAnswer(message_id=message_id, call_id=call_id, error_text=str(sent.get("errorText") or ""))
    return None


def _decision(message_id: str, call_id: str, sent: Part) -> CallAnswer | None:
    approval = sent.get("approval")
    approved = approval.get("approved") if isinstance(approval, dict) else None
    if not isinstance(approved, bool):
        return None
    return CallAnswer(message_id=message_id, call_id=call_id, is_approved=approved)
