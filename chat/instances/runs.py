"""Reports of the end of a sub-agent's turn, with which a run may have ended, and of a parent's.

Each function starts a small fiber in the present transaction, and locks nothing: what the end means for the parent is
decided in the fiber's own transaction (`chat/turns/delegation/ending.py`).
"""

from typing import Final

from chat.core.durable_names import RUN_ENDED_FIBER, STOP_RUNS_FIBER, TOOL_CALL
from chat.instances.addresses import MAX_HOPS
from chat.models import AgentMessage, Turn
from chat.models.runs import AgentRun
from fibers.models import Fiber
from fibers.services import start_fiber
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

MAX_RETRIES: Final = 3


def note_turn_end(
    instance_id: str,
    turn_id: str,
    status: str,
    *,
    error: str = "",
    code: str = "",
    **more: JSONValue,
) -> None:
    """Have the runs of a child looked at: one of its turns has ended, or will not go on.

    `status`: completed, aborted, skipped, error, interrupted. `more`: its structured `output`, and the `finish` of its
    model's last call. One query where there is no such run.
    """
    facts: JSONObject = {"turn_id": turn_id, "status": status, "error": error, "code": code, **more}
    for run_id in list(AgentRun.objects.filter(child_id=instance_id, finished_at=None).values_list("pk", flat=True)):
        _start(run_id, f"{turn_id}:{status}", {"ended": facts})


def end_run_as(run_id: str, outcome: JSONObject, *, cause: str) -> None:
    """End a run with this outcome, unless it has ended before. `run_id`: key of its row."""
    _start(run_id, cause, {"outcome": outcome})


def _start(run_id: str, cause: str, payload: JSONObject) -> None:
    start_fiber(
        RUN_ENDED_FIBER, {"run_id": run_id, **payload}, key=f"run:{run_id}:{cause}"[:200], max_retries=MAX_RETRIES
    )


def stop_runs_of(turn_id: str, reason: str) -> None:
    """Stop what works for a turn that has not ended well: runs, executors, other agents. No call waits for them.

    Three queries at least.
    """
    runs = AgentRun.objects.filter(parent_turn_id=turn_id, finished_at=None, is_detached=False)
    calls = AgentMessage.objects.filter(asked_in_id=turn_id, processed_at=None, wait__isnull=False)
    if runs.exists() or calls.exists() or executors_of(turn_id):
        start_fiber(
            STOP_RUNS_FIBER,
            {"turn_id": turn_id, "reason": reason},
            key=f"stop-runs:{turn_id}",
            max_retries=MAX_RETRIES,
        )


def executors_of(turn_id: str) -> list[str]:
    """Ids of the fibers that run calls for which a turn waits."""
    of_instance = Turn.objects.filter(pk=turn_id).values("instance_id")
    live = Fiber.objects.filter(scope__in=of_instance, name__startswith=f"{TOOL_CALL}:", finished_at=None)
    return [job.pk for job in live.only("payload") if _waits_for(turn_id, job.payload)]


def _waits_for(turn_id: str, payload: JSONObject) -> bool:
    return bool(payload.get("wait")) and bool(payload["call"]["turn_id"] == turn_id)


def forget_runs_of(instance_ids: list[str]) -> None:
    """End the runs for which these instances work, in the transaction that deletes them."""
    rows = AgentRun.objects.filter(child_id__in=instance_ids, finished_at=None).exclude(parent_id__in=instance_ids)
    for run in list(rows):
        outcome: JSONObject = {
            "ok": False,
            "runId": run.run_id,
            "status": "aborted",
            "error": "The sub-agent was deleted.",
            "reason": "deleted",
            "retryable": False,
        }
        end_run_as(run.pk, outcome, cause="deleted")


def shares_servers_of(instance_id: str) -> tuple[str, ...]:
    """Ids of the instances above a sub-agent whose MCP servers it has, as its run says. A query for each and one."""
    found: list[str] = []
    while len(found) < MAX_HOPS:
        row = AgentRun.objects.filter(child_id=found[-1] if found else instance_id).only("parent_id", "options").first()
        if row is None or row.options.get("mcp") != "shared":
            break
        found.append(row.parent_id)
    return tuple(found)
