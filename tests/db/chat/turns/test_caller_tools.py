"""Tools that the program that asks for a turn brings for it: they run where it is, and the turn survives both."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from chat.agent.base import InstanceKey
from chat.errors import InputInvalid
from chat.runtime.handle import ChatResult
from chat.testing import worker
from chat.think import (
    Allow,
    Block,
    Media,
    Think,
    ToolCallContext,
    ToolContext,
    ToolOutcome,
    ToolOutput,
    action,
    client_tool,
    tool,
    with_timeout,
)
from chat.turns.admission.intake import Program
from chat.turns.state import caller_tools
from chat.turns.state.caller_calls import CallerTools, ExtraTools, serve_calls
from chat.turns.state.caller_tools import CallerRequest
from fibers.context import current_fiber
from fibers.execution import recovery
from fibers.models import Fiber
from fibers.testing import crash_after, die, run_until_idle
from thinkproject.kernel.aio import db
from tools_app.core.tool_calls import ToolCall
from tools_app.errors import SchemaInvalid, ToolDeclarationInvalid, ToolError
from tools_app.models import ToolCallRecord

from .agents import MODELS
from .conftest import MakeRoom, Room, status_of, text_of
from .gated import until

pytestmark = pytest.mark.django_db(transaction=True)

NOTED: list[Any] = []
"""What tools and hooks did, in order."""

RULES: dict[str, Any] = {}
"""What the agent's `before_tool_call` says, and where its worker dies."""

FETCH = "call tool fetch {} id=one\nsay: It says {result}."
PLACE = {
    "name": "locate",
    "description": "Say where the device is.",
    "parameters": {"type": "object", "properties": {"exact": {"type": "boolean"}}, "required": ["exact"]},
}
LOCATE = 'call tool locate {"exact": true} id=one\nsay: It says {result}.'


class Called(Think):
    """Has one tool of its own, and lets the test decide about calls."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> Any:
        @tool(name="own")
        def own() -> str:
            """The agent's."""
            return "the agent's"

        return [own]

    def before_tool_call(self, context: ToolCallContext) -> Any:
        fiber = current_fiber()
        if fiber is not None and fiber.attempt == RULES.get("dies in"):
            NOTED.append("died")
            die(fiber)
        return RULES.get("decision")

    def after_tool_call(self, outcome: ToolOutcome) -> None:
        NOTED.append(("after", outcome.success, outcome.output))


class CodingCalled(Called):
    """Has code over its tools as well."""

    code_tool = True


@pytest.fixture(autouse=True)
def _nothing_noted() -> Iterator[None]:
    NOTED.clear()
    RULES.clear()
    yield
    RULES.clear()


@tool
async def fetch(context: ToolContext) -> str:
    """Fetch the report."""
    NOTED.append(f"fetch {context.call_id} {context.idempotency_key.partition(':')[2]} {context.attempt}")
    return "the report"


async def chat(room: Room, text: str, **extra: Any) -> ChatResult:
    async with worker(), asyncio.timeout(30):
        return await room.handle.chat(text, **extra)


def said(result: ChatResult) -> str:
    assert result.message is not None
    return text_of(result.message)


def part_of(result: ChatResult, call_id: str = "one") -> dict[str, Any]:
    assert result.message is not None
    [part] = [dict(part) for part in result.message["parts"] if part.get("toolCallId") == call_id]
    return part


def has(request: Any, name: str) -> bool:
    """Whether a request to the model offers a tool."""
    return name in [found["name"] for found in request["tools"]]


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
    monkeypatch.setattr(caller_tools, "MAX_ANSWER_BYTES", 2**20)
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


# --- who dies --------------------------------------------------------------------------------------------------------


async def let_time_pass() -> None:
    """Have the sweeper find that the first wait is over."""
    await db(Fiber.objects.filter(status="parked").update, parked_until=Now() - timedelta(seconds=1))
    await db(recovery.sweep)


async def test_the_call_of_a_caller_that_has_died_fails_in_time(make_room: MakeRoom) -> None:
    room = make_room("called")
    declared = CallerTools({"tools": [with_timeout(fetch, 20)]}).declarations
    turn = await room.say(words(FETCH), options={"caller_tools": declared})  # its caller dies with this line
    assert turn.fiber.status == "parked"
    await db(recovery.sweep)
    assert (await room.turn(turn.pk)).fiber.status == "parked"
    await let_time_pass()
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(turn.pk)) == "completed"
    [output] = [text for kind, _ok, text in NOTED if kind == "after"]
    assert "did not answer within 50 s" in output
    assert "Whether the call had an effect is not known." in output


def words(text: str) -> Program:
    return Program(messages=[{"role": "user", "parts": [{"type": "text", "text": text}]}])


async def test_a_caller_that_leaves_stops_its_tool_and_not_the_turn(make_room: MakeRoom) -> None:
    begun = asyncio.Event()

    @tool(name="fetch")
    async def never() -> None:
        """Take for ever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            NOTED.append("stopped")

    room = make_room("called")
    async with worker(), asyncio.timeout(30):
        chatting = asyncio.create_task(room.handle.chat(FETCH, tools=[never]))
        await begun.wait()
        chatting.cancel()
        await asyncio.gather(chatting, return_exceptions=True)
        assert NOTED == ["stopped"]
        await let_time_pass()
        assert await room.handle.wait_until_stable()
    [_user, answer] = await room.transcript()
    assert "did not answer" in text_of(answer)


async def test_a_turn_that_is_stopped_stops_the_callers_tool(make_room: MakeRoom) -> None:
    signal = asyncio.Event()

    @tool(name="fetch")
    async def never() -> None:
        """Take for ever."""
        signal.set()
        try:
            await asyncio.Event().wait()
        finally:
            NOTED.append("stopped")

    result = await chat(make_room("called"), FETCH, tools=[never], signal=signal)
    assert (result.status.value, NOTED) == ("aborted", ["stopped"])


async def test_a_worker_killed_between_the_callers_answer_and_its_record_runs_nothing_twice(
    make_room: MakeRoom,
) -> None:
    """Attempt 2 has the answer in its journal and dies before the call is recorded; attempt 3 finds it there."""
    RULES["dies in"] = 2
    room = make_room("called")
    async with asyncio.timeout(30):
        chatting = asyncio.create_task(room.handle.chat(FETCH, tools=[fetch]))
        while not chatting.done():
            await run_until_idle(skip_delays=True)
            await asyncio.sleep(0.01)
        result = await chatting
    assert NOTED == ["fetch one one 1", "died", ("after", True, "the report")]
    assert said(result) == "It says the report."


@pytest.mark.parametrize("step", ["model:0", "call:one"])
async def test_a_worker_killed_beside_a_call_runs_nothing_twice(make_room: MakeRoom, step: str) -> None:
    room = make_room("called")
    with crash_after(step):
        async with asyncio.timeout(30):
            chatting = asyncio.create_task(room.handle.chat(FETCH, tools=[fetch]))
            while not chatting.done():
                await run_until_idle(skip_delays=True)
                await asyncio.sleep(0.01)
            result = await chatting
    assert [noted for noted in NOTED if isinstance(noted, str)] == ["fetch one one 1"]
    assert said(result) == "It says the report."


async def test_of_two_callers_that_answer_one_call_the_first_counts(make_room: MakeRoom) -> None:
    room, both = make_room("called"), asyncio.Barrier(2)

    def program(name: str) -> CallerTools:
        @tool(name="fetch")
        async def run() -> str:
            """Answer when the other one has the call, too."""
            NOTED.append(name)
            await both.wait()
            return name

        return CallerTools({"tools": [run]})

    first, second = program("first"), program("second")
    admitted = (await room.admit(words(FETCH), options={"caller_tools": first.declarations})).turn
    serving = [asyncio.create_task(serve_calls(room.key, admitted, each)) for each in (first, second)]
    try:
        async with worker(), asyncio.timeout(30):
            assert await room.handle.wait_until_stable()
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
    assert sorted(noted for noted in NOTED if isinstance(noted, str)) == ["first", "second"]
    [counted] = [noted[2] for noted in NOTED if isinstance(noted, tuple)]
    assert text_of((await room.transcript())[-1]) == f"It says {counted}."
    assert counted in {"first", "second"}


async def test_an_error_of_the_tool_keeps_its_words(make_room: MakeRoom) -> None:
    @tool(name="fetch")
    def refuse() -> None:
        """Refuse."""
        raise ToolError("There is no report.")

    assert part_of(await chat(make_room("called"), FETCH, tools=[refuse]))["errorText"] == "There is no report."
