"""The modes of `run_turn`, stopping by id, waiting until stable."""

import pytest

from chat.agent.values.turns import SavedTurn, Submission
from chat.models import AgentInstance
from chat.testing import worker
from tests.db.chat.turns.agents.gated import Quiet, gate, reached
from thinkproject.kernel.aio import db
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, status_of
from .methods_support import texts


async def test_run_turn_has_three_modes(make_room: MakeRoom) -> None:
    room = make_room()
    callback = Quiet()
    async with worker():
        waited = await room.handle.run_turn("say: one")
        streamed = await room.handle.run_turn("say: two", mode="stream", callback=callback)
        submitted = await room.handle.run_turn("say: three", mode="submit")
        assert await room.handle.wait_until_stable(20)
        continued = await room.handle.run_turn(continuation=True)
    assert isinstance(waited, SavedTurn)
    assert isinstance(submitted, Submission)
    assert [one.status for one in (waited, streamed, continued)] == ["completed"] * 3
    assert callback.sent == ["start", "event", "done"]
    assert (await texts(room))[:6] == ["say: one", "one", "say: two", "two", "say: three", "three"]


async def test_requests_are_stopped_by_their_id_or_all(make_room: MakeRoom) -> None:
    room = make_room("gated")
    assert await room.handle.abort_all_requests() is False
    async with worker(), gate() as opened:
        first = await room.admit("say: one")
        await reached()
        second = await room.admit("say: two")
        assert await room.handle.abort_request("nobody") is False
        assert await room.handle.abort_request(second.turn.request_id, "not needed")
        assert status_of(await room.turn(second.turn.pk)) == "aborted"
        assert await room.handle.abort_all_requests()
        assert await room.handle.wait_until_stable(20)
        opened.set()
    assert status_of(await room.turn(first.turn.pk)) == "aborted"


async def test_stopping_a_turn_leaves_those_that_wait(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker(), gate() as opened:
        first = await room.admit("say: one")
        await reached()
        waiting = [await room.admit(f"say: {text}") for text in ("two", "three")]
        assert await room.handle.abort_request(first.turn.request_id)
        opened.set()
        assert await room.handle.wait_until_stable(20)
    ended = [status_of(await room.turn(admission.turn.pk)) for admission in (first, *waiting)]
    assert ended == ["aborted", "completed", "completed"]
    assert [role for role, _ in await room.texts()] == ["user", "user", "assistant", "user", "assistant"]


async def open_call(room: Room, status: CallStatus) -> None:
    """A call of an earlier turn of this conversation that stands like this."""
    await room.handle.add_messages("question")
    instance = await db(AgentInstance.objects.get)
    values = {"turn_id": "trn_x", "call_id": "call", "tool_name": "ask", "scope": instance.pk, "status": status}
    await db(lambda: ToolCallRecord.objects.create(**values))


@pytest.mark.parametrize("status", list(CallStatus))
async def test_waiting_until_stable_covers_all_that_is_open(make_room: MakeRoom, status: CallStatus) -> None:
    """Who waits for a client or a person is not at rest; a call that died with its worker waits for no one."""
    room = make_room()
    assert await room.handle.wait_until_stable(0)  # idle
    await open_call(room, status)
    is_pending = status in {CallStatus.WAITING, CallStatus.ASKED}
    assert await room.handle.has_pending_interaction() is is_pending
    assert await room.handle.wait_until_stable(0) is not is_pending


async def test_what_runs_or_waits_is_not_stable(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker(), gate() as opened:
        await room.admit("say: one")
        await reached()
        await room.handle.submit_messages("say: two")
        assert not await room.handle.wait_until_stable(0.05)
        opened.set()
        assert await room.handle.wait_until_stable()
    assert await texts(room) == ["say: one", "one", "say: two", "two"]
