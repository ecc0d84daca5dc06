"""The intake of a request: resolves which message is new, edited, or regenerated.

A client's array is never trusted: only its last message determines the request. All of this runs inside the admission
transaction, after the instance's row is locked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, cast

from chat.agent.base import InstanceKey
from chat.core.wire import client_intent
from chat.core.wire.client_intent import REGENERATE, decide_intent
from chat.errors import InputInvalid
from chat.files.attachments import adopt_files
from chat.models import TurnTrigger
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.shapes import Message, NewMessage
from sessions_app.messages import selectors
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.zones import METADATA, current_zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """A new message: at the end of the active path, or below an explicit parent."""

    message: NewMessage
    parent_id: str | None = None
    parent_is_explicit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """An edit of an earlier user message: a sibling under its own id or a new one."""

    message_id: str
    message: NewMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Regenerate:
    """Have a message answered once more. The id may be the user message's or one of its answers'."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """Go on from the end of the shown path without a new message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientArray:
    """The request of published clients: their whole visible list."""

    messages: Sequence[Message]
    is_regenerate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Messages from server code, placed together and answered once.

    With `enters_at_start` nothing of it is in the conversation before its turn starts. `is_typed`: a person wrote it,
    in a terminal or an editor that this program serves, so that it may be a script.
    """

    messages: Sequence[NewMessage]
    enters_at_start: bool = False
    is_typed: bool = False


Intake: TypeAlias = Submit | Edit | Regenerate | Continue | ClientArray | Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The place of a turn's messages. `base_id` `None` with `base_is_explicit`: a new root."""

    trigger: TurnTrigger
    new_messages: tuple[Message, ...] = ()
    later_messages: tuple[Message, ...] = ()  # kept with the turn until it starts
    base_id: str | None = None
    base_is_explicit: bool = False
    answers: tuple[str, ...] = field(default=())  # ids of the user messages that the turn answers
    replaces: str = ""  # the answer beside which another one is asked for, where it is named


def adopt_files_of(key: InstanceKey, intake: Intake, user_id: Any = None) -> tuple[Intake, list[str]]:
    """Make the new message's files references to storage; returns the ids of its attachments.

    A file that the conversation has already stays the same file: published clients send what they attached as a data
    URL again and again. `user_id`: whose the files are, the owner's by default. Writes objects, so it runs before the
    admission transaction. Errors: `AttachmentInvalid`, `QuotaExceeded`.
    """
    if key.owner_id is None:
        return intake, []
    return with_new_messages(intake, partial(adopt_files, user_id or key.owner_id, key=key))


def with_new_messages(
    intake: Intake, take: Callable[[NewMessage], tuple[NewMessage, list[str]]]
) -> tuple[Intake, list[str]]:
    """The intake with what `take` makes of each message that may be stored, and the ids that it gives.

    Of a client's array that is the last message, and where a new answer is wanted the last one of the user's.
    """
    match intake:
        case Submit() | Edit():
            message, ids = take(intake.message)
            return replace(intake, message=message), ids
        case ClientArray(messages=messages):
            users = [i for i, message in enumerate(messages) if message.get("role") == "user"]
            if not users or (users[-1] < len(messages) - 1 and not intake.is_regenerate):
                return intake, []
            message, ids = take(messages[users[-1]])
            newest = cast("Message", message)
            return replace(intake, messages=[*messages[: users[-1]], newest, *messages[users[-1] + 1 :]]), ids
        case Program():
            taken = [take(message) for message in intake.messages]
            return replace(intake, messages=[message for message, _ in taken]), [i for _, ids in taken for i in ids]
    return intake, []


def in_current_zone(intake: Intake) -> Intake:
    """The intake whose new messages name the time zone of the person who asks, where it is known."""
    zone = current_zone()
    return with_new_messages(intake, partial(_in_zone, zone))[0] if zone else intake


def _in_zone(zone: str, message: NewMessage) -> tuple[NewMessage, list[str]]:
    return {**message, "metadata": {**(message.get("metadata") or {}), METADATA: zone}}, []


def last_message_id(intake: Intake) -> str:
    """Id of the last message of a client's array, which decides what the request is; empty for any other intake."""
    return str(intake.messages[-1].get("id", "")) if isinstance(intake, ClientArray) and intake.messages else ""


def resolve(session_id: str, intake: Intake, *, is_new: bool = False) -> Placement:
    """Decide. `is_new`: no conversation has the last message of the client's array.

    Errors: `InputInvalid` for ids that do not exist here and for messages that are not a user's.
    """
    match intake:
        case Submit():
            return _submit(session_id, intake)
        case Edit():
            return _edit(session_id, _known(session_id, intake.message_id), intake.message)
        case Regenerate():
            return _answer_again(session_id, _known(session_id, intake.message_id))
        case Continue():
            return Placement(trigger=TurnTrigger.CONTINUE)
        case ClientArray():
            return _client_array(session_id, intake, is_new=is_new)
        case Program():
            return _program(intake)


def _submit(session_id: str, intake: Submit) -> Placement:
    message = _user_message(intake.message)
    if intake.parent_is_explicit and intake.parent_id is not None:
        _known(session_id, intake.parent_id)
    return Placement(
        trigger=TurnTrigger.SUBMIT,
        new_messages=(message,),
        base_id=intake.parent_id,
        base_is_explicit=intake.parent_is_explicit,
        answers=(message["id"],),
    )


def _program(intake: Program) -> Placement:
    messages = tuple(_user_message(message) for message in intake.messages)
    return Placement(
        trigger=TurnTrigger.PROGRAM,
        new_messages=() if intake.enters_at_start else messages,
        later_messages=messages if intake.enters_at_start else (),
        answers=tuple(message["id"] for message in messages),
    )


def _edit(session_id: str, target: StoredMessage, message: NewMessage) -> Placement:
    if target.role != "user":
        raise InputInvalid(
            Phrase("Only your own messages can be edited; {id!r} is the {role}'s.", id=target.id, role=target.role)
        )
    if not target.placed:
        raise InputInvalid(
            Phrase(
                "Message {id!r} is still waiting for its turn. Edit it or ask again when it has been answered.",
                id=target.id,
            )
        )
    own_id = str(message.get("id") or "")
    if own_id == target.id:
        own_id = ""  # useChat sends what it edits under the id that it had
    elif own_id and selectors.get_message(session_id, own_id):
        raise InputInvalid(
            Phrase("The id {id!r} is another message's here. An edit needs an id of its own, or none.", id=own_id)
        )
    edited = _user_message({**message, "id": own_id, "role": "user"})
    return Placement(
        trigger=TurnTrigger.EDIT,
        new_messages=(edited,),
        base_id=target.parent_id,
        base_is_explicit=True,
        answers=(edited["id"],),
    )


def _answer_again(session_id: str, target: StoredMessage) -> Placement:
    replaced = ""
    if target.role == "assistant":
        if target.parent_id is None:
            raise InputInvalid(Phrase("Message {id!r} answers nothing, so it cannot be regenerated.", id=target.id))
        replaced, target = target.id, _known(session_id, target.parent_id)
    if not target.placed:  # its turn was stopped before it began; what else was left so is placed before it
        left = target.to_ui()
        return Placement(trigger=TurnTrigger.REGENERATE, new_messages=(left,), answers=(left["id"],))
    return Placement(
        trigger=TurnTrigger.REGENERATE,
        base_id=target.id,
        base_is_explicit=True,
        answers=(target.id,),
        replaces=replaced,
    )


def _client_array(session_id: str, intake: ClientArray, *, is_new: bool) -> Placement:
    """Decide on the array (pure), and find the named messages in the tree."""
    if intake.is_regenerate and not intake.messages:
        leaf_id = selectors.leaf_id(session_id)
        if leaf_id is None:
            raise InputInvalid("There is nothing to answer again in this conversation.")
        return _answer_again(session_id, _known(session_id, leaf_id))
    trigger = REGENERATE if intake.is_regenerate else ""
    named = intake.messages if intake.is_regenerate else intake.messages[-1:]
    known = {} if is_new and not intake.is_regenerate else _known_of(session_id, named)
    match decide_intent(intake.messages, trigger, known):
        case client_intent.Append(message=message):
            return _submit(session_id, Submit(message=message))
        case client_intent.Edit(message_id=message_id, message=message):
            return _edit(session_id, _known(session_id, message_id), message)
        case client_intent.Answer(message_id=None):
            return Placement(trigger=TurnTrigger.CONTINUE)
        case client_intent.Answer(message_id=message_id) | client_intent.AnswerAgain(message_id=message_id) if (
            message_id
        ):
            return _answer_again(session_id, _known(session_id, message_id))
        case client_intent.Continue(message_id=message_id):
            return Placement(trigger=TurnTrigger.CONTINUE, base_id=message_id, base_is_explicit=True)
        case client_intent.Refuse(text=text):
            raise InputInvalid(text)
    raise InputInvalid("The request's messages do not say what to do.")


def _known_of(session_id: str, messages: Sequence[Message]) -> dict[str, client_intent.Known]:
    ids = [str(message.get("id", "")) for message in messages]
    here = selectors.find_messages(session_id, ids)
    answered = selectors.answered(session_id, [key for key, stored in here.items() if stored.role == "user"])
    known = {
        key: client_intent.Known(message=stored.to_ui(), is_answered=key in answered) for key, stored in here.items()
    }
    last_id = ids[-1] if ids else ""
    if last_id and last_id not in known and selectors.is_elsewhere(session_id, last_id):
        known[last_id] = client_intent.Known(message=messages[-1], is_elsewhere=True)
    return known


def _known(session_id: str, message_id: str) -> StoredMessage:
    stored = selectors.get_message(session_id, message_id)
    if stored is None:
        raise InputInvalid(Phrase("There is no message {id!r} in this conversation.", id=message_id))
    return stored


def _user_message(message: NewMessage) -> Message:
    if message.get("role", "user") != "user":
        raise InputInvalid(
            Phrase("A client may only add messages of role 'user', not {role!r}.", role=message.get("role"))
        )
    return {**message, "id": str(message.get("id") or new_id("msg")), "role": "user"}
