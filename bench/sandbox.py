"""Code of models: starting its process, with and without one that was started in advance, and its calls."""

import os
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
django.setup()

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, milliseconds, row  # noqa: E402 - after the set-up
from thinkproject.kernel.jsonvalue import JSONValue  # noqa: E402 - after the set-up
from tools_app.sandbox.contract import Answer, Limits, Script  # noqa: E402 - after the set-up
from tools_app.sandbox.deno import DenoSandbox  # noqa: E402 - after the set-up

ROUNDS, SMOKE_ROUNDS = 40, 3
CALLS = 500
PLAIN = Script(source="async () => 1")
TYPED = Script(source="async () => { const x: number = 1; return x }")
CALLING = Script(
    source=f"async () => {{ for (let i = 0; i < {CALLS}; i++) await tools.x(i); return 1 }}", namespaces=("tools",)
)
TOGETHER = Script(source=f"() => Promise.all([...Array({CALLS}).keys()].map((i) => tools.x(i)))", namespaces=("tools",))


async def answer(_name: str, args: list[JSONValue]) -> Answer:
    return Answer(value=args[0])


async def times(script: Script, *, spare: bool, rounds: int) -> list[float]:
    """Seconds of each run. Where there is a spare process, it is there before the next run begins."""
    sandbox = DenoSandbox(spare=spare)
    limits = Limits(calls=10 * CALLS)
    found = []
    for number in range(rounds + 1):
        began = time.perf_counter()
        result = await sandbox.run(script, calls=answer, limits=limits)
        took = time.perf_counter() - began
        assert result.error is None, result.error
        if number:  # the first finds out which walls there are
            found.append(took)
        await sandbox.warmed()
    await sandbox.close()
    return found


async def run(options: Options) -> list[Row]:
    """Measure; returns the table's rows."""
    rounds = SMOKE_ROUNDS if options.is_smoke else ROUNDS
    calls = {name: await times(script, spare=True, rounds=rounds) for name, script in _CALLS.items()}
    return [
        row("code, cold process", "ms", milliseconds(await times(PLAIN, spare=False, rounds=rounds))),
        row("code, spare process", "ms", milliseconds(await times(PLAIN, spare=True, rounds=rounds))),
        row("TypeScript, spare process", "ms", milliseconds(await times(TYPED, spare=True, rounds=rounds))),
        *(row(name, "µs", [value / CALLS * 1e6 for value in found]) for name, found in calls.items()),
    ]


_CALLS = {"a call, one after the other": CALLING, "a call, all at once": TOGETHER}
