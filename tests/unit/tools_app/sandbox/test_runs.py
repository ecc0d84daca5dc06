"""What a script can do, and what is known of it afterwards."""

import asyncio

import pytest

from tests.unit.tools_app.sandbox.conftest import SMALL, Run
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.sandbox.contract import Answer, Limits, SandboxOutcome, Script
from tools_app.sandbox.deno import DenoSandbox


async def test_a_script_has_a_value_a_console_and_calls(run: Run) -> None:
    result = await run(
        'console.log("a", {b: 1}); console.warn("w"); '
        "const r = await tools.math.add(1, {x: [2]}); return [r, undefined]"
    )
    assert result.outcome is SandboxOutcome.OK
    assert result.value == [{"name": "tools.math.add", "args": [1, {"x": [2]}]}, None]
    assert [(line.level, line.text) for line in result.console] == [("log", "a { b: 1 }"), ("warn", "w")]
    assert result.error is None


async def test_typescript_runs(run: Run) -> None:
    result = await run("enum Kind { A = 3 } const x: number = Kind.A as number; return x satisfies number")
    assert result.value == 3


async def test_an_error_has_its_name_message_and_place(run: Run) -> None:
    result = await run("\nconst x = null;\nreturn x.y")
    assert result.outcome is SandboxOutcome.ERROR
    assert result.error is not None
    assert result.error.name == "TypeError"
    assert "<code>:3:" in result.error.stack


async def test_what_cannot_be_parsed_is_explained(run: Run) -> None:
    result = await run("const x = = 1")
    assert result.outcome is SandboxOutcome.ERROR
    assert result.error is not None
    assert "Expression expected" in result.error.message
    assert "<code>:1:" in result.error.message


async def test_a_call_that_fails_is_an_exception_in_the_script(run: Run) -> None:
    async def fail(name: str, args: list[JSONValue]) -> Answer:
        raise LookupError("no such thing")

    result = await run("try { await tools.find() } catch (error) { return error.message }", calls=fail)
    assert result.value == "no such thing"


async def test_calls_run_at_the_same_time_within_their_limit(run: Run) -> None:
    now = most = 0

    async def count(name: str, args: list[JSONValue]) -> Answer:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return Answer(value=args[0])

    body = "return await Promise.all([...Array(40).keys()].map((i) => tools.work(i)))"
    result = await run(body, calls=count, limits=Limits(concurrent_calls=4))
    assert result.value == list(range(40))
    assert 1 < most <= 4


async def test_bytes_come_and_go(run: Run) -> None:
    result = await run(
        "const {args} = await tools.x(new Uint8Array([1, 2])); return [args[0] instanceof Uint8Array, args[0]]"
    )
    assert result.value == [True, {"$bytes": "AQI="}]


async def test_clock_and_randomness_are_the_same_each_time(run: Run) -> None:
    body = """return [Date.now(), new Date().toISOString(), Math.random(), crypto.randomUUID(), performance.now(),
        Temporal.Now.instant().toString(), [...crypto.getRandomValues(new Uint8Array(4))], new Date(5).getTime()]"""
    first, second = [await run(body, seed="abc", now_ms=1_700_000_000_000) for _ in range(2)]
    other = await run(body, seed="abd", now_ms=1_700_000_000_000)
    assert first.value == second.value
    assert first.value[2:4] != other.value[2:4]
    assert first.value[0] == 1_700_000_000_001
    assert first.value[-1] == 5


async def test_the_clock_follows_the_answers(run: Run) -> None:
    async def later(name: str, args: list[JSONValue]) -> Answer:
        return Answer(now_ms=9_000)

    result = await run("const a = Date.now(); await tools.x(); return [a, Date.now()]", calls=later, now_ms=1000)
    assert result.value == [1001, 9001]


async def test_modules_are_loaded_by_name(run: Run) -> None:
    body = 'const m = await load("words"); try { await load("fs") } catch (e) { return [m.up("x"), e.message] }'
    result = await run(body, modules={"words": "export const up = (s) => s.toUpperCase()"})
    assert result.value == ["X", 'There is no package "fs" here']


async def test_what_is_not_awaited_still_ends(run: Run) -> None:
    ended = []

    async def slow(name: str, args: list[JSONValue]) -> Answer:
        await asyncio.sleep(0.02)
        ended.append(name)
        return Answer()

    result = await run("tools.send(); return 1", calls=slow)
    assert (result.value, ended) == (1, ["tools.send"])


async def test_a_rejection_that_nobody_awaits_is_console_output(run: Run) -> None:
    result = await run('Promise.reject(new Error("lost")); await tools.x(); return 1')
    assert result.value == 1
    assert "lost" in result.console[0].text


class Pause(BaseException):
    """As the one that parks a turn."""


async def test_what_ends_the_run_waits_for_the_other_calls(run: Run, sandbox: DenoSandbox) -> None:
    ended = []
    both = asyncio.Event()

    async def calls(name: str, args: list[JSONValue]) -> Answer:
        if name == "tools.ask":
            await both.wait()
            raise Pause
        both.set()
        await asyncio.sleep(0.03)
        ended.append(name)
        return Answer()

    with pytest.raises(Pause):
        await run("await Promise.all([tools.ask(), tools.work()])", calls=calls)
    assert ended == ["tools.work"]
    assert (await run("return 2")).value == 2


async def test_a_cancelled_run_leaves_no_process_and_no_call(sandbox: DenoSandbox) -> None:
    begun, cut = asyncio.Event(), []

    async def hang(name: str, args: list[JSONValue]) -> Answer:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.append(name)
            raise
        return Answer()

    script = Script(source="async () => { tools.x(); for (;;) ; }", namespaces=("tools",))
    task = asyncio.create_task(sandbox.run(script, calls=hang, limits=SMALL))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cut == ["tools.x"]
    assert sandbox.running == []


async def test_a_spare_process_runs_one_script_only() -> None:
    sandbox = DenoSandbox(spare=True)
    script = Script(source="() => { globalThis.seen = (globalThis.seen ?? 0) + 1; return globalThis.seen }")
    values = []
    for _ in range(3):
        values.append((await sandbox.run(script, calls=_none)).value)
        await sandbox.warmed()
    await sandbox.close()
    assert values == [1, 1, 1]


async def _none(name: str, args: list[JSONValue]) -> Answer:
    return Answer()
