"""Turns that no one on the page began: by server code (5.13), and a clear by another user (5.5)."""

import json
from functools import partial

import pytest

from tests.acceptance.product import wait_for
from tests.clients.room import Room, outline
from tests.clients.tab import Json, text_of
from tests.clients.ways import LINES, USE_CHAT, enter, look_on, shows_all

SPEAKING = "tests.acceptance.desk.speaking"
ENDS = "harness.events.filter(event => event.kind === 'turn-end').length"
CHUNK = "cf_agent_use_chat_response"


def speak(room: Room, how: str, *arguments: str) -> str:
    """Have server code do something in this conversation."""
    found = room.product.call(f"{SPEAKING}:{how}", "alice", room.agent, room.name, *arguments)
    return str(found)


def script(room: Room, text: str) -> str:
    """A script with a marker, as `Room.ask` makes it."""
    room.markers.append(f"{room.name}-{len(room.markers)}")
    return f"{text}\nmarker: {room.markers[-1]}"


def check_two_answers(room: Room) -> list[Json]:
    """The second goes on where the first broke off, here and in every tab."""
    for tab in room.tabs:
        tab.wait_rest()
        wait_for(partial(shows_all, room, tab), seconds=20, what=f"the whole conversation in {tab.label}")
    stored = room.stored()
    assert [message["role"] for message in stored] == ["user", "assistant", "assistant"]
    assert "".join(map(text_of, stored[1:])) == room.answers()[0]
    return stored


@pytest.mark.smoke("save-sdk7")
@LINES
@pytest.mark.parametrize("how", ["save", "submit"])
def test_server_code_speaks(room: Room, how: str) -> None:
    tab, observer = room.open_two()
    said = script(room, "stream 20 words at 40/s")
    speak(room, how, said)
    for each in (tab, observer):
        each.wait(f"{ENDS} === 1")
    stored = room.rest()
    assert [text_of(message) for message in stored] == [said, room.answers()[0]]
    for each in (tab, observer):
        assert each.statuses() == ["ready"]
        assert each.statuses("isServerStreaming") == [False, True, False]
        assert each.events("turn-end")[0]["outcome"] == "completed"
    room.ask_and_rest(tab, "say: And on.")
    assert len(room.rest()) == 4


@LINES
def test_an_error_sets_none_in_those_who_look_on(room: Room) -> None:
    tab, observer = room.open_two()
    speak(
        room,
        "submit",
        script(room, "stream 20 words at 40/s\nerror in stream after 5 chunks code context_length_exceeded"),
    )
    for each in (tab, observer):
        each.wait(f"{ENDS} === 1")
    assert len(room.rest()) == 2
    for each in (tab, observer):
        assert each.statuses() == ["ready"]
        assert each.error is None
        assert each.events("turn-end")[0]["outcome"] == "error"


@USE_CHAT
def test_a_page_that_asks_gets_the_turn(room: Room, transport: str) -> None:
    """`useChat` learns of no turn by itself; it gets the running one when it asks or is loaded."""
    tab, observer = enter(room, transport), look_on(room)
    said = script(room, "stream 120 words at 40/s")
    speak(room, "submit", said)
    observer.wait("harness.chat.isServerStreaming")
    assert tab.statuses() == ["ready"]
    tab.reload()
    tab.wait("harness.chat.status === 'streaming'")
    stored = room.rest()
    assert [text_of(message) for message in stored] == [said, room.answers()[0]]
    assert observer.statuses() == ["ready"]


@LINES
def test_a_continuation_is_a_message_of_its_own(room: Room) -> None:
    """Its `start` names the new message and no chunk has the flag: the last row of the table in 5.10."""
    tab, observer = room.open_two()
    broken = "error in stream after 5 chunks code context_length_exceeded times 1"
    room.ask_and_rest(tab, f"stream 20 words at 40/s\n{broken}")
    speak(room, "go_on")
    for each in (tab, observer):
        each.wait(f"{ENDS} === 2")
    stored = check_two_answers(room)
    for each in (tab, observer):
        frames = each.received(CHUNK)
        last = [frame for frame in frames if frame["id"] == frames[-1]["id"]]
        assert json.loads(last[0]["body"]) == {"type": "start", "messageId": stored[2]["id"]}
        assert not any(frame.get("continuation") for frame in last if not frame["done"])


@USE_CHAT
def test_a_page_that_asks_gets_the_continuation(room: Room, transport: str) -> None:
    tab, observer = enter(room, transport), look_on(room)
    broken = "error in stream after 5 chunks code context_length_exceeded times 1"
    room.ask_and_rest(tab, f"stream 20 words at 40/s\n{broken}")
    speak(room, "go_on")
    observer.wait(f"{ENDS} === 2")
    tab.reload()
    check_two_answers(room)


@USE_CHAT
def test_another_client_clears_in_mid_stream(room: Room, transport: str) -> None:
    """The page's stream ends. `useChat` keeps what it shows until it is loaded again; nothing comes after the end."""
    tab, observer = enter(room, transport), look_on(room)
    room.ask(tab, "stream 400 words at 40/s")
    observer.wait_text(40)
    observer.do("harness.chat.clearHistory()")
    tab.wait_rest()
    assert tab.error is None
    kept = outline(tab.messages)
    room.tabs.remove(tab)
    assert room.rest(clearer=observer) == []
    assert outline(tab.messages) == kept
    tab.reload()
    wait_for(lambda: tab.messages == [], seconds=20, what="an empty page")
    room.tabs.append(tab)
    room.ask_and_rest(tab, "say: A new beginning.")
    assert text_of(room.rest(clearer=observer)[1]) == "A new beginning."
