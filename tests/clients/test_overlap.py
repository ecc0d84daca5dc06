"""Messages that arrive during an answer, in the published clients: superseded ones end, dropped ones vanish."""

import pytest

from tests.clients.conftest import MakeRoom
from tests.clients.tab import text_of

LONG = "stream 200 words at 50/s"
LINES = pytest.mark.parametrize("line", ["sdk7", "sdk6"])


@LINES
def test_of_the_waiting_only_the_newest_is_answered(make_room: MakeRoom, line: str) -> None:
    room = make_room(agent="newest-first", line=line)
    first, second, third = room.open("first"), room.open("second"), room.open("third")
    room.ask(first, LONG)
    first.wait_text(60)
    early = room.ask(second, "say: Early.")
    first.wait("harness.chat.messages.filter(message => message.role === 'user').length === 2")
    late = room.ask(third, "say: Late.")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant", "user", "user", "assistant"]
    assert [text_of(message) for message in stored[2:4]] == [early, late]
    for tab in (first, second, third):
        assert tab.error is None
        assert tab.status == "ready"


@LINES
def test_a_dropped_message_is_taken_back(make_room: MakeRoom, line: str) -> None:
    room = make_room(agent="one-at-a-time", line=line)
    first, second = room.open_two()
    asked = room.ask(first, LONG)
    first.wait_text(60)
    second.send("say: Not now.")
    stored = room.rest()
    assert [text_of(message) for message in stored] == [asked, room.answers()[0]]
    assert second.error is None
    again = room.ask_and_rest(second, "say: Now.")
    assert text_of(room.rest()[2]) == again
