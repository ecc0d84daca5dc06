"""A call that would fail is an error that the model reads, before a person is asked about it."""

from typing import Any

import pytest

from chat.think import Think, Tool, ToolContext, action, tool
from tests.db.chat.turns.agents.everyday import CALLS, MODELS
from tests.db.chat.turns.agents.guarded_agents import MAIL, Guarded
from thinkproject.kernel.jsonvalue import JSONObject

from .conftest import MakeRoom
from .working import call, one_after_another, parts_of_calls


def is_known(arguments: JSONObject, context: ToolContext) -> None:
    if arguments["order"] != "1":
        raise ValueError(f"There is no order {arguments['order']!r}.")


@tool(needs_approval=True, check=is_known)
def ship(order: str) -> str:
    """Ship an order."""
    CALLS.append((1, 1))
    return "shipped"


@action(approval=True, check=is_known)
def cancel(order: str) -> str:
    """Cancel an order."""
    CALLS.append((2, 2))
    return "cancelled"


class Shipper(Think):
    """Has tools that look before people are asked, and code over them."""

    code_tool = True
    schedule_tools = True

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [ship, cancel]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (call("ship", order="9"), "There is no order '9'."),
        (call("cancel", order="9"), "There is no order '9'."),
        (call("create_schedule", prompt="x"), "Give exactly one of at, in_minutes, every_minutes and cron."),
        (call("create_schedule", prompt=" ", in_minutes=5), "A prompt has 1 to"),
        (call("create_schedule", prompt="x", every_minutes=0.01), ""),
        (call("create_schedule", prompt="x", cron="not a time"), ""),
        (call("create_schedule", prompt="x", at="2030-01-01T09:00", zone="Mars/Base"), ""),
        (call("execute", code="await tools.ship({order: '9'})"), "There is no order '9'."),
    ],
)
async def test_a_call_that_would_fail_asks_no_person(make_room: MakeRoom, made: str, words: str) -> None:
    room = make_room("shipper")
    await room.say(made + "\nsay: {result}")
    [part] = await parts_of_calls(room)
    assert part["state"] == "output-error"
    assert words in part["errorText"]
    assert CALLS == []


@pytest.mark.parametrize("made", [call("ship", order="1"), call("cancel", order="1")])
async def test_a_call_that_may_succeed_asks(make_room: MakeRoom, made: str) -> None:
    room = make_room("shipper")
    await room.say(made + "\nsay: {result}")
    [part] = await parts_of_calls(room)
    assert part["state"] == "approval-requested"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (call("edit", path="/none", old_string="a", new_string="b"), "File not found: /none"),
        (call("edit", path="/a.txt", old_string="absent", new_string="b"), "old_string was not found"),
        (call("edit", path="/a.txt", old_string="", new_string="b"), "already exists"),
        (call("write", path="/d", content="x"), "/d is a directory"),
        (call("bash", script="ls", cwd="/none"), "ENOENT"),
        (call("fetch_url", url="https://elsewhere.test/", response="auto"), "elsewhere.test"),
        (call("fetch_url", url="file:///etc/passwd", response="auto"), ""),
    ],
)
async def test_the_guard_asks_about_no_call_that_would_fail(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, made: str, words: str
) -> None:
    monkeypatch.setitem(MAIL, "offer", "A good offer.")
    monkeypatch.setattr("tests.db.chat.turns.agents.guarded_agents.SERVERS", ["http://127.0.0.1:9"])
    desk = Guarded(make_room("guarded-clerk"))
    await desk.room.handle.workspace.write_file("/a.txt", "text")
    await desk.room.handle.workspace.mkdir("/d")
    await desk.room.say(one_after_another(call("mail", name="offer"), made))
    [_, part] = await parts_of_calls(desk.room)
    assert part["state"] == "output-error"
    assert words in part["errorText"]
