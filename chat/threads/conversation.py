"""Messages and runs of one thread, by its address. Thin: each function calls the service of conversations."""

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.errors import InputInvalid, TurnConflict, TurnDropped
from chat.instances.notifications import group_of, notify_on_commit
from chat.instances.rows import find_instance, hold_instance
from chat.runtime.add_messages import AppendAuthor, add_messages
from chat.threads.messages import flat, from_flat
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Continue
from chat.turns.state.active import turns_here
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.errors import MessageNotFound
from sessions_app.messages import selectors
from sessions_app.messages.services import delete_message
from thinkproject.kernel.jsonvalue import JSONObject

MAX_WAITING = 1
"""Runs of one thread that wait while another goes on; further ones are ignored."""


def messages_of(child: InstanceKey) -> list[JSONObject]:
    """The newest messages of a thread in their flat form, oldest first: at most 500, of 512 KiB. None of an unknown."""
    found = find_instance(child)
    if found is None or found.session_id is None:
        return []
    return [flat(message) for message in selectors.window(found.session_id)]


def read_message(raw: JSONObject) -> NewMessage:
    """The message of a client, checked before anything is made for it. Errors: `InputInvalid` for what is none."""
    message = from_flat(raw)
    if message is None:
        raise InputInvalid("A message has a role, user or assistant, and its content.")
    return message


def add_message(child: InstanceKey, message: NewMessage) -> str:
    """Store a message at the end of a thread, or give a known one new content; returns its id.

    An answer that comes so is marked as its owner's, not the model's. Errors: `MessageInvalid`, `QuotaExceeded`.
    """
    is_answer = message.get("role") == "assistant"
    by = AppendAuthor(user_id=child.owner_id, via="api", action="add") if is_answer else None
    [message_id] = add_messages(child, [message], is_upsert=True, by=by)
    return message_id


def remove_message(child: InstanceKey, message_id: str) -> bool:
    """Delete one message of a thread; those after it follow the one before. False where there is no such message.

    Errors: `TurnConflict` while a run goes on or waits.
    """
    found = find_instance(child)
    if found is None or found.session_id is None:
        return False
    with transaction.atomic():
        hold_instance(found)
        if turns_here(found):
            raise TurnConflict("A run of this thread goes on. Delete the message when it has ended.")
        try:
            delete_message(str(found.session_id), message_id)
        except MessageNotFound:
            return False
        notify_on_commit(group_of(child), {"type": "transcript.changed"})
    return True


def run(child: InstanceKey) -> bool:
    """Have the end of a thread answered, or gone on from, behind the run that goes on.

    What is there when it starts counts. False where one waits already. Durability: accepted means stored. Errors: those
    of admission.
    """
    try:
        admit(child, TurnRequest(intake=Continue(), max_waiting=MAX_WAITING))
    except TurnDropped:
        return False
    return True
