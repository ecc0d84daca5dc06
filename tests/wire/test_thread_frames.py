"""The 25 frames of threads, as they are written in the inventory of the coding agent (A15): both directions."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chat.core.wire import frames, thread_frames
from chat.threads.messages import flat
from chat.threads.registry import Thread, ThreadWorkspace
from chat.threads.verbs import thread_json, workspace_json
from sessions_app.core.messages.messages import StoredMessage
from thinkproject.kernel.jsonvalue import JSONObject, dump, load

GOLDEN = Path(__file__).parent / "threads"
AT, LATER = datetime.fromtimestamp(1_700_000_000, UTC), datetime.fromtimestamp(1_700_000_000.5, UTC)


def golden(name: str) -> list[JSONObject]:
    return [load(line) for line in (GOLDEN / name).read_text().splitlines()]


def stored(message_id: str, role: str, at: datetime, *parts: tuple[str, str]) -> StoredMessage:
    return StoredMessage(
        id=message_id,
        role=role,
        parts=tuple({"type": kind, "text": text} for kind, text in parts),
        metadata=None,
        parent_id=None,
        depth=0,
        turn_id="",
        placed=True,
        queued_position=None,
        created_at=at,
        change_seq=1,
    )


def encoded(wanted: JSONObject) -> str:
    """The same frame by our own encoders, from what the product holds."""
    thread = wanted.get("threadId", "")
    match wanted["type"]:
        case "threads":
            first = Thread(id="t1", name="Parser", workspace_id="default", created_at=AT, active_at=LATER)
            second = Thread(id="t2", name="Thread t2", workspace_id=None, created_at=AT, active_at=AT)
            return thread_frames.threads([thread_json(first), thread_json(second)])
        case "workspaces":
            default = ThreadWorkspace(id="default", name="Default", stored_id="wsp_1", can_write=True, created_at=AT)
            return thread_frames.workspaces([workspace_json(default)])
        case "sync":
            question = stored("m1", "user", AT, ("text", "Hello"))
            answer = stored("m2", "assistant", LATER, ("reasoning", "A greeting."), ("text", "Hi"))
            return thread_frames.sync(thread, [flat(question), flat(answer)])
        case "clear":
            return thread_frames.clear(thread)
        case "stream_end":
            return thread_frames.stream_end(thread)
        case "file_list":
            return thread_frames.file_list(wanted["workspaceId"], wanted["dir"], wanted["entries"])
        case "file_content":
            return thread_frames.file_content(wanted["workspaceId"], wanted["path"], wanted["content"])
    return thread_frames.of_chunk(thread, dump(CHUNKS[wanted["type"]]))


CHUNKS: dict[str, JSONObject] = {
    "stream_delta": {"type": "text-delta", "id": "0", "delta": "Hi"},
    "reasoning_delta": {"type": "reasoning-delta", "id": "0", "delta": "A gree"},
    "tool_call": {
        "type": "tool-input-available",
        "toolCallId": "c1",
        "toolName": "readFile",
        "input": {"path": "/src/a.py"},
    },
}


@pytest.mark.parametrize("wanted", golden("servers.jsonl"), ids=lambda frame: frame["type"])
def test_the_server_sends_the_golden_frames(wanted: JSONObject) -> None:
    assert encoded(wanted) == dump(wanted)


@pytest.mark.parametrize("sent", golden("clients.jsonl"), ids=lambda frame: frame["type"])
def test_the_frames_of_clients_are_understood_and_foreign_to_the_chat(sent: JSONObject) -> None:
    text = dump(sent)
    assert isinstance(frames.parse(text), frames.Foreign)
    found = thread_frames.parse(text)
    fields = [value for field, value in sent.items() if field not in {"type", "name"}]
    if sent["type"].startswith("create"):
        assert found == thread_frames.ThreadRequest(kind=sent["type"], values=(), name=sent["name"])
    else:
        assert found is not None
        assert list(found.values)[: len(fields)] == fields
        assert found.values[len(fields) :] == ((sent["name"],) if "name" in sent else ())


def test_there_are_ten_types_of_the_server_and_fifteen_of_clients() -> None:
    assert len(Counter(frame["type"] for frame in golden("servers.jsonl"))) == 10
    assert {frame["type"] for frame in golden("clients.jsonl")} == set(thread_frames.REQUESTS)
    assert len(thread_frames.REQUESTS) == 15


@pytest.mark.parametrize(
    "text",
    [
        "{not json",
        "[]",
        '"add"',
        '{"type":"unknown","threadId":"t"}',
        '{"type":"run"}',
        '{"type":"run","threadId":7}',
        '{"type":"add","threadId":"t","message":"hello"}',
        '{"type":["run"],"threadId":"t"}',
        '{"type":"cf_agent_chat_clear"}',
    ],
)
def test_what_is_none_of_them_is_no_request(text: str) -> None:
    assert thread_frames.parse(text) is None


def test_other_chunks_have_no_frame() -> None:
    others: list[Any] = [{"type": "start"}, {"type": "tool-input-delta", "delta": "{"}, {"type": "text-delta"}, 7]
    assert [thread_frames.of_chunk("t", dump(chunk)) for chunk in others] == [""] * 4


def test_a_file_is_cut_after_100000_characters_with_a_note() -> None:
    assert thread_frames.shortened("x" * 100_000, 100_000) == "x" * 100_000
    cut = thread_frames.shortened("x" * 100_001, 100_001)
    assert cut == "x" * 100_000 + "\n\n... [truncated: the file has 100001 bytes]"
