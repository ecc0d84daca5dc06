"""Code that calls tools: its result, its records, and how it goes on after a crash and after a decision."""

import asyncio
from typing import Annotated, Any

import pytest
from pydantic import Field

from fibers.errors import Parked
from fibers.waits import Wait, WaitEnd
from tests.filled_workspace import filled
from tests.unit.tools_app.sandbox.conftest import sandbox
from thinkproject.kernel.aio import db
from tools_app.calls.run import execute
from tools_app.code_tool import records
from tools_app.code_tool.tool import create_execute_tool, scope_of
from tools_app.core.code.truncation import MARK
from tools_app.core.tool import Tool, ToolContext, client_tool, tool
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.models.code_runs import Execution, ExecutionCall, ExecutionCallStatus, ExecutionStatus
from tools_app.sandbox.contract import Limits
from tools_app.sandbox.deno import DenoSandbox
from tools_app.workspace.services import open_for_scope

__all__ = ["sandbox"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)

did: list[Any] = []


@pytest.fixture(autouse=True)
def _did_nothing() -> None:
    did.clear()


@tool
def add(a: float, b: Annotated[float, Field(ge=0)]) -> float:
    """Add two numbers."""
    did.append(("add", a, b))
    return a + b


@tool
async def note(context: ToolContext, text: str) -> str:
    """Write something down."""
    did.append((text, context.attempt, context.idempotency_key))
    return text.upper()


@tool(reruns=False)
async def pay(context: ToolContext, amount: int) -> int:
    """Pay."""
    did.append(("paid", amount, context.attempt))
    return amount


@tool(needs_approval=True, approval_text="Send to {to}?")
async def send(to: str) -> str:
    """Send a letter."""
    did.append(("sent", to))
    return f"sent to {to}"


@tool(needs_approval=lambda arguments, _context: arguments["amount"] > 100)
async def refund(amount: int) -> int:
    """Refund."""
    did.append(("refunded", amount))
    return amount


TOOLS: list[Tool] = [add, note, pay, send, refund, client_tool("where", "Of a client.")]


class Answers:
    """Answers to waits, as the journal of a turn has them: waiting for one that is missing parks."""

    def __init__(self) -> None:
        self.given: dict[str, WaitEnd] = {}
        self.asked: dict[str, str] = {}

    async def wait(self, wait: Wait) -> WaitEnd:
        if wait.key in self.given:
            return self.given[wait.key]
        self.asked[wait.key] = wait.label
        raise Parked(wait.kind, (wait,))


async def run(
    sandbox: DenoSandbox, code: str, *, call: str = "c1", answers: Answers | None = None, **options: Any
) -> ToolResult:
    """Run the tool as a turn does."""
    made = create_execute_tool(TOOLS, sandbox=sandbox, **options)
    context = ToolContext(
        call_id=call,
        tool_name=made.name,
        user_id=None,
        agent="assistant",
        instance_name="room",
        turn_id="t1",
        attempt=1,
        idempotency_key=f"t1:{call}",
        waiter=(answers or Answers()).wait,
    )
    result = ToolResult(output=None)
    async for item in execute(made, ToolCall(call_id=call, tool_name=made.name, input={"code": code}), context):
        assert isinstance(item, ToolResult)
        result = item
    return result


def calls() -> list[tuple[int, str, str]]:
    return list(ExecutionCall.objects.order_by("ordinal").values_list("ordinal", "name", "status"))


async def test_the_result_has_value_console_and_calls(sandbox: DenoSandbox) -> None:
    code = "const x = await tools.add({a: 1, b: 2});\nconsole.warn('sum', x);\nx * 2"
    result = await run(sandbox, code)
    assert not result.is_error
    made = result.output["calls"]
    assert [(each["name"], each["ok"], each["input"]) for each in made] == [("tools.add", True, '[{"a":1,"b":2}]')]
    assert (result.output["value"], result.output["console"]) == (6, [{"level": "warn", "text": "sum 3"}])
    assert await db(calls) == [(1, "tools.add", "succeeded")]


async def test_each_call_is_checked_against_its_schema(sandbox: DenoSandbox) -> None:
    code = """async () => {
        const seen = [];
        for (const bad of [{a: 1, b: -1}, {a: "x"}, {a: 1, b: 2, c: 3}]) {
            try { await tools.add(bad) } catch (error) { seen.push(error.message) }
        }
        try { await tools.add(1, 2) } catch (error) { seen.push(error.message) }
        try { await tools.nothing({}) } catch (error) { seen.push(error.message) }
        try { await tools.where({}) } catch (error) { seen.push(error.message) }
        return seen
    }"""
    result = await run(sandbox, code)
    messages = result.output["value"]
    assert [word in text for word, text in zip(["b:", "a:", "c:"], messages, strict=False)] == [True] * 3
    assert "one object" in messages[3]
    assert "There is no function tools.nothing" in messages[4]
    assert "There is no function tools.where" in messages[5]
    assert did == []


async def test_failing_code_is_an_error_with_its_console(sandbox: DenoSandbox) -> None:
    result = await run(sandbox, 'console.log("before"); console.error("bad"); throw new TypeError("broken")')
    assert result.is_error
    assert result.output == "Code execution failed: TypeError: broken\n\nConsole output:\nbefore\n[error] bad"
    row = await db(Execution.objects.get)
    assert (row.status, row.outcome) == (ExecutionStatus.FAILED, "error")


async def test_code_that_never_ends_is_an_error(sandbox: DenoSandbox) -> None:
    result = await run(sandbox, "for (;;) ;", limits=Limits(seconds=0.3))
    assert result.output == "Code execution failed: TimeoutError: Execution timed out"


async def test_a_long_value_is_cut_and_kept_whole(sandbox: DenoSandbox) -> None:
    result = await run(sandbox, '"x".repeat(50000)')
    assert MARK in result.output["value"]
    assert len(result.output["value"]) < 25_000
    assert (await db(Execution.objects.get)).value == "x" * 50_000


async def test_functions_are_found_by_code(sandbox: DenoSandbox) -> None:
    code = "[await codemode.search({query: 'letter'}), await codemode.describe({name: 'tools.add'})]"
    found, types = (await run(sandbox, code)).output["value"]
    assert found == [{"name": "tools.send", "description": "Send a letter."}]
    assert types.startswith("/** Add two numbers. */\nadd(input: {")


async def test_an_ended_execution_is_not_run_again(sandbox: DenoSandbox) -> None:
    first = await run(sandbox, "await tools.note({text: 'a'})")
    again = await run(sandbox, "await tools.note({text: 'a'})")
    assert (first.output["value"], again.output["value"]) == ("A", "A")
    assert len(did) == 1


def _crash_within(name: str) -> None:
    """Leave the rows as a worker leaves them that is killed while this call runs."""
    Execution.objects.update(status=ExecutionStatus.RUNNING, value=None, error="", ended_at=None)
    ExecutionCall.objects.filter(name=name).update(
        status=ExecutionCallStatus.RUNNING, output=None, settled_as=None, clock_ms=0
    )


TWO = """const a = await tools.note({text: String(Math.random()) + Date.now()});
const b = await tools.pay({amount: 5}); [a, b]"""


async def test_recorded_calls_are_not_made_again_and_the_code_sees_the_same(sandbox: DenoSandbox) -> None:
    first = await run(sandbox, TWO)
    await db(_crash_within, "none")
    again = await run(sandbox, TWO)
    assert first.output["value"] == again.output["value"]
    assert [each[0] for each in did] == [first.output["value"][0].lower(), "paid"]


async def test_a_call_that_was_cut_runs_again_under_the_same_key(sandbox: DenoSandbox) -> None:
    code = "const b = await tools.pay({amount: 5}); const a = await tools.note({text: String(Math.random())}); [a, b]"
    first = await run(sandbox, code)
    await db(_crash_within, "tools.note")
    again = await run(sandbox, code)
    assert first.output["value"] == again.output["value"]
    paid, *notes = did
    assert [each[1:] for each in notes] == [(1, "t1:c1:2"), (2, "t1:c1:2")]
    assert paid == ("paid", 5, 1)  # what was recorded was not paid again


async def test_an_answer_that_a_crash_kept_from_the_table_holds_up_no_other(sandbox: DenoSandbox) -> None:
    code = "await Promise.all([tools.note({text: 'a'}), tools.note({text: 'b'}), tools.note({text: 'c'})])"
    await run(sandbox, code)
    await db(_crash_within, "none")
    cut = {"status": ExecutionCallStatus.RUNNING, "output": None, "settled_as": None}
    await db(ExecutionCall.objects.filter(ordinal=1).update, **cut)
    assert (await run(sandbox, code)).output["value"] == ["A", "B", "C"]
    assert [each[:2] for each in did[3:]] == [("a", 2)]


async def test_a_call_that_must_not_repeat_is_reported_as_interrupted(sandbox: DenoSandbox) -> None:
    await run(sandbox, TWO)
    await db(_crash_within, "tools.pay")
    result = await run(sandbox, TWO)
    assert result.is_error
    assert records.INTERRUPTED in result.output
    assert len(did) == 2


async def test_code_that_does_not_repeat_its_calls_ends(sandbox: DenoSandbox) -> None:
    await run(sandbox, "await tools.note({text: 'a'})")
    await db(_crash_within, "none")
    await db(ExecutionCall.objects.update, input_hash="other")
    result = await run(sandbox, "try { await tools.note({text: 'a'}) } catch { return 1 }")
    assert result.is_error
    assert "The code did not repeat its calls" in result.output
    assert len(did) == 1


async def test_answers_come_in_the_order_in_which_they_were_recorded(sandbox: DenoSandbox) -> None:
    gate = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait for the other."""
        await gate.wait()
        return "slow"

    @tool
    async def quick() -> str:
        """Do not wait."""
        asyncio.get_running_loop().call_later(0.05, gate.set)
        return "quick"

    code = """async () => {
        const seen = [];
        const keep = (x) => seen.push(x);
        await Promise.all([tools.slow().then(keep), tools.quick().then(keep)]);
        return seen
    }"""
    TOOLS.extend([slow, quick])
    try:
        first = await run(sandbox, code)
        await db(_crash_within, "none")
        again = await run(sandbox, code)
    finally:
        del TOOLS[-2:]
    assert first.output["value"] == again.output["value"] == ["quick", "slow"]


SEND = "const n = await tools.note({text: 'n'}); const s = await tools.send({to: 'Ann'}); [n, s]"


async def test_a_call_that_needs_approval_parks_and_goes_on(sandbox: DenoSandbox) -> None:
    answers = Answers()
    with pytest.raises(Parked) as parked:
        await run(sandbox, SEND, answers=answers)
    assert [(wait.key, wait.label) for wait in parked.value.waits] == [("approval:2", "Send to Ann?")]
    assert sandbox.running == []
    assert (await db(Execution.objects.get)).status == ExecutionStatus.WAITING
    asked = await db(lambda: ExecutionCall.objects.get(status=ExecutionCallStatus.ASKED))
    assert (asked.ordinal, asked.name, asked.input) == (2, "tools.send", [{"to": "Ann"}])
    answers.given["approval:2"] = WaitEnd(answer={"approved": True})
    result = await run(sandbox, SEND, answers=answers)
    assert result.output["value"] == ["N", "sent to Ann"]
    assert [each[0] for each in did] == ["n", "sent"]
    assert not await db(ExecutionCall.objects.filter(status=ExecutionCallStatus.ASKED).exists)


async def test_a_denied_call_is_an_exception_in_the_code(sandbox: DenoSandbox) -> None:
    answers = Answers()
    answers.given["approval:2"] = WaitEnd(answer={"approved": False, "reason": "Not today."})
    code = SEND.replace("await tools.send({to: 'Ann'})", "await tools.send({to: 'Ann'}).catch((e) => e.message)")
    result = await run(sandbox, code, answers=answers)
    assert result.output["value"][1] == "A person did not approve this call: Not today."
    assert [each[0] for each in did] == ["n"]


async def test_no_decision_in_time_is_a_denial(sandbox: DenoSandbox) -> None:
    answers = Answers()
    answers.given["approval:2"] = WaitEnd(has_expired=True)
    result = await run(sandbox, SEND, answers=answers)
    assert "There was no decision in time." in result.output


async def test_a_person_may_change_the_arguments(sandbox: DenoSandbox) -> None:
    answers = Answers()
    answers.given["approval:2"] = WaitEnd(answer={"approved": True, "input": {"to": "Bob"}})
    assert (await run(sandbox, SEND, answers=answers)).output["value"][1] == "sent to Bob"
    answers.given["approval:2"] = WaitEnd(answer={"approved": True, "input": {"to": 5}})
    assert "to:" in (await run(sandbox, SEND, call="c2", answers=answers)).output


async def test_a_crash_before_the_question_does_not_count_as_a_decision(sandbox: DenoSandbox) -> None:
    answers = Answers()
    with pytest.raises(Parked):
        await run(sandbox, SEND, answers=answers)
    rows = ExecutionCall.objects.filter(name="tools.send")
    await db(rows.update, status=ExecutionCallStatus.BEGUN)
    with pytest.raises(Parked):
        await run(sandbox, SEND, answers=answers)
    assert [each[0] for each in did] == ["n"]


async def test_a_rule_decides_which_calls_are_asked_about(sandbox: DenoSandbox) -> None:
    result = await run(sandbox, "await tools.refund({amount: 5})")
    assert result.output["value"] == 5
    with pytest.raises(Parked):
        await run(sandbox, "await tools.refund({amount: 500})", call="c2")
    assert did == [("refunded", 5)]


async def test_calls_beside_one_that_parks_end_first_and_all_questions_are_asked(sandbox: DenoSandbox) -> None:
    answers = Answers()
    code = "await Promise.all([tools.send({to: 'A'}), tools.note({text: 'x'}), tools.send({to: 'B'})])"
    with pytest.raises(Parked) as parked:
        await run(sandbox, code, answers=answers)
    assert sorted(wait.key for wait in parked.value.waits) == ["approval:1", "approval:3"]
    assert await db(calls) == [(1, "tools.send", "asked"), (2, "tools.note", "succeeded"), (3, "tools.send", "asked")]
    for key in ("approval:1", "approval:3"):
        answers.given[key] = WaitEnd(answer={"approved": True})
    result = await run(sandbox, code, answers=answers)
    assert result.output["value"] == ["sent to A", "X", "sent to B"]
    assert sorted(str(each[1]) for each in did) == ["1", "A", "B"]


async def test_a_branch_beside_one_that_parks_goes_on_as_far_as_it_can(sandbox: DenoSandbox) -> None:
    code = """const other = async () => {
        await tools.note({text: "1"}); await tools.note({text: "2"});
        return await tools.send({to: "B"});
    };
    await Promise.all([tools.send({to: "A"}), other()])"""
    with pytest.raises(Parked) as parked:
        await run(sandbox, code)
    assert [each[0] for each in did] == ["1", "2"]
    assert sorted(wait.label for wait in parked.value.waits) == ["Send to A?", "Send to B?"]  # asked at the same time


async def test_a_tool_may_wait_within_code(sandbox: DenoSandbox) -> None:
    @tool
    async def window(context: ToolContext) -> str:
        """Wait for a window."""
        return str((await context.wait("window")).answer)

    answers = Answers()
    TOOLS.append(window)
    try:
        with pytest.raises(Parked):
            await run(sandbox, "await tools.window()", answers=answers)
        assert await db(calls) == [(1, "tools.window", "waiting")]
        answers.given["1:window"] = WaitEnd(answer="open")
        assert (await run(sandbox, "await tools.window()", answers=answers)).output["value"] == "open"
    finally:
        TOOLS.pop()


async def test_the_newest_executions_of_a_scope_are_kept(sandbox: DenoSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "KEPT", 2)
    for number in range(4):
        await run(sandbox, str(number), call=f"c{number}")
    keys = await db(lambda: list(Execution.objects.order_by("pk").values_list("key", flat=True)))
    assert keys == ["t1:c2", "t1:c3"]
    await db(records.forget_executions, turn_ids=["t1"])
    assert await db(Execution.objects.count) == 0


async def test_the_scope_is_one_conversation() -> None:
    def context(name: str) -> ToolContext:
        return ToolContext(
            call_id="c",
            tool_name="t",
            user_id=1,
            agent="a",
            instance_name=name,
            turn_id="t",
            attempt=1,
            idempotency_key="k",
        )

    assert scope_of(context("x")) == scope_of(context("x"))
    assert scope_of(context("x")) != scope_of(context("y"))


async def test_the_description_has_the_types(sandbox: DenoSandbox) -> None:
    made = create_execute_tool(TOOLS, description="Run it.\n{types}", sandbox=sandbox)
    assert made.description.startswith("Run it.\nEach takes one object;")
    assert "\nadd({a: number, b: number}) // Add two numbers.\n" in made.description
    assert "where" not in made.description


async def test_declarations_of_tools_and_files_are_looked_up_by_code(sandbox: DenoSandbox) -> None:
    code = """async () => {
        const seen = [(await codemode.search({query: "replace in files"}))[0].name];
        for (const name of ["add", "tools.add", "state.readFile", "state.searchFiles"]) {
            seen.push(await codemode.describe({name}));
        }
        return seen;
    }"""
    found, short, path, read, search = (await run(sandbox, code, workspace=await filled({}))).output["value"]
    assert found == "state.replaceInFiles"
    assert short == path
    assert short.startswith("/** Add two numbers. */\nadd(input: {")
    assert read == "readFile(input: { path: string }): Promise<string | null>;"
    assert search.endswith("type FileMatch = { path: string; matches: Match[] };")


@pytest.mark.parametrize(
    ("call", "declared"),
    [
        ("tools.add({a: 1})", "add(input: {"),
        ("tools.add({a: 1, b: 2, c: 3})", "add(input: {"),
        ("tools.add(1, 2)", "add(input: {"),
        ("state.readFile('/a')", "readFile(input: { path: string })"),
        ("state.readFile({file: '/a'})", "readFile(input: { path: string })"),
        ("state.rm({path: '/a', recursive: 'yes'})", "rm(input: { path: string; recursive?: boolean"),
    ],
)
async def test_a_wrong_call_of_code_reads_the_declaration(sandbox: DenoSandbox, call: str, declared: str) -> None:
    code = f"try {{ await {call} }} catch (error) {{ return error.message }}"
    text = (await run(sandbox, code, workspace=await filled({"/a": "1"}))).output["value"]
    assert declared in text.partition("\nDeclared as:\n")[2]


async def test_a_file_that_is_missing_has_no_declaration(sandbox: DenoSandbox) -> None:
    code = "try { await state.cp({source: '/no', target: '/b'}) } catch (error) { return error.message }"
    assert "Declared" not in (await run(sandbox, code, workspace=await filled({}))).output["value"]


async def test_code_has_the_workspace(sandbox: DenoSandbox) -> None:
    files = await filled({"/a.json": '{"n": 1}'})
    code = """async () => {
        const {n} = await state.readJson({path: "/a.json"});
        await state.writeFile({path: "/b", content: new Uint8Array([104, 105])});
        const bytes = await state.readFileBytes({path: "/b"});
        return [n, bytes.length, await state.readFile({path: "/b"})];
    }"""
    result = await run(sandbox, code, workspace=files)
    assert result.output["value"] == [1, 2, "hi"]
    assert [each[1] for each in await db(calls)][:2] == ["state.readJson", "state.writeFile"]
    assert "state is not defined" in (await run(sandbox, "await state.readFile({})", call="c2")).output


async def test_a_file_that_was_read_reads_the_same_again(sandbox: DenoSandbox) -> None:
    files = await filled({"/a": "before"})
    code = "const text = await state.readFile({path: '/a'}); await state.appendFile({path: '/a', content: '!'}); text"
    await run(sandbox, code, workspace=files)
    await db(_crash_within, "state.appendFile")
    result = await run(sandbox, code, workspace=files)
    assert records.INTERRUPTED in result.output  # appended perhaps: not twice
    assert await files.read_bytes("/a") == b"before!"


async def test_code_searches_replaces_and_packs_stored_files(sandbox: DenoSandbox) -> None:
    files = open_for_scope("ins_1", None)
    await files.write_file("/docs/a.md", "# One\n# Two\n")
    code = r"""async () => {
        const lines = await state.searchFiles({pattern: "/docs/*", query: "^# T", regex: true});
        await state.replaceInFiles({pattern: "/docs/*", search: "(?m)^# (.*)$", replacement: "## $1", regex: true});
        await state.archive({path: "/docs", target: "/docs.zip"});
        const {count} = await state.unarchive({path: "/docs.zip", target: "/again"});
        await state.compress({path: "/again/a.md"});
        await state.decompress({path: "/again/a.md.gz", target: "/third.md"});
        const hashes = [];
        for (const path of ["/docs/a.md", "/third.md"]) hashes.push(await state.hash({path}));
        return {lines, count, same: hashes[0] === hashes[1], kind: await state.detect({path: "/docs.zip"})};
    }"""
    result = await run(sandbox, code, workspace=files)
    assert result.output["value"] == {
        "lines": [{"path": "/docs/a.md", "matches": [{"line": 2, "text": "# Two"}]}],
        "count": 2,
        "same": True,
        "kind": {"mediaType": "application/octet-stream", "isText": False},
    }
    assert await files.read_file("/third.md") == "## One\n## Two\n"
