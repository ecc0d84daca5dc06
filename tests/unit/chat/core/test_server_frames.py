"""What the server writes is what the client reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.core.wire import frames
from chat.core.wire import server_frames as sf
from chat.core.wire.server_frames import parse_server
from sessions_app.core.messages.shapes import Message

MESSAGE: Message = {"id": "a1", "role": "assistant", "parts": []}
WRITTEN = [
    (
        frames.identity("room", "assistant", state_follows=True),
        sf.Identity(name="room", agent="assistant", state_follows=True),
    ),
    (frames.identity("room", "assistant"), sf.Identity(name="room", agent="assistant")),
    (frames.state(None), sf.State(state=None)),
    (frames.state_error("no"), sf.StateError(error="no")),
    (frames.rpc_ok("1", 2), sf.RpcAnswer(id="1", success=True, done=True, result=2)),
    (frames.rpc_ok("1", 2, done=False), sf.RpcAnswer(id="1", success=True, done=False, result=2)),
    (frames.rpc_error("1", "no"), sf.RpcAnswer(id="1", success=False, error="no")),
    (frames.messages([MESSAGE], connect=True), sf.Transcript(messages=[{**MESSAGE}], connect=True)),
    (frames.message_updated(MESSAGE), sf.MessageUpdated(message={**MESSAGE})),
    (frames.clear(), sf.Cleared()),
    (frames.resuming("r", "p"), sf.Resuming(id="r", probe_id="p")),
    (frames.pending("r"), sf.Pending(id="r")),
    (frames.pending(), sf.Pending()),
    (frames.resume_none(reason="idle", probe_id="p"), sf.ResumeNone(reason="idle", probe_id="p")),
    (frames.recovering(True, "r"), sf.Recovering(recovering=True, id="r")),
    (frames.chunk_frame("r", "{}", 3, replay=True), sf.Response(id="r", body="{}", done=False, seq=3, replay=True)),
    (frames.replay_complete("r"), sf.Response(id="r", body="", done=False, replay=True, replay_complete=True)),
    (
        frames.done("r", "aborted", message_ids=["u"]),
        sf.Response(id="r", body="", done=True, outcome="aborted", message_ids=["u"]),
    ),
    (
        frames.error("r", "no", done=False, message_ids=[]),
        sf.Response(id="r", body="no", done=False, error=True, message_ids=[]),
    ),
    (
        frames.refusal("r", "no", message_ids=["u"]),
        sf.Response(id="r", body="no", done=True, error=True, refused=True, message_ids=["u"]),
    ),
]


@pytest.mark.parametrize(("text", "frame"), WRITTEN)
def test_what_is_written_is_read(text: str, frame: sf.ServerFrame) -> None:
    assert parse_server(text) == frame


def test_an_answer_without_a_result_is_distinguished_from_one_with_nothing() -> None:
    without, nothing = parse_server(frames.rpc_ok("1")), parse_server(frames.rpc_ok("1", None))
    assert isinstance(without, sf.RpcAnswer)
    assert isinstance(nothing, sf.RpcAnswer)
    assert "result" not in without.model_fields_set
    assert "result" in nothing.model_fields_set


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "null",
        '{"type": 7}',
        '{"type": "rpc"}',
        '{"type": "cf_agent_stream_resuming", "id": 5}',
        "[" * 9999,
    ],
)
def test_what_is_no_frame_is_ignored(text: str) -> None:
    assert parse_server(text) is None


@given(st.text() | st.binary())
def test_reading_never_raises(text: str | bytes) -> None:
    parse_server(text)
