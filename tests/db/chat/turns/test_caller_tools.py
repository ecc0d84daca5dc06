"""Tools that the program that asks for a turn brings for it: they run where it is, and the turn survives both."""

import asyncio
import json
from typing import Any

import pytest

from chat.agent.base import InstanceKey
from chat.errors import InputInvalid
from chat.testing import worker
from chat.think import (
    Allow,
    Block,
    Media,
    ToolContext,
    ToolOutput,
    action,
    client_tool,
    tool,
)
from chat.turns.tools.caller_calls import CallerTools, ExtraTools
from chat.turns.tools.caller_tools import CallerRequest
from fibers.models import Fiber
from tests.db.chat.turns.agents.calling import (
    FETCH,
    LOCATE,
    NOTED,
    PLACE,
    RULES,
    chat,
    fetch,
    has,
    no_rules,
    part_of,
    said,
)
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db
from tools_app.calls import answers
from tools_app.core.tool_calls import ToolCall
from tools_app.errors import SchemaInvalid, ToolDeclarationInvalid, ToolError
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom

__all__ = ["no_rules"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


# --- what a call is --------------------------------------------------------------------------------------------------


async def test_a_tool_runs_at_the_caller_while_no_worker_holds_the_turn(make_room: MakeRoom) -> None:
    held: list[Any] = []

    @tool(name="fetch")
    async def look() -> str:
        """Look at the turn that calls."""
        fiber = await db(Fiber.objects.get)
        held.extend([fiber.status, fiber.worker, fiber.lease_until, fiber.waits[0]["label"]])
        return "the report"

    room = make_room("called")
    result = await chat(room, FETCH, tools=[look])
    assert said(result) == "It says the report."
    assert held == ["parked", "", None, "fetch"]
    assert NOTED == [("after", True, "the report")]


async def test_a_call_carries_the_ids_of_the_turn(make_room: MakeRoom) -> None:
    await chat(make_room("called"), FETCH, tools={"fetch": fetch})
    assert NOTED == ["fetch one one 1", ("after", True, "the report")]


async def test_the_model_gets_the_declaration_of_the_caller(make_room: MakeRoom) -> None:
    room = make_room("called")
    await chat(room, "say: hi", client_tools=[PLACE], on_client_tool_call=print)
    [declared] = [found for found in room.model.requests[0]["tools"] if found["name"] == "locate"]
    assert declared["parameters"] == PLACE["parameters"]


async def test_a_declared_tool_goes_to_the_callers_function(make_room: MakeRoom) -> None:
    calls: list[ToolCall] = []

    def run(call: ToolCall) -> Any:
        calls.append(call)
        return ToolOutput(value={"place": "here"}, title="Located")

    result = await chat(make_room("called"), LOCATE, client_tools=[PLACE], on_client_tool_call=run)
    assert calls == [ToolCall(call_id="one", tool_name="locate", input={"exact": True})]
    assert said(result) == 'It says {"place":"here"}.'
    assert part_of(result)["toolMetadata"]["think"]["title"] == "Located"


async def test_the_caller_gets_the_input_that_a_hook_has_changed(make_room: MakeRoom) -> None:
    RULES["decision"] = Allow(input={"exact": False})
    calls: list[Any] = []
    await chat(
        make_room("called"), LOCATE, client_tools=[PLACE], on_client_tool_call=lambda call: calls.append(call.input)
    )
    assert calls == [{"exact": False}]


async def test_a_call_that_a_hook_blocks_never_reaches_the_caller(make_room: MakeRoom) -> None:
    RULES["decision"] = Block(reason="Not now.")
    result = await chat(make_room("called"), FETCH, tools=[fetch])
    assert said(result) == "It says Not now.."
    assert NOTED == [("after", True, "Not now.")]


async def test_calls_of_one_step_run_side_by_side_and_once_each(make_room: MakeRoom) -> None:
    both = asyncio.Barrier(2)

    @tool
    async def meet(name: str) -> str:
        """Wait for the other one."""
        NOTED.append(name)
        await both.wait()
        return f"met {name}"

    script = 'call tool meet {"name": "Ann"} id=a\ncall tool meet {"name": "Ben"} id=b\nsay: {results}'
    result = await chat(make_room("called"), script, tools=[meet])
    assert sorted(name for name in NOTED if isinstance(name, str)) == ["Ann", "Ben"]
    assert (part_of(result, "a")["output"], part_of(result, "b")["output"]) == ("met Ann", "met Ben")


async def test_an_answer_may_be_slower_than_the_other_of_its_step(make_room: MakeRoom) -> None:
    done = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait until the other call has its result in the turn."""
        NOTED.append("slow")
        await done.wait()
        return "slow"

    room = make_room("called")
    script = "call tool slow {} id=s\ncall tool fetch {} id=f\nsay: {results}"
    async with worker(), asyncio.timeout(30):
        chatting = asyncio.create_task(room.handle.chat(script, tools=[slow, fetch]))
        settled = ToolCallRecord.objects.filter(call_id="f", status="succeeded")
        await until(lambda: db(settled.exists))
        done.set()
        result = await chatting
    assert NOTED.count("slow") == 1
    assert (part_of(result, "s")["output"], part_of(result, "f")["output"]) == ("slow", "the report")


async def test_files_of_a_result_are_files_of_the_conversation(make_room: MakeRoom) -> None:
    picture = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000")

    @tool(name="fetch")
    async def plot() -> ToolOutput:
        """Plot."""
        return ToolOutput(value="plotted", media=[Media(data=picture, name="plot.png")], metadata={"points": 3})

    details = part_of(await chat(make_room("called"), FETCH, tools=[plot]))["toolMetadata"]["think"]
    assert details["metadata"] == {"points": 3}
    [attached] = details["attachments"]
    assert (attached["filename"], attached["mediaType"]) == ("plot.png", "image/png")


async def test_tools_are_there_for_their_turn_alone(make_room: MakeRoom) -> None:
    room = make_room("called")
    await chat(room, "say: one", tools=[fetch])
    await chat(room, "say: two")
    assert [has(request, "fetch") for request in room.model.requests] == [True, False]


async def test_a_call_is_none_that_a_client_could_answer(make_room: MakeRoom) -> None:
    """A call whose caller has died must not look like one that waits for a person."""
    room, seen = make_room("called"), []

    @tool(name="fetch")
    async def look() -> str:
        """Look at how the call stands."""
        row = await db(ToolCallRecord.objects.get)
        seen.extend([row.status, row.scope, await room.handle.has_pending_interaction()])
        return "looked"

    await chat(room, FETCH, tools=[look])
    assert seen == ["running", "", False]


# --- what goes wrong -------------------------------------------------------------------------------------------------


async def test_what_the_callers_code_raises_is_a_result_that_the_model_sees(make_room: MakeRoom) -> None:
    def fail(_call: ToolCall) -> None:
        raise OSError("the device is off")

    result = await chat(make_room("called"), LOCATE, client_tools=[PLACE], on_client_tool_call=fail)
    part = part_of(result)
    assert (result.status.value, part["state"], part["errorText"]) == ("completed", "output-error", "the device is off")
    assert NOTED == [("after", False, "the device is off")]


@pytest.mark.parametrize("argument", ["{}", '{"exact": 3}'])
async def test_an_input_that_does_not_fit_is_a_result_and_no_call(make_room: MakeRoom, argument: str) -> None:
    calls: list[Any] = []
    script = f"call tool locate {argument} id=one\nsay: {{result}}"
    result = await chat(make_room("called"), script, client_tools=[PLACE], on_client_tool_call=calls.append)
    assert "Invalid input for tool 'locate'" in part_of(result)["errorText"]
    assert calls == []


async def test_arguments_of_a_typed_tool_are_checked_where_it_runs(make_room: MakeRoom) -> None:
    @tool(name="fetch")
    async def page(number: int) -> int:
        """Fetch a page."""
        return number + 1

    script = 'call tool fetch {"number": "x"} id=one\ncall tool fetch {"number": 2} id=two\nsay: {results}'
    result = await chat(make_room("called"), script, tools=[page])
    assert "Invalid input for tool 'fetch'" in part_of(result)["errorText"]
    assert part_of(result, "two")["output"] == 3


async def test_the_tools_own_time_bounds_its_call(make_room: MakeRoom) -> None:
    @tool(name="fetch", timeout_seconds=0.05)
    async def never() -> None:
        """Take for ever."""
        await asyncio.Event().wait()

    assert "did not finish within" in part_of(await chat(make_room("called"), FETCH, tools=[never]))["errorText"]


async def test_a_tool_that_waits_with_the_context_of_another_turn_fails(make_room: MakeRoom) -> None:
    @tool(name="fetch")
    async def waits(context: ToolContext) -> str:
        """Wait for an answer."""
        return str(await context.wait("window"))

    assert "within a turn only" in part_of(await chat(make_room("called"), FETCH, tools=[waits]))["errorText"]


async def test_an_answer_that_is_too_large_fails(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_ANSWER_BYTES", 2**20)
    large = tool(name="fetch", description="Large.")(lambda: "x" * 2**20)
    assert "more than 1 MiB" in part_of(await chat(make_room("called"), FETCH, tools=[large]))["errorText"]


async def test_a_tool_that_the_caller_does_not_know_is_a_result() -> None:
    tools = CallerTools({"tools": [fetch]})
    call = ToolCall(call_id="one", tool_name="gone", input={})
    request = CallerRequest(wait_key="one:caller", call=call, idempotency_key="t:one")
    result = await tools.run(request, InstanceKey(owner_id=None, agent="called", name="room"), "t")
    assert result.is_error
    assert "has no tool 'gone'" in str(result.output)


@tool(needs_approval=True)
def asks() -> None:
    """Ask."""


@action(name="acts", description="Act.")
def acts() -> None:
    """Act."""


REFUSED: list[tuple[ExtraTools, type[Exception]]] = [
    ({"tools": [asks]}, ToolDeclarationInvalid),
    ({"tools": [acts]}, ToolDeclarationInvalid),
    ({"tools": [len]}, ToolDeclarationInvalid),  # type: ignore[list-item]
    ({"client_tools": [PLACE]}, InputInvalid),
    ({"client_tools": [{"description": "Nameless."}], "on_client_tool_call": print}, InputInvalid),
    ({"client_tools": [{"name": "no name"}], "on_client_tool_call": print}, ToolDeclarationInvalid),
    (
        {"client_tools": [{"name": "x", "parameters": {"type": "thing"}}], "on_client_tool_call": print},
        SchemaInvalid,
    ),
    ({"tools": [client_tool(f"t{number}") for number in range(129)], "on_client_tool_call": print}, InputInvalid),
]


@pytest.mark.parametrize(("extra", "error"), REFUSED)
async def test_what_no_turn_can_be_given_is_refused_before_it_is_accepted(
    make_room: MakeRoom, extra: ExtraTools, error: type[Exception]
) -> None:
    room = make_room("called")
    with pytest.raises(error):
        await room.handle.chat("say: hi", **extra)
    assert await room.transcript() == []


# --- names -----------------------------------------------------------------------------------------------------------


async def test_the_agents_own_tool_wins_over_the_callers(make_room: MakeRoom) -> None:
    @tool(name="own")
    async def mine() -> str:
        """The caller's."""
        return "the caller's"

    result = await chat(make_room("called"), "call tool own {} id=one\nsay: {result}", tools=[mine])
    assert said(result) == "the agent's"


async def test_the_callers_tool_wins_over_that_of_a_client(make_room: MakeRoom) -> None:
    room = make_room("called")
    clients = [{"name": "fetch", "description": "The client's.", "parameters": {}}]
    await room.say("say: hi", client_tools=clients)
    assert said(await chat(room, FETCH, tools=[fetch])) == "It says the report."


async def test_of_the_callers_own_the_declared_tool_counts(make_room: MakeRoom) -> None:
    declared = [{"name": "fetch"}]
    result = await chat(
        make_room("called"), FETCH, tools=[fetch], client_tools=declared, on_client_tool_call=lambda _call: "declared"
    )
    assert said(result) == "It says declared."


async def test_the_tool_for_code_keeps_its_place(make_room: MakeRoom) -> None:
    @tool(name="execute")
    async def mine() -> str:
        """The caller's."""
        return "the caller's"

    room = make_room("coding-called")
    await chat(room, "say: hi", tools=[mine])
    [declared] = [found for found in room.model.requests[0]["tools"] if found["name"] == "execute"]
    assert list(declared["parameters"]["properties"]) == ["code"]


async def test_code_calls_the_callers_tools(make_room: MakeRoom) -> None:
    code = "const a = await tools.fetch({}); const b = await tools.fetch({}); a + ' and ' + b"
    script = f"call tool execute {json.dumps({'code': code})} id=code\nsay: {{result}}"
    result = await chat(make_room("coding-called"), script, tools=[fetch])
    assert [noted for noted in NOTED if isinstance(noted, str)] == [
        "fetch code:1 code:1 1",
        "fetch code:2 code:2 1",
    ]
    assert part_of(result, "code")["output"]["value"] == "the report and the report"


async def test_an_error_of_the_tool_keeps_its_words(make_room: MakeRoom) -> None:
    @tool(name="fetch")
    def refuse() -> None:
        """Refuse."""
        raise ToolError("There is no report.")

    assert part_of(await chat(make_room("called"), FETCH, tools=[refuse]))["errorText"] == "There is no report."
