"""Each rule of a chaos run of durable work holds in a sound world, and finds the lie that breaks it."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.durable import rules

World = dict[str, Any]
DUE = "2026-01-01T00:00:02+00:00"


@pytest.fixture
def durable_world() -> World:
    asked = {
        "text": "marker: e1",
        "says": "[end e1]",
        "request": "r1",
        "effects": [{"what": "e1", "is_repeatable": True}, {"what": "once", "is_repeatable": False}],
    }
    line = {"what": "e1", "key": "t1:c1", "at": 1.0}
    tick = {"what": "tick", "key": "k1", "schedule": "s1", "due": DUE, "at": 9.0}
    return {
        "asked": [asked],
        "turns": [{"id": "t1", "request": "r1", "status": "completed", "finished_at": "now", "error": ""}],
        "fibers": [{"id": "f1", "name": "chat.turn", "status": "completed", "is_leased": False}],
        "messages": [
            {"room": "a", "id": "m1", "role": "user", "text": "marker: e1"},
            {"room": "a", "id": "m2", "role": "assistant", "text": "words [end e1]"},
        ],
        "runs": [{"schedule": "s1", "due": DUE, "is_test": False, "key": "k1", "status": "completed"}],
        "ledger": [line, dict(line), {**line, "what": "once", "key": "t1:c2"}, tick],
        "schedules": ["s1"],
        "every": 2.0,
        "occurrences": [
            {"schedule": "s1", "due": 2.0, "began": 2.3, "ended": 2.4},
            {"schedule": "s1", "due": 4.0, "began": 9.1, "ended": 11.3},  # what was due before it began is one run
            {"schedule": "s1", "due": 12.0, "began": 12.1, "ended": None},  # 10.0 was due while the one before ran
        ],
        "calm_at": 8.0,
        "takeovers": [{"fiber": "f1", "killed_at": 10.0, "next_at": 22.0}],
        "ready": [{"name": "worker0", "at": 1.0}, {"name": "worker1", "at": 1.0}],
        "kills": [{"name": "worker0", "at": 10.0}],
    }


def test_a_sound_world_breaks_no_rule(durable_world: World) -> None:
    assert rules.broken(durable_world) == []
    assert rules.takeovers(durable_world) == [12.0]


@pytest.mark.parametrize("at", [5.0, 10.1, 21.0])
def test_a_takeover_without_another_worker_is_not_measured(durable_world: World, at: float) -> None:
    durable_world["kills"].append({"name": "worker1", "at": at})
    assert rules.takeovers(durable_world) == []


def _set(path: str, value: Any) -> Callable[[World], None]:
    def spoil(world: World) -> None:
        *keys, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        at: Any = world
        for key in keys:
            at = at[key]
        at[last] = value

    return spoil


def _repeat(name: str, at: int) -> Callable[[World], None]:
    return lambda world: world[name].append(copy.deepcopy(world[name][at]))


def _drop(name: str, at: int) -> Callable[[World], None]:
    return lambda world: world[name].pop(at)


LIES: list[tuple[Callable[[World], None], str]] = [
    (_set("turns.0.status", "running"), "turn t1 is running"),
    (_set("turns.0.finished_at", None), "turn t1 is over and has no end"),
    (_set("turns.0.error", "It broke."), "turn t1 failed: It broke."),
    (_drop("turns", 0), "request r1 has 0 turns"),
    (_repeat("turns", 0), "request r1 has 2 turns"),
    (_repeat("messages", 0), "message ('a', 'm1') is stored 2 times"),
    (_drop("messages", 0), "'marker: e1' is stored 0 times"),
    (_set("messages.1.text", "words [end"), "'[end e1]' is said 0 times"),
    (_set("messages.1.text", "words [end e1][end e1]"), "'[end e1]' is said 2 times"),
    (_set("ledger.1.key", "t1:c9"), "effect e1 has 2 keys"),
    (_set("asked.0.effects.0.what", "e2"), "effect e2 never happened"),
    (_repeat("ledger", 2), "effect once happened 2 times"),
    (_set("ledger.2.what", "odd"), "effect odd was never asked for"),
    (_set("fibers.0.is_leased", True), "fiber f1 (chat.turn) is completed, leased: True"),
    (_set("fibers.0.status", "running"), "fiber f1 (chat.turn) is running, leased: False"),
    (_repeat("runs", 0), f"schedule ('s1', '{DUE}') was fired 2 times"),
    (_set("runs.0.key", "k9"), "run k9 completed and never ticked"),
    (_set("runs.0.status", "failed"), "run k1 ended as failed"),
    (_set("calm_at", 10.0), "schedule s1 has not ticked since the last kill"),
    (_set("occurrences.1.due", 6.0), "schedule s1 skipped 3.600 s after 2.0"),
    (_set("occurrences.2.due", 14.0), "schedule s1 skipped 2.700 s after 4.0"),
    (
        lambda world: world["ledger"].append({**world["ledger"][3], "key": "k2"}),
        f"occurrence ('s1', '{DUE}') has 2 keys",
    ),
]


@pytest.mark.parametrize(("spoil", "line"), LIES, ids=[line for _, line in LIES])
def test_a_lie_is_found(durable_world: World, spoil: Callable[[World], None], line: str) -> None:
    spoil(durable_world)
    assert line in rules.broken(durable_world)
