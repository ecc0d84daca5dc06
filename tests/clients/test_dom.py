"""The same packages and pages without a browser: React in a document alone. The main sequences, with an observer."""

import pytest

from tests.acceptance.product import wait_for
from tests.clients.conftest import MakeRoom
from tests.clients.room import Room
from tests.clients.tab import text_of
from tests.clients.ways import BROKEN, BUSY, EVERY_WAY, LINES, enter, look_on

LOCATE = "call tool locate {}\nsay: You are at {result}."
ENDS = "harness.events.filter(event => event.kind === 'turn-end').length"


@pytest.fixture
def dom_room(make_dom_room: MakeRoom, line: str) -> Room:
    return make_dom_room(line=line)


@EVERY_WAY
def test_a_conversation_in_a_document(dom_room: Room, transport: str) -> None:
    """5.1 to 5.4 and 5.8."""
    tab, observer = enter(dom_room, transport), look_on(dom_room)
    dom_room.ask_and_rest(tab, "stream 30 words at 60/s")
    [_, answer] = dom_room.rest()
    assert text_of(answer) == dom_room.answers()[0] != ""
    assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]
    assert observer.statuses() == ["ready"]
    assert observer.statuses("isServerStreaming") == [False, True, False]
    shown = tab.page.evaluate("() => [...document.querySelectorAll('li')].map(item => item.textContent)")
    assert shown[1] == text_of(answer)
    dom_room.ask_and_rest(tab, 'call tool current_time {"time_zone": "Europe/Berlin"}\nsay: It is {result}.')
    dom_room.ask_and_rest(tab, "stream 20 words at 60/s")
    before = dom_room.rest()
    tab.do("harness.chat.regenerate()")
    observer.wait(f"{ENDS} === 4")
    after = dom_room.rest()
    assert len(after) == 6
    assert after[5]["id"] != before[5]["id"]
    dom_room.ask(tab, "stream 400 words at 40/s")
    observer.wait("harness.chat.isServerStreaming")
    tab.wait_text(40)
    tab.do("(harness.stop ?? harness.chat.stop)()")
    observer.wait(f"{ENDS} === 5")
    assert observer.events("turn-end")[-1]["outcome"] == "aborted"
    kept = text_of(dom_room.stored()[-1])
    assert 0 < len(kept.split()) < 400


@EVERY_WAY
def test_a_reload_in_mid_stream_in_a_document(dom_room: Room, transport: str) -> None:
    tab, _observer = enter(dom_room, transport), look_on(dom_room)
    dom_room.ask(tab, "stream 300 words at 40/s")  # longer than a new process takes on a busy machine
    tab.wait_text(40)
    tab.reload()
    tab.wait("harness.seen.some(seen => seen.status === 'streaming')", what="the rest of the stream")
    [_, answer] = dom_room.rest()
    assert text_of(answer) == dom_room.answers()[0]


@EVERY_WAY
def test_an_error_in_a_document(dom_room: Room, transport: str) -> None:
    tab, observer = enter(dom_room, transport), look_on(dom_room)
    dom_room.ask_and_rest(tab, BROKEN)
    wait_for(lambda: len(dom_room.stored()) == 2, seconds=20, what="the partial answer")
    dom_room.rest()
    assert tab.status == "error"
    assert tab.error
    assert observer.status == "ready"


@EVERY_WAY
def test_an_error_in_a_busy_document(dom_room: Room, transport: str) -> None:
    """The last chunks and the error reach it at once, and its transport drops chunks at an error."""
    tab = enter(dom_room, transport)
    dom_room.ask(tab, BROKEN)
    tab.wait_text(20)
    tab.do(BUSY)
    tab.wait("harness.chat.status === 'error'")
    wait_for(lambda: len(dom_room.stored()) == 2, seconds=20, what="the partial answer")
    [_, partial] = dom_room.rest()
    assert len(text_of(partial).split()) > 20


@LINES
def test_a_call_in_a_document(make_dom_room: MakeRoom, line: str) -> None:
    room = make_dom_room(line=line, agent="desk")
    tab, observer = room.open("first", answers="call"), look_on(room)
    room.ask(tab, LOCATE)
    for each in (tab, observer):
        each.wait("harness.chat.messages.length === 3 && harness.chat.messages.at(-1)?.parts.some(p => p.text)")
    assert "home" in text_of(room.rest()[2])
    assert len(tab.events("locate")) == 1
