"""An admission that finds other turns each time it has its locks: it waits between its tries, and gives up."""

import time

import pytest

from chat.errors import TurnConflict
from chat.models import Turn
from chat.turns.admission import admit, holding
from chat.turns.admission.admit import ADMIT_TRIES
from thinkproject.kernel.aio import db

from .conftest import MakeRoom


async def test_it_backs_off_and_refuses_at_the_end(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    room = make_room("plain")
    waits: list[float] = []
    seen = iter(range(1000))
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(admit, "no_fibers", lambda _instance: [f"fib_{next(seen)}"])  # another turn at each look
    with pytest.raises(TurnConflict, match="try again"):
        await room.admit("say: Hello.")
    assert len(waits) == ADMIT_TRIES - 1
    assert max(waits) <= holding.RETRY.max_seconds
    assert sum(waits) < 4
    assert waits[-1] > 10 * waits[0]
    assert not await db(Turn.objects.exists)
