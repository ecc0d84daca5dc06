"""Tools that another process runs survive the loss of either side at every point, each effect once."""

from collections.abc import Iterator
from typing import Any

import pytest

from chat.crashing.everywhere import CrashEverywhere
from chat.think import Tool
from chat.tools.durable import create_tool_execution_effect, make_async_tool, make_durable_tools

from .shop import DONE, Shop, charge_keyed, charge_once, effects, empty

pytestmark = pytest.mark.asyncio

create_tool_execution_effect([charge_keyed, charge_once], executor="till")
PARTS = 24
"""All pairs of crashes take most of an hour: tests take every sixth of these parts."""
CHARGE = 'call tool charge_keyed {"amount": 5} id=one\nsay: {result}.'
BOTH = 'call tool charge_keyed {"amount": 5} id=one\ncall tool charge_keyed {"amount": 7} id=two\nsay: {results}.'


@pytest.fixture(autouse=True)
def _empty_till() -> Iterator[None]:
    empty()
    yield
    empty()


class TillShop(Shop):
    """Has a till elsewhere charge."""

    def get_tools(self) -> list[Tool]:
        return make_durable_tools([charge_keyed, charge_once], executor="till", retries=2)


class SlipShop(Shop):
    """Hands a slip to the till, and is informed."""

    def get_tools(self) -> list[Tool]:
        return [make_async_tool(charge_keyed, executor="till", notify=True)]


def functions(crashes: Any) -> set[str]:
    return {point.function for points in crashes.points for point in points}


async def test_the_turn_and_its_executor_are_lost_at_every_point(crash_everywhere: CrashEverywhere) -> None:
    crashes = await crash_everywhere(TillShop, CHARGE, effects=effects)
    assert functions(crashes) >= {"chat.turn", "chat.tool:till/charge_keyed", "chat.tool_ended"}


@pytest.mark.long
@pytest.mark.parametrize("number", range(0, PARTS, 6))
async def test_both_are_lost_one_after_the_other_at_pairs_of_points(
    crash_everywhere: CrashEverywhere, number: int
) -> None:
    assert functions(await crash_everywhere(TillShop, CHARGE, effects=effects, pairs=True, part=(number, PARTS)))


@pytest.mark.long
async def test_calls_of_one_step_are_each_made_once(crash_everywhere: CrashEverywhere) -> None:
    await crash_everywhere(TillShop, BOTH, effects=effects)


@pytest.mark.long
async def test_a_tool_that_may_not_run_twice_never_does(crash_everywhere: CrashEverywhere) -> None:
    await crash_everywhere(TillShop, 'call tool charge_once {"amount": 5} id=one\nsay: {result}.', effects=effects)
    assert DONE


@pytest.mark.long
async def test_the_end_of_a_job_enters_the_conversation_once(crash_everywhere: CrashEverywhere) -> None:
    await crash_everywhere(SlipShop, 'call tool charge_keyed {"amount": 5} id=one\nsay: On it.', effects=effects)
