"""Tools that run in another process: one call is one job, until it is done, stopped or too late."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db.models.functions import Now

from chat.durable_tools import declared
from chat.durable_tools.checks import check_executors
from chat.instances.rows import find_instance
from chat.operations.removal import delete_instance
from chat.testing import worker
from chat.tools.durable import create_tool_execution_effect, make_durable_tool, wait_for_tool_result
from chat.turns.admission.stop import cancel_turn
from fibers.errors import FiberNotFound
from fibers.execution.recovery import sweep
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.services import cancel_fiber, start_fiber
from fibers.testing import crash_after, run_until_idle
from tests.db.chat.turns.agents.durable_desk import DONE, TENANTS, photo, print_out, search, serving
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db
from tools_app.errors import ToolDeclarationInvalid, ToolError, ToolTimeout
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, status_of
from .working import call

pytestmark = pytest.mark.django_db(transaction=True)

LAB = "chat.tool.lab"
SEARCH = f"{call('search', query='tea')}\nsay: It says {{result}}."


@pytest.fixture(autouse=True)
def _nothing_run_elsewhere() -> None:
    DONE.clear()
    TENANTS.clear()


async def jobs() -> list[Fiber]:
    return await db(lambda: list(Fiber.objects.filter(name__startswith="chat.tool:").order_by("created_at")))


async def parked(room: Room, script: str) -> tuple[Any, Fiber]:
    """A turn that waits for the lab, which is not there, and the job."""
    with serving(""):
        turn = await room.say(script)
    assert turn.fiber.status == "parked"
    [job] = await jobs()
    assert (job.status, job.attempt) == ("pending", 0)
    return turn, job


async def over(job: Fiber) -> Fiber:
    await run_until_idle(skip_delays=True)
    await db(job.refresh_from_db)
    return job


async def last(room: Room) -> str:
    return (await room.texts())[-1][1]


async def test_the_call_is_stored_and_the_turn_waits_until_an_executor_has_run_it(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    turn, job = await parked(room, SEARCH)
    assert (DONE, turn.fiber.worker, turn.fiber.waits[0]["label"]) == ([], "", "search")
    assert (job.name, job.payload["payload"]) == ("chat.tool:lab/search", {"query": "tea"})
    record = await db(lambda: ToolCallRecord.objects.get(tool_name="search"))
    assert (record.executor_id, record.status) == (job.pk, "running")
    with serving(LAB):
        await run_until_idle()
    assert DONE == ["search tea 1"]
    with serving(""):
        await run_until_idle()
    assert await last(room) == 'It says {"hits":3}.'
    assert TENANTS == [{"tenant": "of search"}]
    await db(record.refresh_from_db)
    assert record.status == "succeeded"


async def test_the_model_sees_the_same_tool(make_room: MakeRoom) -> None:
    made = make_durable_tool(search, executor="lab")
    for name in ("name", "description", "input_schema", "title", "read_only", "origin", "permission"):
        assert getattr(made, name) == getattr(search, name)


async def test_wrong_input_starts_nothing_and_wrong_results_are_errors(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    await room.say(f"{call('search', words='tea')}\nsay: It says {{result}}.")
    await room.say(f"{call('photo', of=3)}\nsay: It says {{result}}.")
    assert await jobs() == []
    await room.say(f"{call('search', query='wrong')}\nsay: It says {{result}}.")
    assert DONE == ["search wrong 1"]
    assert "does not have the form" in await last(room)
    assert [job.status for job in await jobs()] == ["failed"]


async def test_get_result_makes_the_models_result(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    await room.say(f"{call('photo', of='tea')}\nsay: It says {{result}}.")
    assert await last(room) == "It says [a picture of tea]."
    assert (await jobs())[0].result["output"] == "a picture of tea"


async def test_what_a_tool_or_its_hook_raises_is_for_the_model(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    await room.say(f"{call('break_down', text='car')}\nsay: It says {{result}}.")
    assert await last(room) == "It says Error: no such car."
    await room.say(f"{call('search', query='forbidden')}\nsay: It says {{result}}.")
    assert "not here" in await last(room)
    assert DONE == ["break car"]


async def test_a_wait_that_is_over_stops_the_job_and_its_late_answer_changes_nothing(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    turn, job = await parked(room, SEARCH)
    await db(lambda: Fiber.objects.filter(pk=turn.fiber_id).update(**overdue(turn)))
    with serving(""):
        await run_until_idle()
    assert await last(room) == "It says Error: The tool 'search' gave no result within 60 s.."
    job = await over(job)
    assert (job.status, job.reason, DONE) == ("cancelled", "timed_out", [])


def overdue(turn: Any) -> dict[str, Any]:
    """What a parked fiber has whose first wait is over."""
    waits = [{**wait, "until": "2020-01-01T00:00:00+00:00"} for wait in turn.fiber.waits]
    return {"waits": waits, "parked_until": Now() - timedelta(seconds=1)}


async def test_a_late_result_may_be_kept_for_people(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    turn, job = await parked(room, f"{call('photo', of='tea')}\nsay: It says {{result}}.")
    await db(lambda: Fiber.objects.filter(pk=turn.fiber_id).update(**overdue(turn)))
    with serving(""):
        await run_until_idle()
    said = await last(room)
    job = await over(job)
    assert (job.status, job.result["output"]) == ("completed", "a picture of tea")
    record = await db(lambda: ToolCallRecord.objects.get(executor=job))
    assert (record.status, record.details["late"]) == ("failed", True)
    assert await last(room) == said


@pytest.mark.parametrize("is_running", [False, True])
async def test_the_stop_of_a_turn_stops_its_job(make_room: MakeRoom, is_running: bool) -> None:
    room = make_room("durable-desk")
    turn, job = await parked(room, SEARCH)
    if is_running:
        await db(lambda: Fiber.objects.filter(pk=job.pk).update(status="running", worker="lab", attempt=1))
    await db(cancel_turn, turn.pk)
    with serving(""):
        await run_until_idle()
    await db(job.refresh_from_db)
    assert status_of(await room.turn(turn.pk)) == "aborted"
    assert job.cancel_requested_at is not None
    assert job.status == ("running" if is_running else "cancelled")
    assert DONE == []


async def test_the_stop_of_a_turn_reaches_the_function_that_runs(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 0.1  # by which a process learns of a stop, where there is no Redis
    room = make_room("durable-desk")

    async def has_left() -> bool:
        return DONE == ["linger tea", "left"]

    async def lingers() -> bool:
        return DONE == ["linger tea"]

    async with worker():
        admission = await room.admit(f"{call('linger', text='tea')}\nsay: It says {{result}}.")
        await until(lingers)
        await db(cancel_turn, admission.turn.pk)
        await until(has_left)
    await run_until_idle(skip_delays=True)
    [job] = await jobs()
    assert (job.status, status_of(await room.turn(admission.turn.pk))) == ("cancelled", "aborted")


async def test_a_job_that_is_stopped_ends_the_wait(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    _turn, job = await parked(room, SEARCH)
    await db(lambda: cancel_fiber(job.pk, reason="by hand"))
    with serving(""):
        await run_until_idle()
    assert await last(room) == "It says Error: The call was stopped before it had a result (by hand).."


async def test_a_job_whose_executors_are_all_lost_ends_the_wait(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room("durable-desk")
    _turn, job = await parked(room, SEARCH)
    lost = {"status": "running", "worker": "lab", "attempt": 1, "lease_until": Now() - timedelta(seconds=1)}
    await db(lambda: Fiber.objects.filter(pk=job.pk).update(**lost))
    await db(sweep)
    with serving(""):
        await run_until_idle()
    assert "was lost" in await last(room)


async def test_a_tool_that_may_not_run_twice_says_that_it_was_cut(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    await parked(room, f"{call('print_out', text='tea')}\nsay: It says {{result}}.")
    with crash_after("begun:0"), serving(LAB):
        await run_until_idle()
    await run_until_idle(skip_delays=True)
    assert DONE == []
    assert "interrupted" in (await last(room)).lower()


async def test_a_call_that_code_has_started_is_run_by_its_executor_alone(transactional_db: None) -> None:
    tea = {"method": "photo", "payload": {"of": "tea"}}
    fibers = [await db(start_fiber, f"chat.tool:{name}/photo", tea) for name in ("lab", "attic")]
    await run_until_idle()
    for fiber in fibers:
        await db(fiber.refresh_from_db)
    assert (fibers[0].status, fibers[0].result["output"], fibers[1].status) == (
        "completed",
        "a picture of tea",
        "pending",
    )
    assert await db(lambda: cancel_fiber(fibers[1].pk))


async def test_many_executors_run_each_of_many_calls_once(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    calls = "\n".join(call("search", query="x" * number) + f" id=c{number}" for number in range(1, 21))
    with serving(""):
        await room.say(f"{calls}\nsay: Done.")
    found = await jobs()
    assert len(found) == 20
    with serving(LAB):
        await asyncio.gather(*(run_fiber(job.pk) for job in found for _ in range(4)))
    assert len(DONE) == len(set(DONE)) == 20
    await run_until_idle()
    assert await last(room) == "Done."


# --- async ---------------------------------------------------------------------------------------------------------


async def test_an_async_tool_gives_a_job_and_the_model_asks_about_it(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    with serving(""):
        turn = await room.say(f"{call('count', to=7)}\nsay: It says {{result}}.")
    [job] = await jobs()
    assert status_of(turn) == "completed"
    assert await last(room) == f'It says {{"jobId":"{job.pk}","status":"queued"}}.'
    ask = f"{call('check_async_job_status', job_id=job.pk)}\nsay: It says {{result}}."
    with serving(""):
        await room.say(ask)
    assert '"status":"pending"' in await last(room)
    await db(cancel_turn, turn.pk)  # it has ended; its job goes on
    await run_until_idle()
    assert len(DONE) == 1
    await room.say(ask)
    assert '"result":"counted to 7"' in await last(room)
    assert len(await room.texts()) == 6  # and no message of its own
    other = make_other(room)
    await other.say(ask)
    assert await last(other) == f"It says Error: This conversation has no job '{job.pk}'.."


def make_other(room: Room) -> Room:
    """Another conversation of the same person."""
    return Room(replace(room.key, name="other"), model=room.model)


async def test_the_end_of_a_job_enters_the_conversation_where_it_is_to(make_room: MakeRoom) -> None:
    room = make_room("durable-desk", "notified")
    await room.say(f"{call('count', to=7)}\nsay: On it.")
    [job] = await jobs()
    texts = await room.texts()
    assert texts[1] == ("assistant", "On it.")
    assert texts[2] == ("user", f"[Job {job.pk} of count has ended.]\n\ncounted to 7")
    assert [role for role, _ in texts] == ["user", "assistant", "user", "assistant"]


async def test_code_waits_for_the_result_of_a_job(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    with serving(""):
        await room.say(f"{call('count', to=7)}\nsay: On it.")
    [job] = await jobs()
    with pytest.raises(ToolTimeout):
        await wait_for_tool_result(job.pk, timeout_seconds=0.05)
    signal = asyncio.Event()
    signal.set()
    with pytest.raises(ToolError, match="given up"):
        await wait_for_tool_result(job.pk, signal=signal)
    waiting = asyncio.create_task(wait_for_tool_result(job.pk, timeout_seconds=20))
    await run_until_idle()
    assert await waiting == "counted to 7"
    assert await wait_for_tool_result(job.pk) == "counted to 7"
    assert (await jobs())[0].stash == {"output": "at 7"}
    with pytest.raises(FiberNotFound):
        await wait_for_tool_result("fib_none")


# --- declarations, removal -------------------------------------------------------------------------------------------


def test_implementations_are_checked() -> None:
    create_tool_execution_effect([photo], {}, executor="check")
    create_tool_execution_effect([photo], {"photo": lambda off: off, "video": print}, executor="check")
    try:
        assert [found.id for found in check_executors()] == ["chat.E010"] * 3
        words = " ".join(found.msg for found in check_executors())
        assert "'photo' has no implementation" in words
        assert "takes off, its input has of" in words
        assert "implementation of 'video'" in words
    finally:
        declared.forget("check/photo")
    with pytest.raises(ToolDeclarationInvalid):
        make_durable_tool(search, executor="No Name")


def test_a_tool_without_an_executor_here_is_named() -> None:
    make_durable_tool(print_out, executor="moon")
    try:
        [found] = [each for each in run_checks(tags=["chat"]) if each.id == "chat.W002"]
        assert "moon/print_out" in found.msg
    finally:
        declared.forget("moon/print_out")


async def test_a_conversation_that_is_deleted_takes_its_jobs_along(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    await room.say(SEARCH)
    await room.say(f"{call('count', to=7)}\nsay: On it.")
    instance = await db(find_instance, room.key)
    assert instance is not None
    assert len(await jobs()) == 2
    assert await db(delete_instance, instance)
    assert await jobs() == []
