"""However agents ask each other, wherever a worker dies: no call waits for ever, each message is answered once."""

import random
from collections import Counter
from typing import Any, ClassVar

import pytest

from chat.crashing.everywhere import CrashEverywhere
from chat.instance.handle import AgentHandle
from chat.models import AgentMessage, Turn
from chat.think import AgentReference
from fibers import context as contexts
from fibers.context import FiberContext
from fibers.models import Fiber
from fibers.testing import die, run_until_idle
from tests.db.chat.turns.agents.talking import Talker, ask, letters
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = 96
"""All pairs of crashes take most of an hour: tests take every twenty-fourth of these parts."""
NAMES = ("node-a", "node-b", "node-c", "node-d")


class NodeA(Talker):
    """One of four that all know each other."""

    agents: ClassVar[Any] = NAMES


class NodeB(NodeA):
    """Another."""


class NodeC(NodeA):
    """Another."""


class NodeD(NodeA):
    """Another."""


class Crashed(Talker):
    """Asks, for crashes: two runs are compared."""

    agents: ClassVar[Any] = [AgentReference(agent="crashed-reader")]

    def get_model(self) -> Any:
        return "default"


class CrashedReader(Crashed):
    """Is asked."""

    agents: ClassVar[Any] = ()


def task(chance: random.Random, depth: int, number: list[int]) -> str:
    """A script that asks others, some of them at once, whose scripts ask others."""
    lines = []
    for _ in range(chance.randint(0, 2) if depth else 0):
        number[0] += 1
        name = chance.choice(NAMES).replace("-", "_")
        lines.append(ask(name, task(chance, depth - 1, number), f"c{number[0]}"))
    return "\n".join([*lines, "say: done"])


def dying(chance: random.Random) -> Any:
    def probe(context: FiberContext, _key: str) -> None:
        if chance.random() < 0.05:
            die(context)

    return probe


@pytest.mark.long_for("2", "3", "4", "5", "6", "7", "8", "9", "10", "11")
@pytest.mark.parametrize("seed", range(12), ids=str)
async def test_no_graph_of_calls_comes_to_a_halt(make_room: MakeRoom, seed: int) -> None:
    chance = random.Random(seed)
    room = make_room("node-a", name=f"graph-{seed}")
    if seed % 2:
        contexts.recorded_probes.append(dying(chance))
    try:
        for name in chance.sample(NAMES, 3):
            await room.handle.send_message(name, task(chance, 3, [0]))
        await run_until_idle(timeout_seconds=120.0)
    finally:
        del contexts.recorded_probes[:]
    assert await db(_unfinished, room) == []
    rows = await letters(room)
    assert all(row.processed_at for row in rows)
    replies = Counter(row.in_reply_to for row in rows if row.in_reply_to)
    assert replies == Counter(row.request_id for row in rows if row.request_id)  # each call is answered, once
    assert not any(row.wait for row in rows)


def _unfinished(room: Room) -> list[str]:
    ends = Turn.objects.filter(instance__owner_id=room.key.owner_id).values("fiber_id")
    return list(Fiber.objects.filter(pk__in=ends).exclude(status="completed").values_list("status", flat=True))


async def crashed_call(
    crash_everywhere: CrashEverywhere, *, pairs: bool = False, part: tuple[int, int] = (0, 1)
) -> set[str]:
    """Keys of the points where it was crashed."""

    async def write(handle: AgentHandle) -> None:
        await handle.send_message("crashed-reader", "say: Written.", request_id="written")

    crashes = await crash_everywhere(
        Crashed,
        "",
        f"{ask('crashed_reader', 'say: Read.')}\nsay: {{result}}",
        write,
        effects=lambda: [(row.role, row.content, row.sender) for row in AgentMessage.objects.order_by("seq")],
        pairs=pairs,
        part=part,
    )
    return {point.key for points in crashes.points for point in points}


@pytest.mark.long
async def test_a_call_survives_a_crash_at_every_point(crash_everywhere: CrashEverywhere) -> None:
    assert {"call:one", "model:1"} <= await crashed_call(crash_everywhere)


@pytest.mark.long
@pytest.mark.parametrize("number", range(0, PARTS, 24))
async def test_a_call_survives_two_crashes(crash_everywhere: CrashEverywhere, number: int) -> None:
    assert await crashed_call(crash_everywhere, pairs=True, part=(number, PARTS))
