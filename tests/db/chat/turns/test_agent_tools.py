"""Agents as tools of others: a run is a row, the parent's turn parks, and the child's end answers it, once."""

import json
from typing import Any

import pytest

from fibers.process.runs import registry as running
from fibers.testing import crash_after, run_until_idle
from tests.db.chat.turns.agents.delegating import (
    ENDED,
    WORKED,
    Chief,
    Errand,
    call,
    nothing_delegated,
    only_run,
    runs,
    turns_of,
)
from tests.db.chat.turns.agents.everyday import MODELS

from .conftest import MakeRoom, Room, status_of, text_of

__all__ = ["nothing_delegated"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)

REPORT = 'call tool report {"fraction": 0.5} id=s'


async def answer(room: Room) -> str:
    return text_of((await room.transcript())[-1])


async def result(room: Room, call_id: str = "one") -> Any:
    parts = [part for part in (await room.transcript())[-1]["parts"] if part.get("toolCallId") == call_id]
    return parts[0]["output"]


async def test_a_child_works_in_a_conversation_of_its_own_and_its_answer_is_the_result(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await room.say(f"{call('errand', 'say: All is well.')}\nsay: It says {{result}}.")
    run = await only_run()
    assert status_of(turn) == "completed"
    assert await result(room) == {
        "ok": True,
        "runId": run.run_id,
        "status": "completed",
        "summary": "All is well.",
    }
    assert (run.agent, run.call_id, run.parent_turn_id, run.display["name"]) == ("errand", "one", turn.pk, "Errands")
    assert run.child is not None
    assert (run.child.name, run.child.parent_id) == (run.run_id, run.parent_id)
    assert run.outcome == await result(room)
    assert run.finished_at is not None
    asked = (room.model.requests[0], MODELS["errand"].requests[-1])  # each has a model and tools of its own
    offered = [{tool["name"] for tool in request["tools"]} & {"errand", "note"} for request in asked]
    assert offered == [{"errand"}, {"note"}]


async def test_the_parent_holds_no_worker_while_the_child_waits(make_room: MakeRoom) -> None:
    room = make_room("chief")
    script = f"{call('errand', 'call tool hold {} id=two' + chr(10) + 'say: It is {result}.')}\nsay: {{result}}"
    turn = await room.say(script)
    assert turn.fiber.status == "parked"
    assert turn.fiber.waits[0]["label"] == "Errands"
    assert not running.snapshot()
    assert (await only_run()).finished_at is None
    run = await only_run()
    assert await room.handle.sub_agent(Errand, run.run_id).answer_wait("two", "blue", wait="question")
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(turn.pk)) == "completed"
    assert (await result(room))["summary"] == "It is blue."
    assert len(await turns_of(room, "chief")) == 1  # the answer is the result of the call and begins no turn


async def test_runs_of_one_step_work_side_by_side(make_room: MakeRoom) -> None:
    room = make_room("chief")
    lines = [call("errand", f"say: number {number}", f"c{number}") for number in range(3)]
    turn = await room.say("\n".join([*lines, "say: {results}"]))
    assert status_of(turn) == "completed"
    assert [(await result(room, f"c{number}"))["summary"] for number in range(3)] == [
        "number 0",
        "number 1",
        "number 2",
    ]
    assert len(await turns_of(room, "errand")) == 3


async def test_a_child_that_ends_without_a_word_is_no_success(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('speechless', 'go')}\nsay: {{result}}")
    found = await result(room)
    assert (found["ok"], found["status"], found["reason"]) == (False, "error", "empty")
    assert "without a word" in found["error"]


async def test_a_child_whose_answer_was_cut_at_its_length_is_no_success(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('errand', 'say: Half of it' + chr(10) + 'finish: length')}\nsay: {{result}}")
    found = await result(room)
    assert (found["ok"], found["status"], found["reason"]) == (False, "error", "length")
    assert found["summary"] == "Half of it"


async def test_a_structured_answer_is_the_output(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('structured', 'say: ' + json.dumps({'sum': 3}))}\nsay: {{result}}")
    assert (await result(room))["output"] == {"sum": 3}


async def test_a_child_that_fails_is_a_failure_for_the_model_and_not_for_the_turn(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await room.say(f"{call('errand', 'error 400')}\nsay: {{result}}")
    assert status_of(turn) == "completed"
    found = await result(room)
    assert (found["ok"], found["status"], found["retryable"]) == (False, "error", False)
    assert found["error"]


async def test_a_child_that_is_cut_is_no_success_and_says_what_it_had_found(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Errand, "max_steps", 2)
    room = make_room("chief")
    steps = "".join(
        f'call tool report {{"fraction": 0.{number}}} id=s{number}\nsay: Looking at {number}.\n' for number in range(5)
    )
    await room.say(f"{call('errand', steps + 'say: done')}\nsay: {{result}}")
    found = await result(room)
    assert (found["ok"], found["status"], found["reason"]) == (False, "error", "step-limit")
    assert "limit of steps" in found["error"]
    assert found["summary"] == "Looking at 1."
    assert found == (await only_run()).outcome


async def test_a_child_that_only_called_gives_the_results_that_it_had(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('errand', REPORT + chr(10) + 'say:')}\nsay: {{result}}")
    found = await result(room)
    assert (found["ok"], found["summary"]) == (False, "report: reported")


async def test_a_child_that_fails_later_gives_what_it_had_found(make_room: MakeRoom) -> None:
    room = make_room("chief")
    script = f"say: Half of it is here.\n{REPORT}\nsay:"
    await room.say(f"{call('errand', script)}\nsay: {{result}}")
    found = await result(room)
    assert (found["ok"], found["status"], found["summary"]) == (False, "error", "Half of it is here.")
    assert "ended its answer without a word" in found["error"]


async def test_three_levels(make_room: MakeRoom) -> None:
    room = make_room("chief")
    inner = call("errand", "say: deep", "deep")
    turn = await room.say(f"{call('middle', inner + chr(10) + 'say: It is {result}.')}\nsay: {{result}}")
    assert status_of(turn) == "completed"
    assert "deep" in (await result(room))["summary"]
    assert {run.agent for run in await runs()} == {"middle", "errand"}


async def test_a_tool_of_a_developer_runs_two_one_after_the_other_and_neither_twice(make_room: MakeRoom) -> None:
    room = make_room("chief")
    tasks = json.dumps({"first": "call tool work {} id=w\nsay: one", "second": "say: two"})
    turn = await room.say(f"call tool both {tasks} id=one\nsay: {{result}}")
    assert status_of(turn) == "completed"
    assert await result(room) == ["one", "two"]
    assert len(WORKED) == 1
    assert len(await runs()) == 2


@pytest.mark.parametrize("step", ["model:0", "call:one", "model:1"])
async def test_a_crash_of_the_parent_doubles_no_run(make_room: MakeRoom, step: str) -> None:
    room = make_room("chief")
    task = "call tool work {} id=w\nsay: worked"
    with crash_after(step):
        turn = await room.say(f"{call('errand', task)}\nsay: {{result}}")
    assert status_of(turn) == "completed"
    assert (await result(room))["summary"] == "worked"
    assert len(WORKED) == 1
    assert len(await turns_of(room, "errand")) == 1


@pytest.mark.parametrize("step", ["model:0", "call:w"])
async def test_a_crash_of_the_child_is_its_own_and_the_parent_gets_one_answer(make_room: MakeRoom, step: str) -> None:
    room = make_room("chief")
    task = "call tool work {} id=w\nsay: worked"
    script = f"{call('errand', task)}\nsay: {{result}}"
    with crash_after(step, times=2):
        turn = await room.say(script)
    assert status_of(turn) == "completed"
    assert (await result(room))["summary"] == "worked"
    assert len(set(WORKED)) == 1


async def test_a_crash_of_what_reports_the_end_loses_nothing(make_room: MakeRoom) -> None:
    room = make_room("hooked-chief")
    with crash_after("hooks"):
        turn = await room.say(f"{call('errand', 'say: fine')}\nsay: {{result}}")
    assert status_of(turn) == "completed"
    assert [(run.agent, (run.outcome or {})["status"]) for run in ENDED] == [("errand", "completed")]


async def test_too_many_at_once_is_a_run_that_says_so(make_room: MakeRoom) -> None:
    room = make_room("chief")
    lines = [call("errand", "call tool hold {} id=two", f"c{number}") for number in range(4)]
    await room.say("\n".join([*lines, "say: {results}"]))
    found = [run for run in await runs() if run.outcome is not None]
    assert [(run.outcome or {})["error"] for run in found] == ["maxConcurrentAgentTools (3) exceeded"]
    assert (found[0].outcome or {})["retryable"] is True
    assert len(await turns_of(room, "errand")) == 3


async def test_agents_work_for_each_other_at_most_five_levels_deep(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Chief, "allows_recursion", True)
    script = "say: never"
    for level in range(6, 0, -1):
        script = f"{call('chief', script, f'c{level}')}\nsay: {{result}}"
    turn = await make_room("chief").say(script)
    assert status_of(turn) == "completed"
    outcomes = [run.outcome or {} for run in sorted(await runs(), key=lambda run: run.call_id)]
    assert [outcome["ok"] for outcome in outcomes] == [True] * 5 + [False]
    assert outcomes[-1]["error"] == "Agents work for each other at most 5 levels deep."
    assert outcomes[-1]["error"] in outcomes[0]["summary"]


async def test_a_class_below_itself_is_refused(make_room: MakeRoom) -> None:
    room = make_room("chief")
    await room.say(f"{call('chief', 'say: again')}\nsay: {{result}}")
    assert "loop" in (await result(room))["error"]
    assert (await only_run()).child_id is None


async def test_the_same_task_again_and_again_is_refused(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chief, "asks_about_loops", False)  # else a person is asked first
    room = make_room("chief")
    lines = [f"say: round {number}\n{call('errand', 'say: again', f'c{number}')}" for number in range(4)]
    await room.say("\n".join([*lines, "say: {results}"]))
    outcomes = [(run.outcome or {}).get("reason") for run in await runs()]
    assert outcomes.count("repeated") == 1


async def test_turns_of_agents_do_not_count_as_the_persons(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 2
    settings.THINK_DELEGATED_TURNS_PER_MINUTE = 3
    room = make_room("chief")
    for number in range(3):
        if number == 2:
            settings.THINK_TURNS_PER_MINUTE = 3
        await room.say(f"{call('errand', f'say: {number}', f'c{number}')}\nsay: {{result}}")
        assert (await result(room, f"c{number}"))["ok"] is True
    settings.THINK_TURNS_PER_MINUTE = 4
    await room.say(f"{call('errand', 'say: more', 'last')}\nsay: {{result}}")
    found = await result(room, "last")
    assert (found["ok"], found["retryable"]) == (False, True)


async def test_a_user_has_so_many_runs_under_way_at_most(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_RUNS_PER_USER = 1
    room = make_room("chief")
    lines = [call("errand", "call tool hold {} id=two", f"c{number}") for number in range(2)]
    await room.say("\n".join([*lines, "say: {results}"]))
    assert sorted(run.outcome is None for run in await runs()) == [False, True]
    assert len(await turns_of(room, "errand")) == 1


async def test_a_person_approves_what_a_child_asks_and_the_parent_goes_on(make_room: MakeRoom) -> None:
    room = make_room("chief")
    turn = await room.say(f"{call('errand', 'call tool pay {} id=pay' + chr(10) + 'say: {result}')}\nsay: {{result}}")
    assert turn.fiber.status == "parked"
    run = await only_run()
    [listed] = await room.handle.list_sub_agents()
    assert (listed.status, listed.run and listed.run.run_id) == ("waiting", run.run_id)
    child = room.handle.sub_agent(Errand, run.run_id)
    [asked] = await child.pending_approvals()
    assert await child.approve_execution(asked.id)
    await run_until_idle(skip_delays=True)
    assert WORKED == ["paid"]
    assert (await result(room))["ok"] is True
    [listed] = await room.handle.list_sub_agents()
    assert listed.status == "idle"
