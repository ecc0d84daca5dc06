"""Turns asked for by the AI SDK's `useChat`, over plain HTTP or its own socket; following and stopping them.

The page's list is no more believed than a socket's (`turns/admission/intake.py`). It differs from what is stored in
two ways, which are put right here before the one admission reads it: a page keeps its id for a message that it edited,
and it shows an answer together with its continuations as one message. The SDK sends no request id, so one is made of
what was asked: a user message is answered once however often it is posted, anything else once at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.core.wire import frames
from chat.core.wire.accumulator import tool_name
from chat.core.wire.client_intent import REGENERATE, is_same_content
from chat.errors import InputInvalid
from chat.files.attachments import recognise_files
from chat.http.usechat.list_read_markers import turns_for_page
from chat.http.usechat.playback import Extended, Playback
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn, TurnTrigger
from chat.reads import snapshots
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import ClientArray, Intake, Regenerate
from chat.turns.admission.overlap import delivery_of
from chat.turns.admission.stop import cancel_all, cancel_turn
from chat.turns.admission.tool_answers import tools_of
from chat.turns.state.active import turns_here
from chat.turns.state.status import TurnStatus
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.oversized import fit_row
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tool_states import SETTLED
from sessions_app.messages import selectors
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint
from thinkproject.kernel.phrases import Phrase

PATH_MESSAGES = 200
"""How far up the shown path an answer's continuations are looked for."""
MAX_KEY_CHARS: Final = 128
RETAINED_SECONDS: Final = 60
"""For how long after its end an answer is sent to a page that resumes over a socket: its line may have been cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPost:
    """A checked body. `message_id`: the message to edit, to answer again or to continue, if the page names one."""

    messages: Sequence[Message]
    is_regenerate: bool
    message_id: str | None
    body: JSONObject
    client_tools: list[JSONObject] | None = None
    delivery: str | None = None

    @property
    def last(self) -> Message | None:
        """The message that carries the request."""
        return self.messages[-1] if self.messages else None


def read_post(body: str | JSONObject) -> ChatPost:
    """Check a body of the SDK's transport. Its `id` is the page's and names no instance. Errors: `FrameInvalid`."""
    request = frames.parse_request_body(body, "post")
    body = {key: value for key, value in request.body.items() if key not in {"id", "messageId"}}
    named = request.body.get("messageId")
    message_id = named if isinstance(named, str) and named else None
    is_regenerate = request.trigger == REGENERATE
    return ChatPost(
        messages=_cut(cast("list[Message]", request.messages), message_id, is_regenerate=is_regenerate),
        is_regenerate=is_regenerate,
        message_id=message_id,
        body=body,
        client_tools=tools_of(request),
        delivery=request.delivery,
    )


def accept_post(
    key: InstanceKey,
    instance: AgentInstance | None,
    post: ChatPost,
    *,
    actor_id: Any,
    idempotency_key: str | None = None,
    via: str = "post",
) -> Playback:
    """Admit the posted request, idempotently; returns how to play its answer back.

    `actor_id`: key of who asks, as signed in. Errors: as `admit`; `InputInvalid` for a key that is too long.
    """
    if idempotency_key is not None and len(idempotency_key) > MAX_KEY_CHARS:
        raise InputInvalid(Phrase("An idempotency key has at most {limit} characters.", limit=MAX_KEY_CHARS))
    intake = _intake(instance, post)
    request_id = _request_id(instance, post)
    request = TurnRequest(
        intake=intake,
        request_id=request_id,
        idempotency_key=idempotency_key,
        body=post.body,
        via=via,
        actor_id=actor_id,
        client_tools=post.client_tools,
        delivery=delivery_of(post.delivery),
    )
    turn = snapshots.turn_ref(admit(key, request).turn)
    if turn.trigger is not TurnTrigger.CONTINUE or instance is None or instance.session_id is None:
        return Playback(turn=turn)
    return Playback(turn=turn, extends=_extended(instance.session_id, post, intake))


def find_playbacks(instance: AgentInstance | None, user_id: int) -> list[Playback]:
    """Streams for a returning page: turns missing from its list, else a failure it has not shown."""
    if instance is None or instance.session_id is None:
        return []
    turns = [snapshots.turn_ref(turn) for turn in turns_for_page(instance, user_id)]
    if not turns:
        failed = snapshots.snapshot(key_of(instance), user_id).failed
        turns = [] if failed is None else [failed]
    return [Playback(turn=turn, before=_goes_on_from(instance.session_id, turn)) for turn in turns]


def find_retained(instance: AgentInstance | None) -> list[Playback]:
    """The last answer as it is stored, if it ended a moment ago and is still the end of the shown path.

    For pages that start such a message anew when they resume, and so lose nothing by it: with a line that is cut in the
    middle an answer may end before the page asks again.
    """
    if instance is None or instance.session_id is None:
        return []
    rows = Turn.objects.filter(instance=instance, session_id=instance.session_id, generation=instance.generation)
    turn = rows.select_related("fiber").order_by("-position").first()
    since = timezone.now() - timedelta(seconds=RETAINED_SECONDS)
    if turn is None or turn.finished_at is None or turn.finished_at < since:
        return []
    ref = snapshots.turn_ref(turn)
    answers = _answers_at_the_end(instance.session_id)
    if ref.status is not TurnStatus.COMPLETED or not answers or answers[-1].id != ref.assistant_id:
        return []
    return [Playback(turn=ref, before=_goes_on_from(instance.session_id, ref), is_stored=True)]


def stop_turns(instance: AgentInstance | None, *, turn_ids: Sequence[str] | None = None) -> int:
    """Stop the active turns of this conversation, or those of these; partial answers are kept. Returns how many."""
    if instance is None:
        return 0
    if turn_ids is None:
        return len(cancel_all(instance, session_id=instance.session_id))
    rows = Turn.objects.filter(pk__in=turn_ids, instance=instance)
    return sum(cancel_turn(turn_id) for turn_id in rows.values_list("pk", flat=True))


def _cut(messages: list[Message], message_id: str | None, *, is_regenerate: bool) -> list[Message]:
    """Truncate the list at `message_id`, as the SDK itself does; other clients may send a longer list."""
    index = next((i for i, message in enumerate(messages) if message["id"] == message_id), None)
    if index is None:
        return messages
    if is_regenerate:
        return messages[: index + (messages[index]["role"] == "user")]
    return messages[: index + 1] if messages[index]["role"] == "user" else messages


def _intake(instance: AgentInstance | None, post: ChatPost) -> Intake:
    if post.is_regenerate and not post.messages and post.message_id is not None:
        return Regenerate(message_id=post.message_id)
    messages = list(post.messages)
    if instance is not None and messages:
        messages[-1:] = _as_stored(instance, messages[-1], is_regenerate=post.is_regenerate)
    return ClientArray(messages=messages, is_regenerate=post.is_regenerate)


def _request_id(instance: AgentInstance | None, post: ChatPost) -> str:
    last: Mapping[str, object] = post.last or {}
    asked = fingerprint([post.is_regenerate, post.message_id, last.get("id"), last.get("role"), last.get("parts")])
    if last.get("role") == "user" and post.message_id is None and not post.is_regenerate:
        return f"post-{asked}"
    # A repeated request after the end of the first one is intended. Counted before the query for active turns: of two
    # at the same moment, the second either finds the first or has counted the same.
    count = 0 if instance is None else instance.turn_count
    running = [] if instance is None else [turn.request_id for turn in turns_here(instance)]
    same = next((request_id for request_id in running if request_id.startswith(f"post-{asked}-")), None)
    return same or f"post-{asked}-{count}"


def _as_stored(instance: AgentInstance, message: Message, *, is_regenerate: bool) -> list[Message]:
    session_id = instance.session_id
    stored = None if session_id is None else selectors.get_message(session_id, message["id"])
    if session_id is None or stored is None or stored.role != message["role"]:
        return [message]
    if stored.role == "user":
        return [_under_its_own_id(session_id, recognise_files(key_of(instance), message), stored)]
    return [message] if is_regenerate else _taken_apart(session_id, message)


def _under_its_own_id(session_id: str, message: Message, stored: StoredMessage) -> Message:
    """An earlier edited message: the page uses its first id, the active path its newest."""
    sent = fit_row(message)  # the page has the whole of what was too large for a row
    if is_same_content(sent, stored.to_ui()):
        return message
    others = set(selectors.siblings(session_id, [stored.id]).get(stored.id, ())) - {stored.id}
    shown = selectors.path_page(session_id, limit=PATH_MESSAGES).messages if others else ()
    same = next((m for m in shown if m.id in others and is_same_content(sent, m.to_ui())), None)
    return message if same is None else {**message, "id": same.id}


def _taken_apart(session_id: str, message: Message) -> list[Message]:
    """An answer and its continuations, one message on the page: the stored ones with the page's tool results."""
    answers = _answers_at_the_end(session_id)
    begin = next((i for i, stored in enumerate(answers) if stored.id == message["id"]), None)
    if begin is None or begin == len(answers) - 1:
        return [message]
    return [_part_of(message, stored) for stored in answers[begin:]]


def _part_of(message: Message, stored: StoredMessage) -> Message:
    calls = {part["toolCallId"] for part in stored.parts if "toolCallId" in part}
    parts = [part for part in message["parts"] if part.get("toolCallId") in calls]
    return {"id": stored.id, "role": "assistant", "parts": parts}


def _answers_at_the_end(session_id: str) -> list[StoredMessage]:
    """The assistant's messages with which the shown path ends: an answer and its continuations."""
    path = selectors.path_page(session_id, limit=PATH_MESSAGES).messages
    begin = max((i + 1 for i, message in enumerate(path) if message.role != "assistant"), default=0)
    return path[begin:]


def _extended(session_id: str, post: ChatPost, intake: Intake) -> Extended | None:
    """The message that the SDK goes on writing to, when it asks for a continuation."""
    last = post.last
    if last is None or last["role"] != "assistant" or post.is_regenerate or not isinstance(intake, ClientArray):
        return None
    named = next((m for m in post.messages if m["id"] == post.message_id and m["role"] == "assistant"), last)
    stored_in = [message["id"] for message in intake.messages[len(post.messages) - 1 :]]
    return Extended(
        message_id=named["id"],
        session_id=session_id,
        stored_in=(*stored_in, named["id"]),
        pending=frozenset(_pending_calls(named)),
    )


def _pending_calls(message: Message) -> list[str]:
    calls = [part for part in message["parts"] if tool_name(part) and part.get("state") not in SETTLED]
    return [part["toolCallId"] for part in calls if isinstance(part.get("toolCallId"), str)]


def _goes_on_from(session_id: str, turn: snapshots.TurnRef) -> tuple[Message, ...]:
    if turn.trigger is not TurnTrigger.CONTINUE:
        return ()
    return tuple(stored.to_ui() for stored in _answers_at_the_end(session_id) if stored.id != turn.assistant_id)
