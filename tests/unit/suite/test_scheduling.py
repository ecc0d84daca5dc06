"""Tests are dealt in groups to the processes of a run: each one once, and what takes long first."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.suite import rotation, scheduling

CHEAP = [f"tests/unit/test_{name}.py::test_{number}" for name in range(40) for number in range(name + 1)]
COSTLY = [f"{rotation.costly_modules()[0]}::test_{number}" for number in range(5)]
STARTING = [f"tests/acceptance/client/test_deploy.py::test_{number}" for number in range(3)]
BROWSER = [f"tests/browser/test_{name}.py::test_it" for name in "abcxyz"]
ALL = [*CHEAP, *COSTLY, *STARTING, *BROWSER]


class Process:
    """What a scheduler sees of one: it runs what it is sent, in order."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.waiting: list[int] = []
        self.ran: list[str] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.waiting += places

    def shutdown(self) -> None:
        self.shutting_down = True


def dealer(tests: list[str], *processes: Process) -> scheduling.Together:
    """A scheduler that has dealt its first tests to these."""
    option = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(getvalue=lambda _name: [f"{len(processes)}*popen"], option=option)
    made = scheduling.Together(config)
    for process in processes:
        made.add_node(process)
        made.add_node_collection(process, tests)
    made.schedule()
    return made


def step(deals: scheduling.Together, process: Process) -> None:
    place = process.waiting.pop(0)
    process.ran.append(deals.collection[place])
    deals.mark_test_complete(process, place)


def run(deals: scheduling.Together, *processes: Process) -> None:
    while any(process.waiting for process in processes):
        for process in processes:
            if process.waiting:
                step(deals, process)


def ordered(tests: list[str]) -> list[str]:
    places = scheduling.in_order(tests)
    return sorted(tests, key=places.__getitem__)


def test_each_test_is_run_once_and_its_group_by_one_process() -> None:
    processes = [Process(name) for name in "abcd"]
    deals = dealer(ordered(ALL), *processes)
    run(deals, *processes)
    assert sorted(name for process in processes for name in process.ran) == sorted(ALL)
    assert deals.tests_finished
    assert all(process.shutting_down for process in processes)
    assert not any(deals.assigned_work.values()), "nothing is kept of what has been run"
    for process in processes:
        groups = [scheduling.group_of(name, by_module=True) for name in process.ran]
        beginnings = [at for at, group in enumerate(groups) if at == 0 or groups[at - 1] != group]
        assert len(beginnings) == len(set(groups)), "a group runs in one piece"
    where = {scheduling.group_of(name, by_module=True): p.gateway.id for p in processes for name in p.ran}
    assert len(where) == 40 + len(COSTLY) + len(STARTING) + 2


def test_what_takes_long_is_dealt_first_and_the_small_modules_last() -> None:
    found = ordered(ALL)
    assert sorted(found[:6]) == BROWSER
    assert sorted(found[6 : 6 + len(COSTLY) + len(STARTING)]) == sorted([*COSTLY, *STARTING])
    sizes = [int(name.partition("test_")[2].partition(".")[0]) for name in found[-len(CHEAP) :]]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(("modules", "group"), [(39, 1), (40, 4)])
def test_a_run_of_few_modules_is_dealt_test_by_test(modules: int, group: int) -> None:
    tests = [f"tests/unit/test_{name:02}.py::test_{number}" for name in range(modules) for number in range(4)]
    processes = [Process(name) for name in "abcd"]
    dealer(tests, *processes)
    firsts = [scheduling.group_of(tests[place], by_module=group > 1) for place in processes[0].waiting]
    assert firsts.count(firsts[0]) == group


def test_what_a_process_had_left_when_it_crashed_is_run_by_others() -> None:
    lost, left = Process("lost"), Process("left")
    deals = dealer(ordered(ALL), lost, left)
    for _ in range(3):
        step(deals, lost)
    crashed = deals.remove_node(lost)
    assert crashed == deals.collection[lost.waiting[0]]
    run(deals, left)
    assert sorted([*lost.ran, *left.ran]) == sorted(ALL)
