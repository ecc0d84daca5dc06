"""Admission: accept or refuse a turn in one transaction. Accepted means committed.

Every entry (socket, API, program, continuation) comes through `admit`. It locks the instance's row, decides, stores the
new message unplaced, writes the turn and its fiber, and on commit one task is sent and one doorbell rings.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from django.db import IntegrityError, transaction

from chat import attachments, policy
from chat.agent import InstanceKey
from chat.doorbell import group_of, ring_on_commit
from chat.errors import InputInvalid, TurnConflict
from chat.instance_rows import ensure_instance, key_of, lock_instance
from chat.models import AgentInstance, Turn, new_turn_id
from chat.registry import get_agent_class
from chat.think import Think
from chat.turns.answers import pass_by, settle_open_calls
from chat.turns.client_tools import remember_client_tools
from chat.turns.intake import Intake, Placement, adopt_files_of, resolve
from chat.turns.originals import fit_intake
from chat.turns.status import SKIPPED_REASON
from chat.turns.under_way import lane_of, turns_under_way
from fibers.services import cancel_fiber, hold_fiber, start_fiber
from sessions_app.services import clear_session, queue_messages
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.calls import OPEN
from tools_app.services import Actor

TURN_FIBER = "chat.turn"
MAX_REQUEST_ID = 128
STOP_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One request for a turn. `origin` labels the connection that sent it; it is not told twice.

    Shape: `via` is the way it came in: socket, api, server. `client_tools` replaces the tools that clients run.
    """

    intake: Intake
    request_id: str = ""
    idempotency_key: str | None = None
    body: JSONObject = field(default_factory=dict)
    options: JSONObject = field(default_factory=dict)
    origin: str = ""
    via: str = "server"
    client_tools: Sequence[JSONObject] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """An accepted turn. `is_new` is false when the same request had been accepted before."""

    turn: Turn
    is_new: bool


def admit(key: InstanceKey, request: TurnRequest) -> Admission:
    """Accept a turn.

    Durability: when this returns the message and the turn are committed; the same request id or idempotency key again
    gives the same turn. Errors: `InputInvalid`, `TurnConflict`, `QuotaExceeded`, `AgentNotFound`; nothing is changed.
    """
    if len(request.request_id) > MAX_REQUEST_ID:
        raise InputInvalid(f"A request id has at most {MAX_REQUEST_ID} characters.")
    if not issubclass(get_agent_class(key.agent), Think):
        raise TurnConflict(f"Agent {key.agent!r} does not chat.")
    intake, file_ids = adopt_files_of(key.owner_id, request.intake)  # objects first, rows second
    intake, original_ids = fit_intake(key.owner_id, intake)
    request, file_ids = replace(request, intake=intake), [*file_ids, *original_ids]
    try:
        return _admit(key, request, file_ids)
    except IntegrityError:
        # Somebody else accepted the same request at the same moment; now it is there to be found.
        return _admit(key, request, file_ids)


@transaction.atomic
def _admit(key: InstanceKey, request: TurnRequest, file_ids: Sequence[str]) -> Admission:
    instance = lock_instance(ensure_instance(key))
    present = _find_accepted(instance, request)
    if present is not None:
        return Admission(turn=present, is_new=False)
    assert instance.session_id is not None
    remember_client_tools(instance, request.client_tools)
    settle_open_calls(instance, request.intake, Actor(user_id=key.owner_id, via=request.via))
    placement = resolve(instance.session_id, request.intake)
    if placement.new_messages and instance.owner_id is not None:
        attachments.bind(instance.owner_id, file_ids, instance)
    return Admission(turn=_accept(instance, request, placement), is_new=True)


def accept_turn(instance: AgentInstance, request: TurnRequest, placement: Placement, *, parent: Turn) -> Turn:
    """Accept a turn that goes on from another one, in a transaction of the caller's that holds the instance's row.

    Errors: `QuotaExceeded`.
    """
    return _accept(lock_instance(instance), request, placement, parent)


def _accept(instance: AgentInstance, request: TurnRequest, placement: Placement, parent: Turn | None = None) -> Turn:
    policy.check_admission(instance)
    turn = _write_turn(instance, request, placement, parent)
    ring_on_commit(
        group_of(key_of(instance)),
        {
            "type": "turn.accepted",
            "turn_id": turn.id,
            "request_id": turn.request_id,
            "position": turn.position,
            "trigger": turn.trigger,
            "origin": request.origin,
        },
    )
    return turn


def _find_accepted(instance: AgentInstance, request: TurnRequest) -> Turn | None:
    turns = Turn.objects.filter(instance=instance).select_related("fiber")
    if request.idempotency_key:
        found = turns.filter(idempotency_key=request.idempotency_key).first()
        if found is not None:
            return found
    return turns.filter(request_id=request.request_id).first() if request.request_id else None


def _write_turn(instance: AgentInstance, request: TurnRequest, placement: Placement, parent: Turn | None) -> Turn:
    turn_id, request_id = new_turn_id(), request.request_id or new_id("req")
    fiber = start_fiber(
        TURN_FIBER,
        {"turn_id": turn_id},
        lane=lane_of(instance.pk),
        owner_id=instance.owner_id,
        max_retries=3,
        metadata={
            "turn_id": turn_id,
            "instance_id": instance.pk,
            "address": group_of(key_of(instance)),
            "request_id": request_id,
        },
    )
    assert instance.session_id is not None
    if placement.new_messages:
        queue_messages(instance.session_id, list(placement.new_messages), turn_id=turn_id)
    return Turn.objects.create(
        id=turn_id,
        instance=instance,
        session_id=instance.session_id,
        fiber=fiber,
        parent=parent,
        position=instance.turn_count,
        request_id=request_id,
        idempotency_key=request.idempotency_key or None,
        trigger=placement.trigger,
        generation=instance.generation,
        input_ids=[message["id"] for message in placement.new_messages],
        base_id=placement.base_id,
        base_is_explicit=placement.base_is_explicit,
        assistant_id=new_id("msg"),
        body=request.body,
        options={**request.options, "answers": list(placement.answers)},
    )


def cancel_turn(turn_id: str) -> bool:
    """Stop a turn, running or queued. Durable and idempotent; `False` if it had ended.

    A running one keeps what it said; a queued one keeps its message. Nobody has to be connected.
    """
    turn = Turn.objects.select_related("fiber", "instance").get(pk=turn_id)
    cancelled = cancel_fiber(turn.fiber_id, reason="stopped")
    if cancelled:
        _ring_settled(turn)
    return cancelled


def cancel_all(instance: AgentInstance, *, queued_reason: str = "stopped") -> Sequence[Turn]:
    """Stop every turn of an instance that has not ended. `queued_reason` is for those that never began."""
    turns = list(turns_under_way(instance.pk).select_related("fiber", "instance"))
    for turn in turns:
        reason = queued_reason if turn.started_at is None else "stopped"
        if cancel_fiber(turn.fiber_id, reason=reason):
            _ring_settled(turn)
    return turns


def clear_instance(key: InstanceKey, *, origin: str = "") -> int:
    """Empty the current session: stop the running turn, skip the queued ones, forget the messages.

    A turn of the old generation writes nothing afterwards, whatever it was doing. Returns the new generation.
    """
    with stopping(key, queued_reason=SKIPPED_REASON) as instance:
        assert instance.session_id is not None
        pass_by(instance, Actor(user_id=key.owner_id, via="clear"), statuses=OPEN)
        remember_client_tools(instance, ())
        clear_session(instance.session_id)
        cleared = {"type": "chat.cleared", "origin": origin, "generation": instance.generation}
        ring_on_commit(group_of(key), cleared)
    return instance.generation


@contextmanager
def stopping(key: InstanceKey, *, queued_reason: str = "stopped") -> Iterator[AgentInstance]:
    """Open a transaction in which every turn of the instance is stopped and none can begin or end.

    Rows are locked in the runners' order, fibers first and the instance second; a turn that is admitted between the two
    makes it start over. Errors: `TurnConflict` when that happens again and again.
    """
    for _ in range(STOP_TRIES):
        with transaction.atomic():
            instance = ensure_instance(key)
            held = _lock_live(instance)
            instance = lock_instance(instance)
            if not set(_live_fibers(instance)) <= held:
                transaction.set_rollback(True)
                continue
            instance.generation += 1
            instance.save(update_fields=["generation"])
            cancel_all(instance, queued_reason=queued_reason)
            yield instance
            return
    raise TurnConflict("Messages keep arriving in this conversation; try again in a moment.")


def _live_fibers(instance: AgentInstance) -> list[str]:
    return list(turns_under_way(instance.pk).order_by("fiber_id").values_list("fiber_id", flat=True))


def _lock_live(instance: AgentInstance) -> set[str]:
    return {fiber_id for fiber_id in _live_fibers(instance) if hold_fiber(fiber_id)}


def _ring_settled(turn: Turn) -> None:
    key = key_of(turn.instance)
    ring_on_commit(group_of(key), {"type": "turn.settled", "turn_id": turn.id})
