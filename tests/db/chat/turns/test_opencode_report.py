"""The four tests that a report on OpenCode asks for, under their names: estimation, overflow, cancelling, ordering."""

import asyncio
from typing import Any

import pytest

from chat.core.model.overflow import Count, Limits, overflows_v1
from chat.think import Think
from chat.turns.state.status import TurnStatus
from fibers.testing import worker
from sessions_app.core.compaction.tokens import length_over_four
from tests.db.chat.turns.agents.everyday import MODELS

from .call_lines import call_line
from .conftest import MakeRoom

pytestmark = pytest.mark.django_db(transaction=True)


class Orderly(Think):
    """Has the file tools."""

    def get_model(self) -> Any:
        return MODELS["current"]


def test_token_estimation() -> None:
    assert length_over_four("hello world") == 3


def test_overflow_detection() -> None:
    limits = Limits(context_tokens=100_000, output_tokens=5_000)
    assert overflows_v1(Count(input_tokens=100_000, output_tokens=10_000, cache_read_tokens=5_000), limits)
    assert not overflows_v1(Count(input_tokens=10_000, output_tokens=1_000, cache_read_tokens=500), limits)


async def test_loop_with_cancel(make_room: MakeRoom) -> None:
    signal = asyncio.Event()

    class Cancelling:
        def on_event(self, text: str) -> None:
            signal.set()

    async with worker():
        result = await make_room("orderly").handle.chat("stream 2000 words at 20/s", Cancelling(), signal=signal)
    assert result.status is TurnStatus.ABORTED


async def test_message_ordering(make_room: MakeRoom) -> None:
    room = make_room("orderly")
    await room.say("say: First the words.\n" + call_line("write", "c1", path="/a", content="x") + "say: Then the rest.")
    parts = (await room.transcript())[-1]["parts"]
    kinds = [part["type"] for part in parts if part["type"] != "step-start"]
    assert kinds == ["text", "tool-write", "text"]
    [call] = [part for part in parts if part["type"] == "tool-write"]
    assert (call["toolCallId"], call["state"]) == ("c1", "output-available")
