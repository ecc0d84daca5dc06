"""Real runs of agents as tools and the published `useAgentToolEvents`: live, late, over reloads and cut lines."""

import json
import time
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.acceptance.proxy import CuttingProxy
from tests.clients.conftest import MakeRoom
from tests.clients.tab import Tab

LINES = pytest.mark.parametrize("line", ["sdk7", "sdk6"])
FIRST = "Object.values(harness.runs.runsById)[0]"


def given(*tasks: str, tool: str = "find") -> str:
    """Words that have the scripted model of an editor have finders do these things."""
    return "\n".join([*(f"call tool {tool} {json.dumps({'task': task})}" for task in tasks), "say: Written."])


def runs_of(tab: Tab) -> list[dict[str, Any]]:
    assert isinstance(tab.page, Page)
    found: list[dict[str, Any]] = tab.page.evaluate(
        "() => JSON.parse(JSON.stringify(Object.values(harness.runs.runsById)))"
    )
    return found


def text_of(run: dict[str, Any]) -> str:
    return "".join(part["text"] for part in run["parts"] if part["type"] == "text")


def wait_for(tab: Tab, status: str, *, count: int = 1) -> None:
    tab.wait(f"Object.values(harness.runs.runsById).filter(run => run.status === '{status}').length === {count}")


@pytest.mark.smoke("sdk7")
@LINES
def test_a_run_is_followed_live_late_and_after_a_reload(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="editor")
    tab, observer = room.open_two()
    room.ask(tab, given('say: Looking.\ncall tool look {"seconds": 2}\nsay: Found it.'))
    for each in (tab, observer):
        each.wait(f"{FIRST}?.progress?.fraction === 0.4", what="the progress of the run")
    wait_for(tab, "completed")
    wait_for(observer, "completed")
    [run] = runs_of(tab)
    assert (run["agentType"], run["display"]["name"], run["summary"]) == ("finder", "Finder of things", "Found it.")
    assert text_of(run) == "Looking.Found it."
    [milestone] = run["milestones"]
    assert (milestone["name"], milestone["data"]) == ("Sources found", {"count": 3})
    assert milestone["at"] < time.time() * 1000 + 60_000
    tab.wait(f"harness.runs.getRunsForToolCall('{run['parentToolCallId']}').length === 1")
    late = room.open("late")
    observer.reload()
    for each in (late, observer):
        wait_for(each, "completed")
        [again] = runs_of(each)
        assert (text_of(again), again["summary"]) == (text_of(run), run["summary"])
    room.rest()


@LINES
def test_a_cut_line_loses_and_doubles_nothing_of_a_run(room_of: MakeRoom, proxy: CuttingProxy, line: str) -> None:
    room = room_of(line=line, agent="editor")
    tab = room.open("first", port=proxy.port)
    room.ask(tab, given("stream 60 words at 20/s"))
    tab.wait(f"{FIRST}?.parts.some(part => part.type === 'text' && part.text.length > 40)")
    proxy.cut()
    wait_for(tab, "completed")
    [run] = runs_of(tab)
    assert text_of(run) == run["summary"]
    assert len(run["summary"].split()) == 60
    room.rest()


@LINES
def test_a_run_that_fails_and_one_beside_it(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="editor")
    tab = room.open("first")
    room.ask(tab, given("error 401", "say: Mine is well."))
    wait_for(tab, "error")
    wait_for(tab, "completed")
    by_status = {run["status"]: run for run in runs_of(tab)}
    assert by_status["error"]["error"]
    assert by_status["completed"]["summary"] == "Mine is well."
    room.rest()
