"""Whatever a script does to the machine, it ends, and the next one runs."""

import dataclasses

import pytest

from tests.unit.tools_app.sandbox.conftest import SMALL, Run
from tools_app.sandbox.contract import Answer, SandboxOutcome

SHORT = dataclasses.replace(SMALL, seconds=0.5)
WORKER = 'new Worker("data:application/javascript,for(;;);", {type: "module"});'


@pytest.mark.parametrize(
    "body",
    [
        "for (;;) ;",
        "for (;;) await null;",
        "await new Promise(() => setInterval(() => {}, 1000));",
        f"{WORKER} await new Promise(() => setInterval(() => {{}}, 1000));",
        "/^(a+)+$/.test('a'.repeat(60) + '!')",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)",
    ],
    ids=["sync", "async", "timer", "worker", "regex", "sleep"],
)
async def test_an_endless_script_is_ended(run: Run, body: str) -> None:
    result = await run(body, limits=SHORT)
    assert result.outcome is SandboxOutcome.TIMEOUT
    assert result.error is not None
    assert result.error.message == "Execution timed out"
    assert (await run("return 1")).value == 1


@pytest.mark.long
async def test_the_processor_is_counted_too(run: Run) -> None:
    result = await run("for (;;) ;", limits=dataclasses.replace(SMALL, cpu_seconds=1))
    assert result.outcome is SandboxOutcome.TIMEOUT


@pytest.mark.parametrize(
    "body",
    [
        "const a = []; for (;;) a.push(new Array(1e5).fill(Math.random()));",
        "const a = []; for (;;) a.push(new Uint8Array(1 << 24).fill(1));",
        "let s = 'ab'; for (;;) { s += s + Math.random(); if (s.length > 5e8) s = [...s.slice(0, 1e8)].join(); }",
        "const a = []; for (;;) new Uint8Array(a[a.push(new WebAssembly.Memory({initial: 999})) - 1].buffer).fill(1);",
        'const m = new Map(); for (let i = 0; ; i++) m.set("k" + i, {i});',
    ],
    ids=["arrays", "buffers", "strings", "wasm", "map"],
)
async def test_a_script_that_takes_all_memory_is_ended(run: Run, body: str) -> None:
    result = await run(body)
    assert result.outcome in {
        SandboxOutcome.MEMORY,
        SandboxOutcome.ERROR,
    }  # an error: V8 refused a single string that is too long
    assert (await run("return 1")).value == 1


async def test_one_huge_allocation_is_refused_or_ends_it(run: Run) -> None:
    result = await run("new Uint8Array(8e9).fill(1); return 1")
    assert result.outcome in {SandboxOutcome.MEMORY, SandboxOutcome.ERROR, SandboxOutcome.CRASHED}


@pytest.mark.parametrize(
    "body",
    [
        'for (;;) console.log("x".repeat(1000))',
        'for (;;) Deno.stdout.writeSync(new TextEncoder().encode("x".repeat(5000)))',
        'return "x".repeat(1e6)',
        "for (;;) { tools.x().catch(() => {}) }",
    ],
    ids=["console", "one endless line", "value", "calls"],
)
async def test_endless_output_is_ended(run: Run, body: str) -> None:
    result = await run(body)
    assert result.outcome is SandboxOutcome.OUTPUT
    assert result.value is None
    assert sum(len(line.text) for line in result.console) <= SMALL.output_bytes


async def test_calls_too_many_or_too_large_fail_alone(run: Run) -> None:
    body = """const seen = [];
        try { await tools.x("y".repeat(60000)) } catch (e) { seen.push(e.message) }
        for (let i = 0; i < 101; i++) { try { await tools.x(i) } catch (e) { seen.push(e.message) } }
        return seen"""
    result = await run(body)
    assert result.value == [
        "The arguments of this call are larger than 50000 bytes",
        "The code has made as many calls as it may: 100",
        "The code has made as many calls as it may: 100",
    ]


async def test_results_that_nobody_reads_end_the_run(run: Run) -> None:
    async def large(name: str, args: list[object]) -> Answer:
        return Answer(value="x" * 900_000)

    limits = dataclasses.replace(SMALL, call_bytes=1_000_000, calls=1000)
    result = await run("for (let i = 0; i < 90; i++) tools.x(); for (;;) ;", calls=large, limits=limits)
    assert result.outcome is not SandboxOutcome.OK
