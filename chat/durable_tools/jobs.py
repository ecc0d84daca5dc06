"""Calls that run elsewhere, as code and models look at them. Reads, and the waits of code that is no turn."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from chat.background.recovery import NOT_RESTARTED
from chat.core.durable_names import TOOL_CALL
from chat.instances.notifications import turn_group
from chat.instances.waiting import wait_until
from fibers.core.states import TERMINAL, FiberStatus
from fibers.errors import FiberNotFound
from fibers.models import Fiber
from sessions_app.core.messages import call_texts
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.calls.answers import output_in, texts_in
from tools_app.core.tool import ToolContext, tool
from tools_app.errors import ToolError, ToolTimeout

STOPPED: Final = "The call was stopped before it had a result"
LOST: Final = "The executor was lost too often"
PREFIX: Final = f"{TOOL_CALL}:"
_UNREADABLE: Final = "The executor gave an answer that cannot be read."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """A call that runs elsewhere. `status`: pending, running, completed, failed, cancelled or interrupted.

    `result` of one that has completed, `error` of any other that has ended; `progress` is its executor's last report.
    """

    job_id: str
    tool: str
    status: str
    result: JSONValue = None
    error: str = ""
    progress: JSONObject | None = None


def is_over(job_id: str) -> bool:
    """Whether a job has ended, or is gone."""
    return not Fiber.objects.filter(pk=job_id).exclude(status__in=TERMINAL).exists()


def job_group(job_id: str) -> str:
    """The group that is notified of a job's end."""
    return turn_group(job_id)


def find_job(job_id: str) -> Fiber | None:
    """The fiber of a call that runs elsewhere."""
    return Fiber.objects.filter(pk=job_id, name__startswith=PREFIX).first()


def answer_of_job(job_id: str) -> JSONValue:
    """The answer that the end of a job gives to who waits for it: for every kind of end."""
    job = find_job(job_id)
    return answer_of_row(job) if job is not None else _failure("The call is gone.")


def answer_of_row(job: Fiber) -> JSONObject:
    """The same for a row. One that is being stopped counts as stopped."""
    if job.status == FiberStatus.COMPLETED:
        answer: JSONObject = job.result
        return answer
    if job.status == FiberStatus.FAILED:
        return _failure(str((job.error or {}).get("message") or "The call failed."))
    if job.status == FiberStatus.INTERRUPTED:
        return _failure(call_texts.INTERRUPTED if job.reason == NOT_RESTARTED else f"{LOST} ({job.reason}).")
    return _failure(f"{STOPPED} ({job.reason or 'cancelled'}).")


def _failure(text: str) -> JSONObject:
    return {"output": text, "is_error": True}


def run_of(job: Fiber) -> ToolRun:
    """Describe a job."""
    answer = answer_of_row(job) if job.status in TERMINAL else {}
    is_done = job.status == FiberStatus.COMPLETED
    return ToolRun(
        job_id=job.pk,
        tool=job.payload["method"],
        status=FiberStatus(job.status).value,
        result=answer.get("output") if is_done else None,
        error="" if is_done else str(answer.get("output", "")),
        progress=job.stash,
    )


async def wait_for_tool_result(
    job_id: str, *, timeout_seconds: float | None = None, signal: asyncio.Event | None = None
) -> Any:
    """Wait for the end of a job, and return its result. For code that is no turn; a turn waits by `make_durable_tool`.

    Returns at once for one that has ended. `signal`: gives the wait up when it is set. The job goes on in any case.
    Errors: `ToolTimeout`; `ToolError` for a job that failed or was stopped, and for a wait that was given up;
    `FiberNotFound`.
    """
    if await db(find_job, job_id) is None:
        raise FiberNotFound(f"there is no job {job_id!r}")
    waiting = asyncio.ensure_future(
        wait_until(lambda: db(is_over, job_id), group=job_group(job_id), timeout_seconds=timeout_seconds)
    )
    given_up = asyncio.ensure_future(asyncio.Event().wait() if signal is None else signal.wait())
    try:
        await asyncio.wait({waiting, given_up}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise ToolError(f"The wait for job {job_id} was given up.")
        if not waiting.result():
            raise ToolTimeout(f"Job {job_id} has not ended within {timeout_seconds:g} s.")
    finally:
        for task in (waiting, given_up):
            task.cancel()
        await asyncio.wait({waiting, given_up})
    return output_in(await db(answer_of_job, job_id), unreadable=_UNREADABLE).value


async def _status(job_id: str, context: ToolContext) -> JSONObject:
    """Tell the status of a job that a tool of this conversation has started, and its result once there is one.

    Args:
        job_id: The id that the tool gave.
        context: Filled in.
    """
    job = await db(find_job, job_id)
    session_id = "" if context.guard is None else context.guard.session_id
    if job is None or not session_id or job.payload.get("session_id") != session_id:
        raise ToolError(f"This conversation has no job {job_id!r}.")
    for text in texts_in(job.result):
        context.note_origin(text.origin, text.source)
    run = run_of(job)
    status: JSONObject = {"jobId": run.job_id, "tool": run.tool, "status": run.status}
    if job.status in TERMINAL:
        return {**status, "result": run.result} if run.status == "completed" else {**status, "error": run.error}
    return {**status, **({"progress": run.progress} if run.progress else {})}


check_async_job_status: Final = tool(name="check_async_job_status", read_only=True)(_status)
"""The tool by which a model asks about a job that an async tool of its conversation has started."""
