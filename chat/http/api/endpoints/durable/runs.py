"""API operations on runs: agents that work for a conversation. Start, read, stop."""

from dataclasses import asdict, replace
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import StringConstraints

from chat.access.auth import open_instance, open_run
from chat.conversations import abilities
from chat.errors import RunNotFound
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.abilities import RunIn
from chat.http.api.schemas.runs import RunOut, RunPageOut, RunTreeOut, StopOut
from chat.models import AgentRun, Role
from chat.sub_agents import views as runs
from chat.turns.delegation.stopping import stop_run

router = Router(tags=["runs"])
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")]


@router.get("/instances/{instance_id}/runs", response=RunPageOut, operation_id="list_runs")
def run_list(request: HttpRequest, instance_id: str, cursor: Cursor = "", limit: Limit = 50) -> object:
    """Runs of other agents for a conversation, newest first. Those that were cleared away are left out."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.READER)
    page = runs.run_page(instance.pk, cursor=cursor, limit=limit)
    return RunPageOut(items=[RunOut(**asdict(run)) for run in page.items], next_cursor=page.next_cursor)


@router.post(
    "/instances/{instance_id}/runs",
    response={201: RunOut},
    operation_id="start_run",
    openapi_extra=declares(409, 429, 500, 503),
)
def run_start(request: HttpRequest, instance_id: str, data: RunIn) -> object:
    """Have another agent work for a conversation; no call waits for it. One that its class lets clients open.

    It counts as a message of yours. The same `run_id` is the same run. What keeps it from beginning is its outcome.
    """
    parent = open_instance(caller_of(request).user, instance_id)
    run = abilities.begin_run(parent, data.agent, data.input, run_id=data.run_id or "", display=data.display)
    found = runs.run_with_counts(run.pk)
    if found is None:
        raise RunNotFound
    if run.outcome is not None and found.outcome is None:  # refused: a fiber is about to store it
        found = replace(found, outcome=run.outcome, status=run.outcome["status"])
    return Status(201, RunOut(**asdict(found)))


@router.get("/instances/{instance_id}/runs/tree", response=RunTreeOut, operation_id="get_run_tree")
def run_tree(request: HttpRequest, instance_id: str) -> object:
    """The newest runs of a conversation with the runs below them; 200 at most."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.READER)
    found = runs.run_tree(instance.pk)
    return RunTreeOut(items=[RunOut(**asdict(run)) for run in found], is_complete=len(found) < runs.MAX_TREE)


@router.get("/runs/{run_id}", response=RunOut, operation_id="get_run")
def run_detail(request: HttpRequest, run_id: str) -> object:
    """One run, by its `id`."""
    found = runs.run_with_counts(_opened(request, run_id, Role.READER).pk)
    if found is None:
        raise RunNotFound
    return RunOut(**asdict(found))


@router.post("/runs/{run_id}/stop", response=StopOut, operation_id="stop_run")
def run_stop(request: HttpRequest, run_id: str) -> object:
    """Stop a run and what is below it; what it has said so far is kept. Safe to call twice."""
    run = _opened(request, run_id)
    return StopOut(stopped=run.outcome is None and stop_run(run))


def _opened(request: HttpRequest, run_id: str, needs: Role = Role.OWNER) -> AgentRun:
    return open_run(caller_of(request).user, run_id, needs=needs)
