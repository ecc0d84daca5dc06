"""Synced state and calls with the published hook: `state`, `setState`, `call`, `stub`, streams, refusals, cut lines."""

from typing import Any

import pytest

from tests.acceptance.proxy import CuttingProxy
from tests.clients.calls import call
from tests.clients.conftest import MakeRoom
from tests.clients.room import Room
from tests.clients.tab import Tab

LINES = pytest.mark.parametrize("line", ["sdk7", "sdk6"])
pytestmark = pytest.mark.room(agent="board")


def begin(tab: Tab, method: str, *arguments: Any) -> None:
    """Call a method; what comes of it is noted as an event `called`."""
    tab.page.evaluate(
        """([method, args]) => {
          const note = (detail) => harness.events.push({kind: "called", at: performance.now(), ...detail});
          harness.agent.call(method, args).then((result) => note({result}), (error) => note({error: error.message}));
        }""",
        [method, list(arguments)],
    )


def set_items(tab: Tab, *items: str) -> None:
    tab.page.evaluate("items => harness.agent.setState({items})", list(items))


def wait_items(tab: Tab, *items: str) -> None:
    condition = f"JSON.stringify(harness.agent.state?.items) === JSON.stringify({list(items)})"
    tab.wait(condition, what=f"items {items}")


def sent(tab: Tab) -> list[tuple[list[str], str]]:
    """What `onStateUpdate` was called with."""
    return [(event["state"]["items"], event["source"]) for event in tab.events("state")]


@LINES
def test_state_of_the_server_comes_with_the_identity(room_of: MakeRoom, line: str) -> None:
    tab = room_of(line=line, agent="board").open("first")
    wait_items(tab)
    assert sent(tab) == [([], "server")]
    kinds = tab.page.evaluate("() => harness.events.map(event => event.kind)")
    assert kinds.index("state") < kinds.index("ready"), "who waits for `ready` has the state too"


@pytest.mark.smoke("sdk7")
@LINES
def test_set_state_reaches_the_other_tab_a_late_one_and_a_reload(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="board")
    tab, other = room.open_two()
    set_items(tab, "milk")
    wait_items(other, "milk")
    set_items(other, "milk", "tea")
    wait_items(tab, "milk", "tea")
    assert sent(tab) == [([], "server"), (["milk"], "client"), (["milk", "tea"], "server")]
    assert sent(other) == [([], "server"), (["milk"], "server"), (["milk", "tea"], "client")]
    wait_items(room.open("late"), "milk", "tea")
    tab.reload()
    wait_items(tab, "milk", "tea")


def test_a_call_that_sets_the_state_updates_both_tabs(room: Room) -> None:
    tab, other = room.open_two()
    assert [call(tab, "add", "milk"), call(other, "add", "tea")] == [1, 2]
    for each in (tab, other):
        wait_items(each, "milk", "tea")
        assert {source for _items, source in sent(each)} == {"server"}


@LINES
def test_stub_calls_by_name(room_of: MakeRoom, line: str) -> None:
    tab = room_of(line=line, agent="board").open("first")
    assert tab.page.evaluate("() => harness.agent.stub.add('milk')") == 1


@LINES
def test_streaming_call(room_of: MakeRoom, line: str) -> None:
    tab = room_of(line=line, agent="board").open("first")
    seen = call(tab, "count", 3, streams=True)
    assert seen == {"chunks": [0, 1, 2], "done": [None], "errors": [], "result": None}
    assert call(tab, "count", 0, streams=True)["done"] == [None]


@pytest.mark.smoke("sdk7")
@LINES
def test_streaming_call_that_ends_with_a_value(room_of: MakeRoom, line: str) -> None:
    tab = room_of(line=line, agent="board").open("first")
    seen = call(tab, "total", 3, streams=True)
    assert seen == {"chunks": [0, 1, 2], "done": [3], "errors": [], "result": 3}


def test_streaming_call_that_fails(room: Room) -> None:
    tab = room.open("first")
    seen = call(tab, "count", 5, 0, 2, streams=True)
    assert seen == {"chunks": [0, 1], "done": [], "errors": ["stuck at 2"], "error": "stuck at 2"}


def test_refusals_in_words(room: Room) -> None:
    tab = room.open("first")
    assert call(tab, "nope") == {"error": "Method nope does not exist"}
    assert call(tab, "hidden") == {"error": "Method hidden is not callable"}
    assert call(tab, "add") == {"error": "Method add expects item: str; got 0 argument(s)"}
    assert call(tab, "add", "works") == 1


def test_timeout_is_the_clients_and_the_late_answer_harms_nothing(room: Room) -> None:
    tab = room.open("first")
    answered = "harness.late = (harness.late ?? 0) + 1"
    tab.do(f"harness.agent.addEventListener('message', (e) => {{ if (e.data.includes('rested')) {answered}; }})")
    assert call(tab, "rest", 1, timeout=150) == {"error": "RPC call to rest timed out after 150ms"}
    tab.wait("harness.late === 1", what="the late answer")
    seen = call(tab, "count", 9, 0.2, streams=True, timeout=500)
    assert seen["error"] == "RPC call to count timed out after 500ms"
    assert seen["errors"] == [seen["error"]]
    assert call(tab, "add", "works") == 1
    assert not tab.errors


def test_a_call_in_flight_when_the_line_drops(room: Room, proxy: CuttingProxy) -> None:
    tab = room.open("first", port=proxy.port)
    begin(tab, "rest", 60)
    tab.wait("harness.events.filter(e => e.kind === 'called').length === 0")
    assert call(tab, "add", "milk") == 1  # the long one has arrived too
    proxy.cut()
    tab.wait("harness.events.some(e => e.kind === 'called')")
    assert tab.events("called")[0]["error"] == "Connection closed"
    begin(tab, "add", "tea")  # waits for the next line
    tab.wait("harness.events.filter(e => e.kind === 'called').length === 2")
    assert tab.events("called")[1]["result"] == 2
    wait_items(tab, "milk", "tea")


def test_state_set_while_a_tab_was_away(room: Room, proxy: CuttingProxy) -> None:
    tab, other = room.open("first", port=proxy.port), room.open("other")
    wait_items(tab)
    proxy.cut()
    set_items(other, "milk")
    tab.wait("harness.events.filter(e => e.kind === 'open').length === 2", what="the next line")
    wait_items(tab, "milk")


@LINES
def test_a_viewer_learns_that_it_may_only_read(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="board")
    viewer, editor = room.open("viewer", mode="view"), room.open("editor")
    set_items(viewer, "mine")
    viewer.wait("harness.events.some(e => e.kind === 'state-error')")
    assert [event["text"] for event in viewer.events("state-error")] == ["Connection is readonly"]
    assert call(viewer, "add", "mine") == {"error": "Connection is readonly"}
    assert call(viewer, "count", 1, streams=True)["chunks"] == [0]
    assert call(editor, "add", "milk") == 1
    wait_items(viewer, "milk")
    assert not editor.events("state-error")


@pytest.mark.smoke
def test_refused_state_is_sent_to_its_sender(room: Room) -> None:
    tab, other = room.open_two()
    tab.do("harness.agent.setState({wrong: true})")
    tab.wait("harness.events.some(e => e.kind === 'state-error')")
    tab.do("harness.agent.setState({items: ['x'.repeat(1024 * 1024)]})")
    tab.wait("harness.events.filter(e => e.kind === 'state-error').length === 2")
    texts = [event["text"] for event in tab.events("state-error")]
    assert texts == ["State update rejected", "State is too large: 1048590 bytes, at most 1048576"]
    assert sent(other) == [([], "server")]
    assert call(tab, "add", "milk") == 1
    wait_items(tab, "milk")
