"""What is done and looked up beside the product. Runs within it, called by a `Hand`."""

from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db.models import F

from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle
from chat.models import StreamSegment, Turn
from chat.models.runs import AgentRun
from fibers.models import Fiber, FiberStep
from fibers.models.schedules import ScheduleRun
from fibers.schedules import services
from sessions_app.messages import selectors


def _handle(agent: str, room: str) -> AgentHandle:
    owner = get_user_model()._default_manager.get(username="alice")
    return AgentHandle(InstanceKey(owner_id=owner.pk, agent=agent, name=room))


def ask(agent: str, room: str, script: str) -> None:
    """Have a turn accepted."""
    async_to_sync(_handle(agent, room).submit_messages)(script)


def statuses(agent: str) -> list[str]:
    """How the turns of all conversations with an agent stand."""
    rows = Turn.objects.filter(instance__agent=agent).order_by("pk")
    return list(rows.values_list("fiber__status", flat=True))


def answers(agent: str) -> list[str]:
    """The texts of the answers of all conversations with an agent."""
    turns = list(Turn.objects.filter(instance__agent=agent).order_by("pk"))
    stored = [selectors.get_message(turn.session_id, turn.assistant_id) for turn in turns]
    return [
        "".join(part["text"] for part in each.to_ui()["parts"] if part["type"] == "text")
        for each in stored
        if each is not None
    ]


def outcomes() -> list[Any]:
    """How all runs ended; nothing for one that is under way."""
    return list(AgentRun.objects.order_by("pk").values_list("outcome", flat=True))


def pass_days(days: float) -> None:
    """Let everything be this much older, as the database's clock sees it. Nothing may be running."""
    span = timedelta(days=days)
    for model, *names in (
        (AgentRun, "created_at", "progress_at"),
        (Turn, "accepted_at", "started_at"),
        (StreamSegment, "created_at"),
        (FiberStep, "created_at"),
        (Fiber, "created_at", "parked_until"),
    ):
        for name in names:
            model.objects.exclude(**{name: None}).update(**{name: F(name) - span})
    for fiber in Fiber.objects.filter(status="parked"):
        Fiber.objects.filter(pk=fiber.pk).update(waits=[_earlier(wait, span) for wait in fiber.waits])


def _earlier(wait: Any, span: timedelta) -> Any:
    until = wait.get("until")
    return {**wait, "until": (datetime.fromisoformat(until) - span).isoformat()} if until else wait


def tick_every(seconds: float) -> str:
    """Have a method run every so many seconds; returns the schedule's id."""
    return async_to_sync(_handle("ticker", "clock").schedule_every)(seconds, "tick").id


def pause_schedule(schedule_id: str) -> bool:
    """Hold it."""
    return services.pause_schedule(schedule_id)


def runs(schedule_id: str) -> list[dict[str, str]]:
    """The runs of a schedule, oldest first: when each was due, began, and ended (empty: it goes on)."""
    found = ScheduleRun.objects.filter(schedule_id=schedule_id).select_related("fiber").order_by("due_at")
    return [
        {
            "due": run.due_at.isoformat(),
            "began": run.created_at.isoformat(),
            "ended": run.fiber.finished_at.isoformat() if run.fiber.finished_at else "",
        }
        for run in found
    ]
