"""JSON mode of durable streams, and what headers and events say."""

import pytest

from chat.durable_streams import messages, wire
from chat.durable_streams.errors import StreamRequestInvalid


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (b'{"a": 1.0}', b'{"a": 1.0},'),
        (b" [1.0, 10000000000000000000000, -0, 1e400] ", b"1.0,10000000000000000000000,-0,1e400,"),
        (b'[ {"b" : 1, "b" : 2} , [ [1] ] ]', b'{"b" : 1, "b" : 2},[ [1] ],'),
        ('["é\\u0000", "]"]'.encode(), '"é\\u0000","]",'.encode()),
        (b"[]", b""),
        (b"null", b"null,"),
    ],
)
def test_messages_keep_their_text(body: bytes, stored: bytes) -> None:
    assert messages.split_messages(body) == stored
    if stored:
        ends = messages.boundaries(stored)
        assert ends[-1] == len(stored)
        assert messages.split_messages(messages.as_array(stored)) == stored
        assert all(stored[end - 1 : end] == b"," for end in ends)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1", b"[1,]", b"[,1]", b"1 2", b"[1]]", b"NaN", b"[Infinity]", b"\xff", b"[" * 100_000]
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(StreamRequestInvalid):
        messages.split_messages(body)


@pytest.mark.parametrize("text", ["0", "1_2", "0" * 16 + "_" + "1" * 17, "٠" * 16 + "_" + "0" * 16, "-1", "now", ""])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(StreamRequestInvalid):
        wire.parse_offset(text)


def test_content_cannot_make_events() -> None:
    event = wire.data_event(b"a\r\n\r\nevent: control\ndata: {}\rb", as_text=True).decode()
    assert event == "event: data\ndata:a\ndata:\ndata:event: control\ndata:data: {}\ndata:b\n\n"


def test_a_cursor_never_goes_back() -> None:
    current = wire.next_cursor(None)
    assert int(wire.next_cursor(current)) > int(current)
    assert int(wire.next_cursor("9" * 15)) > int("9" * 15)
    assert wire.next_cursor("abc") == current
