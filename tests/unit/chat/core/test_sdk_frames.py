"""The frames of the AI SDK's own socket, as its client writes and reads them."""

import json
from typing import Any

import pytest

from chat.core import envelope
from chat.core.wire import sdk_frames
from chat.core.wire.sdk_frames import Abort, Resume, Send
from chat.errors import FrameInvalid

# As `WebSocketChatTransport` of `ai` 7.0.173 writes them: `undefined` is left out by `JSON.stringify`.
SEND: dict[str, Any] = {
    "type": "send",
    "requestId": "r1",
    "id": "page-chat",
    "trigger": "submit-message",
    "messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hello"}]}],
    "headers": {"idempotency-key": "k1"},
    "body": {"tone": "dry", "messages": "of the page's own body", "trigger": "x"},
    "metadata": {"of": "the request"},
}
RESUME: dict[str, Any] = {"type": "resume", "requestId": "r2", "id": "page-chat", "headers": {}, "body": {}}


def test_a_send_is_the_post_of_the_http_transport() -> None:
    frame = sdk_frames.parse(json.dumps(SEND))
    assert isinstance(frame, Send)
    assert (frame.request_id, frame.headers) == ("r1", {"idempotency-key": "k1"})
    assert frame.as_post() == {
        "id": "page-chat",
        "messages": SEND["messages"],
        "trigger": "submit-message",
        "messageId": None,
        "tone": "dry",
    }


@pytest.mark.parametrize(("more", "last"), [({}, None), ({"lastSequence": 0}, 0), ({"lastSequence": 41}, 41)])
def test_a_resume_names_the_last_chunk_that_the_client_has_or_none(more: dict[str, Any], last: int | None) -> None:
    frame = sdk_frames.parse(json.dumps(RESUME | more))
    assert isinstance(frame, Resume)
    assert frame.last_sequence == last


def test_an_abort_has_an_id_alone() -> None:
    assert sdk_frames.parse('{"type":"abort","requestId":"r1"}') == Abort(requestId="r1")


@pytest.mark.parametrize(
    ("text", "request_id", "words"),
    [
        ("no JSON", None, "not JSON"),
        ("[]", None, "an object"),
        ("{}", None, "send, resume or abort"),
        ('{"type": ["send"], "requestId": "r1"}', "r1", "send, resume or abort"),
        ('{"type": "start", "requestId": "r1"}', "r1", "send, resume or abort"),
        ('{"type": "abort"}', None, "'requestId'"),
        ('{"type": "abort", "requestId": 7}', None, "'requestId'"),
        (json.dumps(SEND | {"requestId": "x" * 129}), None, "'requestId'"),
        (json.dumps(SEND | {"trigger": "resume-stream"}), "r1", "'trigger'"),
        (json.dumps(SEND | {"messages": "hello"}), "r1", "'messages'"),
        (json.dumps(SEND | {"id": 7}), "r1", "'id'"),
        (json.dumps(SEND | {"body": []}), "r1", "'body'"),
        (json.dumps(SEND | {"headers": {"a": 1}}), "r1", "'headers.a'"),
        (json.dumps(SEND | {"messageId": {}}), "r1", "'messageId'"),
        (json.dumps(RESUME | {"lastSequence": -1}), "r2", "'lastSequence'"),
        (json.dumps(RESUME | {"lastSequence": 2**53}), "r2", "'lastSequence'"),
        (json.dumps(RESUME | {"lastSequence": "3"}), "r2", "'lastSequence'"),
        (json.dumps(SEND)[:-1] + ',"deep":' + "[" * 150 + "]" * 150 + "}", "r1", "nested deeper"),
    ],
)  # fmt: skip
def test_a_broken_frame_is_refused_with_its_reason_and_its_id(text: str, request_id: str | None, words: str) -> None:
    with pytest.raises(FrameInvalid) as caught:
        sdk_frames.parse(text)
    assert words in caught.value.message
    assert caught.value.request_id == request_id


def test_frames_of_the_server() -> None:
    chunk = '{"type":"text-delta","id":"p0","delta":"\\"Hé\\""}'
    assert [
        json.loads(frame)
        for frame in (
            sdk_frames.start('r"1'),
            sdk_frames.chunk('r"1', 3, chunk),
            sdk_frames.end('r"1'),
            sdk_frames.error('r"1', "No."),
            sdk_frames.no_active('r"1'),
        )
    ] == [
        {"type": "start", "requestId": 'r"1'},
        {"type": "chunk", "requestId": 'r"1', "sequence": 3, "chunk": json.loads(chunk)},
        {"type": "end", "requestId": 'r"1'},
        {"type": "error", "requestId": 'r"1', "errorText": "No."},
        {"type": "no-active", "requestId": 'r"1'},
    ]


def test_a_large_frame_is_known_by_its_first_words() -> None:
    text = json.dumps(
        SEND | {"messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "x" * 999}]}]}
    )
    assert envelope.is_send(text)
    assert envelope.request_id(text) == "r1"
    assert not envelope.is_chat_request(text)
    assert not envelope.is_send(json.dumps(RESUME | {"body": {"text": "x" * 999}}))
