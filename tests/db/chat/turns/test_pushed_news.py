"""News that turns and schedules note for people who are elsewhere, in the transactions that commit them."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from chat.models import NoticeChoices, PushDevice, Turn
from fibers.models import Fiber
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.answering import Desk, desk
from tests.db.chat.turns.agents.planning import QUICK, no_tasks, run_due
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

__all__ = ["desk", "no_tasks"]  # fixtures

pytestmark = pytest.mark.django_db(transaction=True)


def with_device(room: Room) -> None:
    """Its owner has a device, and wants nothing pushed to it: what is noted is looked at here, and goes nowhere."""
    owner_id = room.key.owner_id
    assert owner_id is not None
    NoticeChoices.objects.create(user_id=owner_id, decision=False, answer=False, schedule=False)
    PushDevice.objects.create(user_id=owner_id, name="A device", endpoint="https://push.example/a")


def noted() -> list[dict[str, Any]]:
    """The news that were noted."""
    return [row.payload for row in Fiber.objects.filter(name="chat.notice").order_by("created_at", "pk")]


async def test_a_question_is_noted_once(desk: Desk) -> None:
    await db(with_device, desk.room)
    await desk.room.admit('call tool pay {"amount": 5}\nsay: It says {result}.')
    await run_until_idle()
    [call] = await desk.calls()
    [payload] = await db(noted)
    row = await desk.row(call)
    assert payload == {"kind": "decision", "call": row.pk, "instance_id": row.scope}


async def test_only_an_answer_that_took_long_is_noted(make_room: MakeRoom) -> None:
    room = make_room()
    await db(with_device, room)
    await room.say("say: quick")
    assert await Fiber.objects.filter(name="chat.notice").acount() == 0
    slow = await room.admit("say: slow")
    await Turn.objects.filter(pk=slow.turn.pk).aupdate(accepted_at=F("accepted_at") - timedelta(seconds=40))
    await run_until_idle()
    [payload] = await db(noted)
    assert (payload["kind"], payload["turn_id"], payload["user_id"]) == ("answer", slow.turn.pk, room.key.owner_id)


async def test_a_schedule_whose_method_or_prompt_fails_is_noted(planner_room: Room) -> None:
    await db(with_device, planner_room)
    await run_due(await planner_room.handle.schedule(3600, "remind", {"about": "tea"}))
    assert await Fiber.objects.filter(name="chat.notice").acount() == 0
    broken = await planner_room.handle.schedule(3600, "stumble", 100, retry=QUICK)
    await run_due(broken)
    failing = await planner_room.handle.schedule(3600, prompt="error 400")
    await run_due(failing)
    payloads = await db(noted)
    assert [each["kind"] for each in payloads] == ["schedule", "schedule"], payloads
    assert payloads[0]["schedule_id"] == broken.id
    assert "turn_id" in payloads[1]
