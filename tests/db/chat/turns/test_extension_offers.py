"""What a model reads of extensions names the tools that it is offered, and no others."""

from typing import Any

import pytest

from chat.think import Tool, tool
from tests.db.chat.turns.agents.extending import MATH, MATH_MANIFEST, Extended, no_extensions

from .conftest import MakeRoom
from .working import call, parts_of_calls

__all__ = ["no_extensions"]  # a fixture

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]


@tool
def math_add(a: int, b: int) -> int:
    """Add, in the agent's own way."""
    return a + b


class Crowded(Extended):
    """Has a tool of the name that an extension would give its own."""

    def get_tools(self) -> list[Tool]:
        return [math_add]


class Fewer(Extended):
    """Has some tools only."""

    enabled_tools = ("list_extensions",)


@pytest.mark.parametrize(
    ("agent", "named", "left_out"),
    [("extended", ["math_add"], None), ("crowded", [], ["math_add"]), ("fewer", [], ["math_add"])],
)
async def test_tools_that_are_not_offered_are_not_named_as_there(
    make_room: MakeRoom, agent: str, named: list[str], left_out: Any
) -> None:
    room = make_room(agent)
    await room.handle.load_extension(MATH_MANIFEST, MATH)
    await room.say(call("list_extensions") + "\nsay: {result}")
    [part] = await parts_of_calls(room)
    [extension] = part["output"]["extensions"]
    assert (extension["tools"], extension.get("notOffered")) == (named, left_out)
