"""The end of a call that ran elsewhere: delivered to the turn that waits, or as a message. Sync.

A fiber of its own does so. It holds no other fiber's row but that of the turn that it wakes.
"""

from typing import Any

from django.db import transaction

from chat.core.durable_names import TOOL_CALL_ENDED
from chat.durable_tools.jobs import ToolRun, answer_of_row, find_job, run_of
from chat.instances.notifications import notify_conversation, notify_waiters
from chat.instances.rows import key_of
from chat.members.selectors import user_key
from chat.models import AgentInstance, Turn
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from chat.turns.policies import delegating
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.selectors import find_step
from fibers.services import answer_wait, start_fiber
from fibers.waits import WAIT_PREFIX, answered
from thinkproject.kernel.jsonvalue import JSONObject, dump
from tools_app.calls.answers import texts_in
from tools_app.calls.services import note_late
from tools_app.core.guard.rules import Spot
from tools_app.guard.standings import GuardScope, see

MAX_REPORT_CHARS = 20_000


def note_never_started(payload: JSONObject) -> None:
    """Have the end of a call delivered that no executor had begun, in the transaction that stops it."""
    if "call" not in payload:
        return
    key = str(payload["call"]["idempotency_key"])
    start_fiber(TOOL_CALL_ENDED, {"payload": payload}, key=f"durable:{key}"[:190] + ":never", max_retries=8)


def deliver(facts: JSONObject) -> None:
    """Give the end of a call to who waits for it. Safe to call again: the first answer counts."""
    job = _job(facts)
    if job is None:
        return
    payload = job.payload
    wait, answer = payload.get("wait"), answer_of_row(job)
    if wait is not None:
        answer_wait(wait["fiber_id"], wait["key"], answer)
        step = find_step(wait["fiber_id"], f"{WAIT_PREFIX}{wait['key']}")
        if job.status == FiberStatus.COMPLETED and (step is None or step.value != answered(answer)):
            note_late(job.pk)
    elif payload.get("notify"):
        _enter(job, answer)
    notify_waiters(job.pk)
    instance = AgentInstance.objects.filter(pk=payload.get("instance_id", "")).first()
    if instance is not None:
        notify_conversation(instance.owner_id, instance.pk)


def _job(facts: JSONObject) -> Fiber | None:
    if "fiber_id" in facts:
        return find_job(facts["fiber_id"])
    key = f"durable:{facts['payload']['call']['idempotency_key']}"[:200]
    return Fiber.objects.filter(key=key).first()


@transaction.atomic
def _enter(job: Fiber, answer: JSONObject) -> None:
    """Put a message about the end into the conversation and have it answered. Once for each job.

    Only where its history is the current one: elsewhere the status tool has it. Errors: those of admission.
    """
    payload, run = job.payload, run_of(job)
    instance = AgentInstance.objects.filter(pk=payload["instance_id"]).first()
    if instance is None or instance.session_id != payload["session_id"]:
        return
    about: JSONObject = {"job": {"jobId": run.job_id, "tool": run.tool, "status": run.status}}
    words: Any = {"role": "user", "parts": [{"type": "text", "text": _report(run)}], "metadata": about}
    starter = Turn.objects.filter(pk=payload["call"]["turn_id"]).first()
    request = TurnRequest(
        intake=Program(messages=[words], enters_at_start=True),
        idempotency_key=f"job:{job.pk}",
        body=about,
        options={"denied": starter.options["denied"]} if starter is not None and "denied" in starter.options else {},
        actor_id=None if starter is None else user_key(starter.author),
    )
    with delegating():
        turn = admit(key_of(instance), request).turn
    place = GuardScope(session_id=turn.session_id, scope=instance.pk, owner_id=instance.owner_id, turn_id=turn.pk)
    see(place, texts_in(answer), at=Spot(name=f"job {job.pk}"))


def _report(run: ToolRun) -> str:
    if run.status != "completed":
        return f"[Job {run.job_id} of {run.tool} has ended ({run.status}): {run.error}]"
    said = run.result if isinstance(run.result, str) else dump(run.result)
    return f"[Job {run.job_id} of {run.tool} has ended.]\n\n{said[:MAX_REPORT_CHARS]}"
