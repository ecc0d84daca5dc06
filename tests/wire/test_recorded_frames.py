"""Every frame of the recordings goes through the codec: ours come out the same, the clients' are understood."""

from typing import cast

import pytest

from chat.core.wire import chunks, extension_frames, frames
from tests.wire.recordings import NAMES, client_text, frames_of, with_decoded_body
from thinkproject.kernel.jsonvalue import JSONObject, dump, load


def encode_like(frame: JSONObject) -> str:
    """Encode a recorded server frame with the encoder that is meant for it."""
    match frame["type"]:
        case "cf_agent_use_chat_response":
            return encode_response(frame)
        case "cf_agent_chat_messages":
            return frames.messages(frame["messages"], connect=frame.get("connect", False))
        case "cf_agent_identity":
            return frames.identity(frame["name"], frame["agent"], state_follows=frame.get("stateFollows", False))
        case "cf_agent_state":
            return frames.state(frame["state"])
        case "cf_agent_mcp_servers":
            return extension_frames.mcp_servers()
        case "cf_agent_chat_clear":
            return frames.clear()
        case "cf_agent_message_updated":
            return frames.message_updated(frame["message"])
        case "cf_agent_chat_recovering":
            return frames.recovering(frame["recovering"], frame["id"])
        case "rpc":
            return encode_rpc(frame)
        case _:
            return encode_resume(frame)


def encode_resume(frame: JSONObject) -> str:
    probe_id = frame.get("probeId")
    match frame["type"]:
        case "cf_agent_stream_resuming":
            return frames.resuming(frame["id"], probe_id)
        case "cf_agent_stream_pending":
            return frames.pending(frame["id"], probe_id)
        case "cf_agent_stream_resume_none":
            return frames.resume_none(reason=frame.get("reason"), probe_id=probe_id)
    raise AssertionError(f"no encoder for {frame['type']}")


def encode_rpc(frame: JSONObject) -> str:
    if not frame["success"]:
        return frames.rpc_error(frame["id"], frame["error"])
    return frames.rpc_ok(frame["id"], *([frame["result"]] if "result" in frame else []), done=frame["done"])


def encode_response(frame: JSONObject) -> str:
    request_id, continuation = frame["id"], frame.get("continuation", False)
    replay, message_ids = frame.get("replay", False), frame.get("messageIds")
    if "$body" in frame:
        body = dump(frame["$body"])
        return frames.chunk_frame(request_id, body, frame["seq"], replay=replay, continuation=continuation)
    if "replayComplete" in frame:
        return frames.replay_complete(request_id, continuation=continuation)
    if "error" in frame:
        return frames.error(request_id, frame["body"], done=frame["done"], message_ids=message_ids)
    return frames.done(
        request_id, frame.get("outcome"), message_ids=message_ids, replay=replay, continuation=continuation
    )


@pytest.mark.parametrize("name", NAMES)
def test_encoders_make_the_recorded_server_frames(name: str) -> None:
    recorded = frames_of(name, "in")
    assert recorded
    for frame in recorded:
        assert with_decoded_body(load(encode_like(frame))) == frame


@pytest.mark.parametrize("name", NAMES)
def test_recorded_client_frames_are_understood(name: str) -> None:
    for frame in frames_of(name, "out"):
        parsed = frames.parse(client_text(frame))
        assert not isinstance(parsed, frames.Foreign)
        if "init" in frame:
            request = cast("frames.ChatRequest", parsed)
            body = dict(frame["init"]["$body"])
            tools = body.pop("clientTools", None)
            assert (request.id, request.messages) == (frame["id"], body.pop("messages"))
            assert (request.trigger, request.body) == (body.pop("trigger"), body)
            assert [tool.name for tool in request.client_tools or ()] == [tool["name"] for tool in tools or ()]


@pytest.mark.parametrize("name", NAMES)
def test_recorded_chunks_are_valid(name: str) -> None:
    for frame in frames_of(name, "in"):
        if "$body" in frame:
            assert chunks.validate(frame["$body"]) == frame["$body"]
