"""The tool with which a model runs Python: Pyodide, in the sandbox.

Files of the workspace are there under `/workspace`, which is the working directory, and what the code changes there is
written back at the end, all at once. There are no packages but the standard library.
"""

import functools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.code_tool.console import failure_text, short_console
from tools_app.code_tool.state.arguments import content, text
from tools_app.core.code.normalise import without_fence
from tools_app.core.code.truncation import truncated
from tools_app.core.files.workspace import EntryKind, Operation, Put, Remove, Workspace
from tools_app.core.schema import json_schema
from tools_app.core.tool import Tool, ToolContext
from tools_app.errors import CodeInvalid, ToolError
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.contract import Answer, Limits, Sandbox, Script
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.packages import python_folder
from tools_app.sandbox.process import RUNNER, SandboxProgram

NAME: Final = "python"
MAX_CODE_CHARS: Final = 200_000
MAX_FILES: Final = 500
MAX_FILES_BYTES: Final = 20_000_000
SLACK_SECONDS: Final = 60.0
_NOT_HERE: Final = re.compile(
    r"The module '([^']+)' is (?:included in|unvendored from) .*?(?:for more details\.|\Z)", re.DOTALL
)
"""Advice of Pyodide to those who embed it. Source: the import hook of Pyodide."""

DESCRIPTION: Final = """Run Python 3.14 with its standard library, and read the value of the last expression.
`await` works at the top. There is no network and no other package (no numpy, pandas or matplotlib). Output of print \
is captured."""
WITH_FILES: Final = """
The working directory has the files of the workspace; what the code changes there is kept."""


class PythonInput(BaseModel):
    """The input of the tool."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(description="Python code.", max_length=MAX_CODE_CHARS)


def create_python_tool(
    *,
    workspace: Workspace | None = None,
    sandbox: Sandbox | None = None,
    name: str = NAME,
    limits: Limits | None = None,
) -> Tool:
    """Make the tool. Its result: `{value, console, files}`; `files` are the paths that changed.

    Durability: a run that a crash cut runs again, and nothing of the cut one was written. Errors: a call fails with
    `SandboxUnavailable` where Pyodide is not installed (`manage.py install_sandbox_python`).
    """
    bounds = limits or python_limits()
    runner = PythonRunner(workspace=workspace, sandbox=sandbox, limits=bounds)
    return Tool(
        name=name,
        description=DESCRIPTION + (WITH_FILES if workspace is not None else ""),
        input_schema=json_schema(PythonInput),
        function=runner.run,
        timeout_seconds=bounds.seconds + sandbox_settings.limits.queue_seconds + SLACK_SECONDS,
        arguments=PythonInput,
        context_parameter="context",
        read_only=workspace is None,
        runs_code=True,
    )


def python_limits() -> Limits:
    """Limits of the settings."""
    return Limits(
        seconds=sandbox_settings.limits.seconds,
        cpu_seconds=sandbox_settings.limits.cpu_seconds,
        memory_bytes=sandbox_settings.limits.python_memory_bytes,
        call_bytes=MAX_FILES_BYTES,
    )


def python_program(folder: Path) -> SandboxProgram:
    """The program that runs Python, with the Pyodide in a folder."""
    return SandboxProgram(script=RUNNER.with_name("python_runner.js"), reads=folder)


@functools.cache
def _python_sandbox(folder: Path) -> Sandbox:
    return DenoSandbox(program=python_program(folder))


@dataclass(slots=True)
class _Changes:
    """The changes of files that a run asks for at its end."""

    operations: list[Operation] = field(default_factory=list)

    async def answer(self, name: str, args: list[JSONValue]) -> Answer:
        """Note a change. Errors: `CodeInvalid` for anything that is none."""
        value = args[0] if len(args) == 1 and isinstance(args[0], dict) else {}
        if name == "files.write":
            data = content(value)
            self.operations.append(Put(path=text(value, "path"), content=data if isinstance(data, bytes) else b""))
        elif name == "files.remove":
            self.operations.append(Remove(path=text(value, "path")))
        else:
            raise CodeInvalid(f"There is no function {name}.")
        return Answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonRunner:
    """Runs Python over a workspace."""

    workspace: Workspace | None
    sandbox: Sandbox | None
    limits: Limits

    async def run(self, context: ToolContext, code: str) -> JSONObject:
        """Run code. Errors: `ToolError` with the words for the model."""
        sandbox = self.sandbox or _python_sandbox(python_folder(sandbox_settings.packages_folder))
        files = {} if self.workspace is None else await _files(self.workspace)
        changes = _Changes()
        share = "" if context.user_id is None else str(context.user_id)
        script = Script(source=without_fence(code), files=files)
        result = await sandbox.run(script, calls=changes.answer, limits=self.limits, share=share)
        console = [line.to_json() for line in result.console]
        if result.error is not None:
            raise ToolError(failure_text(for_scripts(result.error.stack or result.error.message), console))
        if self.workspace is not None and changes.operations:
            await self.workspace.apply(changes.operations)
        shown = dump(result.value)
        short = truncated(shown)
        return {
            "value": result.value if short == shown else short,
            "console": short_console(console),
            "files": sorted(operation.path for operation in changes.operations),
        }


def for_scripts(error: str) -> str:
    """The error without what Pyodide says to those who embed it: there is nothing that a script could install."""
    return _NOT_HERE.sub(r"No module named '\1': there are no packages here but the standard library.", error)


async def _files(workspace: Workspace) -> dict[str, bytes]:
    """All files of a workspace. Errors: `CodeInvalid` where they are too many or too large."""
    entries = [entry for entry in await workspace.glob("/**/*") if entry.kind is EntryKind.FILE]
    if len(entries) > MAX_FILES or sum(entry.size for entry in entries) > MAX_FILES_BYTES:
        raise CodeInvalid(f"Python takes workspaces of at most {MAX_FILES} files and {MAX_FILES_BYTES} bytes.")
    found: dict[str, bytes] = {}
    async for entry, data in workspace.read_many([entry.path for entry in entries], max_bytes=MAX_FILES_BYTES):
        if data is not None:
            found[entry.path] = data
    return found
