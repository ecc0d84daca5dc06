"""Names of instances as clients write them, and who the server says it is."""

from urllib.parse import quote

import pytest

from tests.clients.conftest import MakeRoom
from tests.clients.room import Room
from tests.clients.tab import text_of


def test_ready_resolves_with_the_identity(room: Room) -> None:
    tab = room.open("first")
    [ready] = tab.events("ready")
    assert (ready["name"], ready["agent"]) == (room.name, "assistant")
    [identity] = tab.events("identity")
    assert (identity["name"], identity["agent"]) == (room.name, "assistant")


@pytest.mark.parametrize("name", ["a b", "Grüße, Zoë", "rooms/7 %", "日本"])
def test_encoded_name(room_of: MakeRoom, name: str) -> None:
    room = room_of(name)
    tab, observer = room.open_two()
    assert tab.events("identity")[-1]["name"] == name
    room.ask_and_rest(tab, "stream 10 words at 40/s")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert observer.statuses("isServerStreaming") == [False, True, False]


@pytest.mark.smoke
def test_name_that_the_browser_encodes_is_the_same_instance(room_of: MakeRoom) -> None:
    room = room_of("Müller & co")
    plain = room.open("plain", name=room.name)
    encoded = room.open("encoded", name=quote(room.name, safe=""))
    room.ask_and_rest(plain, "say: One room.")
    assert text_of(room.rest()[1]) == "One room."
    assert len(encoded.messages) == 2
