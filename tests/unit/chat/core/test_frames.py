"""The codec: what is a frame, what is foreign, what is refused and with which request id, and exact server frames."""

import pytest

from chat.core.wire import extension_frames, frames
from chat.core.wire.frames import MAX_DEPTH
from chat.errors import FrameInvalid
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load

USER: Message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def request_text(body: JSONValue = None, **fields: JSONValue) -> str:
    body = body if isinstance(body, str) else dump(body if body is not None else {"messages": [USER]})
    frame = {"type": "cf_agent_use_chat_request", "id": "R1", "init": {"method": "POST", "body": body}}
    return dump(frame | fields)


def parse_request(body: JSONObject) -> frames.ChatRequest:
    parsed = frames.parse(request_text(body))
    assert isinstance(parsed, frames.ChatRequest)
    return parsed


def test_request_of_the_published_client() -> None:
    request = parse_request({"messages": [USER], "trigger": "regenerate-message", "tz": "UTC"})
    assert (request.id, request.messages, request.trigger) == ("R1", [USER], "regenerate-message")
    assert (request.body, request.client_tools) == ({"tz": "UTC"}, None)


def test_a_delivery_is_no_custom_field() -> None:
    request = parse_request({"messages": [USER], "thinkDelivery": "steer", "delivery": "by post"})
    assert (request.delivery, request.body) == ("steer", {"delivery": "by post"})
    assert frames.parse(frames.encode(request)) == request
    with pytest.raises(FrameInvalid):
        parse_request({"messages": [USER], "thinkDelivery": "pizza"})


@pytest.mark.parametrize("trigger", [None, "submit-message", "something-new", 3])
def test_other_triggers_count_as_submit(trigger: JSONValue) -> None:
    assert parse_request({"messages": [], "trigger": trigger}).trigger == "submit-message"


def test_client_tools_absent_empty_and_given() -> None:
    assert parse_request({"messages": []}).client_tools is None
    assert parse_request({"messages": [], "clientTools": []}).client_tools == ()
    schema = {"type": "object"}
    (tool,) = parse_request({"messages": [], "clientTools": [{"name": "loc", "parameters": schema}]}).client_tools or ()
    assert (tool.name, tool.description, tool.parameters) == ("loc", "", schema)


def test_last_client_tool_of_a_name_wins() -> None:
    tools = [{"name": "a", "description": "1"}, {"name": "b"}, {"name": "a", "description": "2"}]
    found = parse_request({"messages": [], "clientTools": tools}).client_tools or ()
    assert [(tool.name, tool.description) for tool in found] == [("a", "2"), ("b", "")]


@pytest.mark.parametrize(
    "text",
    [
        request_text(init=None),
        request_text(init={"method": "GET", "body": "{}"}),
        request_text(init={"method": "POST"}),
        request_text("not json"),
        request_text("[1]"),
        request_text("{}"),
        request_text({"messages": {}}),
        request_text({"messages": [1]}),
        request_text({"messages": [{**USER, "id": ""}]}),
        request_text({"messages": [{**USER, "id": "a\u0000b"}]}),
        request_text({"messages": [{**USER, "id": "x" * 129}]}),
        request_text({"messages": [{**USER, "role": "tool"}]}),
        request_text({"messages": [{**USER, "role": []}]}),
        request_text({"messages": [{**USER, "parts": "hi"}]}),
        request_text({"messages": [{**USER, "parts": [{"text": "hi"}]}]}),
        request_text({"messages": [{**USER, "metadata": []}]}),
        request_text({"messages": [], "clientTools": {}}),
        request_text({"messages": [], "clientTools": [{}]}),
        request_text({"messages": [], "clientTools": ["a"]}),
        request_text({"messages": [], "clientTools": [{"name": ""}]}),
        request_text('{"messages": [], "n": NaN}'),
        request_text('{"messages": [], "x": ' + "[" * 200 + "]" * 200 + "}"),
        request_text('{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    ],
    ids=lambda text: text[:160],
)
def test_bad_request_with_an_id_can_be_ended(text: str) -> None:
    with pytest.raises(FrameInvalid) as caught:
        frames.parse(text)
    assert caught.value.request_id == "R1"


@pytest.mark.parametrize("request_id", [None, 7, "", "x" * 129, "a\nb", "\ud800"])
def test_bad_request_without_an_id_cannot_be_ended(request_id: JSONValue) -> None:
    with pytest.raises(FrameInvalid) as caught:
        frames.parse(request_text(id=request_id))
    assert caught.value.request_id is None


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ({"type": "cf_agent_chat_request_cancel", "id": "R"}, frames.Cancel(id="R")),
        ({"type": "cf_agent_chat_clear"}, frames.Clear()),
        ({"type": "cf_agent_chat_messages", "messages": [USER]}, frames.PushMessages()),
        ({"type": "cf_agent_stream_resume_request"}, frames.ResumeRequest()),
        ({"type": "cf_agent_stream_resume_request", "probeId": "p"}, frames.ResumeRequest(probe_id="p")),
        ({"type": "cf_agent_stream_resume_ack", "id": "R"}, frames.ResumeAck(id="R")),
        ({"type": "cf_agent_state", "state": None}, frames.StateUpdate(state=None)),
        (
            {"type": "think_model_choice", "id": "c", "model_choice": {"model": "a/b"}},
            frames.ChooseModel(id="c", model_choice={"model": "a/b"}),
        ),
        ({"type": "think_model_choice", "id": "c"}, frames.ChooseModel(id="c")),
        ({"type": "think_ping"}, frames.Ping()),
        ({"type": "rpc", "id": "1", "method": "m", "args": [1]}, frames.Rpc(id="1", method="m", args=[1])),
        (
            {"type": "cf_agent_tool_approval", "toolCallId": "c", "approved": False, "autoContinue": True},
            frames.ToolApproval(tool_call_id="c", approved=False, auto_continue=True),
        ),
        (
            {"type": "cf_agent_tool_result", "toolCallId": "c", "toolName": "", "output": {"a": 1}},
            frames.ToolResult(tool_call_id="c", output={"a": 1}),
        ),
        (
            {"type": "cf_agent_tool_result", "toolCallId": "c", "state": "output-error", "errorText": "\ud83d!"},
            frames.ToolResult(tool_call_id="c", state="output-error", error_text="\ufffd!"),
        ),
    ],
    ids=str,
)
def test_frames_of_clients(frame: JSONObject, expected: frames.ClientFrame) -> None:
    assert frames.parse(dump({**frame, "novel": 1})) == expected
    assert frames.parse(dump(frame).encode()) == expected


def test_tools_of_a_result_are_read() -> None:
    frame = {"type": "cf_agent_tool_result", "toolCallId": "c", "clientTools": [{"name": "a"}, {"name": "a"}]}
    parsed = frames.parse(dump(frame))
    assert isinstance(parsed, frames.ToolResult)
    assert parsed.client_tools == (frames.ClientTool(name="a"),)


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "cf_agent_chat_request_cancel"},
        {"type": "cf_agent_chat_request_cancel", "id": 1},
        {"type": "cf_agent_stream_resume_request", "probeId": 7},
        {"type": "cf_agent_stream_resume_ack"},
        {"type": "think_model_choice", "model_choice": None},
        {"type": "think_model_choice", "id": "", "model_choice": None},
        {"type": "cf_agent_tool_result"},
        {"type": "cf_agent_tool_result", "toolCallId": "c", "state": "input-available"},
        {"type": "cf_agent_tool_approval", "toolCallId": "c"},
        {"type": "cf_agent_tool_approval", "toolCallId": "c", "approved": "yes"},
        {"type": "cf_agent_state"},
    ],
    ids=str,
)
def test_bad_frames_of_known_types_are_refused(frame: JSONObject) -> None:
    with pytest.raises(FrameInvalid) as caught:
        frames.parse(dump(frame))
    assert caught.value.request_id is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[1, 2]",
        '"text"',
        "null",
        "{}",
        '{"type": 3}',
        '{"type": ["rpc"]}',
        '{"type": "cf_agent_novelty"}',
        '{"type": "cf_agent_identity", "name": "x", "agent": "y"}',
        '{"type": "rpc"}',
        '{"type": "rpc", "id": 1, "method": "m", "args": []}',
        '{"type": "rpc", "id": "1", "method": "m", "args": {}}',
        '{"type": "cf_agent_state", "state": NaN}',
        "[" * 100_000,
        '{"type": "rpc", "id": "1", "method": "m", "args": [' + "[" * 150 + "]" * 150 + "]}",
    ],
    ids=lambda text: text[:60],
)
def test_what_is_not_ours_is_foreign(text: str) -> None:
    assert frames.parse(text) == frames.Foreign(text=text)


def test_bytes_that_are_no_text_are_foreign() -> None:
    parsed = frames.parse(b'{"type": "cf_agent_chat_clear"\xff')
    assert parsed == frames.Foreign(text='{"type": "cf_agent_chat_clear"\ufffd')


def test_nesting_is_allowed_up_to_the_limit() -> None:
    inner = MAX_DEPTH - 2
    text = '{"type": "cf_agent_state", "state": ' + "[" * inner + "]" * inner + "}"
    assert isinstance(frames.parse(text), frames.StateUpdate)
    deeper = text.replace("[]", "[[[]]]")
    with pytest.raises(FrameInvalid, match="deeper than 100"):
        frames.parse(deeper)


def test_lone_surrogates_and_nul_in_texts_are_kept() -> None:
    message = {**USER, "parts": [{"type": "text", "text": "cut \ud83d and \u0000"}]}
    assert parse_request({"messages": [message]}).messages == [message]


def test_error_messages_repeat_nothing_the_client_sent() -> None:
    with pytest.raises(FrameInvalid) as caught:
        frames.parse(dump({"type": "cf_agent_stream_resume_ack", "id": {"secret": "hunter2"}}))
    assert "hunter2" not in str(caught.value)
    assert "'id'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (frames.identity("r", "chat"), {"type": "cf_agent_identity", "name": "r", "agent": "chat"}),
        (
            frames.identity("r", "chat", state_follows=True),
            {"type": "cf_agent_identity", "name": "r", "agent": "chat", "stateFollows": True},
        ),
        (frames.state(None), {"type": "cf_agent_state", "state": None}),
        (frames.state_error("no"), {"type": "cf_agent_state_error", "error": "no"}),
        (
            extension_frames.mcp_servers(),
            {"type": "cf_agent_mcp_servers", "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []}},
        ),
        (frames.rpc_ok("1"), {"type": "rpc", "id": "1", "success": True, "done": True}),
        (
            frames.rpc_ok("1", None, done=False),
            {"type": "rpc", "id": "1", "success": True, "done": False, "result": None},
        ),
        (frames.messages([]), {"type": "cf_agent_chat_messages", "messages": []}),
        (frames.messages((USER,), connect=True)[-16:], None),
        (frames.resume_none(), {"type": "cf_agent_stream_resume_none"}),
        (frames.pending(), {"type": "cf_agent_stream_pending"}),
        (frames.recovering(False), {"type": "cf_agent_chat_recovering", "recovering": False}),
        (
            frames.done("R", "aborted", message_ids=()),
            {
                "type": "cf_agent_use_chat_response",
                "id": "R",
                "body": "",
                "done": True,
                "outcome": "aborted",
                "messageIds": [],
            },
        ),
        (
            frames.done("R", body="No response was generated.", continuation=True),
            {
                "type": "cf_agent_use_chat_response",
                "id": "R",
                "body": "No response was generated.",
                "done": True,
                "outcome": "completed",
                "continuation": True,
            },
        ),
        (
            frames.error("R", "no", message_ids=("u1",)),
            {
                "type": "cf_agent_use_chat_response",
                "id": "R",
                "body": "no",
                "done": True,
                "error": True,
                "messageIds": ["u1"],
            },
        ),
        (
            frames.refusal("R", "no", message_ids=["u1"]),
            {
                "type": "cf_agent_use_chat_response",
                "id": "R",
                "body": "no",
                "done": True,
                "error": True,
                "refused": True,
                "messageIds": ["u1"],
            },
        ),
        (
            frames.error("R", "no", done=False, continuation=True),
            {
                "type": "cf_agent_use_chat_response",
                "id": "R",
                "body": "no",
                "done": False,
                "error": True,
                "continuation": True,
            },
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_server_frames(text: str, expected: JSONObject | None) -> None:
    assert text.endswith('"connect":true}') if expected is None else load(text) == expected


@pytest.mark.parametrize(
    "body", ['{"a":"b"}', '{"a":"é \\" \\\\ \\n"}', '{"a":"\U0001f600"}', "\ud83d", "\u0000\u2028"]
)
def test_chunk_text_is_quoted_not_changed(body: str) -> None:
    text = frames.chunk_frame("R", body, 3, replay=True, continuation=True)
    text.encode()
    assert load(text) == {
        "type": "cf_agent_use_chat_response",
        "id": "R",
        "body": body,
        "done": False,
        "seq": 3,
        "replay": True,
        "continuation": True,
    }


def test_unstored_chunk_has_no_seq() -> None:
    assert "seq" not in load(frames.chunk_frame("R", "{}", None))
