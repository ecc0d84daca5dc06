"""Messages that arrive during an answer, in the published clients: superseded ones end, dropped ones vanish (5.12)."""

from functools import partial

import pytest

from tests.acceptance.product import wait_for
from tests.clients.conftest import MakeRoom
from tests.clients.oracle import prompts_of
from tests.clients.room import Room, outline
from tests.clients.tab import Json, Tab, text_of
from tests.clients.ways import EVERY_WAY, LINES, USE_CHAT, enter, look_on
from tests.sent_notes import without_notes

LONG = "stream 100 words at 40/s"


def begin(room: Room) -> tuple[Tab, str]:
    """Another user is being answered; returns that tab and what it said."""
    observer = look_on(room)
    said = room.ask(observer, LONG)
    observer.wait_text(20)
    return observer, said


def wait_queued(observer: Tab, count: int) -> None:
    observer.wait(f"harness.chat.messages.filter(message => message.role === 'user').length === {count}")


def shows(tab: Tab, stored: list[Json]) -> bool:
    return outline(tab.messages) == outline(stored)


def check_after_reload(room: Room, transport: str, *tabs: Tab) -> list[Json]:
    """A `useChat` page receives nothing of what others said; once it is loaded again it shows all of it."""
    if transport != "hook":
        for tab in tabs:
            tab.wait_rest()
            assert tab.error is None
            room.tabs.remove(tab)
    stored = room.rest()
    for tab in tabs if transport != "hook" else ():
        tab.reload()
        wait_for(partial(shows, tab, stored), seconds=20, what="the whole conversation")
    return stored


@pytest.mark.smoke("sdk7-socket")
@USE_CHAT
def test_a_second_message_waits_its_turn(room_of: MakeRoom, line: str, transport: str) -> None:
    room = room_of(line=line)
    tab = enter(room, transport)
    observer, first = begin(room)
    second = room.ask(tab, "stream 10 words at 40/s")
    wait_queued(observer, 2)
    tab.wait("harness.chat.messages.length === 2")
    stored = check_after_reload(room, transport, tab)
    assert [text_of(message) for message in stored] == [first, room.answers()[0], second, room.answers()[1]]
    assert tab.error is None


@EVERY_WAY
@pytest.mark.parametrize("agent", ["newest-first", "together", "patient"])
def test_latest_merge_debounce(room_of: MakeRoom, line: str, transport: str, agent: str) -> None:
    room = room_of(line=line, agent=agent)
    tab, other = enter(room, transport, "second"), enter(room, transport, "third")
    observer, first = begin(room)
    early = room.ask(tab, "say: Early.")
    wait_queued(observer, 2)
    late = room.ask(other, "say: Late.")
    wait_queued(observer, 3)
    other.wait("harness.chat.messages.at(-1)?.parts.some(part => part.text?.endsWith('Late.'))")
    stored = check_after_reload(room, transport, tab, other)
    assert [message["role"] for message in stored] == ["user", "assistant", "user", "user", "assistant"]
    assert [text_of(message) for message in stored[2:4]] == [early, late]
    assert text_of(stored[4]) == "Early.Late."  # the scripts of both: neither message is lost to the model
    assert (tab.status, tab.error, other.error) == ("ready", None, None)
    [prompt] = [prompt for marker in room.markers[1:] for prompt in prompts_of(room.product.provider_log, marker)]
    asked = [without_notes(message["content"]) for message in prompt if message["role"] == "user"]
    assert asked == [first, f"{early}\n\n{late}"]


@LINES
def test_a_dropped_message_is_taken_back(room_of: MakeRoom, line: str) -> None:
    room = room_of(agent="one-at-a-time", line=line)
    first, second = room.open_two()
    asked = room.ask(first, LONG)
    first.wait_text(60)
    second.send("say: Not now.")
    stored = room.rest()
    assert [text_of(message) for message in stored] == [asked, room.answers()[0]]
    assert second.error is None
    again = room.ask_and_rest(second, "say: Now.")
    assert text_of(room.rest()[2]) == again


@pytest.mark.smoke("sdk7-http")
@USE_CHAT
def test_a_second_message_is_dropped(room_of: MakeRoom, line: str, transport: str) -> None:
    """Over HTTP the refusal is an error that the page can read; over the socket the turn ends with nothing said."""
    room = room_of(agent="one-at-a-time", line=line)
    tab = enter(room, transport)
    _, asked = begin(room)
    tab.send("say: Not now.")
    tab.wait("harness.chat.messages.length === 1")
    tab.wait_rest()
    assert ("409" in (tab.error or "") or "conflict" in (tab.error or "")) is (transport == "http"), tab.error
    room.tabs.remove(tab)
    stored = room.rest()
    assert [text_of(message) for message in stored] == [asked, room.answers()[0]]
    tab.reload()
    tab.wait("harness.chat.messages.length === 2")
    room.tabs.append(tab)
    again = room.ask_and_rest(tab, "say: Now.")
    assert text_of(room.rest()[2]) == again
