"""Turns that go well: text, reasoning, tools. Each with a tab that acts and one that only looks on."""

import pytest

from tests.clients.conftest import MakeRoom
from tests.clients.room import Room
from tests.clients.tab import text_of
from tests.clients.ways import LINES


@pytest.mark.smoke("sdk7")
@LINES
def test_plain_turn(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "stream 40 words at 80/s")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert text_of(stored[1]) == room.answers()[0] != ""
    assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]
    assert observer.statuses() == ["ready"]
    assert observer.statuses("isServerStreaming") == [False, True, False]
    for end in (*tab.events("turn-end"), *observer.events("turn-end")):
        assert end["outcome"] == "completed"
        assert end["messageIds"] == [stored[0]["id"]]
        assert not end["replay"]


def test_two_turns_from_two_tabs(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "say: The first answer.")
    room.ask_and_rest(observer, "say: The second answer.")
    stored = room.rest()
    assert [text_of(message) for message in stored[1::2]] == ["The first answer.", "The second answer."]
    assert [message["role"] for message in stored] == ["user", "assistant"] * 2
    late = room.open("late")
    room.rest()
    assert late.statuses() == ["ready"]


def test_reasoning(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "reason 20 words at 60/s\nsay: Thought through.")
    [_, answer] = room.rest()
    kinds = [part["type"] for part in answer["parts"]]
    assert kinds == ["step-start", "reasoning", "text"]
    assert len(answer["parts"][1]["text"].split()) == 20
    for shown in (tab.messages[1], observer.messages[1]):
        assert [part["type"] for part in shown["parts"]] == kinds


@pytest.mark.smoke("sdk7")
@LINES
def test_server_tool(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    script = ['call tool current_time {"time_zone": "Europe/Berlin"}', "wait 1 s", "say: It is {result}."]
    room.ask_and_rest(tab, "\n".join(script))
    [_, answer] = room.rest()
    [call] = [part for part in answer["parts"] if part["type"] == "tool-current_time"]
    assert call["state"] == "output-available"
    assert call["input"] == {"time_zone": "Europe/Berlin"}
    assert text_of(answer) == f"It is {call['output']}."
    for shown in (tab.messages[1], observer.messages[1]):
        assert [part["type"] for part in shown["parts"]] == [part["type"] for part in answer["parts"]]
    assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]


def test_two_parallel_tool_calls(room: Room) -> None:
    tab, _observer = room.open_two()
    script = [
        'call tool current_time {"time_zone": "Europe/Berlin"}',
        'call tool current_time {"time_zone": "Asia/Tokyo"}',
        "parallel calls",
        "say: Both: {results}.",
    ]
    room.ask_and_rest(tab, "\n".join(script))
    [_, answer] = room.rest()
    calls = [part for part in answer["parts"] if part["type"] == "tool-current_time"]
    assert [call["input"]["time_zone"] for call in calls] == ["Europe/Berlin", "Asia/Tokyo"]
    assert text_of(answer) == "Both: " + ", ".join(call["output"] for call in calls) + "."


def test_same_origin_page_with_a_cookie(room: Room) -> None:
    tab = room.open_same_origin("first")
    observer = room.open("observer")
    room.ask_and_rest(tab, "say: With a cookie.")
    assert text_of(room.rest()[1]) == "With a cookie."
    assert observer.statuses() == ["ready"]
    assert "token=" not in tab.sockets[0]
