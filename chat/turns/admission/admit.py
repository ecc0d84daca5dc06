"""Admission: accept or refuse a turn in one transaction. Accepted means committed.

Every entry (socket, API, program, continuation) comes through `admit`. It locks the instance's row, decides, stores the
new message unplaced, writes the turn and its fiber, and on commit one task and one notification are sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.core.durable_names import TURN_FIBER
from chat.errors import InputInvalid, TurnConflict, TurnDropped
from chat.files import attachments
from chat.instances.notifications import (
    group_of,
    notify_accepted,
    notify_conversation,
)
from chat.instances.quota import count_added, recount_if_due
from chat.instances.rows import (
    ensure_instance,
    ensure_session,
    find_instance,
    key_of,
    lock_instance,
)
from chat.members.selectors import user_key
from chat.models import AgentInstance, Delivery, Turn, TurnOptions, TurnTrigger, new_turn_id
from chat.turns import policies
from chat.turns.admission.authors import author_of_request, continued_author
from chat.turns.admission.commands import with_command
from chat.turns.admission.holding import holding, no_fibers
from chat.turns.admission.intake import (
    Continue,
    Intake,
    Placement,
    Program,
    adopt_files_of,
    in_current_zone,
    last_message_id,
    resolve,
)
from chat.turns.admission.overlap import Overlap, decide_overlap, ended_fibers
from chat.turns.admission.oversized import fit_intake
from chat.turns.admission.retried import begun_alike, retried_turn
from chat.turns.admission.stop import notify_settled
from chat.turns.admission.tool_answers import settle_open_calls
from chat.turns.guarding.handed_down import handed_down_to
from chat.turns.state import input_reservation
from chat.turns.state.active import lane_of, turns_here
from chat.turns.state.deferred_input import DEFERRED
from chat.turns.state.merging import MERGED
from chat.turns.state.status import SKIPPED_REASON
from chat.turns.tools.client_tools import remember_client_tools
from fibers.context import current_fiber
from fibers.services import cancel_fiber, start_fiber
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.messages import selectors
from sessions_app.messages.queue import order_queue
from sessions_app.messages.services import queue_messages
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.statements import Insert
from tools_app.calls.services import Actor
from tools_app.core.guard.reach import passed_on
from tools_app.core.guard.rules import Spot
from tools_app.guard.standings import GuardScope, see

MAX_REQUEST_ID = 128
ADMIT_TRIES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One request for a turn. `origin` labels the connection that sent it, which gets no notification.

    Shape: `via` is the way it came in: socket, api, admin, server. `actor_id`: who asks, where it is not the owner: the
    author of the turn, unless staff acts through the admin.
    `client_tools` replaces the tools that clients run. `is_stopped`: accept what it says and never run it.
    `awaits_input`: what it says is given when its turn starts. `delivery`: what its message does while another turn
    runs; `None` leaves it to the class. `max_waiting`: how many turns may wait behind the one that runs, this one
    included; a further one is dropped.
    """

    intake: Intake
    request_id: str = ""
    idempotency_key: str | None = None
    body: JSONObject = field(default_factory=dict)
    options: TurnOptions = field(default_factory=TurnOptions)
    origin: str = ""
    via: str = "server"
    actor_id: Any = None
    client_tools: Sequence[JSONObject] | None = None
    is_stopped: bool = False
    awaits_input: bool = False
    delivery: Delivery | None = None
    max_waiting: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """An accepted turn. `is_new` is false when the same request had been accepted before."""

    turn: Turn
    is_new: bool


def admit(key: InstanceKey, request: TurnRequest) -> Admission:
    """Accept a turn.

    Durability: when this returns the message and the turn are committed; the same request id or idempotency key again
    gives the same turn. Errors: `InputInvalid`, `TurnConflict`, `TurnDropped`, `QuotaExceeded`, `AgentNotFound`;
    nothing is changed.
    """
    if len(request.request_id) > MAX_REQUEST_ID:
        raise InputInvalid(Phrase("A request id has at most {limit} characters.", limit=MAX_REQUEST_ID))
    agent = get_agent_class(key.agent)
    if not issubclass(agent, Think):
        raise TurnConflict(Phrase("Agent {agent!r} does not chat.", agent=key.agent))
    author = author_of_request(key, request.actor_id, request.via)
    files_of = user_key(author)
    intake, of_command = with_command(agent, request.intake, request.via)
    intake, file_ids = adopt_files_of(key, intake, files_of)  # objects first, rows second
    intake, original_ids = fit_intake(key, intake, files_of)
    request = replace(request, intake=in_current_zone(intake), options={**of_command, **request.options})
    if of_command and request.delivery is not Delivery.INTERRUPT:
        request = replace(request, delivery=Delivery.QUEUE)  # its calls are no part of another answer
    if isinstance(intake, Program) and len(intake.messages) > 1:
        recount_if_due(key.owner_id, intake.messages)
    try:
        return _admit(key, request, [*file_ids, *original_ids], author)
    except (IntegrityError, ThinkError) as error:
        # The request id is unique, so the first try does not ask whether this request is known. It may be: from this
        # client, or from another process at the same moment. What is refused now may have been accepted then.
        present = _find_present(key, request)
        if present is not None:
            return Admission(turn=present, is_new=False)
        if isinstance(error, ThinkError):
            raise
    return _admit(key, request, [*file_ids, *original_ids], author)


def _find_present(key: InstanceKey, request: TurnRequest) -> Turn | None:
    instance = find_instance(key)
    return None if instance is None else _find_accepted(instance, request)


def _admit(key: InstanceKey, request: TurnRequest, file_ids: Sequence[str], author: str) -> Admission:
    fibers = ended_fibers(key.agent, request.intake, request.delivery) or no_fibers
    with holding(key, fibers, tries=ADMIT_TRIES, message_id=last_message_id(request.intake)) as locked:
        instance = locked.row
        if request.idempotency_key and (present := _find_accepted(instance, request)) is not None:
            return Admission(turn=present, is_new=False)
        session_id = ensure_session(instance)
        if request.max_waiting is not None and len(turns_here(instance)) > request.max_waiting:
            raise TurnDropped
        remember_client_tools(instance, request.client_tools)
        if locked.has_open_calls and not _speaks_later(request):
            settle_open_calls(
                instance, request.intake, Actor(user_id=request.actor_id or key.owner_id, via=request.via)
            )
        placement = resolve(session_id, request.intake, is_new=not locked.may_be_known)
        if placement.trigger is TurnTrigger.CONTINUE:
            author = continued_author(instance, session_id)
        overlap = decide_overlap(instance, request.intake, placement, request.delivery, author)
        if file_ids and (placement.new_messages or placement.later_messages) and instance.owner_id is not None:
            attachments.bind(user_key(author) or instance.owner_id, file_ids, instance)
        turn = _accept(instance, request, placement, overlap, author)
        if not isinstance(request.intake, Program | Continue) and instance.last_body != request.body:
            AgentInstance.objects.filter(pk=instance.pk).update(last_body=request.body)
        if request.is_stopped and cancel_fiber(turn.fiber_id, reason="stopped"):
            notify_settled(turn)
        return Admission(turn=turn, is_new=True)


def _speaks_later(request: TurnRequest) -> bool:
    """Whether the messages enter when the turn starts: until then it leaves no trace and overtakes no turn."""
    return request.awaits_input or (isinstance(request.intake, Program) and request.intake.enters_at_start)


def accept_turn(instance: AgentInstance, request: TurnRequest, placement: Placement, *, parent: Turn) -> Turn:
    """Accept a turn that goes on from another one, in a transaction of the caller's that holds the instance's row.

    Errors: `QuotaExceeded`.
    """
    return _accept(lock_instance(instance), request, placement, Overlap(), parent.author, parent)


def _accept(
    instance: AgentInstance,
    request: TurnRequest,
    placement: Placement,
    overlap: Overlap,
    author: str,
    parent: Turn | None = None,
) -> Turn:
    with policies.asked_by(user_key(author)):
        policies.check_admission(instance)
    added = [*placement.new_messages, *placement.later_messages]
    if len(added) > 1:  # a turn counts for its first message
        count_added(instance.owner_id, added)
    for superseded in overlap.superseded:
        cancel_fiber(superseded.fiber_id, reason=SKIPPED_REASON)
        notify_settled(superseded)
    for stopped in overlap.stopped:
        if cancel_fiber(stopped.fiber_id, reason="stopped"):
            notify_settled(stopped)
    turn = _write_turn(instance, request, placement, overlap, author, parent)
    if overlap.behind is not None:
        order_queue(turn.session_id, [turn.pk, *overlap.ahead_of])
    notify_accepted(key_of(instance), turn.id, origin=request.origin)
    notify_conversation(instance.owner_id, instance.pk)
    return turn


def _find_accepted(instance: AgentInstance, request: TurnRequest) -> Turn | None:
    turns = Turn.objects.filter(instance=instance).select_related("fiber")
    if request.idempotency_key:
        found = turns.filter(idempotency_key=request.idempotency_key).first()
        if found is not None:
            return found
    return turns.filter(request_id=request.request_id).first() if request.request_id else None


def _write_turn(
    instance: AgentInstance,
    request: TurnRequest,
    placement: Placement,
    overlap: Overlap,
    author: str,
    parent: Turn | None,
) -> Turn:
    turn_id, request_id = new_turn_id(), request.request_id or new_id("req")
    fiber = start_fiber(
        TURN_FIBER,
        {"turn_id": turn_id},
        lane=lane_of(instance.pk),
        share=_share_of(instance, author),
        owner_id=user_key(author) or instance.owner_id,  # whose quota it counts in, and whose rights it has
        delay_seconds=overlap.delay_seconds,
        behind=overlap.behind,
        max_retries=3,
        metadata={
            "turn_id": turn_id,
            "instance_id": instance.pk,
            "address": group_of(key_of(instance)),
            "request_id": request_id,
            **({input_reservation.AWAITS: True} if request.awaits_input else {}),
            **(policies.DELEGATED if policies.is_delegated() else {}),
            **({LISTED_FOR: str(instance.owner_id)} if author else {}),
        },
    )
    # What goes on by itself stays in its session, whichever is current by now.
    session_id = ensure_session(instance) if parent is None else parent.session_id
    if placement.new_messages:
        queue_messages(session_id, list(placement.new_messages), turn_id=turn_id, author=author)
    again = retried_turn(session_id, placement) if placement.trigger is TurnTrigger.REGENERATE else None
    turn = Turn(
        id=turn_id,
        instance_id=instance.pk,
        session_id=session_id,
        fiber_id=fiber.pk,
        parent_id=None if parent is None else parent.pk,
        retry_of_id=None if again is None else again.pk,
        position=instance.turn_count,
        author=author,
        request_id=request_id,
        idempotency_key=request.idempotency_key or None,
        trigger=placement.trigger,
        delivery=overlap.delivery,
        generation=instance.generation,
        input_ids=[message["id"] for message in placement.new_messages],
        base_id=placement.base_id,
        base_is_explicit=placement.base_is_explicit,
        assistant_id=new_id("msg"),
        body=request.body,
        options=_options(key_of(instance), request, placement, overlap, again),
        accepted_at=timezone.now(),
    )
    _INSERT_TURN.run(vars(turn))
    turn._state.adding, turn.instance, turn.fiber = False, instance, fiber
    place = GuardScope(session_id=session_id, scope=instance.pk, owner_id=instance.owner_id, turn_id=turn_id)
    see(place, passed_on(session_id), at=Spot(name=f"turn {turn_id}"))  # of the conversation whose code says this
    return turn


_INSERT_TURN: Final = Insert(Turn)


LISTED_FOR: Final = "listed_for"
"""In the metadata of a member's turn: the owner, in whose list the conversation is."""


def _share_of(instance: AgentInstance, author: str) -> str | None:
    """The share in whose limit this turn counts. Delegated turns have none: their parent may wait for them."""
    if instance.owner_id is None or instance.parent_id is not None or current_fiber() is not None:
        return None
    return f"user:{author or instance.owner_id}"


def _options(
    key: InstanceKey, request: TurnRequest, placement: Placement, overlap: Overlap, retried: Turn | None
) -> TurnOptions:
    options: TurnOptions = {**begun_alike(retried), **request.options, "answers": list(placement.answers)}
    denied = handed_down_to(key)
    if denied:
        options["denied"] = [list(patterns) for patterns in denied]
    if placement.later_messages:
        options[DEFERRED] = list(placement.later_messages)
    if overlap.merged_ids:
        options[MERGED] = list(overlap.merged_ids)
    return options


def give_input(key: InstanceKey, turn: Turn, messages: Sequence[NewMessage]) -> None:
    """Supply a reserved turn with its messages; those already in the conversation are left out.

    Durability: what is given when this returns is answered. Errors: `InputInvalid`, `AttachmentInvalid`,
    `QuotaExceeded`; nothing is stored.
    """
    known = selectors.find_messages(turn.session_id, [str(message.get("id", "")) for message in messages])
    new = [message for message in messages if message.get("id") not in known]
    intake, file_ids = adopt_files_of(key, Program(messages=new, enters_at_start=True))
    intake, original_ids = fit_intake(key, intake)
    placement = resolve(turn.session_id, in_current_zone(intake))
    with transaction.atomic():
        instance = lock_instance(ensure_instance(key))
        if instance.owner_id is not None:
            attachments.bind(instance.owner_id, [*file_ids, *original_ids], instance)
        count_added(instance.owner_id, placement.later_messages)
        input_reservation.give(turn.pk, list(placement.later_messages))
