"""Large frames: refused before they are decoded where they are no request, else decoded beside everybody else."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.core.wire import frames
from chat.realtime import inbound
from tests.db.chat.conftest import text_message
from tests.db.chat.sockets import frames_until, opening_sockets

pytestmark = pytest.mark.django_db(transaction=True)

Connect = Callable[[User], Awaitable[Any]]
OTHER = 3 * 1024 * 1024
"""More than a frame may have that is no chat request."""


@pytest.fixture(autouse=True)
def _fresh_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "_budgets", inbound.ByteBudgets())


@pytest.fixture
async def connect_user() -> AsyncIterator[Connect]:
    async with opening_sockets() as open_socket:
        yield lambda user: open_socket(user, "assistant/talk")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Large frames are decoded once the event is set."""
    go_on, decode = threading.Event(), inbound.decode_large

    def wait(text: str, parse: Any) -> Any:
        assert go_on.wait(30)
        return decode(text, parse)

    monkeypatch.setattr(inbound, "decode_large", wait)
    yield go_on
    go_on.set()


def request(request_id: str, size: int = 0, **fields: Any) -> str:
    message = {**text_message(f"question-{request_id}", "user"), **fields}
    message["parts"].append({"type": "text", "text": "x" * size})
    body = json.dumps({"messages": [message]})
    return json.dumps({"id": request_id, "init": {"method": "POST", "body": body}, "type": "cf_agent_use_chat_request"})


def call(call_id: str) -> str:
    return json.dumps({"type": "rpc", "id": call_id, "method": "none", "args": []})


async def closing(socket: Any) -> tuple[int, str]:
    async with asyncio.timeout(15):
        while (output := await socket.receive_output(timeout=10))["type"] != "websocket.close":
            pass
    return output["code"], output["reason"]


@pytest.mark.parametrize("kind", ["nobody-knows", "rpc", "cf_agent_state", "cf_agent_tool_result"])
async def test_a_large_frame_that_is_no_request_is_refused_unread(
    connect_user: Connect, alice: User, held: threading.Event, kind: str
) -> None:
    """The text is not JSON: decoding it would have called it text for `on_message`."""
    del held
    socket = await connect_user(alice)
    await socket.send_to('{"type":"' + kind + '","id":' + "[" * OTHER)
    code, reason = await closing(socket)
    assert (code, reason) == (1009, f"Only chat requests may have more than {2 * 1024 * 1024} bytes.")


async def test_a_large_frame_that_claims_to_be_a_request_is_refused(connect_user: Connect, alice: User) -> None:
    socket = await connect_user(alice)
    inner = {"type": "cf_agent_use_chat_request"}
    await socket.send_to(json.dumps({"type": "nobody-knows", "x": "x" * OTHER, "inner": inner}))
    assert (await closing(socket))[0] == 1009


async def test_a_list_of_messages_is_ignored_whatever_its_size(
    connect_user: Connect, alice: User, held: threading.Event
) -> None:
    """Published clients send theirs after each `setMessages`."""
    del held
    socket = await connect_user(alice)
    await socket.send_to('{"messages":[' + "[" * OTHER + ',"type":"cf_agent_chat_messages"}')
    await socket.send_to(call("c1"))
    assert (await frames_until(socket, "rpc"))[-1]["id"] == "c1"


async def test_others_are_served_while_a_large_request_is_decoded(
    connect_user: Connect, alice: User, bob: User, held: threading.Event
) -> None:
    sender, tab, other = await connect_user(alice), await connect_user(alice), await connect_user(bob)
    await sender.send_to(request("r1", OTHER))
    for socket in (tab, other):
        await socket.send_to(call("c1"))
        assert (await frames_until(socket, "rpc"))[-1]["id"] == "c1"
    held.set()
    (message,) = (await frames_until(tab, "cf_agent_chat_messages"))[-1]["messages"]
    assert message["id"] == "question-r1"


async def test_a_request_with_too_many_values_ends_with_an_error(connect_user: Connect, alice: User) -> None:
    socket = await connect_user(alice)
    await socket.send_to(request("r1", 1000, metadata={"x": [[]] * (inbound.MAX_VALUES + 1)}))
    (error,) = await frames_until(socket, "done")
    assert (error["id"], error["error"], error["body"]) == ("r1", True, frames.TOO_COMPLEX)


async def test_a_frame_of_too_many_values_is_ended_by_the_id_that_it_shows(connect_user: Connect, alice: User) -> None:
    socket = await connect_user(alice)
    junk = "[" + "[]," * inbound.MAX_VALUES + "[]]"
    await socket.send_to('{"id":"r1","junk":' + junk + ',"type":"cf_agent_use_chat_request"}')
    (error,) = await frames_until(socket, "done")
    assert (error["id"], error["error"]) == ("r1", True)


async def test_a_frame_beyond_the_limit_is_refused_by_any_server(
    connect_user: Connect, alice: User, settings: Any
) -> None:
    settings.THINK_MAX_FRAME_BYTES = 5000
    socket = await connect_user(alice)
    await socket.send_to(request("r1", 1000))
    await frames_until(socket, "cf_agent_chat_messages")
    await socket.send_to(request("r2", 5000))
    assert await closing(socket) == (1009, "A frame may have 5000 bytes.")


async def test_bytes_a_minute_are_counted_over_all_sockets_of_a_user(
    connect_user: Connect, alice: User, bob: User, settings: Any
) -> None:
    settings.THINK_FRAME_BYTES_PER_MINUTE = 10_000
    first, second, other = await connect_user(alice), await connect_user(alice), await connect_user(bob)
    for socket in (first, other):
        await socket.send_to("x" * 6000)
        await socket.send_to(call("c1"))
        await frames_until(socket, "rpc")
    await second.send_to("x" * 6000)
    assert await closing(second) == (4429, "More than 10000 bytes a minute.")
    await other.send_to(call("c2"))
    assert (await frames_until(other, "rpc"))[-1]["id"] == "c2"


def test_a_budget_is_forgiven_evenly() -> None:
    budgets = inbound.ByteBudgets()
    assert budgets.spend(1, 600, per_minute=600, now=0.0)
    assert not budgets.spend(1, 100, per_minute=600, now=5.0)
    assert budgets.spend(1, 100, per_minute=600, now=25.0)
    assert budgets.spend(2, 600, per_minute=600, now=25.0)


async def test_users_take_turns_however_many_frames_one_of_them_has(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    first, go_on = threading.Event(), threading.Event()

    def decode(text: str, _parse: object) -> frames.Foreign:
        first.set()
        assert go_on.wait(30)
        decoded.append(text)
        return frames.Foreign(text=text)

    monkeypatch.setattr(inbound, "decode_large", decode)
    queue = inbound.DecodingQueue()
    tasks = [asyncio.create_task(queue.decode(1, f"a{number}", frames.parse)) for number in range(4)]
    await asyncio.to_thread(first.wait, 30)
    tasks += [
        asyncio.create_task(queue.decode(user, name, frames.parse)) for user, name in ((2, "b0"), (3, "c0"), (2, "b1"))
    ]
    await asyncio.sleep(0)
    tasks[2].cancel()
    go_on.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert decoded == ["a0", "a1", "b0", "c0", "a3", "b1"]


@pytest.mark.parametrize("had_its_turn", [False, True])
async def test_a_connection_that_goes_as_its_turn_comes_delays_no_other(had_its_turn: bool) -> None:
    queue = inbound.DecodingQueue()
    events: list[str] = []

    async def wait(user_id: int) -> None:
        async with queue._turn(user_id):
            events.append(f"turn of {user_id}")

    async with queue._turn(1):
        gone, later = asyncio.create_task(wait(2)), asyncio.create_task(wait(3))
        await asyncio.sleep(0)
        if not had_its_turn:
            gone.cancel()
    gone.cancel()
    await asyncio.gather(gone, later, return_exceptions=True)
    await wait(4)
    assert events == ["turn of 3", "turn of 4"]
