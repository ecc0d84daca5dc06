"""The coding tasks: a right solution passes in the real loop, a wrong one and none at all fail."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from bench.coding.report import interval, report
from bench.coding.running import TASKS, Outcome, run_task
from bench.coding.task import Task, edit
from tools_app.processes.tool import processes_report

pytestmark = pytest.mark.django_db(transaction=True)
MEDIAN = next(task for task in TASKS if task.name.startswith("median"))
QUESTION = next(task for task in TASKS if task.name.startswith("who fails"))
WRONG = {
    "the test is changed instead": edit("/test_stats.py", "2.5", "3") + "say: Done.",
    "only the example is met": edit(
        "/stats.py", "    ordered =", "    if len(values) == 4:\n        return 2.5\n    ordered ="
    )
    + "say: Done.",
}


@pytest.fixture(autouse=True)
async def _commands_run_here(settings: Any) -> None:
    settings.THINK_TITLE_MODEL = "none"
    [found] = await processes_report()
    if not found.is_available:
        pytest.skip(f"commands cannot run here: {found.reason}")


async def ran(task: Task, owner: User, script: str | None = None) -> Outcome:
    return await run_task(task, owner.pk, script=script)


async def test_a_right_solution_passes_and_a_wrong_one_fails(alice: User) -> None:
    right = await ran(MEDIAN, alice)
    assert (right.passed, right.why) == (True, "")
    assert right.steps > 2
    wrong = [await ran(MEDIAN, alice, script) for script in WRONG.values()]
    assert [(each.passed, each.why) for each in wrong] == [(False, "AssertionError")] * 2
    said = await ran(QUESTION, alice, "say: It is worker-1, with 9 lines.")
    assert (said.passed, said.why) == (False, r"the answer has no worker-2, \b10\b")
    assert "passed         1 of 4, 25% (95 % interval 5% to 70%)" in report([right, *wrong, said], "")


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name.replace(" ", "-"))
async def test_each_task_can_be_done_and_is_not_done_yet(task: Task, alice: User) -> None:
    assert (await ran(task, alice)).why == ""
    assert not (await ran(task, alice, "say: Done.")).passed


def test_an_interval_says_how_little_a_few_runs_tell() -> None:
    assert [round(each, 3) for each in interval(12, 12)] == [0.757, 1.0]
    assert [round(each, 3) for each in interval(0, 12)] == [0.0, 0.243]
    assert [round(each, 3) for each in interval(5, 10)] == [0.237, 0.763]
