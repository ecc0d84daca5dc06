"""What people change: stop, clear, regenerate, edit, and two of them talking at once."""

import pytest

from tests.clients.conftest import MakeRoom
from tests.clients.oracle import prompts_of
from tests.clients.room import Room
from tests.clients.tab import text_of
from tests.clients.ways import LINES
from tests.sent_notes import without_notes

LONG = "stream 400 words at 50/s"


@pytest.mark.smoke("sdk7")
@LINES
def test_stop_in_mid_stream_keeps_the_partial(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    room.ask(tab, LONG)
    observer.wait_text(60)
    tab.do("harness.chat.stop()")
    [_, partial] = room.rest()
    assert 0 < len(text_of(partial)) < len("alpha0 " * 400)
    assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]
    assert [end["outcome"] for end in observer.events("turn-end")] == ["aborted"]
    room.ask_and_rest(tab, "say: Still here.")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant"] * 2
    assert stored[1] == partial
    assert text_of(stored[3]) == "Still here."


def test_stop_before_the_first_text(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask(tab, "wait 20 s\nsay: Too late.")
    tab.wait("harness.chat.status !== 'ready'")
    observer.wait("harness.chat.isServerStreaming")
    tab.do("harness.chat.stop()")
    assert [message["role"] for message in room.rest()] == ["user"]
    assert [end["outcome"] for end in observer.events("turn-end")] == ["aborted"]


def test_stop_and_talk_on_at_once(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask(tab, LONG)
    observer.wait_text(60)
    tab.do("harness.chat.stop()")
    second = room.ask(tab, "stream 20 words at 40/s")
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 2")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant"] * 2
    assert text_of(stored[2]) == second
    assert text_of(stored[3]) == room.answers()[1]


def test_clear_and_talk_on_at_once(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask(tab, LONG)
    observer.wait_text(60)
    tab.do("harness.chat.clearHistory()")
    second = room.ask(tab, "stream 20 words at 40/s")
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 2")
    stored = room.rest(clearer=tab)
    assert [text_of(message) for message in stored] == [second, room.answers()[1]]


def test_stop_from_a_tab_that_resumed(room: Room) -> None:
    tab = room.open("first")
    room.ask(tab, LONG)
    tab.wait_text(60)
    late = room.open("late")
    late.wait("harness.chat.status === 'streaming'")
    late.do("harness.chat.stop()")
    room.rest()
    assert [end["outcome"] for end in tab.events("turn-end")] == ["aborted"]


@pytest.mark.smoke("sdk7")
@LINES
def test_clear_in_mid_stream(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    room.ask(tab, LONG)
    observer.wait_text(60)
    tab.do("harness.chat.clearHistory()")
    assert room.rest(clearer=tab) == []  # what the worker might still have written is looked for below
    assert [end["outcome"] for end in observer.events("turn-end")] == ["aborted"]
    room.ask_and_rest(tab, "say: A new beginning.")
    assert [text_of(message) for message in room.rest(clearer=tab)][1:] == ["A new beginning."]


def test_clear_when_idle_reaches_the_observer(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "say: Soon forgotten.")
    assert len(room.rest()) == 2
    tab.do("harness.chat.clearHistory()")
    observer.wait("harness.chat.messages.length === 0")
    assert room.rest() == []
    assert observer.received("cf_agent_chat_clear") == [{"type": "cf_agent_chat_clear"}]
    assert tab.received("cf_agent_chat_clear") == []


@pytest.mark.smoke("sdk7")
@LINES
def test_regenerate(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "say: First.")
    room.ask_and_rest(tab, "stream 20 words at 40/s")
    before = room.rest()
    tab.do("harness.chat.regenerate()")
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 3")
    after = room.rest()
    assert after[:3] == before[:3]
    assert len(after) == 4
    assert after[3]["id"] != before[3]["id"]
    assert text_of(after[3]) == text_of(before[3])


def test_regenerate_in_the_middle(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "stream 20 words at 40/s")
    room.ask_and_rest(tab, "say: Later.")
    before = room.rest()
    tab.do(f"harness.chat.regenerate({{messageId: '{before[1]['id']}'}})")
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 3")
    after = room.rest()
    assert after[:1] == before[:1]
    assert len(after) == 2
    assert after[1]["id"] != before[1]["id"]


@pytest.mark.smoke("sdk7")
@LINES
def test_edit_of_an_earlier_message(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "say: Answer to what was meant otherwise.")
    room.ask_and_rest(tab, "say: Later.")
    before = room.rest()
    edited = room.ask(tab, "stream 30 words at 40/s", before[0]["id"])
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 3")
    after = room.rest()
    assert [message["role"] for message in after] == ["user", "assistant"]
    assert text_of(after[0]) == edited
    assert after[0]["id"] != before[0]["id"]
    assert text_of(after[1]) == room.answers()[2] != ""
    [prompt] = prompts_of(room.product.provider_log, room.markers[2])
    assert [without_notes(message["content"]) for message in prompt if message["role"] == "user"] == [edited]
    room.ask_and_rest(tab, "say: After the edit.")
    assert len(room.rest()) == 4


@LINES
def test_two_tabs_talk_at_once(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, other = room.open_two()
    observer = room.open("third")
    first = room.ask(tab, "stream 60 words at 40/s")
    other.wait_text(20)
    second = room.ask(other, "stream 30 words at 40/s")
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 2")
    stored = room.rest()
    assert [text_of(message) for message in stored] == [first, room.answers()[0], second, room.answers()[1]]
    for end in observer.events("turn-end"):
        assert end["outcome"] == "completed"


@LINES
def test_one_tab_talks_on_while_it_is_answered(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    first = room.ask(tab, "stream 60 words at 40/s")
    tab.wait_text(20)
    second = room.ask(tab, "stream 30 words at 40/s")
    observer.wait("harness.events.filter(event => event.kind === 'turn-end').length === 2")
    stored = room.rest()
    assert [text_of(message) for message in stored] == [first, room.answers()[0], second, room.answers()[1]]
