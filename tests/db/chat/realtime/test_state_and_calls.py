"""The synced state and the methods that clients may call: over sockets, from two connections."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.agent import declared
from chat.agent.base import InstanceKey, StateSource
from chat.agent.callables import StreamResult, client_callable
from chat.agent.connection import ClientConnection
from chat.errors import CallRefused, StateRefused
from chat.instance.instance import make_agent
from chat.models import AgentInstance
from chat.realtime import monitor
from chat.realtime import rpc as realtime_rpc
from chat.realtime.connection import Connection
from chat.runtime import state
from chat.think import Think
from tests.db.chat.sockets import connection, cookie_of, frames_until
from thinkproject.kernel.jsonvalue import JSONValue

pytestmark = pytest.mark.django_db(transaction=True)
HEARD: list[tuple[JSONValue, StateSource]] = []


class BoardBase(Think, abstract=True):
    initial_state = {"todos": []}

    def validate_state_change(self, state: JSONValue, source: StateSource) -> None:
        if not isinstance(state, dict):
            raise TypeError("a secret of the server: states are objects")

    def on_state_changed(self, state: JSONValue, source: StateSource) -> None:
        HEARD.append((state, source))
        if state == {"todos": ["fail"]}:
            raise RuntimeError("too late")

    def is_read_only(self, connection: ClientConnection) -> bool:
        return self.key.name == "locked" or connection.query.get("mode") == "view"

    async def on_message(self, connection: ClientConnection, message: str) -> None:
        await self.set_state({"todos": [message]})

    @client_callable(name="addTodo")
    async def add_todo(self, title: str) -> int:
        state: Any = await self.get_state()
        todos = [*state["todos"], title]
        await self.set_state({"todos": todos})
        return len(todos)

    @client_callable
    def reversed(self, text: str, times: int = 1) -> str:
        return text[::-1] if times % 2 else text

    @client_callable
    async def count(self, to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number
            if number == 7:
                raise ValueError("seven")

    @client_callable
    async def total(self, to: int) -> AsyncIterator[int | StreamResult]:
        for number in range(to):
            yield number
        yield StreamResult({"total": sum(range(to))})
        if to > 5:
            yield to

    @client_callable
    async def nothing(self) -> None:
        """Give nothing."""

    @client_callable
    async def silence(self) -> None:
        raise RuntimeError

    @client_callable
    def refuse(self) -> None:
        raise CallRefused("The shop is closed.")

    @client_callable
    def unfit(self) -> object:
        return {1, 2}

    @client_callable
    async def forever(self) -> None:
        await asyncio.sleep(600)  # a call that never returns

    @client_callable
    async def spoil(self) -> None:
        await self.set_state("no object")

    async def secret(self) -> str:
        return "not for clients"


Connect = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
def _board() -> Any:
    HEARD.clear()

    class BoardUnderTest(BoardBase):
        """A board."""

    yield
    declared.unregister(BoardUnderTest)


@pytest.fixture
async def connect_board(alice: User) -> AsyncIterator[Connect]:
    opened: list[Any] = []
    cookie = await sync_to_async(cookie_of)(alice)

    async def go(name: str = "one", *, is_ready: bool = True, query: str = "") -> Any:
        made = connection(f"/agents/board-under-test/{name}", cookie=cookie, query=query)
        await made.connect(timeout=15)
        opened.append(made)
        if is_ready:
            await frames_until(made, "cf_agent_mcp_servers")
        return made

    yield go
    for made in opened:
        await made.disconnect()


async def rpc(socket: Any, method: str, *arguments: Any, call_id: str = "c") -> list[dict[str, Any]]:
    """Call, and return the answers to it."""
    await socket.send_to(json.dumps({"type": "rpc", "id": call_id, "method": method, "args": arguments}))
    found: list[dict[str, Any]] = []
    while not found or found[-1].get("done") is False:
        found += [frame for frame in await frames_until(socket, "rpc") if frame["type"] == "rpc"]
    return [{key: value for key, value in frame.items() if key not in {"type", "id"}} for frame in found]


async def set_state(socket: Any, value: Any) -> None:
    await socket.send_to(json.dumps({"type": "cf_agent_state", "state": value}))


async def next_state(socket: Any) -> Any:
    return (await frames_until(socket, "cf_agent_state"))[-1]["state"]


async def test_a_streaming_call_ends_with_a_value(connect_board: Connect) -> None:
    socket = await connect_board()
    assert await rpc(socket, "total", 2) == [
        {"success": True, "done": False, "result": 0},
        {"success": True, "done": False, "result": 1},
        {"success": True, "done": True, "result": {"total": 1}},
    ]
    last = (await rpc(socket, "total", 6))[-1]
    assert last == {"success": False, "error": "Method total went on after its result"}


async def test_initial_state_follows_the_identity_and_makes_no_row(connect_board: Connect) -> None:
    socket = await connect_board(is_ready=False)
    found = await frames_until(socket, "cf_agent_mcp_servers")
    at = [frame["type"] for frame in found].index("cf_agent_identity")
    assert found[at]["stateFollows"] is True
    assert found[at + 1] == {"type": "cf_agent_state", "state": {"todos": []}}
    assert not await AgentInstance.objects.aexists()


async def test_update_of_a_client_is_sent_to_the_others_and_stored(connect_board: Connect) -> None:
    mine, other = await connect_board(), await connect_board()
    await set_state(mine, {"todos": ["milk"]})
    assert await next_state(other) == {"todos": ["milk"]}
    assert await mine.receive_nothing(timeout=0.3)
    assert HEARD == [({"todos": ["milk"]}, "client")]
    late = await connect_board(is_ready=False)
    assert await next_state(late) == {"todos": ["milk"]}


async def test_what_the_server_sets_is_sent_to_all(connect_board: Connect, alice: User) -> None:
    mine, other = await connect_board(), await connect_board()
    key = InstanceKey(owner_id=alice.pk, agent="board-under-test", name="one")
    await make_agent(key).set_state({"todos": ["tea"]})
    assert [await next_state(mine), await next_state(other)] == [{"todos": ["tea"]}] * 2
    assert HEARD == [({"todos": ["tea"]}, "server")]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("one", "no object", "State update rejected"), ("locked", {"todos": []}, "Connection is readonly")],
)
async def test_refused_update_is_sent_to_the_sender_alone(
    connect_board: Connect, name: str, value: JSONValue, text: str
) -> None:
    mine, other = await connect_board(name), await connect_board(name)
    await set_state(mine, value)
    assert (await frames_until(mine, "cf_agent_state_error"))[-1]["error"] == text
    assert await other.receive_nothing(timeout=0.3)
    assert HEARD == []
    assert not await AgentInstance.objects.aexists()


async def test_read_only_connection_cannot_set_the_state_by_a_call_or_a_message(
    connect_board: Connect, alice: User
) -> None:
    viewer, editor = await connect_board(query="mode=view"), await connect_board(query="mode=edit")
    assert await rpc(viewer, "addTodo", "milk") == [{"success": False, "error": "Connection is readonly"}]
    await viewer.send_to("by a message")
    assert await rpc(viewer, "reversed", "ab") == [{"success": True, "done": True, "result": "ba"}]
    assert not await AgentInstance.objects.aexists()
    assert await rpc(editor, "addTodo", "milk") == [{"success": True, "done": True, "result": 1}]
    assert await next_state(viewer) == {"todos": ["milk"]}
    await editor.send_to("by a message")
    assert await next_state(viewer) == {"todos": ["by a message"]}
    key = InstanceKey(owner_id=alice.pk, agent="board-under-test", name="one")
    await make_agent(key).set_state({"todos": ["the server"]})  # no one's connection
    assert await next_state(viewer) == {"todos": ["the server"]}


async def test_too_large_a_state_is_refused_from_client_and_server(
    connect_board: Connect, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "STATE_BYTES", 40)
    mine = await connect_board()
    fits, large = {"todos": ["x" * 26]}, {"todos": ["x" * 27]}
    text = "State is too large: 41 bytes, at most 40"
    await set_state(mine, large)
    assert (await frames_until(mine, "cf_agent_state_error"))[-1]["error"] == text
    assert await rpc(mine, "addTodo", "x" * 27) == [{"success": False, "error": text}]
    agent = make_agent(InstanceKey(owner_id=alice.pk, agent="board-under-test", name="one"))
    with pytest.raises(StateRefused, match="41 bytes"):
        await agent.set_state(large)
    assert HEARD == []
    assert not await AgentInstance.objects.aexists()
    await agent.set_state(fits)
    assert await next_state(mine) == fits


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), {"todos": object()}])
async def test_what_json_cannot_carry_is_no_state(alice: User, value: Any) -> None:
    agent = make_agent(InstanceKey(owner_id=alice.pk, agent="board-under-test", name="one"))
    with pytest.raises(StateRefused, match="State is not JSON: "):
        await agent.set_state(value)
    assert not await AgentInstance.objects.aexists()


async def test_hook_that_fails_afterwards_undoes_nothing(connect_board: Connect) -> None:
    mine, other = await connect_board(), await connect_board()
    await set_state(mine, {"todos": ["fail"]})
    assert await next_state(other) == {"todos": ["fail"]}
    assert await mine.receive_nothing(timeout=0.3)


async def test_state_null_is_a_state(connect_board: Connect, alice: User) -> None:
    await connect_board()
    key = InstanceKey(owner_id=alice.pk, agent="board-under-test", name="one")
    await sync_to_async(AgentInstance.objects.create)(
        owner=alice, agent=key.agent, name=key.name, state=None, state_version=1
    )
    assert await make_agent(key).get_state() is None
    late = await connect_board(is_ready=False)
    assert await next_state(late) is None


async def test_lost_notification_of_a_state_is_noticed(
    connect_board: Connect, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.2)
    await sync_to_async(AgentInstance.objects.create)(owner=alice, agent="board-under-test", name="one")
    socket = await connect_board()
    await AgentInstance.objects.aupdate(state={"todos": ["quiet"]}, state_version=1)
    assert await next_state(socket) == {"todos": ["quiet"]}
    assert await socket.receive_nothing(timeout=0.6)


async def test_a_resync_during_a_connect_sends_the_state_once(
    connect_board: Connect, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync_to_async(AgentInstance.objects.create)(
        owner=alice, agent="board-under-test", name="one", state={"todos": ["here"]}, state_version=3
    )
    send = Connection.send_transcript

    async def slowly(connection: Connection, **how: Any) -> None:
        await monitor.connections._look()
        await send(connection, **how)

    monkeypatch.setattr(Connection, "send_transcript", slowly)
    socket = await connect_board(is_ready=False)
    found = await frames_until(socket, "cf_agent_mcp_servers")
    assert [frame["state"] for frame in found if frame["type"] == "cf_agent_state"] == [{"todos": ["here"]}]


async def test_a_call_sets_the_state_and_answers_the_caller_first(connect_board: Connect) -> None:
    """The state, then the result that may speak of it; the others get the state, the newest where they are slow."""
    mine, other = await connect_board(), await connect_board()
    for count, todo in enumerate(["milk", "tea"], start=1):
        await mine.send_to(json.dumps({"type": "rpc", "id": "c", "method": "addTodo", "args": [todo]}))
        state, result = await frames_until(mine, "rpc")
        assert state["type"] == "cf_agent_state"
        assert state["state"]["todos"] == ["milk", "tea"][:count]
        assert (result["success"], result["result"]) == (True, count)
    while await next_state(other) != {"todos": ["milk", "tea"]}:
        pass
    assert await mine.receive_nothing(timeout=0.1)


@pytest.mark.parametrize(
    ("method", "arguments", "answers"),
    [
        ("reversed", ["abc"], [{"success": True, "done": True, "result": "cba"}]),
        ("reversed", ["abc", 2], [{"success": True, "done": True, "result": "abc"}]),
        ("nothing", [], [{"success": True, "done": True}]),
        (
            "count",
            [2],
            [{"success": True, "done": False, "result": n} for n in range(2)] + [{"success": True, "done": True}],
        ),
        (
            "count",
            [9],
            [{"success": True, "done": False, "result": n} for n in range(8)]
            + [{"success": False, "error": "The agent's own code failed."}],
        ),
        ("silence", [], [{"success": False, "error": "The agent's own code failed."}]),
        ("refuse", [], [{"success": False, "error": "The shop is closed."}]),
        ("spoil", [], [{"success": False, "error": "State update rejected"}]),
        ("nope", [], [{"success": False, "error": "Method nope does not exist"}]),
        ("__init__", [], [{"success": False, "error": "Method __init__ does not exist"}]),
        ("add_todo", ["x"], [{"success": False, "error": "Method add_todo is not callable"}]),
        ("secret", [], [{"success": False, "error": "Method secret is not callable"}]),
        ("set_state", [{}], [{"success": False, "error": "Method set_state is not callable"}]),
        ("get_config", [], [{"success": False, "error": "Method get_config is not callable"}]),
        ("configure", [{}], [{"success": False, "error": "Method configure is not callable"}]),
        ("key", [], [{"success": False, "error": "Method key does not exist"}]),
        (
            "reversed",
            [],
            [{"success": False, "error": "Method reversed expects text: str, times: int = 1; got 0 argument(s)"}],
        ),
    ],
)
async def test_calls(connect_board: Connect, method: str, arguments: list[Any], answers: list[dict[str, Any]]) -> None:
    assert await rpc(await connect_board(), method, *arguments) == answers


async def test_wrong_argument_types_and_unserialisable_results_are_reported(connect_board: Connect) -> None:
    socket = await connect_board()
    wrong: list[tuple[str, list[Any], str]] = [
        ("reversed", [["no text"]], "Method reversed: argument "),
        ("count", ["many"], "Method count: argument "),
        ("unfit", [], "Result is not JSON-serializable: "),
    ]
    for method, arguments, beginning in wrong:
        [answer] = await rpc(socket, method, *arguments)
        assert answer["success"] is False
        assert answer["error"].startswith(beginning)


async def test_long_call_holds_nothing_up_and_ends_with_its_connection(connect_board: Connect) -> None:
    socket = await connect_board()
    await socket.send_to(json.dumps({"type": "rpc", "id": "long", "method": "forever", "args": []}))
    assert await rpc(socket, "reversed", "ab") == [{"success": True, "done": True, "result": "ba"}]
    async with asyncio.timeout(15):
        await socket.disconnect()


async def test_too_many_calls_at_a_time_are_refused(connect_board: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime_rpc, "MAX_CALLS", 2)
    socket = await connect_board()
    for number in range(2):
        await socket.send_to(json.dumps({"type": "rpc", "id": str(number), "method": "forever", "args": []}))
    [answer] = await rpc(socket, "reversed", "ab")
    assert answer == {"success": False, "error": "Too many calls at a time: at most 2"}


async def test_changes_in_quick_succession_end_with_the_newest_and_never_go_back(connect_board: Connect) -> None:
    """They may be sent as one: `state-coalesced` in `docs/wire-amendments.md`."""
    writer, reader = await connect_board(), await connect_board()
    for number in range(20):
        await writer.send_to(json.dumps({"type": "cf_agent_state", "state": {"todos": [number]}}))
    sent: list[int] = []
    while not sent or sent[-1] != 19:
        sent.append((await frames_until(reader, "cf_agent_state"))[-1]["state"]["todos"][0])
    assert sent == sorted(set(sent))


async def test_a_line_that_is_asked_answers_without_the_agent(connect_board: Connect) -> None:
    one = await connect_board()
    await one.send_to(text_data=json.dumps({"type": "think_ping"}))
    assert json.loads(await one.receive_from()) == {"type": "think_pong"}
    assert HEARD == []
