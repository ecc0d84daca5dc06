"""Scripts over a workspace in the database: one transaction at the end, with the versions that they began with."""

import asyncio
from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from tests.unit.tools_app.shell.conftest import CONTEXT, NOTHING, shell_sandbox
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.calls.run import execute
from tools_app.code_tool.tool import create_execute_tool
from tools_app.core.files.differences import differences
from tools_app.core.files.workspace import Put
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.slots import FairSlots, SlotLimits
from tools_app.shell.tool import BashOptions, ShellRunner, create_bash_tool, shell_program
from tools_app.workspace import services
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.write_back import write_back

__all__ = ["shell_sandbox"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


async def filled() -> DatabaseWorkspace:
    workspace = services.open_for_scope("scope", None)
    await workspace.apply([Put(path=f"/d/f{number}", content=b"old\n") for number in range(50)])
    return workspace


async def test_a_script_changes_files_in_the_database(shell_sandbox: DenoSandbox) -> None:
    workspace = await filled()
    runner = ShellRunner(workspace=workspace, options=BashOptions(sandbox=shell_sandbox))
    result = await runner.run(
        CONTEXT, "for f in d/f?; do echo new > $f; done; rm d/f1?; cat d/* | sort | uniq -c | tr -s ' '"
    )
    assert result["stdout"] == " 10 new\n 30 old\n"
    assert result["changedFiles"] == {
        **NOTHING,
        "updated": [f"/d/f{number}" for number in range(10)],
        "deleted": [f"/d/f{number}" for number in range(10, 20)],
    }
    assert (await workspace.info()).file_count == 40


async def test_a_script_in_an_empty_workspace_makes_it(shell_sandbox: DenoSandbox) -> None:
    workspace = services.open_for_scope("scope", None)
    runner = ShellRunner(workspace=workspace, options=BashOptions(sandbox=shell_sandbox))
    assert (await runner.run(CONTEXT, "ls; pwd"))["stdout"] == "/\n"
    assert await workspace.workspace_id() is None
    await runner.run(CONTEXT, "echo 1 > f")
    assert await workspace.read_file("/f") == "1\n"


async def test_writing_back_is_one_change() -> None:
    workspace = await filled()
    heard: list[int] = []
    workspace.on_change(lambda changes: heard.append(len(changes)))
    base = {entry.path: entry for entry in await workspace.glob("/**/*")}
    kinds = {path: entry.kind for path, entry in base.items() if path != "/d/f7"}
    operations = differences(base, kinds, {f"/d/f{number}": b"new" for number in range(5)}, {})
    await workspace.write_file("/d/f3", "theirs")
    heard.clear()
    written = await write_back(workspace, operations)
    assert heard == [5]
    assert [line.split(":")[0] for line in written.errors] == ["/d/f3"]
    assert await workspace.read_file("/d/f3") == "theirs"


async def test_scripts_that_code_starts_use_the_slot_of_the_code(alice: User) -> None:
    slots = FairSlots(lambda: SlotLimits(total=2, per_share=1, seconds=60))
    bash_sandbox = DenoSandbox(program=shell_program(), spare=False, slots=slots)
    bash = create_bash_tool(await filled(), sandbox=bash_sandbox)
    made = create_execute_tool([bash], sandbox=DenoSandbox(spare=False, slots=slots))
    code = "async () => (await Promise.all([1, 2].map((n) => tools.bash({script: `echo ${n}`})))).map((r) => r.stdout)"

    async def ran(call_id: str) -> JSONValue:
        context = replace(CONTEXT, user_id=alice.pk, call_id=call_id, tool_name=made.name, idempotency_key=call_id)
        results = [
            item
            async for item in execute(
                made, ToolCall(call_id=call_id, tool_name=made.name, input={"code": code}), context
            )
        ]
        result = results[-1]
        assert isinstance(result, ToolResult)
        assert not result.is_error, result.output
        value: JSONValue = result.output["value"]
        return value

    # The second waits for its slot, as the first one's scripts do not: all of them together would wait for each other.
    assert list(await asyncio.gather(ran("c1"), ran("c2"))) == [["1\n", "2\n"]] * 2
    assert slots.running == 0
