"""The tools that a turn has: by pattern, from several sources, under the name that the model meant."""

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from chat.streams.reader import read
from chat.think import (
    ApprovalRule,
    StepConfig,
    StepContext,
    Think,
    Tool,
    TurnConfig,
    TurnContext,
    client_tool,
    tool,
    with_approval,
    with_prefix,
)
from chat.tools.browser import create_browser_tools
from chat.tools.code import create_execute_tool, create_python_tool
from chat.tools.files import create_workspace_tools
from chat.turns.tools import providers as tool_providers
from chat.turns.tools.caller_tools import declarations_of
from chat.turns.tools.providers import ToolRequest, register, unregister
from tests.db.chat.turns.agents.everyday import MODELS
from tests.house.repository import ROOT
from thinkproject.kernel.jsonvalue import load
from tools_app.core.source import Source
from tools_app.core.toolset import ToolSource
from tools_app.processes.tool import create_process_tool

from .conftest import MakeRoom, Room, status_of, text_of
from .slips import NEUTRAL, sentences


@tool
def look(path: str = "") -> str:
    """Look."""
    return f"looked {path}".strip()


@tool
def look_deep() -> str:
    """Look deeper."""
    return "deep"


@tool
def burn() -> str:
    """Burn."""
    return "burnt"


class Toolbox(Think):
    """Has the tools that a test lets it have."""

    workspace_tools = False

    turn_tools: ClassVar[Any] = None
    step_tools: ClassVar[Any] = None
    rule: ClassVar[list[ApprovalRule]] = [False]

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [look, look_deep, with_approval(burn, self.rule[0])]

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(active_tools=self.turn_tools, tools=[with_prefix(look, "turn_")])

    def before_step(self, context: StepContext) -> StepConfig:
        return StepConfig(active_tools=self.step_tools)


@pytest.fixture
def choice(monkeypatch: pytest.MonkeyPatch) -> Any:
    def choose(**values: Any) -> None:
        for name, value in values.items():
            monkeypatch.setattr(Toolbox, name, value)

    return choose


def offered(room: Room) -> list[str]:
    return [item["name"] for item in room.model.requests[-1].get("tools", [])]


async def call_part(room: Room) -> dict[str, Any]:
    parts = (await room.transcript())[-1]["parts"]
    return next(dict(part) for part in parts if "toolCallId" in part)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["look", "look_deep", "burn", "turn_look"]),
        ({"enabled_tools": ("look*", "!look_deep")}, ["look", "turn_look"]),
        ({"enabled_tools": ()}, ["turn_look"]),
        ({"enabled_tools": ("!burn",), "turn_tools": ["*look"]}, ["look", "turn_look"]),
        ({"turn_tools": ["!turn_*"], "step_tools": ["*", "!*deep"]}, ["look", "burn"]),
    ],
)
async def test_patterns_of_class_turn_and_step_limit_the_tools(
    make_room: MakeRoom, choice: Any, given: dict[str, Any], names: list[str]
) -> None:
    choice(**given)
    room = make_room("toolbox")
    await room.say("say: hi")
    assert offered(room) == names


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"enabled_tools": "look"}, "enabled_tools of Toolbox"),
        ({"turn_tools": [3]}, "The tools of before_turn"),
        ({"step_tools": "look"}, "active_tools of a step"),
    ],
)
async def test_what_is_no_list_of_patterns_ends_the_turn_with_a_reason(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture, choice: Any, given: dict[str, Any], where: str
) -> None:
    choice(**given)
    turn = await make_room("toolbox").say("say: hi")
    assert (status_of(turn), turn.error_code) == ("error", "turn_config_invalid")
    assert turn.error_text == NEUTRAL
    assert f"{where}: Patterns of tools" in sentences(caplog)[0]


async def test_a_name_in_another_case_calls_the_tool(make_room: MakeRoom) -> None:
    room = make_room("toolbox")
    turn = await room.say('call tool LOOK {"path": "here"}\nsay: {result}')
    assert text_of((await room.transcript())[-1]) == "looked here"
    part = await call_part(room)
    assert (part["type"], part["toolName"], part["state"]) == ("tool-look", "look", "output-available")
    named = [chunk for chunk in map(load, (r.text for r in await read(turn.pk, 0))) if "toolName" in chunk]
    assert {chunk["toolName"] for chunk in named} == {"look"}


async def test_a_repaired_name_does_not_evade_an_approval(make_room: MakeRoom, choice: Any) -> None:
    choice(rule=[True])
    room = make_room("toolbox")
    await room.say("call tool BURN {}\nsay: {result}")
    part = await call_part(room)
    assert (part["toolName"], part["state"]) == ("burn", "approval-requested")


async def test_a_combined_rule_asks_when_one_of_its_functions_says_so(make_room: MakeRoom, choice: Any) -> None:
    async def never(_input: Any, _context: Any) -> bool:
        return False

    both = with_approval(with_approval(look, never), lambda given, _context: bool(given))
    choice(rule=[both.needs_approval])
    room = make_room("toolbox")
    await room.say("call tool burn {}\nsay: {result}")
    assert text_of((await room.transcript())[-1]) == "burnt"


async def test_the_model_is_told_near_names_of_a_tool_that_is_not_there(make_room: MakeRoom) -> None:
    room = make_room("toolbox")
    await room.say("call tool look_depp {}\nsay: {result}")
    part = await call_part(room)
    assert (part["type"], part["state"]) == ("tool-look_depp", "output-error")
    assert part["errorText"].startswith("There is no tool 'look_depp'. Did you mean 'look_deep'")


@pytest.fixture
def provide() -> Iterator[Any]:
    """Let a source give tools until the end of the test."""
    given: dict[Source, Any] = {}

    def add(source: Source, *tools: Tool) -> None:
        async def provider(request: ToolRequest) -> ToolSource:
            assert isinstance(request.agent, Toolbox)
            return tools

        former = tool_providers._providers.get(source)
        if source not in given and former is not None:
            unregister(source)
        register(source, provider)
        given[source] = former

    yield add
    for source, former in given.items():
        unregister(source)
        if former is not None:
            register(source, former)


OF_CALLER = {"type": "object", "properties": {"of_caller": {"type": "string"}}}


async def test_sources_are_merged_in_their_order(make_room: MakeRoom, provide: Any) -> None:
    provide(Source.MCP, with_prefix(burn, "mcp_"), with_prefix(look, "both_"))
    provide(Source.SCHEDULES, client_tool("look"), with_prefix(burn, "files_"))
    of_caller = declarations_of([client_tool("look"), client_tool("ask", "", OF_CALLER)])
    room = make_room("toolbox")
    declared = [{"name": "look", "description": ""}, {"name": "ask", "description": ""}]
    await room.say("say: hi", client_tools=declared, options={"caller_tools": of_caller})
    fields = {item["name"]: list(item["parameters"]["properties"]) for item in room.model.requests[-1]["tools"]}
    assert fields["look"] == ["path"]
    assert fields["ask"] == ["of_caller"]
    assert list(fields) == ["files_burn", "look", "look_deep", "burn", "mcp_burn", "both_look", "ask", "turn_look"]


async def test_tools_of_every_tier_stand_side_by_side(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    def every_tier(agent: Toolbox) -> list[Tool]:
        files = create_workspace_tools(agent.workspace)
        code = [create_execute_tool(files), create_python_tool(workspace=agent.workspace)]
        return [*files, *code, *create_browser_tools(["example.org"]), create_process_tool(agent.workspace)]

    monkeypatch.setattr(Toolbox, "get_tools", every_tier)
    room = make_room("toolbox")
    turn = await room.say(
        'call tool write {"path": "/a", "content": "b"} id=w\ncall tool read {"path": "/a"}\nsay: done'
    )
    assert status_of(turn) == "completed"
    names = [item["name"] for item in room.model.requests[-1]["tools"]]
    assert len(names) == len(set(names))
    assert {"read", "write", "execute", "python", "browser_markdown", "browser_execute", "run_command"} <= set(names)


def test_a_source_has_one_provider(provide: Any) -> None:
    provide(Source.SCHEDULES)
    with pytest.raises(ValueError, match="'schedules' has a provider"):
        provide(Source.SCHEDULES)


def test_every_source_of_the_decision_record_has_a_provider() -> None:
    record = (ROOT / "docs" / "adr" / "0018-order-of-tools.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", record, re.MULTILINE)
    assert named == [source.value for source in Source]
    assert set(tool_providers._providers) == set(Source)
