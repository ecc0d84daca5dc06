"""Python code in the sandbox. Needs Pyodide: `manage.py install_sandbox_python`."""

import dataclasses
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.filled_workspace import contents, filled
from tools_app.calls.run import execute
from tools_app.code_tool.python import PythonRunner, create_python_tool, for_scripts, python_limits, python_program
from tools_app.core.permissions.file_rules import FileRules, under_file_rules
from tools_app.core.permissions.rules import Permission, RuleSet
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.errors import FileFailed, SandboxUnavailable
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.packages import python_folder


def _folder() -> Path:
    """Where Pyodide lies; the tests are skipped where it does not."""
    given = os.environ.get("TEST_SANDBOX_PACKAGES")
    try:
        return python_folder(Path(given) if given else sandbox_settings.packages_folder)
    except SandboxUnavailable as error:
        pytest.skip(error.message)


@pytest.fixture
async def python_sandbox() -> AsyncIterator[DenoSandbox]:
    made = DenoSandbox(program=python_program(_folder()), spare=False)
    yield made
    await made.close()


def a_context(name: str) -> ToolContext:
    return ToolContext(
        call_id="c",
        tool_name=name,
        user_id=1,
        agent="a",
        instance_name="n",
        turn_id="t",
        attempt=1,
        idempotency_key="t:c",
    )


async def call(made: Tool, code: str) -> ToolResult:
    context = a_context(made.name)
    result = ToolResult(output=None)
    async for item in execute(made, ToolCall(call_id="c", tool_name=made.name, input={"code": code}), context):
        assert isinstance(item, ToolResult)
        result = item
    return result


async def test_python_gets_no_file_that_a_rule_keeps_from_it(python_sandbox: DenoSandbox) -> None:
    """What it may not read is not there, and of what it changes nothing is written where a rule denies one."""
    rules = RuleSet(own=(Permission.deny("write", "/sealed/*"), Permission.deny("read", "/hidden/*")))
    files = await filled({"/.env": "PASSWORD=1", "/hidden/c": "secretive", "/sealed/a": "sealed", "/e": "open"})
    before = await contents(files)
    run = PythonRunner(workspace=files, sandbox=python_sandbox, limits=python_limits()).run
    look = """from pathlib import Path
sorted(str(path) for path in Path(".").rglob("*") if path.is_file())"""
    with under_file_rules(FileRules(rules=rules, now=datetime.now(UTC))):
        assert (await run(a_context("python"), look))["value"] == ["e", "sealed/a"]
        with pytest.raises(FileFailed, match="refused by the rule 'deny write: /sealed/"):
            await run(a_context("python"), 'open("made", "w").write("x"); open("sealed/a", "w").write("x")')
    assert await contents(files) == before
    with under_file_rules(FileRules(rules=rules, now=datetime.now(UTC))):
        await run(a_context("python"), 'open("made", "w").write("x")')
    assert await contents(files) == before | {"/made": b"x"}


async def test_python_has_a_value_a_console_and_the_files(python_sandbox: DenoSandbox) -> None:
    files = await filled({"/a.csv": "x\n1\n2\n", "/old": "gone"})
    code = """```python
import asyncio, csv, os, statistics
rows = list(csv.DictReader(open("a.csv")))
os.makedirs("out", exist_ok=True)
open("out/sum.txt", "w").write(str(sum(int(row["x"]) for row in rows)))
os.remove("old")
print("hi")
await asyncio.sleep(0)
{"m": statistics.mean([1, 2, 3])}
```"""
    result = await call(create_python_tool(sandbox=python_sandbox, workspace=files), code)
    assert result.output == {
        "value": {"m": 2},
        "console": [{"level": "log", "text": "hi"}],
        "files": ["/old", "/out/sum.txt"],
    }
    assert await contents(files) == {"/a.csv": b"x\n1\n2\n", "/out/sum.txt": b"3"}


async def test_code_that_fails_has_its_traceback_and_changes_no_file(python_sandbox: DenoSandbox) -> None:
    files = await filled({"/a": "1"})
    code = "print('before')\nopen('a', 'w').write('2')\n1 / 0"
    result = await call(create_python_tool(sandbox=python_sandbox, workspace=files), code)
    assert result.is_error
    assert 'File "<exec>", line 3' in result.output
    assert "ZeroDivisionError: division by zero" in result.output
    assert "Console output:\nbefore" in result.output
    assert await contents(files) == {"/a": b"1"}


PROBES = """
import js, os, socket
found = {}
def probe(name, action):
    try:
        found[name] = str(action())
    except BaseException as error:
        found[name] = "denied"
probe("file", lambda: open("/etc/passwd").read())
probe("environment", lambda: os.environ["SECRET_OF_THE_PARENT"])
probe("fork", lambda: os.fork())
probe("socket", lambda: socket.create_connection(("127.0.0.1", 80), 1))
probe("read through js", lambda: js.Deno.readTextFileSync("/etc/passwd"))
probe("pyodide through js", lambda: js.Deno.readTextFileSync("FOLDER/package.json"))
probe("environment through js", lambda: js.Deno.env.toObject())
probe("run through js", lambda: js.Deno.Command.new("/bin/true").outputSync())
try:
    await js.fetch("http://127.0.0.1:65001/")
    found["fetch"] = "reached"
except BaseException as error:
    found["fetch"] = "denied" if "NotCapable" in str(error) else str(error)
found
"""


async def test_every_way_out_of_python_is_closed(python_sandbox: DenoSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "canary")
    result = await call(create_python_tool(sandbox=python_sandbox), PROBES.replace("FOLDER", str(_folder())))
    found: dict[str, Any] = result.output["value"]
    assert set(found.values()) == {"denied"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "word"),
    [("while True: pass", "timed out"), ("a = []\nwhile True: a.append(bytearray(1 << 24))", "emory")],
)
async def test_python_that_takes_all_is_ended(python_sandbox: DenoSandbox, code: str, word: str) -> None:
    limits = dataclasses.replace(python_limits(), seconds=4.0)
    result = await call(create_python_tool(sandbox=python_sandbox, limits=limits), code)
    assert result.is_error
    assert word in result.output


async def test_without_pyodide_the_call_says_what_to_do(settings: Any, tmp_path: Path) -> None:
    settings.THINK_SANDBOX_PACKAGES_DIR = str(tmp_path)
    result = await call(create_python_tool(), "1")
    assert result.is_error
    assert "install_sandbox_python" in result.output


@pytest.mark.parametrize(
    "where", ["included in the Pyodide distribution, but it is not installed", "unvendored from x"]
)
def test_advice_to_those_who_embed_python_reaches_no_model(where: str) -> None:
    said = (
        f"ModuleNotFoundError: The module 'numpy' is {where}.\nYou can install it by calling:\n"
        '  await micropip.install("numpy") in Python, or\n  await pyodide.loadPackage("numpy") in JavaScript\n'
        "See https://pyodide.org/en/stable/usage/loading-packages.html for more details.\n"
    )
    assert for_scripts(said).strip() == (
        "ModuleNotFoundError: No module named 'numpy': there are no packages here but the standard library."
    )
