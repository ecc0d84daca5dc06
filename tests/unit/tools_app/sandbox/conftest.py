"""A sandbox for each test: real processes, which are gone afterwards."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.sandbox.contract import Answer, Limits, RunResult, Script
from tools_app.sandbox.deno import DenoSandbox

Run = Callable[..., Awaitable[RunResult]]
SMALL = Limits(
    seconds=10.0, cpu_seconds=4, memory_bytes=160 * 1024 * 1024, output_bytes=100_000, calls=100, call_bytes=50_000
)


async def echo(name: str, args: list[JSONValue]) -> Answer:
    return Answer(value={"name": name, "args": args})


@pytest.fixture
async def sandbox() -> AsyncIterator[DenoSandbox]:
    made = DenoSandbox(spare=False)
    yield made
    await made.close()


@pytest.fixture
def run(sandbox: DenoSandbox) -> Run:
    async def run_it(body: str, *, calls: object = echo, limits: Limits = SMALL, **fields: object) -> RunResult:
        """Run the body of an async function."""
        script = Script(source=f"async () => {{ {body}\n}}", namespaces=("tools",), **fields)  # type: ignore[arg-type]
        return await sandbox.run(script, calls=calls, limits=limits)  # type: ignore[arg-type]

    return run_it
