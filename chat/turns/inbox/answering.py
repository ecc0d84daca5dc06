"""The end of what a turn has taken from an inbox: answers and marks in the transaction that ends the turn.

So a crash leaves either the end of the turn with its answers, or neither. A call that waits for one gets it through a
fiber of its own, which locks the caller's.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now

from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.agent.values.messages import LatePolicy
from chat.core.durable_names import AGENT_INBOX_FIBER, AGENT_REPLY_FIBER
from chat.instances.notifications import notify_waiters
from chat.models import AgentInstance, AgentMessage, AgentMessageKind, Turn
from chat.turns.inbox.sending import wake
from chat.turns.state.inbox_rows import FROM_INBOX, take_messages, waiting_messages
from fibers import services
from fibers.models import FiberStep
from fibers.waits import WAIT_PREFIX
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

MAX_RETRIES: Final = 3
STOPPED: Final = "The agent was stopped."


def answer_taken(instance: AgentInstance, turn_ids: Sequence[str], text: str, *, failure: str = "") -> None:
    """Answer what these turns have taken and mark it, once. In the transaction that ends the last of them.

    Each sender gets one answer, and each call one of its own. `failure`: why there is none.
    """
    rows = list(AgentMessage.objects.filter(turn_id__in=turn_ids, processed_at=None).order_by("seq"))
    if rows:
        AgentMessage.objects.filter(pk__in=[row.pk for row in rows]).update(processed_at=Now())
        asked = {(row.sender, row.request_id): row for row in rows}
        answers = AgentMessage.objects.bulk_create(
            AgentMessage(
                room_id=row.room_id,
                sender=row.target,
                target=row.sender,
                role=AgentMessageKind.SYSTEM if failure else AgentMessageKind.ASSISTANT,
                content=failure or text,
                in_reply_to=row.request_id,
                turn_id=turn_ids[0],
                processed_at=Now(),  # it begins no turn of its own: two agents would go on answering each other
            )
            for row in asked.values()
        )
        for row, answer in zip(asked.values(), answers, strict=True):
            if row.call_chain:
                services.start_fiber(
                    AGENT_REPLY_FIBER, {"seq": answer.pk}, key=f"agent-reply:{answer.pk}", max_retries=MAX_RETRIES
                )
            if row.request_id:
                notify_waiters(row.request_id)
    if waiting_messages(instance).exists():
        services.start_fiber(
            AGENT_INBOX_FIBER,
            {"instance_id": instance.pk},
            key=f"agent-inbox:{turn_ids[0]}",
            max_retries=MAX_RETRIES,
        )


def refuse_waiting(turn_id: str) -> None:
    """Answer the inbox of a turn that never begins: it was stopped. In the transaction that stops it."""
    turn = Turn.objects.select_related("instance").filter(pk=turn_id).first()
    if turn is not None and turn.options.get(FROM_INBOX):
        take_messages(turn)
        answer_taken(turn.instance, [turn.pk], "", failure=STOPPED)


def attach(room_id: str, request_id: str, fiber_id: str, wait_key: str) -> JSONObject | None:
    """Have the reply to a request answer this wait of a fiber. Returns the one that is there already.

    Durability: committed; a reply that comes later finds it.
    """
    with transaction.atomic():
        row = AgentMessage.objects.select_for_update(of=("self",)).get(room_id=room_id, request_id=request_id)
        reply = AgentMessage.objects.filter(room_id=room_id, in_reply_to=request_id).first()
        if reply is not None:
            AgentMessage.objects.filter(pk=row.pk).update(wait=None)
            return as_answer(reply)
        AgentMessage.objects.filter(pk=row.pk).update(wait={"fiber_id": fiber_id, "key": wait_key})
        return None


def as_answer(reply: AgentMessage) -> JSONObject:
    """A reply for the call that waits for it."""
    return {"error" if reply.role == AgentMessageKind.SYSTEM else "response": reply.content}


def forget_wait(room_id: str, request_id: str) -> None:
    """Note that a call waits for this reply no longer: one that comes is late."""
    AgentMessage.objects.filter(room_id=room_id, request_id=request_id).update(wait=None)


def deliver(payload: JSONValue) -> None:
    """Give a reply to the call that waits for it; where none does any more, it is late. Safe to repeat."""
    assert isinstance(payload, dict)
    reply = AgentMessage.objects.select_related("room").filter(pk=payload["seq"]).first()
    if reply is None:
        return
    with transaction.atomic():
        request = (
            AgentMessage.objects.select_for_update(of=("self",))
            .filter(room_id=reply.room_id, request_id=reply.in_reply_to)
            .first()
        )
        wait = None if request is None else request.wait
    if wait == {}:
        return  # the call has not parked yet: it finds the reply when it does
    if wait is not None and _answers(wait, as_answer(reply)):
        forget_wait(reply.room_id, reply.in_reply_to)
    else:
        _keep_late(reply)


def _answers(wait: JSONObject, answer: JSONObject) -> bool:
    """Answer a wait; true also where an earlier attempt has done so."""
    if services.answer_wait(wait["fiber_id"], wait["key"], answer):
        return True
    steps = FiberStep.objects.filter(fiber_id=wait["fiber_id"], step_key=f"{WAIT_PREFIX}{wait['key']}")
    return any(step.value.get("answer") == answer for step in steps)


@transaction.atomic
def _keep_late(reply: AgentMessage) -> None:
    """Keep a reply that no call waits for: as the class of the agent that asked says."""
    if reply.late:
        return
    is_for_inbox = _late_policy(reply) == "inbox"
    AgentMessage.objects.filter(pk=reply.pk).update(late=True)
    if is_for_inbox:
        asked = AgentMessage.objects.get(room_id=reply.room_id, request_id=reply.in_reply_to)
        caller = _member(asked)
        if caller is not None:
            AgentMessage.objects.filter(pk=reply.pk).update(processed_at=None, turn=None)
            wake(caller)


def _member(asked: AgentMessage) -> AgentInstance | None:
    """The instance of the agent that asked."""
    turn = Turn.objects.select_related("instance").filter(pk=asked.asked_in_id).first()
    return None if turn is None else turn.instance


def _late_policy(reply: AgentMessage) -> LatePolicy:
    if not is_served(reply.target):
        return "keep"
    agent_class: Any = get_agent_class(reply.target)
    reference = agent_class.agent_references().get(reply.sender) if issubclass(agent_class, Think) else None
    return "keep" if reference is None else reference.late
