"""Runs of a note for its inbox, made row by row: what the maker of runs stores, without its waits."""

from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from chat.instances.notifications import notify_run
from chat.instances.rows import ensure_instance
from chat.models import AgentRun, Turn
from chat.runtime.submissions import submit
from tests.db.chat.notes import keys
from thinkproject.kernel.jsonvalue import JSONObject


def start_run(owner: User, script: str, run_id: str = "r1", *, notify: bool = True, **fields: Any) -> AgentRun:
    """Store a run of a note of its own, and have its turn accepted."""
    root, _ = keys(owner)
    child = root.below("note-under-test", run_id)
    parent = ensure_instance(root)
    done = submit(child, [{"role": "user", "parts": [{"type": "text", "text": script}]}], metadata={})
    turn = Turn.objects.get(request_id=done.request_id, instance__name=run_id)
    run = AgentRun.objects.create(
        parent=parent,
        child=turn.instance,
        owner=owner,
        run_id=run_id,
        agent=child.agent,
        turn=turn,
        **{"call_id": "c1", "display": {"name": "Note"}, "input_preview": {"task": script}} | fields,
    )
    if notify:
        notify_run(root, run.pk)
    return run


def end_run(run: AgentRun, *, notify: bool = True, **outcome: Any) -> None:
    """Store how a run ended for its parent, unless it has ended."""
    end: JSONObject = {"ok": True, "status": "completed", "summary": "Noted."} | outcome
    AgentRun.objects.filter(pk=run.pk, finished_at=None).update(outcome=end, finished_at=timezone.now())
    if notify and run.owner is not None:
        notify_run(keys(run.owner)[0], run.pk)
