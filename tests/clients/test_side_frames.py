"""Frames that later packages send, taken unchanged by the published hooks."""

import pytest
from playwright.sync_api import BrowserContext

from tests.acceptance.desk.servers import MCP
from tests.clients.conftest import MakeRoom
from tests.clients.given import give
from tests.clients.tab import Tab

LINES = pytest.mark.parametrize("line", ["sdk7", "sdk6"])


def announce(tab: Tab, what: str) -> None:
    tab.do(f"harness.agent.send(JSON.stringify({{type: 'announce', what: '{what}'}}))")


@LINES
def test_mcp_servers_reach_the_hook_as_they_are(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    give(context, agent="{onMcpUpdate: (mcp) => note('mcp', {mcp})}")
    tab = room_of(line=line, agent="crier").open("first")
    tab.wait("harness.events.some(e => e.kind === 'mcp')", what="the empty lists")
    announce(tab, "mcp")
    tab.wait("harness.events.filter(e => e.kind === 'mcp').length === 2")
    empty: dict[str, object] = {"servers": {}, "tools": [], "prompts": [], "resources": []}
    assert [event["mcp"] for event in tab.events("mcp")] == [empty, MCP]


@LINES
def test_clients_add_and_remove_servers_and_see_their_states(
    room_of: MakeRoom, context: BrowserContext, line: str
) -> None:
    give(context, agent="{onMcpUpdate: (mcp) => note('mcp', {mcp})}")
    tab = room_of(line=line, agent="crier").open("first")
    tab.wait("harness.events.some(e => e.kind === 'mcp')", what="the empty lists")
    url = "https://10.0.0.1/mcp?token=canary"
    tab.do(f"harness.agent.call('addMcpServer', ['Inside', '{url}']).then(a => (harness.added = a))")
    tab.wait("harness.added !== undefined", what="the answer of a worker")
    added = tab.page.evaluate("() => harness.added")
    assert added["state"] == "failed"  # it is not a public address
    last = "harness.events.filter(e => e.kind === 'mcp').at(-1).mcp.servers"
    tab.wait(f"{last}['{added['id']}']?.state === 'failed'")
    shown = tab.page.evaluate(f"() => {last}")[added["id"]]
    assert (shown["name"], shown["server_url"]) == ("Inside", "https://10.0.0.1/mcp")
    assert "not public" in shown["error"]
    tab.do(f"harness.agent.call('removeMcpServer', ['{added['id']}'])")
    tab.wait(f"Object.keys({last}).length === 0")
    assert not tab.errors


@LINES
def test_runs_of_agents_as_tools_reach_their_hook(room_of: MakeRoom, line: str) -> None:
    tab = room_of(line=line, agent="crier").open("first")
    announce(tab, "runs")
    tab.wait("harness.runs.runsById.r4?.status === 'interrupted'")
    runs = tab.page.evaluate("() => JSON.parse(JSON.stringify(harness.runs.runsById))")
    assert {key: run["status"] for key, run in runs.items()} == {
        "r1": "completed",
        "r2": "error",
        "r3": "aborted",
        "r4": "interrupted",
        "r5": "running",
    }
    first = runs["r1"]
    assert [part.get("text") for part in first["parts"] if part["type"] == "text"] == ["found it"]
    assert (first["summary"], first["agentType"], first["inputPreview"]) == ("Found.", "researcher", {"of": "it"})
    assert (first["order"], first["display"]) == (0, {"name": "R"})
    assert [milestone["name"] for milestone in first["milestones"]] == ["read"]
    assert (runs["r2"]["error"], runs["r3"]["error"]) == ("lost the way", "enough")
    assert (runs["r4"]["reason"], runs["r4"]["childStillRunning"]) == ("no-progress", True)
    bound = tab.page.evaluate("() => harness.runs.getRunsForToolCall('c7').map(run => run.runId)")
    loose = tab.page.evaluate("() => harness.runs.unboundRuns.map(run => run.runId)")
    assert (bound, sorted(loose)) == (["r1"], ["r2", "r3", "r4", "r5"])
    assert tab.page.evaluate("() => Object.keys(harness.runs.runsByToolCallId)") == ["c7"]
    tab.do("harness.runs.resetLocalState()")
    tab.wait("Object.keys(harness.runs.runsById).length === 0")
    assert not tab.errors


@LINES
def test_recovering_is_shown(room_of: MakeRoom, line: str) -> None:
    tab = room_of(line=line, agent="crier").open("first")
    assert tab.page.evaluate("() => harness.chat.isRecovering") is False
    announce(tab, "recovering")
    tab.wait("harness.chat.isRecovering === true")
    announce(tab, "recovered")
    tab.wait("harness.chat.isRecovering === false")


@pytest.mark.smoke("sdk7")
@LINES
def test_frames_of_the_session_are_ignored(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="crier")
    tab = room.open("first")
    announce(tab, "session")
    room.ask_and_rest(tab, "say: Still here.")
    assert {"cf_agent_session", "cf_agent_session_error"} <= set(tab.kinds())
    room.rest()
