"""Reloads, late tabs, cut networks and killed processes, in the middle of an answer: nothing lost, nothing twice."""

import pytest

from tests.acceptance.product import wait_for
from tests.acceptance.proxy import CuttingProxy
from tests.clients.conftest import MakeRoom
from tests.clients.room import Room, outline
from tests.clients.tab import Tab, text_of
from tests.clients.ways import LINES

LONG = "stream 300 words at 50/s"
RESUMING = "cf_agent_stream_resuming"


@pytest.mark.smoke("sdk7")
@LINES
def test_reload_in_mid_stream(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, _observer = room.open_two()
    room.ask(tab, "stream 150 words at 40/s")
    tab.wait_text(60)
    tab.reload()
    tab.wait("harness.chat.status === 'streaming'")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]
    assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]


@LINES
def test_late_tab_in_mid_stream(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab = room.open("first")
    room.ask(tab, "stream 200 words at 50/s")
    tab.wait_text(60)
    late = room.open("late")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]
    assert late.statuses() == ["ready", "submitted", "streaming", "ready"]
    assert len(late.received(RESUMING)) == 2


@pytest.mark.smoke("sdk7")
@LINES
def test_network_drop_in_mid_stream(room_of: MakeRoom, proxy: CuttingProxy, line: str) -> None:
    room = room_of(line=line)
    tab, _observer = room.open("first", port=proxy.port), room.open("observer")
    room.ask(tab, LONG)
    tab.wait_text(60)
    assert proxy.cut() > 0
    tab.wait("harness.chat.status === 'error'")
    tab.wait("harness.chat.status === 'streaming'")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]
    assert tab.statuses()[-2:] == ["streaming", "ready"]
    assert tab.error is None


def test_observer_drops_in_mid_stream(room: Room, proxy: CuttingProxy) -> None:
    tab, observer = room.open("first"), room.open("observer", port=proxy.port)
    room.ask(tab, LONG)
    observer.wait_text(60)
    proxy.cut()
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]
    assert len(observer.sockets) == 2


def test_answer_ends_while_the_network_is_gone(room: Room, proxy: CuttingProxy) -> None:
    tab, observer = room.open("first", port=proxy.port), room.open("observer")
    room.ask(tab, "stream 60 words at 40/s")
    tab.wait_text(60)
    proxy.go_offline()
    observer.wait("harness.events.some(event => event.kind === 'turn-end')")
    proxy.go_online()
    tab.wait("harness.events.filter(event => event.kind === 'open').length === 2")
    tab.wait(f"harness.chat.messages.at(-1).parts.at(-1).text?.length === {len(room.answers()[0])}")
    room.rest()


def test_message_sent_while_the_network_is_gone(room: Room, proxy: CuttingProxy) -> None:
    tab, observer = room.open("first", port=proxy.port), room.open("observer")
    proxy.go_offline()
    tab.wait("harness.events.some(event => event.kind === 'close')")
    room.ask(tab, "stream 20 words at 40/s")
    proxy.go_online()
    observer.wait("harness.events.some(event => event.kind === 'turn-end')")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert text_of(stored[1]) == room.answers()[0]


@LINES
def test_reconnect_before_the_first_chunk(room_of: MakeRoom, proxy: CuttingProxy, line: str) -> None:
    room = room_of(line=line)
    tab = room.open("first", port=proxy.port)
    room.product.workers[0].kill()
    room.ask(tab, "stream 30 words at 40/s")
    tab.wait("harness.chat.status === 'submitted'")
    wait_for(lambda: room.open_turns() == 1, what="the turn being accepted")
    late = room.open("late")
    wait_for(lambda: "cf_agent_stream_pending" in late.kinds(), what="the late tab being asked to wait")
    proxy.cut()
    tab.wait("harness.events.filter(event => event.kind === 'open').length === 2")
    room.product.workers[0].start()
    tab.wait("harness.chat.status === 'streaming'", seconds=40)
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]
    for waited in (tab, late):
        kinds = waited.kinds()
        assert kinds.index("cf_agent_stream_pending") < kinds.index(RESUMING)
        assert waited.status == "ready"


@LINES
def test_history_comes_by_http_when_the_socket_does_not(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    room.ask_and_rest(room.open("first"), "stream 20 words at 40/s")
    late = room.open("late", is_waiting=False, liar=lambda socket: None)
    late.wait("harness.chat?.messages.length === 2")
    assert late.kinds() == []
    assert outline(late.messages) == outline(room.stored())
    assert text_of(late.messages[1]) == room.answers()[0]


def test_web_process_killed_in_mid_answer(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask(tab, "stream 1000 words at 50/s")  # longer than a web server needs to start on a busy machine
    tab.wait_text(60)
    room.product.webs[0].restart()
    for each in (tab, observer):
        each.wait("harness.events.filter(event => event.kind === 'open').length === 2")
    tab.wait("harness.chat.status === 'streaming'")
    [_, answer] = room.rest(seconds=60)
    assert text_of(answer) == room.answers()[0]


def test_worker_killed_in_mid_answer(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask(tab, "stream 200 words at 50/s")
    tab.wait_text(200)
    room.product.workers[0].restart()
    late = room.open("late")
    [_, answer] = room.rest(seconds=60)
    assert text_of(answer) == room.answers()[0]
    assert len(text_of(answer).split()) == 200
    assert [end["outcome"] for end in tab.events("turn-end")] == ["completed"]
    assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]
    for watcher in (observer, late):
        assert watcher.status == "ready"


def leave_in_mid_answer(
    room: Room, proxy: CuttingProxy, *, is_asking: bool, first: str = "say: First."
) -> tuple[Tab, Tab]:
    """A tab is away from the middle of the second answer until after its end; returns it and the other one."""
    observer = room.open("observer")
    room.ask_and_rest(observer, first)
    tab = room.open("first", port=proxy.port)
    room.ask(tab if is_asking else observer, "stream 60 words at 40/s")
    tab.wait("harness.seen.at(-1)?.messages.length === 4")
    tab.wait_text(60)
    proxy.go_offline()
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 2")
    return tab, observer


@pytest.mark.parametrize("is_asking", [True, False])
@pytest.mark.parametrize(("line", "is_edit"), [("sdk7", True), ("sdk6", False)])
def test_back_while_another_path_is_answered(
    room_of: MakeRoom, proxy: CuttingProxy, line: str, is_edit: bool, is_asking: bool
) -> None:
    room = room_of(line=line)
    first = "say: First." if is_edit else "stream 200 words at 50/s"
    tab, observer = leave_in_mid_answer(room, proxy, is_asking=is_asking, first=first)
    [question, answer, *_] = observer.messages
    if is_edit:
        room.ask(observer, "stream 200 words at 40/s", question["id"])
    else:
        observer.do(f"harness.chat.regenerate({{ messageId: {answer['id']!r} }})")
    observer.wait("harness.chat.status === 'streaming'")
    proxy.go_online()
    tab.wait("harness.events.filter(event => event.kind === 'open').length === 2")
    assert len(room.rest()) == 2
    ends = tab.events("turn-end")  # of the answer that was cut, and of the next if it ran until the line was back
    assert ends[0]["replay"], "the end of the answer that was cut"
    assert {end["outcome"] for end in ends} == {"completed"}


def test_back_after_another_path_was_answered(room: Room, proxy: CuttingProxy) -> None:
    tab, observer = leave_in_mid_answer(room, proxy, is_asking=False)
    room.ask(observer, "say: Second.", observer.messages[0]["id"])
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 3")
    proxy.go_online()
    tab.wait("harness.events.filter(event => event.kind === 'open').length === 2")
    assert len(room.rest()) == 2


def test_back_while_another_client_is_answered(room: Room, proxy: CuttingProxy) -> None:
    tab, observer = leave_in_mid_answer(room, proxy, is_asking=True)
    room.ask(observer, "stream 200 words at 40/s")
    observer.wait("harness.chat.status === 'streaming'")
    proxy.go_online()
    tab.wait("harness.events.filter(event => event.kind === 'open').length === 2")
    assert len(room.rest()) == 6
