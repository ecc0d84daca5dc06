"""Add messages to a conversation without a turn: imports, notes, context. No model is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.errors import InputInvalid, TurnConflict
from chat.files import attachments
from chat.instances.notifications import group_of, notify_on_commit
from chat.instances.quota import count_added, recount_if_due
from chat.instances.rows import ensure_instance, ensure_session, hold_instance, lock_address
from chat.turns.admission.oversized import fit_message
from chat.turns.state.active import running_turn_id
from sessions_app.context.history import ContextActor, note_message
from sessions_app.core.messages.shapes import WRITTEN_BY, Message, NewMessage
from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors
from sessions_app.messages.services import append_here, update_message
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.phrases import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendAuthor:
    """The person who writes a message: staff, or the owner of the conversation in the model's place.

    **Shape:** `via`: api or admin. `replaces`: the message that the new one is a version of.
    """

    user_id: Any
    via: str
    action: Literal["add", "edit", "ask"]
    replaces: str = ""

    def note(self, session_id: str, message_id: str) -> None:
        """Note it, in the transaction that stores the message."""
        actor = ContextActor(via=self.via, user_id=self.user_id)
        note_message(session_id, message_id, self.action, replaces=self.replaces, by=actor)


def add_messages(
    key: InstanceKey,
    messages: Sequence[NewMessage],
    *,
    parent: str | Leaf | None = Leaf.ACTIVE,
    is_upsert: bool = False,
    by: AppendAuthor | None = None,
) -> list[str]:
    """Store messages of any role in one chain and show the path to the last; returns their ids in order.

    Known ones stay as they are, or get the new content with `is_upsert`; their place never changes. While a turn runs,
    what goes to the end of the path comes between its question and its answer. `by` is noted as their author, where it
    is not the owner or the agent.
    Durability: all or nothing; clients are notified on commit. Errors: `MessageNotFound` for an unknown parent,
    `MessageInvalid`, `AttachmentInvalid`, `QuotaExceeded`, `AgentNotFound`, `TurnConflict`.
    """
    if not issubclass(get_agent_class(key.agent), Think):
        raise TurnConflict(Phrase("Agent {agent!r} does not chat.", agent=key.agent))
    taken = [_take(key, _signed(message, by)) for message in messages]
    prepared = [message for message, _ in taken]
    recount_if_due(key.owner_id, prepared)
    with transaction.atomic():
        instance = lock_address(key)
        session_id = ensure_session(instance)
        if instance.owner_id is not None:
            attachments.bind(instance.owner_id, [file_id for _, ids in taken for file_id in ids], instance)
        # No message has an id that was made just now, so only those that the caller gave are looked for.
        given = [named["id"] for named, message in zip(prepared, messages, strict=True) if message.get("id")]
        known = selectors.known_ids(session_id, given)
        new = [message for message in prepared if message["id"] not in known]
        count_added(instance.owner_id, new)
        turn_id = running_turn_id(instance) if parent is Leaf.ACTIVE else ""
        append_here(session_id, new, after=parent, turn_id=turn_id)
        if is_upsert:
            for message in prepared:
                if message["id"] in known:
                    update_message(session_id, message["id"], _with_content(message))
        if by is not None:
            for message in new:
                by.note(session_id, message["id"])
        notify_on_commit(group_of(key), {"type": "transcript.changed"})
    return list(dict.fromkeys(message["id"] for message in prepared))


def edit_answer(
    key: InstanceKey, message_id: str, message: NewMessage, *, shows: bool, by: AppendAuthor | None = None
) -> tuple[str, str | None]:
    """Put another answer beside one, as its sibling; returns its id and the end of the path that is shown now.

    With `shows` the path goes on from it; else what is shown stays, unless the old answer ended the path. Nothing that
    follows the old one is moved or lost. `by` is noted as its author. Clients are notified on commit. Errors:
    `InputInvalid` for a message that is no answer in its place, `MessageInvalid`, `TurnConflict`.
    """
    if not issubclass(get_agent_class(key.agent), Think):
        raise TurnConflict(Phrase("Agent {agent!r} does not chat.", agent=key.agent))
    taken, file_ids = _take(key, _signed({**message, "id": new_id("msg"), "role": "assistant"}, by))
    recount_if_due(key.owner_id, [taken])
    with transaction.atomic():
        instance = ensure_instance(key)
        hold_instance(instance)
        session_id = ensure_session(instance)
        target = selectors.get_message(session_id, message_id)
        if target is None or target.role != "assistant" or not target.placed:
            raise InputInvalid(Phrase("There is no answer {id!r} in this conversation.", id=message_id))
        if instance.owner_id is not None:
            attachments.bind(instance.owner_id, file_ids, instance)
        count_added(instance.owner_id, [taken])
        is_last = selectors.leaf_id(session_id) == target.id
        append_here(session_id, [taken], after=target.parent_id, shows=shows or is_last)
        if by is not None:
            by.note(session_id, taken["id"])
        notify_on_commit(group_of(key), {"type": "transcript.changed"})
        return taken["id"], selectors.leaf_id(session_id)


def _signed(message: NewMessage, by: AppendAuthor | None) -> NewMessage:
    """An answer that a person wrote, with its mark for everyone who reads it; any other as it is."""
    if by is None or message.get("role") != "assistant":
        return message
    who = "staff" if by.via == "admin" else "owner"
    return {**message, "metadata": {**(message.get("metadata") or {}), WRITTEN_BY: who}}


def _take(key: InstanceKey, message: NewMessage) -> tuple[Message, list[str]]:
    """The message with an id, its files in storage, small enough for a row; and the ids of its attachments."""
    named: Message = {**message, "id": message.get("id") or new_id("msg"), "role": message.get("role", "user")}
    if key.owner_id is None or not isinstance(named.get("parts"), list):
        return named, []  # the session says what is wrong with it
    adopted, file_ids = (
        attachments.adopt_files(key.owner_id, named, key=key) if named["role"] == "user" else (named, [])
    )
    fitted, original_ids = fit_message(key, adopted, is_vital=True)
    return fitted, [*file_ids, *original_ids]


def _with_content(message: Message) -> Any:
    return lambda _stored: message
