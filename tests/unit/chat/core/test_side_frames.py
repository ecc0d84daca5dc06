"""MCP servers, runs of agents as tools and the session, on the wire: the reference's examples, there and back."""

from typing import Any

import pytest
from pydantic import ValidationError

from chat.core.wire import extension_frames as side
from chat.core.wire.server_frames import parse_server
from thinkproject.kernel.jsonvalue import JSONObject, dump, load

SERVER: JSONObject = {
    "name": "Docs",
    "server_url": "https://docs.example/mcp",
    "auth_url": None,
    "state": "ready",
    "error": None,
    "instructions": None,
    "capabilities": {},
}
MCP: JSONObject = {
    "servers": {"srv1": SERVER},
    "tools": [{"name": "search", "serverId": "srv1", "inputSchema": {}}],
    "prompts": [],
    "resources": [],
}
FULL: JSONObject = {
    "servers": {"srv1": SERVER, "srv2": {**SERVER, "auth_url": "https://docs.example/in", "state": "authenticating"}},
    "tools": [{"name": "search", "title": "Search", "serverId": "srv1", "inputSchema": {}, "annotations": None}],
    "prompts": [{"name": "review", "arguments": [{"name": "path", "required": True}], "serverId": "srv1"}],
    "resources": [{"name": "Readme", "uri": "file:///README", "mimeType": "text/plain", "serverId": "srv1"}],
}


@pytest.mark.parametrize("mcp", [MCP, FULL])
def test_mcp_servers_there_and_back(mcp: JSONObject) -> None:
    """Fields of MCP that we do not know are kept, also those that are null."""
    state = side.McpState.model_validate(mcp)
    text = side.mcp_servers(state)
    assert load(text) == {"type": "cf_agent_mcp_servers", "mcp": mcp}
    assert parse_server(text) == side.McpServers(mcp=state)


def test_no_mcp_servers_are_empty_lists() -> None:
    assert load(side.mcp_servers())["mcp"] == {"servers": {}, "tools": [], "prompts": [], "resources": []}


@pytest.mark.parametrize(
    "state", ["authenticating", "connecting", "connected", "discovering", "ready", "failed", "not-connected"]
)
def test_every_state_of_an_mcp_server(state: Any) -> None:
    assert side.McpServer(name="Docs", server_url="https://docs.example", state=state).state == state


@pytest.mark.parametrize(
    "wrong",
    [
        {"servers": {"srv1": {**SERVER, "state": "sleeping"}}},
        {"servers": {"srv1": {"name": "Docs"}}},
        {"tools": [{"name": "search", "inputSchema": {}}]},
        {"tools": [{"name": "search", "serverId": "srv1"}]},
        {"resources": [{"name": "Readme", "serverId": "srv1"}]},
        {"prompts": [{"serverId": "srv1"}]},
    ],
)
def test_wrong_mcp_servers_cannot_be_made_and_are_not_read(wrong: JSONObject) -> None:
    with pytest.raises(ValidationError):
        side.McpState.model_validate(wrong)
    assert parse_server(dump({"type": "cf_agent_mcp_servers", "mcp": wrong})) is None


RUNS: list[tuple[side.RunEvent, JSONObject]] = [
    (
        side.RunStarted(run_id="r1", agent_type="researcher", order=0),
        {"kind": "started", "runId": "r1", "agentType": "researcher", "order": 0},
    ),
    (
        side.RunStarted(
            run_id="r1",
            agent_type="researcher",
            order=2,
            input_preview={"of": None},
            display={"name": "R", "icon": None},
        ),
        {
            "kind": "started",
            "runId": "r1",
            "agentType": "researcher",
            "order": 2,
            "inputPreview": {"of": None},
            "display": {"name": "R", "icon": None},
        },
    ),
    (side.RunChunk(run_id="r1", body="{}"), {"kind": "chunk", "runId": "r1", "body": "{}"}),
    (
        side.RunChunk(run_id="r1", body="{}", unstored_id="u"),
        {"kind": "chunk", "runId": "r1", "body": "{}", "unstoredId": "u"},
    ),
    (side.RunFinished(run_id="r1", summary="Done."), {"kind": "finished", "runId": "r1", "summary": "Done."}),
    (side.RunFailed(run_id="r1", error="no"), {"kind": "error", "runId": "r1", "error": "no"}),
    (side.RunAborted(run_id="r1"), {"kind": "aborted", "runId": "r1"}),
    (side.RunAborted(run_id="r1", reason="enough"), {"kind": "aborted", "runId": "r1", "reason": "enough"}),
    (
        side.RunInterrupted(run_id="r1", error="lost", reason="no-progress", child_still_running=False),
        {"kind": "interrupted", "runId": "r1", "error": "lost", "reason": "no-progress", "childStillRunning": False},
    ),
    (side.RunInterrupted(run_id="r1", error="lost"), {"kind": "interrupted", "runId": "r1", "error": "lost"}),
]


@pytest.mark.parametrize(("event", "expected"), RUNS)
def test_every_event_of_a_run_there_and_back(event: side.RunEvent, expected: JSONObject) -> None:
    text = side.agent_tool_event(event, sequence=0)
    assert load(text) == {"type": "agent-tool-event", "sequence": 0, "event": expected}
    assert parse_server(text) == side.AgentToolEvent(sequence=0, event=event)


def test_chunk_of_a_run_as_the_reference_has_it() -> None:
    body = dump({"type": "text-delta", "id": "t", "delta": "x"})
    text = side.agent_tool_event(side.RunChunk(run_id="r1", body=body), sequence=3, parent_tool_call_id="c7")
    assert load(text) == {
        "type": "agent-tool-event",
        "parentToolCallId": "c7",
        "sequence": 3,
        "event": {"kind": "chunk", "runId": "r1", "body": body},
    }


def test_replayed_event_of_a_run_is_reported() -> None:
    event = side.RunStarted(run_id="r1", agent_type="researcher", order=0)
    text = side.agent_tool_event(event, sequence=0, replay=True)
    assert load(text)["replay"] is True
    assert parse_server(text) == side.AgentToolEvent(sequence=0, event=event, replay=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sequence": -1, "event": {"kind": "aborted", "runId": "r1"}},
        {"sequence": "1", "event": {"kind": "aborted", "runId": "r1"}},
        {"sequence": 1, "event": {"kind": "vanished", "runId": "r1"}},
        {"sequence": 1, "event": {"kind": "finished", "runId": "r1"}},
        {"sequence": 1, "event": {"kind": "interrupted", "runId": "r1", "error": "lost", "reason": "tired"}},
        {"sequence": 1, "event": {"kind": "chunk", "body": "{}"}},
        {"event": {"kind": "aborted", "runId": "r1"}},
    ],
)
def test_wrong_event_of_a_run_is_not_read(wrong: JSONObject) -> None:
    with pytest.raises(ValidationError):
        side.AgentToolEvent.model_validate(wrong)
    assert parse_server(dump({"type": "agent-tool-event", **wrong})) is None


@pytest.mark.parametrize(
    "frame",
    [
        {"phase": "idle", "tokenEstimate": 812, "tokenThreshold": None},
        {"phase": "compacting", "tokenEstimate": 9000, "tokenThreshold": 8000},
        {
            "phase": "idle",
            "tokenEstimate": 900,
            "tokenThreshold": 8000,
            "compacted": {"tokensBefore": 9000, "kept": None},
        },
    ],
)
def test_session_there_and_back(frame: JSONObject) -> None:
    phase = side.SessionPhase.model_validate(frame)
    text = side.session_phase(phase)
    assert load(text) == {"type": "cf_agent_session", **frame}
    assert parse_server(text) == phase


def test_wrong_phase_of_a_session_is_not_read() -> None:
    assert parse_server(dump({"type": "cf_agent_session", "phase": "asleep", "tokenEstimate": 1})) is None


def test_session_error_there_and_back() -> None:
    text = side.session_error("The summary failed.")
    assert load(text) == {"type": "cf_agent_session_error", "error": "The summary failed."}
    assert parse_server(text) == side.SessionError(error="The summary failed.")


def test_the_choice_of_a_model_there_and_back() -> None:
    chosen = side.ModelChosen(instance_id="ins_1", model_choice={"model": "a/b", "temperature": 0.5}, model="a/b")
    text = side.model_chosen(chosen)
    assert load(text) == {
        "type": "think_model_choice",
        "instanceId": "ins_1",
        "model_choice": {"model": "a/b", "temperature": 0.5},
        "model": "a/b",
        "model_notice": "",
    }
    assert parse_server(text) == chosen
    nothing = side.ModelChosen(instance_id=None, model_choice=None, model=None)
    assert parse_server(side.model_chosen(nothing)) == nothing
