"""Executors that are programs of people: they claim calls over HTTP, renew, complete and fail them. Sync.

The lease is that of a fiber. A program has no process here, so its claims carry the person's id as their worker. It
gets the calls of that person's own conversations, and those of all with the permission `think_tools.run_calls_of_all`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import Permission
from django.db import transaction
from django.db.models import Q

from chat.background.recovery import NOT_RESTARTED
from chat.durable_tools.declared import EXECUTOR_PATTERN, fiber_name
from chat.durable_tools.jobs import PREFIX
from chat.durable_tools.running import begun_key, check_answer, start_ending
from fibers.conf import fiber_settings
from fibers.core.states import FiberEvent, FiberStatus
from fibers.errors import FiberNotFound, LeaseLost
from fibers.models import Fiber, FiberQuerySet, FiberStep
from fibers.models.served import ExecutorKind
from fibers.queue import leases
from fibers.queue.leases import Settlement
from fibers.queue.presence import note_served
from fibers.registry import resume_windows
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.calls.answers import answer_of
from tools_app.core.tool_calls import ToolResult

ALL_CALLS: Final = "run_calls_of_all"
LOOK: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorProgram:
    """A person's program, and the executor that it is."""

    user_id: Any
    executor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedCall:
    """A call that was claimed. The fence goes with everything that is said of it."""

    job: Fiber
    fence: int


def claim_calls(program: ExecutorProgram, tools: Sequence[str], limit: int) -> list[ClaimedCall]:
    """Claim up to so many calls of these tools, the longest waiting first. A transaction for each."""
    names = [fiber_name(f"{program.executor}/{tool}") for tool in tools]
    note_served(names, ExecutorKind.PROGRAM)
    waiting = _own(program, Fiber.objects.claimable(names).resumable(resume_windows()))
    claimed: list[ClaimedCall] = []
    for fiber_id in list(waiting.order_by("available_at", "pk").values_list("pk", flat=True)[:LOOK]):
        if len(claimed) == limit:
            break
        won = leases.claim(fiber_id, _worker(program), names=names)
        if won is not None and _may_run(won):
            claimed.append(ClaimedCall(job=won.fiber, fence=won.fiber.fence))
    return claimed


def renew_call(program: ExecutorProgram, job_id: str, fence: int, progress: JSONObject | None) -> bool:
    """Prolong a claim and store how far the call is; true where it is to stop. Errors: `LeaseLost`, `FiberNotFound`."""
    job = _held(program, job_id)
    with leases.fenced(job.pk, fence):
        if progress is not None:
            Fiber.objects.filter(pk=job.pk).update(stash=progress)
        return Fiber.objects.filter(pk=job.pk).exclude(cancel_requested_at=None).exists()


def complete_call(program: ExecutorProgram, job_id: str, fence: int, output: JSONValue) -> FiberStatus:
    """Store the result and end the claim; a call that was to stop counts as stopped.

    Durability: said again after a lost answer, it gives the status that stands. Errors: `LeaseLost`, `FiberNotFound`;
    `ResultInvalid` for a result of another form than was declared: the claim stands.
    """
    job = _held(program, job_id)
    if _is_settled(job, fence):
        return FiberStatus(job.status)
    answer = answer_of(ToolResult(output=output))
    check_answer(job.payload, answer)
    with transaction.atomic():
        settlement = Settlement(event=FiberEvent.COMPLETE, progress=job.progress, result=answer)
        status = leases.settle(job.pk, fence, settlement)
        start_ending(job.pk, job.payload)
    return status


def fail_call(program: ExecutorProgram, job_id: str, fence: int, message: str, *, may_retry: bool) -> FiberStatus:
    """End the claim with an error; the call is tried again where it has retries left. As `complete_call`."""
    job = _held(program, job_id)
    if _is_settled(job, fence):
        return FiberStatus(job.status)
    settlement = leases.failed(
        "tool_error",
        message,
        will_retry=may_retry and job.retries < job.max_retries,
        delay_seconds=leases.RETRY.delay_seconds(job.retries + 1, jitter=0.5),
        ended_itself=False,
    )
    return leases.settle(job.pk, fence, settlement)


def is_executor(name: str) -> bool:
    """Whether an executor may have this name."""
    return EXECUTOR_PATTERN.match(name) is not None


def lease_seconds() -> float:
    """Seconds that a claim lasts without being renewed."""
    return fiber_settings.lease_seconds


def _may_run(won: leases.Claim) -> bool:
    """Whether a claimed call may be handed out; one that was cut and may not run twice is given up instead."""
    job, begun = won.fiber, begun_key(won.fiber.retries)
    if job.payload.get("reruns", True):
        return True
    if any(key == begun for key, _ in won.entries):
        given_up = Settlement(event=FiberEvent.SEAL, progress=job.progress, reason=NOT_RESTARTED, ended_itself=False)
        leases.settle(job.pk, job.fence, given_up)
        return False
    with leases.fenced(job.pk, job.fence):
        FiberStep.objects.create(fiber=job, step_key=begun, attempt=job.attempt)
    return True


def _own(program: ExecutorProgram, fibers: FiberQuerySet) -> FiberQuerySet:
    given = Q(user=program.user_id) | Q(group__user=program.user_id)  # a superuser has it only where it was given
    sees_all = Permission.objects.filter(given, codename=ALL_CALLS, content_type__app_label="think_tools").exists()
    return fibers if sees_all else fibers.filter(owner_id=program.user_id)


def _held(program: ExecutorProgram, job_id: str) -> Fiber:
    """A call of this executor that the person may run. Errors: `FiberNotFound` for any other."""
    found = _own(program, Fiber.objects.filter(pk=job_id, name__startswith=f"{PREFIX}{program.executor}/")).first()
    if found is None:
        raise FiberNotFound("There is no such call.")
    if found.status == FiberStatus.RUNNING and found.worker != _worker(program):
        raise LeaseLost
    return found


def _is_settled(job: Fiber, fence: int) -> bool:
    """Whether the holder of this fence has ended the call. What tidies up after a failure advances the fence."""
    is_tidied = job.status == FiberStatus.FAILED and job.fence == fence + 1
    return job.finished_at is not None and (job.fence == fence or is_tidied)


def _worker(program: ExecutorProgram) -> str:
    return f"program:{program.user_id}:{program.executor}"
