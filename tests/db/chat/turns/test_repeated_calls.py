"""A model that makes the same calls again and again: a person is asked, and without one the model reads it."""

from dataclasses import replace
from typing import Any

import pytest

from chat.think import Think, Tool, tool
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, add

from .conftest import MakeRoom, status_of, text_of

ADD = 'call tool add {"a": 1, "b": 1} id=%s\nsay: on.\n'
LATER = "call tool later {} id=%s\nsay: on.\n"


@tool
def later() -> str:
    """Do something else."""
    CALLS.append((0, 0))
    return "later"


class Circling(Think):
    """Adds, and does something else."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [add, later]


class Free(Circling):
    """Is not asked about."""

    asks_about_loops = False


def script(*calls: str) -> str:
    return "".join(each % f"c{number}" for number, each in enumerate(calls)) + "say: done"


@pytest.mark.parametrize(
    ("calls", "asked"),
    [((ADD,) * 3, "c2"), ((ADD, LATER) * 2, "c3"), ((LATER, ADD, ADD, LATER) * 2, "c7"), ((LATER, *(ADD,) * 4), "c3")],
)
async def test_the_call_that_closes_the_circle_is_a_question(
    make_room: MakeRoom, calls: tuple[str, ...], asked: str
) -> None:
    desk = Desk(make_room("circling"))
    turn = await desk.room.say(script(*calls))
    assert status_of(turn) == "completed"
    part = await desk.part(asked)
    assert part["state"] == "approval-requested"
    assert part["approval"]["descriptor"]["key"] == "doom_loop"
    assert len(CALLS) == int(asked[1:])
    await desk.reply(asked, is_approved=True)
    assert text_of((await desk.room.transcript())[-1]).endswith("done")
    assert len(CALLS) == len(calls)


async def test_who_says_no_has_the_model_do_something_else(make_room: MakeRoom) -> None:
    desk = Desk(make_room("circling"))
    await desk.room.say(script(*[ADD] * 3))
    await desk.reply("c2", is_approved=False)
    assert (await desk.part("c2"))["state"] == "output-denied"
    assert len(CALLS) == 2
    assert text_of((await desk.room.transcript())[-1]).endswith("done")


async def test_without_a_person_the_model_is_told(make_room: MakeRoom) -> None:
    desk = Desk(make_room("circling"))
    desk.room.key = replace(desk.room.key, owner_id=None)
    turn = await desk.room.say(script(*[ADD] * 3))
    assert status_of(turn) == "completed"
    part = await desk.part("c2")
    assert (part["state"], len(CALLS)) == ("output-error", 2)
    assert "the same calls with the same arguments" in part["errorText"]
    assert text_of((await desk.room.transcript())[-1]).endswith("done")


async def test_a_class_may_leave_it_to_the_step_limit(make_room: MakeRoom) -> None:
    desk = Desk(make_room("free"))
    await desk.room.say(script(*[ADD] * 5))
    assert len(CALLS) == 5
