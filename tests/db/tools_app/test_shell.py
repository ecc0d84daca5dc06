"""Scripts over a workspace in the database: one transaction at the end, with the versions that they began with."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.tools_app.shell.conftest import CONTEXT, NOTHING
from tools_app.core.files.differences import differences
from tools_app.core.files.workspace import Put
from tools_app.sandbox.deno import DenoSandbox
from tools_app.shell.tool import BashOptions, ShellRunner, shell_program
from tools_app.workspace import services
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.write_back import write_back

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def sandbox() -> AsyncIterator[DenoSandbox]:
    made = DenoSandbox(program=shell_program(), spare=False)
    yield made
    await made.close()


async def filled() -> DatabaseWorkspace:
    workspace = services.open_for_scope("scope", None)
    await workspace.apply([Put(path=f"/d/f{number}", content=b"old\n") for number in range(50)])
    return workspace


async def test_a_script_changes_files_in_the_database(sandbox: DenoSandbox) -> None:
    workspace = await filled()
    runner = ShellRunner(workspace=workspace, options=BashOptions(sandbox=sandbox))
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


async def test_a_script_in_an_empty_workspace_makes_it(sandbox: DenoSandbox) -> None:
    workspace = services.open_for_scope("scope", None)
    runner = ShellRunner(workspace=workspace, options=BashOptions(sandbox=sandbox))
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
