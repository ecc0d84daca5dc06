"""The four tests of the report on OpenCode, translated, under their names."""

import asyncio
from typing import Any

import pytest

from chat.core.model.overflow import Count, Limits, overflows_v1
from chat.testing import worker
from chat.think import Think, Tool, tool
from chat.turns.state.status import TurnStatus
from sessions_app.core.compaction.tokens import length_over_four
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.gated import until

from .call_lines import call_line
from .conftest import MakeRoom

pytestmark = pytest.mark.django_db(transaction=True)


@tool
def measure_example() -> int:
    """Measure."""
    return 7


class MeasureExample(Think):
    """Measures."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [measure_example]


def test_token_estimation() -> None:
    assert length_over_four("hello world") == 3


def test_overflow_detection() -> None:
    tokens = Count(input_tokens=100_000, output_tokens=10_000, cache_read_tokens=5_000)
    assert overflows_v1(tokens, Limits(context_tokens=100_000, output_tokens=5_000))


async def test_loop_with_cancel(make_room: MakeRoom) -> None:
    room = make_room("measure-example")
    stop = asyncio.Event()
    async with worker(), asyncio.timeout(60):
        answer = asyncio.create_task(room.handle.chat("wait 30 s\nsay: Too late.", signal=stop))

        async def is_asked() -> bool:
            return bool(room.model.requests)

        await until(is_asked)
        stop.set()
        assert (await answer).status is TurnStatus.ABORTED
        assert await room.handle.wait_until_stable(20)
    assert "Too late." not in [text for _, text in await room.texts()]


async def test_message_ordering(make_room: MakeRoom) -> None:
    room = make_room("measure-example")
    await room.say(f"say: Let me see.\n{call_line('measure_example', 'c1')}say: It is {{result}}.")
    parts = [part for part in (await room.transcript())[-1]["parts"] if part["type"] != "step-start"]
    assert [(part["type"], part.get("text"), part.get("output")) for part in parts] == [
        ("text", "Let me see.", None),
        ("tool-measure_example", None, 7),
        ("text", "It is 7.", None),
    ]
