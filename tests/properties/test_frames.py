"""Laws of the codec: encode then parse is the frame, and parsing raises nothing but `FrameInvalid`."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from chat.core.wire import frames
from chat.core.wire.frames import ClientFrame, ClientTool
from chat.errors import FrameInvalid
from tests.properties.chunk_strategies import any_chunk, json_values, texts
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load

ids = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=128).filter(str.isprintable)
mended = st.text(max_size=8)  # no lone surrogates: the codec replaces them in texts it interprets
keys = st.text(max_size=6).filter(lambda key: key not in ("messages", "trigger", "clientTools"))
objects = st.dictionaries(keys, json_values, max_size=3)
ui_message = st.fixed_dictionaries(
    {
        "id": ids,
        "role": st.sampled_from(["user", "assistant", "system"]),
        "parts": st.lists(st.fixed_dictionaries({"type": texts}, optional={"text": texts, "data": json_values})),
    },
    optional={"metadata": st.none() | objects},
)
tools = st.builds(ClientTool, name=st.text(min_size=1, max_size=8), description=mended, parameters=objects)
tool_lists = st.none() | st.lists(tools, max_size=3, unique_by=lambda tool: tool.name).map(tuple)
client_frames: st.SearchStrategy[ClientFrame] = st.one_of(
    st.builds(
        frames.ChatRequest,
        id=ids,
        messages=st.lists(ui_message, max_size=3),
        trigger=st.sampled_from(["submit-message", "regenerate-message"]),
        body=objects,
        client_tools=tool_lists,
        delivery=st.sampled_from([None, "queue", "steer", "interrupt"]),
    ),
    st.builds(frames.Cancel, id=ids),
    st.just(frames.Clear()),
    st.just(frames.PushMessages()),
    st.builds(frames.ResumeRequest, probe_id=st.none() | ids),
    st.builds(frames.ResumeAck, id=ids),
    st.builds(
        frames.ToolResult,
        toolCallId=ids,
        tool_name=mended,
        output=json_values,
        state=st.sampled_from([None, "output-available", "output-error"]),
        error_text=st.none() | mended,
        auto_continue=st.booleans(),
        client_tools=tool_lists,
        delivery=st.sampled_from([None, "queue", "steer", "interrupt"]),
    ),
    st.builds(frames.ToolApproval, toolCallId=ids, approved=st.booleans(), auto_continue=st.booleans()),
    st.builds(frames.StateUpdate, state=json_values),
    st.builds(frames.Rpc, id=mended, method=mended, args=st.lists(json_values, max_size=3)),
)
types = st.sampled_from(
    [
        "cf_agent_use_chat_request",
        "cf_agent_chat_request_cancel",
        "cf_agent_chat_clear",
        "cf_agent_chat_messages",
        "cf_agent_stream_resume_request",
        "cf_agent_stream_resume_ack",
        "cf_agent_tool_result",
        "cf_agent_tool_approval",
        "cf_agent_state",
        "rpc",
    ]
)
fields = st.sampled_from(
    [
        "id",
        "init",
        "probeId",
        "toolCallId",
        "toolName",
        "output",
        "state",
        "autoContinue",
        "clientTools",
        "approved",
        "args",
    ]
)


@given(client_frames)
def test_encode_then_parse_is_the_frame(frame: ClientFrame) -> None:
    assert frames.parse(frames.encode(frame)) == frame


@given(st.text(st.characters(codec=None)) | st.binary())
def test_any_text_is_a_frame_or_foreign_or_invalid(text: str | bytes) -> None:
    with contextlib.suppress(FrameInvalid):
        frames.parse(text)


@given(json_values)
def test_any_json_is_a_frame_or_foreign_or_invalid(value: JSONValue) -> None:
    with contextlib.suppress(FrameInvalid):
        frames.parse(dump(value))


@given(types, st.dictionaries(fields, json_values, max_size=5))
def test_any_fields_of_known_types_raise_nothing_else(kind: str, values: JSONObject) -> None:
    with contextlib.suppress(FrameInvalid):
        frames.parse(dump({**values, "type": kind}))


@given(ids, json_values | st.fixed_dictionaries({}, optional={"messages": json_values, "clientTools": json_values}))
def test_any_body_of_a_request_can_be_ended(request_id: str, body: JSONValue) -> None:
    init = {"method": "POST", "body": dump(body)}
    caught: list[str | None] = []
    try:
        frames.parse(dump({"type": "cf_agent_use_chat_request", "id": request_id, "init": init}))
    except FrameInvalid as error:
        caught.append(error.request_id)
    assert caught in ([], [request_id])


@given(ids, any_chunk, st.integers(0, 10**9), st.booleans(), st.booleans())
def test_chunk_frames_carry_the_chunk(
    request_id: str, chunk: JSONObject, seq: int, replay: bool, continuation: bool
) -> None:
    text = frames.chunk_frame(request_id, dump(chunk), seq, replay=replay, continuation=continuation)
    text.encode()
    frame = load(text)
    assert load(frame["body"]) == chunk
    assert (frame["id"], frame["seq"], frame["done"]) == (request_id, seq, False)
    assert (frame.get("replay", False), frame.get("continuation", False)) == (replay, continuation)
