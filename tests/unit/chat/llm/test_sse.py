"""Server-sent events, cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.llm.adapters.sse import MAX_EVENT_BYTES, SSEDecoder, SSEEvent, SSEOverflow

LINES = st.lists(
    st.sampled_from(
        [
            b"data: a",
            b"data:b",
            b"data",
            b"data: ",
            b"",
            b": comment",
            b"event: x",
            b"id: 7",
            b"junk",
            b"data: \xc3\xa9",
        ]
    )
)
ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def decode(*chunks: bytes, max_bytes: int = MAX_EVENT_BYTES) -> list[SSEEvent]:
    decoder = SSEDecoder(max_bytes)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.flush()


@given(LINES, st.lists(ENDINGS, min_size=1), st.data())
def test_any_cut_gives_the_same_events(lines: list[bytes], endings: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + endings[at % len(endings)] for at, line in enumerate(lines))
    at_once = decode(stream)
    assert decode(*(stream[at : at + 1] for at in range(len(stream)))) == at_once
    cut = data.draw(st.integers(0, len(stream)))
    assert decode(stream[:cut], stream[cut:]) == at_once


@given(
    st.lists(
        st.sampled_from([b"data: a\n\n", b"data: b\r\n\r\n", b"data: c\n", b"\n", b"event: e\n", b"\r", b"data: "])
    )
)
def test_reads_that_hold_one_event_each_give_what_one_read_gives(reads: list[bytes]) -> None:
    assert decode(*reads) == decode(b"".join(reads))


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(noise: bytes) -> None:
    assert decode(noise) == decode(*(noise[at : at + 1] for at in range(len(noise))))


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_ends_lines(ending: bytes) -> None:
    assert decode(ending.join([b"data: one", b"", b"data: two", b"", b""])) == [
        SSEEvent(b"", b"one"),
        SSEEvent(b"", b"two"),
    ]


def test_an_event_comes_with_its_blank_line_and_not_later() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: one\r\n") == []
    assert decoder.feed(b"\r") == [SSEEvent(b"", b"one")]
    assert decoder.feed(b"\ndata: two\n\n") == [SSEEvent(b"", b"two")]


def test_data_lines_are_joined() -> None:
    assert decode(b"data: a\ndata:  b\ndata:\n\n") == [SSEEvent(b"", b"a\n b\n")]


def test_comments_ids_and_unknown_fields_are_skipped() -> None:
    assert decode(b": ping\n\nid: 1\nretry: 5\nfoo: bar\ndata: x\n\n") == [SSEEvent(b"", b"x")]


def test_an_event_name_belongs_to_one_event() -> None:
    assert decode(b"event: error\ndata: x\n\ndata: y\n\n") == [SSEEvent(b"error", b"x"), SSEEvent(b"", b"y")]


def test_a_byte_order_mark_is_skipped() -> None:
    assert decode(b"\xef\xbb\xbfdata: x\n\n") == [SSEEvent(b"", b"x")]


def test_a_missing_last_blank_line_is_forgiven() -> None:
    assert decode(b"data: [DONE]") == [SSEEvent(b"", b"[DONE]")]


def test_a_line_that_never_ends_is_refused() -> None:
    with pytest.raises(SSEOverflow):
        decode(*[b"data: xx"] * 100, max_bytes=100)


def test_an_event_that_never_ends_is_refused() -> None:
    with pytest.raises(SSEOverflow):
        decode(*[b"data: xx\n"] * 100, max_bytes=100)
    with pytest.raises(SSEOverflow):
        decode(b"data: x\n\n", b"data: " + b"x" * 200 + b"\n\n", max_bytes=100)


def test_a_large_event_within_the_limit_arrives() -> None:
    data = b"x" * 1_000_000
    assert decode(b"data: " + data[:400_000], data[400_000:] + b"\n\n") == [SSEEvent(b"", data)]
