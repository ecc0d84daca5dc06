"""Changes of staff in another person's conversation: messages corrected and added, questions asked again, branches.

Every change is a new message beside the old one; nothing is overwritten. It goes through the services that the owner's
own requests use, so limits hold and the open pages are notified, and it is noted who did it. Whether the person may was
decided by the caller. All of it is about the current session, which the caller names as the person saw it.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction

from chat.conversations.changes import show_message
from chat.errors import InputInvalid, TurnConflict
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn
from chat.runtime.add_messages import AppendAuthor, add_messages, edit_answer
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Edit, Intake, Regenerate, Submit
from sessions_app.core.messages.messages import MessageRole, StoredMessage
from sessions_app.core.messages.parts import pending_calls
from sessions_app.core.messages.shapes import NewMessage, Part
from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors
from thinkproject.kernel.ids import new_id

VIA: Final = "admin"


def editable_texts(message: StoredMessage) -> list[str]:
    """The texts of a message that can be changed, in order; one empty text where it has none."""
    return [str(part.get("text", "")) for part in message.parts if part.get("type") == "text"] or [""]


def edit_problem(message: StoredMessage) -> str:
    """The reason why a message cannot be edited now, for people; empty when it can."""
    if not message.placed:
        return "This message still waits for its turn. Edit it once it has its place in the conversation."
    if pending_calls(message.to_ui()):
        return "This answer waits for a tool or a decision. Edit it once that is settled."
    return ""


def reword_message(  # noqa: PLR0913 - one keyword for each thing a person decides
    instance: AgentInstance,
    message_id: str,
    texts: Sequence[str],
    *,
    session_id: str,
    user_id: Any,
    answers: bool = False,
    shows: bool = True,
) -> str:
    """Put another version of a message beside it; returns its id.

    Shape: `texts` replace those of `editable_texts`, an empty one goes; tool calls, files and reasoning stay.
    `answers`: have a person's message answered. `shows`: the conversation goes on from the new version; a person's
    always does.
    Durability: one transaction. Errors: `InputInvalid`, `MessageInvalid`, `QuotaExceeded`, `TurnConflict`,
    `AgentNotFound`; nothing is changed.
    """
    key = key_of(_as_seen(instance, session_id))
    target = selectors.get_message(session_id, message_id)
    if target is None:
        raise InputInvalid("This message is gone. Reload the page.")
    problem = edit_problem(target)
    if problem:
        raise InputInvalid(problem)
    message: NewMessage = {"id": new_id("msg"), "role": target.role, "parts": _reworded(target.parts, texts)}
    if target.metadata is not None:
        message["metadata"] = target.metadata
    author = AppendAuthor(user_id=user_id, via=VIA, action="edit", replaces=target.id)
    if target.role == MessageRole.ASSISTANT:
        return edit_answer(key, message_id, message, shows=shows, by=author)[0]
    if answers and target.role == MessageRole.USER:
        return _ask(instance, Edit(message_id=message_id, message=message), author, str(message["id"]))
    return add_messages(key, [message], parent=target.parent_id, by=author)[0]


def write_message(  # noqa: PLR0913 - one keyword for each thing a person decides
    instance: AgentInstance,
    role: str,
    text: str,
    *,
    session_id: str,
    user_id: Any,
    after_id: str = "",
    answers: bool = False,
) -> str:
    """Add a message of either side at the end of the shown path, or below another one; returns its id.

    `answers`: have it answered, where it is a person's. Durability: one transaction. Errors: as `reword_message`, and
    `MessageNotFound`.
    """
    key = key_of(_as_seen(instance, session_id))
    if role not in {MessageRole.USER, MessageRole.ASSISTANT}:
        raise InputInvalid("A message is a person's or the agent's.")
    parts = _reworded((), [text])
    message: NewMessage = {"id": new_id("msg"), "role": role, "parts": parts}
    author = AppendAuthor(user_id=user_id, via=VIA, action="add")
    if answers and role == MessageRole.USER:
        intake = Submit(message=message, parent_id=after_id or None, parent_is_explicit=bool(after_id))
        return _ask(instance, intake, author, str(message["id"]))
    return add_messages(key, [message], parent=after_id or Leaf.ACTIVE, by=author)[0]


def ask_again(instance: AgentInstance, message_id: str, *, session_id: str, user_id: Any) -> Turn:
    """Have a question answered once more, beside the answers that it has; the id may be the question's or an answer's.

    Errors: `InputInvalid`, `QuotaExceeded`, `TurnConflict`, `AgentNotFound`; nothing is changed.
    """
    _as_seen(instance, session_id)
    author = AppendAuthor(user_id=user_id, via=VIA, action="ask", replaces=message_id)
    with transaction.atomic():
        turn = admit(key_of(instance), _request(instance, Regenerate(message_id=message_id), author)).turn
        author.note(session_id, turn.assistant_id)
    return turn


def asked_by(turn: Turn) -> str:
    """Id of a stored message from which a turn can be asked again; empty when its messages are gone."""
    ids = [turn.assistant_id, *reversed(turn.input_ids), *reversed(turn.options.get("answers", []))]
    found = selectors.find_messages(turn.session_id, ids)
    return next((message_id for message_id in ids if message_id in found and found[message_id].placed), "")


def choose_branch(instance: AgentInstance, message_id: str, *, session_id: str) -> str:
    """Show the newest path below a message to everyone; returns its end. Errors: `MessageNotFound`, `TurnConflict`."""
    return show_message(_as_seen(instance, session_id), message_id)


def _ask(instance: AgentInstance, intake: Intake, author: AppendAuthor, message_id: str) -> str:
    with transaction.atomic():
        turn = admit(key_of(instance), _request(instance, intake, author)).turn
        author.note(turn.session_id, message_id)
    return message_id


def _request(instance: AgentInstance, intake: Intake, author: AppendAuthor) -> TurnRequest:
    # The body of the client's last request is what its agent goes by; a request of ours must not replace it.
    return TurnRequest(intake=intake, body=instance.last_body, via=author.via, actor_id=author.user_id)


def _as_seen(instance: AgentInstance, session_id: str) -> AgentInstance:
    if instance.session_id is None or instance.session_id != session_id:
        raise TurnConflict(
            "The conversation shows another history by now. Reload the page, then make your change again."
        )
    return instance


def _reworded(parts: Sequence[Part], texts: Sequence[str]) -> list[Part]:
    """The parts with these texts. What a provider noted about a text is not true of another one."""
    given = [text.replace("\r\n", "\n") for text in texts]
    changed: list[Part] = []
    for part in parts:
        if part.get("type") != "text":
            changed.append(part)
        elif given and (text := given.pop(0)).strip():
            changed.append(part if text == part.get("text") else {"type": "text", "text": text})
    changed += [{"type": "text", "text": text} for text in given if text.strip()]
    if not any(part.get("type") not in {"step-start", "reasoning"} for part in changed):
        raise InputInvalid("Write something: a message cannot be empty.")
    return changed
