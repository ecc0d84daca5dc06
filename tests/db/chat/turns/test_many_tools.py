"""Tools that are found: approvals, hooks and lists speak of the tool that is called, and never of the one before it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from chat.think import Block, StepConfig, Tool, TurnConfig, tool
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.coding import Listening
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from tests.db.chat.turns.agents.hook_agents import HOOKS, Flexible, no_hooks
from tools_app.core.deferral import CALL, SEARCH

from .conftest import MakeRoom, Room, status_of, text_of

__all__ = ["no_hooks"]  # a fixture

DONE: list[str] = []


@tool
def far(order: int) -> str:
    """Ship an order."""
    DONE.append(f"far {order}")
    return f"shipped {order}"


@tool(needs_approval=True, approval_text="Pay {amount}?", editable=True)
def far_pay(amount: int) -> str:
    """Pay."""
    DONE.append(f"paid {amount}")
    return f"paid {amount}"


class Depot(Flexible):
    """Has a hundred tools, and searches for those whose names begin with `far`."""

    workspace_tools = False
    searched_tools = ("far*",)
    enabled_tools: ClassVar[Sequence[str] | None] = ("*", "!far_13")

    def get_tools(self) -> list[Tool]:
        return [*super().get_tools(), *(replace(far, name=f"far_{number}") for number in range(100)), far_pay]


class DepotCoder(Depot):
    """The same, with code."""

    code_tool = True


@pytest.fixture
def depot(make_room: MakeRoom) -> Room:
    DONE.clear()
    return make_room("depot")


def through(name: str, **arguments: Any) -> str:
    return f"call tool {CALL} {json.dumps({'name': name, 'arguments': arguments})}"


def offered(room: Room) -> list[str]:
    return [each["name"] for each in room.model.requests[-1].get("tools", ())]


async def last_calls(room: Room) -> list[Any]:
    return [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]


async def test_a_person_is_asked_about_the_tool_by_its_name(depot: Room) -> None:
    await depot.say(f"{through('far_pay', amount=5)}\nsay: {{result}}")
    (part,) = await last_calls(depot)
    assert (part["type"], part["state"], part["input"]) == ("tool-far_pay", "approval-requested", {"amount": 5})
    (question,) = await depot.handle.pending_approvals()
    assert (question.tool, question.sentence, DONE) == ("far_pay", "Pay 5?", [])
    assert await depot.handle.approve_execution(question.id, edited_input={"amount": 4})
    await run_until_idle(skip_delays=True)
    assert DONE == ["paid 4"]
    assert text_of((await depot.transcript())[-1]).endswith("paid 4")
    sent = [call for message in depot.model.requests[-1]["messages"] for call in message.get("tool_calls") or ()]
    assert [call["function"]["name"] for call in sent] == [CALL]
    assert json.loads(sent[0]["function"]["arguments"]) == {"name": "far_pay", "arguments": {"amount": 5}}


async def test_hooks_see_the_tool_and_may_block_it(depot: Room) -> None:
    HOOKS["before_tool_call"] = lambda context: Block(reason="not now") if context.input["order"] > 5 else None
    await depot.say(f"{through('far_1', order=1)}\nsay: {{result}}")
    await depot.say(f"{through('far_1', order=9)}\nsay: {{result}}")
    assert (DONE, text_of((await depot.transcript())[-1])) == (["far 1"], "not now")
    asked = [given for name, given in SEEN if name == "before_tool_call"]
    assert [(each.tool_name, each.input) for each in asked] == [("far_1", {"order": 1}), ("far_1", {"order": 9})]
    ended = [given for name, given in SEEN if name == "after_tool_call"]
    assert {each.tool_name for each in ended} == {"far_1"}


async def test_what_the_class_takes_away_cannot_be_found_or_called(depot: Room) -> None:
    await depot.say(
        f'call tool {SEARCH} {{"query": "far 13", "limit": 20}}\n{through("far_13", order=1)}\nsay: {{result}}'
    )
    searched, called = await last_calls(depot)
    assert "far_13" not in json.dumps(searched["output"])
    assert called["type"] == f"tool-{CALL}"
    assert "There is no tool 'far_13'" in called["errorText"]
    assert DONE == []


async def test_what_a_turn_takes_away_cannot_be_called(depot: Room) -> None:
    HOOKS["before_turn"] = lambda _context: TurnConfig(active_tools=["far_1*"])
    await depot.say(f"{through('far_2', order=1)}\n{through('far_12', order=2)}\nsay: done")
    assert DONE == []  # eleven are left, which are declared
    assert offered(depot) == ["far_1", *(f"far_{number}" for number in range(10, 20) if number != 13)]


@pytest.mark.parametrize(
    ("patterns", "name", "ran", "declared"),
    [
        (["far_1", "far_2"], "far_1", True, [SEARCH, CALL]),
        (["far_1", "far_2"], "far_3", False, [SEARCH, CALL]),
        (["add"], "far_1", False, ["add"]),
        (["far_*", f"!{CALL}"], "far_1", False, [SEARCH]),
    ],
)
async def test_what_a_step_takes_away_cannot_be_called(
    depot: Room, patterns: list[str], name: str, ran: bool, declared: list[str]
) -> None:
    HOOKS["before_step"] = lambda _context: StepConfig(active_tools=patterns)
    await depot.say(f"{through(name, order=1)}\nsay: done")
    assert bool(DONE) is ran
    assert offered(depot) == declared


async def test_a_tool_that_is_chosen_is_declared(depot: Room) -> None:
    HOOKS["before_step"] = lambda context: StepConfig(tool_choice="far_7" if context.step_number == 0 else "auto")
    await depot.say('call tool far_7 {"order": 3}\nsay: {result}')
    assert "far_7" in [each["name"] for each in depot.model.requests[0]["tools"]]
    assert "far_7" not in offered(depot)
    assert DONE == ["far 3"]
    HOOKS.clear()
    HOOKS["before_turn"] = lambda _context: TurnConfig(tool_choice="far_8")
    await depot.say('call tool far_8 {"order": 4}\nsay: {result}')
    assert "far_8" in offered(depot)
    assert DONE[:2] == ["far 3", "far 4"]


async def test_a_call_by_the_tools_own_name_works_as_well(depot: Room) -> None:
    turn = await depot.say('call tool far_7 {"order": 3}\nsay: {result}')
    assert (status_of(turn), DONE) == ("completed", ["far 3"])


async def test_code_finds_them_and_its_description_stays(make_room: MakeRoom, shared_sandbox_closes: None) -> None:
    DONE.clear()
    room = make_room("depot-coder")
    room.model = MODELS["current"] = Listening()
    code = "const [{name}] = await codemode.search({query: 'far 42'}); [name, await tools.far_42({order: 2})]"
    await room.say(f"call tool execute {json.dumps({'code': code})}\nsay: done")
    (part,) = await last_calls(room)
    assert part["output"]["value"] == ["tools.far_42", "shipped 2"]
    text = next(each.description for each in room.model.offered if each.name == "execute")
    assert "far_" not in text
    assert "many more" in text
