"""What the shell and real commands cost over a workspace of 1,000 files in the database.

    python -m bench.shell

Cold: the process is started for the script. Warm: it waits already, as it does after the first script. 2 kB a file.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, milliseconds, row, table  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from tools_app.core.files.workspace import Put  # noqa: E402 - after the set-up
from tools_app.core.tool import ToolContext  # noqa: E402 - after the set-up
from tools_app.processes.tool import CommandRunner, process_bounds, tried_isolation  # noqa: E402 - after the set-up
from tools_app.sandbox.deno import DenoSandbox  # noqa: E402 - after the set-up
from tools_app.shell.tool import BashOptions, ShellRunner, shell_program  # noqa: E402 - after the set-up
from tools_app.workspace import services  # noqa: E402 - after the set-up
from tools_app.workspace.stores.database import DatabaseWorkspace  # noqa: E402 - after the set-up

FILES = 1000
ROUNDS = 15
TEXT = "a line of text with several words in it\n" * 50
SCRIPTS = {
    "list all": "find . -type f | wc -l",
    "read one": "head -n 1 d1/f1.txt",
    "search all": "grep -rl 'several words' . | wc -l",
    "change 100": "for f in d1/*; do echo more >> $f; done",
}
CONTEXT = ToolContext(
    call_id="c",
    tool_name="bash",
    user_id=None,
    agent="a",
    instance_name="n",
    turn_id="t",
    attempt=1,
    idempotency_key="t:c",
)


async def seconds_of(
    run: Callable[[], Awaitable[object]], between: Callable[[], Awaitable[None]], rounds: int
) -> list[float]:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        await run()
        taken.append(time.perf_counter() - began)
        await between()
    return taken


async def measure(rounds: int) -> list[Row]:
    workspace = services.open_for_scope("bench", None)
    names = [f"/d{number % 10}/f{number}.txt" for number in range(FILES)]
    await workspace.apply([Put(path=name, content=TEXT.encode()) for name in names])
    rows = [*await shell_rows(workspace, rounds)]
    if not isinstance(await tried_isolation(""), str):
        commands = CommandRunner(workspace=workspace, bounds=process_bounds())

        async def run() -> object:
            return await commands.run(CONTEXT, SCRIPTS["search all"])

        rows.append(row("run_command: search all", "ms", milliseconds(await seconds_of(run, nothing, rounds))))
    return rows


async def shell_rows(workspace: DatabaseWorkspace, rounds: int) -> list[Row]:
    rows = []
    for is_warm in (False, True):
        sandbox = DenoSandbox(program=shell_program(), spare=is_warm)
        runner = ShellRunner(workspace=workspace, options=BashOptions(sandbox=sandbox))
        for title, script in SCRIPTS.items():

            async def run(script: str = script, runner: ShellRunner = runner) -> object:
                return await runner.run(CONTEXT, script)

            await run()
            await sandbox.warmed()
            taken = await seconds_of(run, sandbox.warmed, rounds)
            rows.append(row(f"bash, {'warm' if is_warm else 'cold'}: {title}", "ms", milliseconds(taken)))
        await sandbox.close()
    return rows


async def nothing() -> None:
    """Wait for nothing."""


def run(options: Options) -> list[Row]:
    with database():
        return asyncio.run(measure(3 if options.is_smoke else ROUNDS))


if __name__ == "__main__":
    with database():
        print(table([("Shell", asyncio.run(measure(ROUNDS)))]))
