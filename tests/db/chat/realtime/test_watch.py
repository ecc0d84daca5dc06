"""The look at the rows: one socket that fails or hangs costs no other socket anything."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db.models import F

from chat.models import AgentInstance
from chat.realtime import monitor
from chat.realtime.connection import Connection
from chat.realtime.monitor import Connections
from tests.db.chat.sockets import frames_until, opening_sockets
from tests.db.statements import statements

pytestmark = pytest.mark.django_db(transaction=True)
Connect = Callable[[str], Awaitable[Any]]


@pytest.fixture
async def connect_watched(
    alice: User, make_instance: Callable[..., AgentInstance], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Connect]:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.05)
    async with opening_sockets() as open_socket:

        async def go(name: str) -> Any:
            await sync_to_async(make_instance)(alice, name)
            return await open_socket(alice, f"assistant/{name}")

        yield go


async def change_states(number: int) -> None:
    """New states, of which there is no notification."""
    await AgentInstance.objects.aupdate(state={"number": number}, state_version=F("state_version") + 1)


def broken(monkeypatch: pytest.MonkeyPatch, method: str, outcome: Callable[[], Awaitable[Any]]) -> None:
    """Have a method of the first conversation's socket come to something else."""
    own = getattr(Connection, method)

    async def instead(self: Connection, *arguments: Any) -> Any:
        return await (outcome() if self.key.name == "first" else own(self, *arguments))

    monkeypatch.setattr(Connection, method, instead)


async def fail() -> None:
    raise ValueError("a defect")


async def hang() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("outcome", [fail, hang], ids=["fails", "hangs"])
@pytest.mark.parametrize("method", ["send_state", "check_authority"])
async def test_other_sockets_are_looked_at(
    connect_watched: Connect, monkeypatch: pytest.MonkeyPatch, settings: Any, method: str, outcome: Any
) -> None:
    settings.THINK_AUTHORITY_SECONDS = 0.0
    if method == "check_authority":  # which sockets cost by themselves where their credential does not hold
        monkeypatch.setattr(monitor, "holding", lambda _credentials: set())
    broken(monkeypatch, method, outcome)
    await connect_watched("first")
    second = await connect_watched("second")
    for number in (1, 2):  # the second time the failure lies behind
        await change_states(number)
        assert (await frames_until(second, "cf_agent_state"))[-1]["state"] == {"number": number}


async def test_a_failure_of_the_look_itself_does_not_end_it(
    connect_watched: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    socket = await connect_watched("one")
    look = monitor._counts

    def failing(_keys: Any) -> Any:
        monkeypatch.setattr(monitor, "_counts", look)
        raise ValueError("a defect")

    monkeypatch.setattr(monitor, "_counts", failing)
    await change_states(1)
    assert (await frames_until(socket, "cf_agent_state"))[-1]["state"] == {"number": 1}
    assert [record.message for record in caplog.records if record.exc_info] == ["watch failed"]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """The sockets of this test alone, and none that an earlier one has not let go of yet."""
    made = Connections()
    monkeypatch.setattr("chat.realtime.connection.connections", made)
    return made


def waiting_timers() -> int:
    """Timers that this loop waits for."""
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return sum(not handle.cancelled() for handle in scheduled)


async def test_idle_sockets_share_their_timers_and_their_queries(
    watched: Connections, connect_watched: Connect, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Each of a browser of its own, at a conversation of its own."""
    settings.THINK_AUTHORITY_SECONDS = 0.0
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 3_600.0)
    timers, costs = [], []
    for count in (1, 8):
        while len(watched) < count:
            await connect_watched(f"idle-{len(watched)}")
        await asyncio.sleep(0.3)  # timers of the openings end unseen, and all of them have to
        timers.append(waiting_timers())
        tasks = set(asyncio.all_tasks())
        with statements() as found:
            await watched._check_authority()
            await watched._look()
        assert set(asyncio.all_tasks()) == tasks, "a socket that is as it should be costs no task"
        costs.append(found)
    assert timers[1] <= timers[0]
    assert [len(found) for found in costs] == [3, 3]


async def test_authority_that_was_read_is_not_read_again_for_a_frame(
    watched: Connections, connect_watched: Connect, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.THINK_AUTHORITY_SECONDS = 0.0
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 3_600.0)
    await connect_watched("one")
    [socket] = watched._live
    assert isinstance(socket, Connection)
    socket._checked_at -= 1.2  # the check at the opening counts for no frame any more
    await watched._check_authority()
    with statements() as found:
        assert await socket.check_authority(max_age_seconds=1.0)
    assert found == []


async def test_authority_is_asked_for_again(connect_watched: Connect, alice: User, settings: Any) -> None:
    settings.THINK_AUTHORITY_SECONDS = 0.1
    socket = await connect_watched("one")
    await User.objects.filter(pk=alice.pk).aupdate(is_active=False)
    async with asyncio.timeout(15):
        while (output := await socket.receive_output(timeout=10))["type"] != "websocket.close":
            json.loads(output["text"])
    assert output["code"] == 4401
