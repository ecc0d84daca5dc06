"""API operations of programs that run calls of durable tools: claim, heartbeat, complete, fail.

A token that is limited to the scope `execute:<name>` opens these of one executor, and nothing else.
"""

from django.http import HttpRequest
from ninja import Router

from chat.durable_tools import programs
from chat.durable_tools.running import call_in
from chat.http.api.authentication import ExecutorAuth, SessionAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.executors import (
    CallCompletion,
    CallEndOut,
    CallFailure,
    CallHeartbeat,
    CallHeartbeatOut,
    CallsToClaim,
    ExecutorCallOut,
)
from fibers.errors import FiberNotFound

router = Router(tags=["executors"], auth=[ExecutorAuth(), SessionAuth()])


@router.post("/executors/{name}/claim", response=list[ExecutorCallOut], operation_id="claim_calls")
def executor_claim(request: HttpRequest, name: str, data: CallsToClaim) -> list[ExecutorCallOut]:
    """Claim calls that wait for this executor; an empty list where none does. Ask again after a moment."""
    claimed = programs.claim_calls(_program(request, name), data.tools, data.limit)
    return [_shown(call) for call in claimed]


@router.post(
    "/executors/{name}/heartbeat", response=CallHeartbeatOut, operation_id="renew_call", openapi_extra=declares(409)
)
def executor_heartbeat(request: HttpRequest, name: str, data: CallHeartbeat) -> CallHeartbeatOut:
    """Keep a claim, and say how far the call is. Send it at least three times within `lease_seconds`."""
    is_stopping = programs.renew_call(_program(request, name), data.job_id, data.fence, data.progress)
    return CallHeartbeatOut(is_stopping=is_stopping, lease_seconds=programs.lease_seconds())


@router.post(
    "/executors/{name}/complete", response=CallEndOut, operation_id="complete_call", openapi_extra=declares(409)
)
def executor_complete(request: HttpRequest, name: str, data: CallCompletion) -> CallEndOut:
    """Give the result of a call. Idempotent. A result of another form than was declared is refused with 422."""
    return CallEndOut(status=programs.complete_call(_program(request, name), data.job_id, data.fence, data.output))


@router.post("/executors/{name}/fail", response=CallEndOut, operation_id="fail_call", openapi_extra=declares(409))
def executor_fail(request: HttpRequest, name: str, data: CallFailure) -> CallEndOut:
    """Say that a call has failed. Idempotent."""
    status = programs.fail_call(
        _program(request, name), data.job_id, data.fence, data.message, may_retry=data.may_retry
    )
    return CallEndOut(status=status)


def _program(request: HttpRequest, name: str) -> programs.ExecutorProgram:
    if not programs.is_executor(name):
        raise FiberNotFound("There is no such executor.")
    return programs.ExecutorProgram(user_id=caller_of(request).user.pk, executor=name)


def _shown(claimed: programs.ClaimedCall) -> ExecutorCallOut:
    job = claimed.job
    call, context = call_in(job.pk, job.payload, job.attempt)
    return ExecutorCallOut(
        job_id=job.pk,
        fence=claimed.fence,
        tool=call.tool_name,
        input=call.input,
        call_id=call.call_id,
        agent=context.agent,
        instance_name=context.instance_name,
        attempt=context.attempt,
        idempotency_key=context.idempotency_key,
        shared=context.shared,
        output_schema=job.payload.get("output_schema"),
        lease_seconds=programs.lease_seconds(),
        created_at=job.created_at,
    )
