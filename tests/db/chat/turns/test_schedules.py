"""Schedules of agents: by code, by declaration, by the model; each occurrence runs, whatever crashes."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from chat import durables
from chat.errors import QuotaExceeded
from chat.instance.instance import make_agent
from chat.instances.rows import find_instance
from chat.models import Turn, TurnTrigger
from chat.operations.removal import delete_instance
from chat.schedules import reconciling as declared_pass
from chat.schedules import runs as scheduled_runs
from chat.schedules.outcomes import LEFT_OUT_REASON
from chat.think import ScheduleCriteria
from fibers.context import FiberContext
from fibers.core.schedules.grammar import parse_sentence
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.states import FiberStatus
from fibers.errors import ScheduleInvalid, SchedulesFull
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules import services
from fibers.services import expire_wait
from fibers.testing import die, run_until_idle, worker
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.planning import QUICK, RAN, SPOKEN, Planner, no_tasks, rows, run_due
from thinkproject.kernel.aio import db
from thinkproject.kernel.retry import RetryPolicy
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, text_of

__all__ = ["no_tasks"]  # a fixture


# --- by code ---------------------------------------------------------------------------------------------------------


async def test_a_method_gets_its_payload_and_its_occurrence(planner_room: Room) -> None:
    made = await planner_room.handle.schedule(3600, "remind", {"about": "tea"})
    await run_due(made)
    [(name, payload, occurrence)] = RAN
    assert (name, payload, occurrence.schedule_id, occurrence.is_test) == ("remind", {"about": "tea"}, made.id, False)
    assert await planner_room.handle.get_schedule(made.id) is None  # what was due once is over


async def test_a_prompt_becomes_an_ordinary_turn_that_says_where_it_comes_from(planner_room: Room) -> None:
    made = await planner_room.handle.schedule(
        "0 9 * * *", prompt="say: Good morning.", zone="Europe/Berlin", title="Morning"
    )
    await run_due(made)
    assert await planner_room.texts() == [("user", "say: Good morning."), ("assistant", "Good morning.")]
    [question, _answer] = await planner_room.transcript()
    assert question["metadata"]["schedule"]["id"] == made.id
    assert question["metadata"]["schedule"]["title"] == "Morning"
    assert question["metadata"]["timeZone"] == "Europe/Berlin"
    turn = await db(Turn.objects.get)
    assert turn.trigger == TurnTrigger.PROGRAM
    assert turn.idempotency_key is not None
    assert turn.idempotency_key.startswith(f"schedule:{made.id}:")
    run = await db(lambda: ScheduleRun.objects.select_related("fiber").get())
    assert run.fiber.result == {"turn_id": turn.pk}


async def test_prompts_that_are_due_keep_to_the_pace_of_their_owner(planner_room: Room, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 3
    await planner_room.say("say: mine")
    for number in range(5):
        await planner_room.handle.schedule(0, prompt=f"say: {number}")
    await run_until_idle()
    assert await db(Turn.objects.count) == 3
    runs = Fiber.objects.filter(name__startswith="chat.scheduled_run")
    assert sorted(await db(lambda: list(runs.values_list("status", flat=True)))) == ["completed"] * 2 + ["parked"] * 3
    with pytest.raises(QuotaExceeded):
        await planner_room.say("say: mine too")

    def pass_a_minute() -> None:
        minute = timedelta(minutes=1)
        Fiber.objects.update(created_at=F("created_at") - minute)
        for fiber in runs.filter(status=FiberStatus.PARKED):
            expire_wait(fiber.pk, fiber.waits[0]["key"])

    await db(pass_a_minute)
    await run_until_idle()
    assert await db(Turn.objects.count) == 6
    assert await db(lambda: set(runs.values_list("status", flat=True))) == {"completed"}
    assert sorted(text for role, text in await planner_room.texts() if role == "assistant") == [
        *("0", "1", "2", "3", "4"),
        "mine",
    ]


async def test_a_prompt_whose_owner_never_has_room_fails_with_the_reason(
    planner_room: Room, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled_runs, "PACE_TRIES", 0)
    settings.THINK_TURNS_PER_MINUTE = 1
    await planner_room.say("say: mine")
    made = await planner_room.handle.schedule(0, prompt="say: later")
    await run_due(made)
    fiber = await db(lambda: ScheduleRun.objects.select_related("fiber").get().fiber)
    assert (fiber.status, fiber.error["code"]) == (FiberStatus.FAILED, "quota_exceeded")


async def test_a_method_may_speak(planner_room: Room) -> None:
    made = await planner_room.handle.schedule_every(60, Planner.speak, "hello")
    async with worker(), asyncio.timeout(20):
        await db(services.run_now, made.id)
        await SPOKEN["now"].wait()
    assert RAN == [("spoke", "completed")]
    assert await planner_room.texts() == [("user", "say: hello"), ("assistant", "hello")]


async def test_an_agent_schedules_inside_its_own_methods(planner_room: Room) -> None:
    agent = make_agent(planner_room.key)
    assert isinstance(agent, Planner)
    made = await agent.schedule(datetime(2040, 1, 1, 9, tzinfo=UTC), agent.remind)
    assert (made.callback, made.next_at) == ("remind", datetime(2040, 1, 1, 9, tzinfo=UTC))
    assert await agent.get_schedule(made.id) == made


@pytest.mark.parametrize("when", ["0 9 * * *", datetime(2040, 1, 1, 9)])  # noqa: DTZ001 - without a zone, as developers do
async def test_a_time_of_day_without_a_zone_is_refused_as_in_a_declaration(planner_room: Room, when: Any) -> None:
    with pytest.raises(ScheduleInvalid, match="say in which time zone"):
        await planner_room.handle.schedule(when, "remind")
    with pytest.raises(ScheduleInvalid, match="say in which time zone"):
        parse_sentence("every day at 09:00")
    assert await db(rows) == []


async def test_cron_is_stored_once_a_delay_each_time(planner_room: Room) -> None:
    handle = planner_room.handle
    again = [(await handle.schedule("0 9 * * *", "remind", 1, zone="UTC")).id for _ in range(2)]
    every = [(await handle.schedule_every(60, "remind", 1)).id for _ in range(2)]
    delays = [(await handle.schedule(60, "remind", 1)).id for _ in range(2)]
    asked = [(await handle.schedule(90, "remind", 1, idempotent=True)).id for _ in range(2)]
    each = [(await handle.schedule("0 9 * * *", "remind", 1, zone="UTC", idempotent=False)).id for _ in range(2)]
    assert [len(set(ids)) for ids in (again, every, delays, asked, each)] == [1, 1, 2, 1, 2]


async def test_schedules_are_found_by_kind_callback_and_time(planner_room: Room) -> None:
    handle = planner_room.handle
    soon = await handle.schedule(60, "remind")
    late = await handle.schedule(7200, "stumble", 1)
    cron = await handle.schedule("0 9 * * *", prompt="say: x", zone="UTC")
    assert {each.id for each in await handle.get_schedules()} == {soon.id, late.id, cron.id}
    assert [each.id for each in await handle.get_schedules(ScheduleCriteria(kind="cron"))] == [cron.id]
    assert [each.id for each in await handle.get_schedules(ScheduleCriteria(callback="stumble"))] == [late.id]
    assert late.next_at is not None
    window = ScheduleCriteria(kind="delay", end=late.next_at - timedelta(seconds=1))
    assert [each.id for each in await handle.get_schedules(window)] == [soon.id]


async def test_a_cancelled_schedule_is_gone_and_an_unknown_one_is_not_cancelled(
    planner_room: Room, make_room: MakeRoom
) -> None:
    made = await planner_room.handle.schedule(60, "remind")
    other = make_room("planner", "other").handle
    await other.schedule(60, "remind")
    assert not await other.cancel_schedule(made.id)
    assert await planner_room.handle.cancel_schedule(made.id)
    assert not await planner_room.handle.cancel_schedule(made.id)
    assert not await planner_room.handle.cancel_schedule("sch_none")


@pytest.mark.parametrize(
    ("when", "options"),
    [
        (60, {"callback": "missing"}),
        (60, {"callback": "_work"}),
        (60, {"callback": "remind", "prompt": "say: x"}),
        (60, {}),
        (60, {"prompt": "say: x", "payload": 1}),
        (-1, {"callback": "remind"}),
        ("0 9 * *", {"callback": "remind"}),
        ("0 9 * * *", {"callback": "remind", "zone": "Mars/Base"}),
        (60, {"callback": "remind", "retry": RetryPolicy(attempts=99)}),
    ],
)
async def test_what_cannot_run_is_refused_at_once(planner_room: Room, when: Any, options: Any) -> None:
    with pytest.raises(ScheduleInvalid):
        await planner_room.handle.schedule(when, **options)
    assert await db(rows) == []


async def test_a_user_has_so_many_schedules_at_most(planner_room: Room, settings: Any) -> None:
    settings.THINK_SCHEDULES_PER_USER = 1
    await planner_room.handle.schedule(60, "remind")
    with pytest.raises(SchedulesFull):
        await planner_room.handle.schedule(60, "remind")


async def test_a_method_that_raises_is_tried_again_within_its_run(planner_room: Room) -> None:
    made = await planner_room.handle.schedule(60, "stumble", 3, retry=QUICK)
    await run_due(made)
    assert len(RAN) == 3
    assert len({key for _name, key in RAN}) == 1
    assert (await db(Fiber.objects.get)).status == FiberStatus.COMPLETED


async def test_a_method_that_keeps_raising_fails_its_run_and_the_next_is_armed(planner_room: Room) -> None:
    made = await planner_room.handle.schedule_every(60, "stumble", 99, retry=QUICK)
    await run_due(made)
    await run_due(made)
    fibers = await db(lambda: list(Fiber.objects.all()))
    assert [fiber.status for fiber in fibers] == [FiberStatus.FAILED] * 2
    assert fibers[0].error["code"] == "agent_code_failed"
    assert "not yet" not in fibers[0].error["message"]  # it may be a secret: it is in the log
    assert (await planner_room.handle.get_schedules())[0].status == ScheduleStatus.ACTIVE


async def test_a_worker_that_dies_after_asking_asks_once(planner_room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await planner_room.handle.schedule_every(60, prompt="say: once")
    run = scheduled_runs.run_scheduled
    deaths = [1]

    async def run_and_die(context: FiberContext, make: Any) -> Any:
        done = await run(context, make)
        if deaths:
            deaths.pop()
            die(context)
        return done

    monkeypatch.setattr(durables, "run_scheduled", run_and_die)
    await run_due(made)
    assert deaths == []
    assert await planner_room.texts() == [("user", "say: once"), ("assistant", "once")]
    fiber = await db(lambda: Fiber.objects.get(name="chat.scheduled_run:planner"))
    assert (fiber.status, fiber.attempt) == (FiberStatus.COMPLETED, 2)


async def test_a_method_whose_worker_dies_runs_again_with_the_same_key(
    planner_room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await planner_room.handle.schedule(60, "remind")
    run = scheduled_runs.run_scheduled

    async def run_and_die(context: FiberContext, make: Any) -> Any:
        done = await run(context, make)
        if len(RAN) == 1:
            die(context)
        return done

    monkeypatch.setattr(durables, "run_scheduled", run_and_die)
    await run_due(made)
    assert len(RAN) == 2
    assert RAN[0] == RAN[1]


async def test_a_prompt_is_left_out_while_the_turn_before_has_not_ended(planner_room: Room) -> None:
    made = await planner_room.handle.schedule_every(60, prompt="say: one")
    await db(lambda: Schedule.objects.update(next_at=Now() - timedelta(seconds=1)))
    await run_until_idle()
    turn = await db(Turn.objects.get)
    await db(lambda: Turn.objects.update(finished_at=None))  # as if it waited for a person
    await run_due(made)
    assert await db(Turn.objects.count) == 1
    last = await db(lambda: Fiber.objects.filter(name__startswith="chat.scheduled_run:").order_by("-pk").first())
    assert last is not None
    assert (last.status, last.reason) == (FiberStatus.CANCELLED, LEFT_OUT_REASON)
    assert turn.pk


async def test_schedules_go_with_their_conversation(planner_room: Room) -> None:
    made = await planner_room.handle.schedule_every(60, "remind")
    await run_due(made)
    instance = await db(find_instance, planner_room.key)
    assert instance is not None
    await db(delete_instance, instance)
    assert await db(rows) == []
    assert await db(ScheduleRun.objects.count) == 0


async def test_a_run_whose_schedule_was_cancelled_does_nothing(planner_room: Room) -> None:
    made = await planner_room.handle.schedule_every(60, "remind")
    await db(services.run_now, made.id)
    await planner_room.handle.cancel_schedule(made.id)
    await run_until_idle()
    assert RAN == []
    assert (await db(Fiber.objects.get)).reason == services.CANCELLED


# --- declared --------------------------------------------------------------------------------------------------------

MORNING = {"schedule": "every day at 09:00 in Europe/Berlin", "prompt": "say: Morning."}


async def test_what_a_class_declares_is_kept_in_step(planner_room: Room) -> None:
    Planner.tasks = {"morning": MORNING, "tidy": {"schedule": "every 2 hours", "handler": Planner.sweep_up}}
    await planner_room.say("say: hello")
    first = {row.declaration: row for row in await db(rows)}
    assert set(first) == {"morning", "tidy"}
    assert (first["morning"].spec, first["morning"].zone) == ("0 9 * * *", "Europe/Berlin")
    await planner_room.say("say: again")
    assert {row.pk: row.revision for row in await db(rows)} == {row.pk: row.revision for row in first.values()}
    Planner.tasks = {"morning": {**MORNING, "schedule": "every weekday at 08:30 in Europe/Berlin"}}
    await planner_room.say("say: changed")
    [changed] = await db(rows)
    assert (changed.pk, changed.spec) == (first["morning"].pk, "30 8 * * 1-5")
    Planner.tasks = {}
    await planner_room.say("say: gone")
    assert await db(rows) == []


async def test_a_declared_prompt_and_a_declared_handler_run(planner_room: Room) -> None:
    Planner.tasks = {"morning": MORNING, "tidy": {"schedule": "every 2 hours", "handler": "sweep_up"}}
    await planner_room.say("say: hello")
    morning, tidy = await db(rows)
    await run_due(morning)
    assert (await planner_room.texts())[-2:] == [("user", "say: Morning."), ("assistant", "Morning.")]
    with_method = {"schedule": "every 2 hours", "handler": make_agent(planner_room.key).sweep_up}  # type: ignore[attr-defined]
    for handler in ({"schedule": "every 2 hours", "handler": "sweep_up"}, with_method):
        Planner.tasks = {"tidy": handler}
        await run_due(tidy)
    assert [name for name, _occurrence in RAN] == ["sweep_up"] * 2


async def test_a_task_that_a_deploy_took_away_does_not_run_and_vanishes(planner_room: Room) -> None:
    Planner.tasks = {"tidy": {"schedule": "every 2 hours", "handler": "sweep_up"}}
    await planner_room.say("say: hello")
    [tidy] = await db(rows)
    Planner.tasks = {}
    await run_due(tidy)
    assert (RAN, await db(rows)) == ([], [])


async def test_a_declaration_that_throws_degrades_the_start_and_is_seen(planner_room: Room) -> None:
    Planner.tasks = {"morning": MORNING}
    await planner_room.say("say: hello")
    Planner.tasks = RuntimeError("no such attribute")
    turn = await planner_room.say("say: still here")
    assert turn.error_text == ""
    by_name = {row.declaration: row for row in await db(rows)}
    assert by_name["morning"].status == ScheduleStatus.ACTIVE  # what was declared goes on
    broken = by_name["get_scheduled_tasks"]
    assert (broken.status, broken.next_at) == (ScheduleStatus.BROKEN, None)
    assert broken.error.startswith("get_scheduled_tasks(): ")
    assert "no such attribute" not in broken.error  # it may be a secret: it is in the log
    Planner.tasks = {"morning": MORNING}
    await planner_room.say("say: mended")
    assert [row.declaration for row in await db(rows)] == ["morning"]


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"schedule": "every day at 09:00", "prompt": "say: x"}, "time zone"),
        ({"schedule": "every 5 minutes"}, "a prompt or a handler"),
        ({"schedule": "every 5 minutes", "prompt": "say: x", "handler": "sweep_up"}, "a prompt or a handler"),
        ({"schedule": "every 5 minutes", "handler": "missing"}, "no method"),
        ({"schedule": "every 5 minutes", "handler": 7}, "A handler is"),
        ({"schedule": "every 5 minutes", "prompt": "say: x", "when": 1}, "A task has"),
        ("every 5 minutes", "A task has"),
    ],
)
async def test_one_wrong_task_is_broken_and_the_others_go_on(planner_room: Room, task: Any, reason: str) -> None:
    Planner.tasks = {"a": task, "b": MORNING}
    await planner_room.say("say: hello")
    wrong, right = await db(rows)
    assert (wrong.status, right.status) == (ScheduleStatus.BROKEN, ScheduleStatus.ACTIVE)
    assert reason in wrong.error


async def test_two_tasks_of_one_name_are_refused(planner_room: Room) -> None:
    Planner.tasks = [{"name": "a", **MORNING}, {"name": "a", **MORNING}, {"name": "b", **MORNING}]
    await planner_room.say("say: hello")
    a, b = await db(rows)
    assert (a.status, b.status) == (ScheduleStatus.BROKEN, ScheduleStatus.ACTIVE)
    assert "Two tasks" in a.error


async def test_a_deploy_reaches_conversations_that_nobody_opens(
    planner_room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    await planner_room.say("say: hello")
    assert await db(rows) == []
    Planner.tasks = {"morning": MORNING}
    monkeypatch.setattr(declared_pass, "BATCH", 1)
    await db(declared_pass.start_passes)
    await db(declared_pass.start_passes)  # another worker
    await run_until_idle()
    assert [row.declaration for row in await db(rows)] == ["morning"]
    assert (
        await db(
            lambda: Fiber.objects.filter(name="chat.declared_schedules", key__startswith="declared:planner").count()
        )
        == 1
    )


# --- by the model ----------------------------------------------------------------------------------------------------

GIVEN = '{"prompt": "say: due", "every_minutes": 60, "title": "Due"}'
ASK = f"call tool create_schedule {GIVEN} id=one\nsay: It says {{result}}."


async def test_a_person_approves_what_the_model_schedules(planner_room: Room) -> None:
    desk = Desk(planner_room)
    await planner_room.say(ASK)
    assert await db(rows) == []
    call = await db(ToolCallRecord.objects.get)
    assert "Ask “say: due” at " in call.question["sentence"]
    await desk.reply("one", is_approved=True)
    [made] = await db(rows)
    assert (made.spec, made.created_by, made.title, made.owner_id) == (
        "3600",
        "model",
        "Due",
        planner_room.key.owner_id,
    )
    await planner_room.say("call tool list_schedules {} id=two\nsay: {result}")
    assert made.pk in text_of((await planner_room.transcript())[-1])
    await planner_room.say(f'call tool cancel_schedule {{"id": "{made.pk}"}} id=three\nsay: done')
    assert await db(rows) == []


@pytest.mark.parametrize(
    "given",
    [
        '"every_minutes": 0.5',
        '"at": "tomorrow"',
        '"cron": "* * *"',
        '"in_minutes": 5, "cron": "0 9 * * *"',
        '"cron": "0 9 * * *", "zone": "Mars/Base"',
        '"cron": "0 9 * * *"',
        '"at": "2040-05-01T09:00"',
    ],
)
async def test_the_model_is_told_what_is_impossible(planner_room: Room, given: str) -> None:
    desk = Desk(planner_room)
    await planner_room.say(f'call tool create_schedule {{"prompt": "x", {given}}} id=one\nsay: It says {{result}}.')
    assert (await desk.part("one"))["state"] == "output-error"  # no person was asked
    assert await db(rows) == []


async def test_a_class_has_no_such_tools_by_default(make_room: MakeRoom) -> None:
    room = make_room("plain")
    await room.say("say: hello")
    names = {tool["name"] for tool in room.model.requests[-1].get("tools", [])}
    assert not names & {"create_schedule", "list_schedules", "cancel_schedule"}
