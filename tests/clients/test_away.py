"""Pages that were away: before the first chunk, until after the end, and while a process was killed (5.7, 5.15)."""

from functools import partial

import pytest

from tests.acceptance.product import wait_for
from tests.acceptance.proxy import CuttingProxy
from tests.clients.conftest import MakeRoom
from tests.clients.oracle import has_ended
from tests.clients.room import Room, outline
from tests.clients.tab import Tab, text_of
from tests.clients.ways import EVERY_WAY, PAGE, SOCKET, USE_CHAT, enter, holds, look_on

SLOW = "stream 160 words at 10/s"  # not over before all have begun and one is killed
WAYS = [(line, transport) for line in ("sdk7", "sdk6") for transport in PAGE]
SPEAKING = "tests.acceptance.desk.speaking"
IS_BACK = """(() => {
  const statuses = harness.seen.map(moment => moment.status);
  return statuses.lastIndexOf("streaming") > statuses.lastIndexOf("error") && statuses.includes("error");
})()"""  # it may have ended again since
PENDING = "cf_agent_stream_pending"
ENDS = "harness.events.filter(event => event.kind === 'turn-end').length"


@USE_CHAT
def test_a_reload_before_the_first_chunk(room: Room, transport: str) -> None:
    tab, observer = enter(room, transport), look_on(room)
    with room.product.workers[0].paused():
        room.ask(tab, "stream 30 words at 60/s")
        wait_for(partial(holds, room, 1), seconds=20, what="the question being accepted")
        tab.reload()
        if transport in {"http", "sdk"}:  # these are answered before there is a first chunk
            tab.wait("harness.chat.status === 'submitted'")
        else:  # the SDK asks the transport first, which waits for the stream
            wait_for(lambda: tab.kinds().count(PENDING) == 2, seconds=20, what="the page being asked to wait")
    observer.wait(f"{ENDS} === 1")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0] != ""
    assert tab.statuses()[-2:] == ["streaming", "ready"]


@pytest.mark.smoke("sdk7-socket")
@EVERY_WAY
def test_the_answer_ended_while_the_page_was_away(room: Room, transport: str) -> None:
    tab, observer = enter(room, transport), look_on(room)
    room.ask(tab, "stream 40 words at 40/s")
    tab.wait_text(20)
    room.close(tab)
    observer.wait(f"{ENDS} === 1")
    back = enter(room, transport, "back")
    back.wait("harness.chat.messages.length === 2")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]
    assert "streaming" not in back.statuses()
    assert back.error is None


@USE_CHAT
def test_a_failure_that_no_client_saw(room: Room, transport: str) -> None:
    """No one looks on here: then it would have been seen."""
    tab = enter(room, transport)
    room.ask(tab, "stream 40 words at 40/s\nerror in stream after 30 chunks code context_length_exceeded")
    tab.wait_text(20)
    room.close(tab)
    wait_for(lambda: has_ended(room.product.provider_log, room.markers[-1]), seconds=20, what="the answer's end")
    wait_for(lambda: not is_under_way(room), seconds=20, what="the turn's end")
    back = enter(room, transport, "back")
    back.wait("harness.chat.status === 'error'")
    assert back.error
    assert len(room.rest()) == 2
    fresh, observer = enter(room, transport, "fresh"), look_on(room)
    room.ask_and_rest(fresh, "say: On we go.")
    assert fresh.error is None
    assert observer.statuses() == ["ready"]


def is_under_way(room: Room) -> bool:
    found = room.product.call(f"{SPEAKING}:is_under_way", "alice", room.agent, room.name)
    assert isinstance(found, bool)
    return found


@SOCKET
def test_the_line_is_cut_in_mid_stream(room: Room, proxy: CuttingProxy, transport: str) -> None:
    tab, observer = enter(room, transport, port=proxy.port, own="yes"), look_on(room)
    room.ask(tab, "stream 300 words at 40/s")
    tab.wait_text(60)
    assert proxy.cut() > 0
    tab.wait("harness.chat.status === 'error'")
    tab.wait("harness.events.filter(event => event.kind === 'open').length === 2")
    tab.do("harness.chat.resumeStream()")
    tab.wait("harness.chat.status === 'streaming'")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]
    assert tab.error is None
    assert [end["outcome"] for end in observer.events("turn-end")] == ["completed"]


def open_everything(make_room: MakeRoom, script: str, agent: str = "assistant") -> list[tuple[Room, str, Tab, Tab]]:
    """A conversation for each way, in the middle of an answer, with a tab that looks on: one killing serves all."""
    found = []
    for line, transport in WAYS:
        room = make_room(line=line, agent=agent)
        found.append((room, transport, enter(room, transport, own="yes"), look_on(room)))
    for room, _, tab, _ in found:
        room.ask(tab, script)
    for _, _, tab, observer in found:
        tab.wait_text(10)
        observer.wait_text(10)
    return found


def come_back(tab: Tab, transport: str) -> None:
    """What a page does whose answer was cut off by the server's death: the hook does it by itself."""
    if transport == "hook":
        return
    tab.wait("harness.seen.some(shown => shown.status === 'error')")  # it may have come back by itself since
    if transport == "socket":
        tab.wait("harness.events.filter(event => event.kind === 'open').length === 2", seconds=40)
    tab.do("harness.chat.resumeStream()")


def test_the_web_server_dies_in_mid_answer(room_of: MakeRoom) -> None:
    everything = open_everything(room_of, "stream 700 words at 24/s")
    product = everything[0][0].product
    with product.provider.paused():  # the answers are not over before the pages are back, however long that takes
        product.webs[0].restart()
        product.wait_until_ready()
        for _, transport, tab, _ in everything:
            come_back(tab, transport)
    for _, _, tab, _ in everything:
        tab.wait(IS_BACK, seconds=40)
    for room, transport, tab, observer in everything:
        [_, answer] = room.rest(seconds=60)
        assert text_of(answer) == room.answers()[0]
        assert tab.error is None, transport
        assert observer.events("turn-end")[-1]["outcome"] == "completed"


def test_the_worker_dies_in_mid_answer(room_of: MakeRoom) -> None:
    everything = open_everything(room_of, SLOW)
    everything[0][0].product.workers[0].restart()
    for room, transport, tab, observer in everything:
        [_, answer] = room.rest(seconds=60)
        assert text_of(answer) == room.answers()[0], transport
        assert len(text_of(answer).split()) == 160
        assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]
        said = [frame["recovering"] for frame in observer.received("cf_agent_chat_recovering")]
        assert said == [True, False]
        assert [end["outcome"] for end in observer.events("turn-end")] == ["completed"]


def test_the_worker_dies_and_the_agent_does_not_go_on(room_of: MakeRoom) -> None:
    everything = open_everything(room_of, SLOW, agent="gives-up")
    everything[0][0].product.workers[0].restart()
    for room, transport, tab, observer in everything:
        tab.wait("harness.chat.status === 'error'", seconds=60)
        assert tab.error == "The assistant was interrupted.", transport
        [_, partial_answer] = room.rest(seconds=60)
        assert 0 < len(text_of(partial_answer).split()) < 160
        assert observer.events("turn-end")[-1]["outcome"] == "error"
        assert outline(observer.messages) == outline(room.stored())
