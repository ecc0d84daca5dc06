"""The tool `bash`: a shell over the files of a workspace, without a machine behind it.

    def get_tools(self):
        return [create_bash_tool(self.get_workspace())]

The script runs in a process of its own (`tools_app.sandbox`), in an interpreter of the shell's language that reaches
nothing but the files that it is given.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypedDict

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import Unpack

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import Entry, EntryKind, Workspace
from tools_app.core.guard.reach import held_back
from tools_app.core.permissions.subjects import command_subject
from tools_app.core.schema import json_schema
from tools_app.core.tool import Tool, ToolContext
from tools_app.errors import SandboxUnavailable
from tools_app.file_tools.lookalikes import alike_among, proposal
from tools_app.file_tools.making import own_path
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.contract import Limits, RunResult, Sandbox, SandboxOutcome, Script
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.process import SandboxProgram
from tools_app.shell.bundling import BUNDLE, RUNNER
from tools_app.shell.calls import ShellCalls
from tools_app.shell.overlay import MAX_FILE_BYTES, MAX_READ_BYTES
from tools_app.workspace.write_back import WrittenBack, write_back

NAME: Final = "bash"
MAX_SCRIPT_CHARS: Final = 100_000
MAX_OUTPUT_BYTES: Final = 64_000
MAX_ENTRIES: Final = 10_000
MAX_MISSED: Final = 20
SECONDS: Final = 30.0
SLACK_SECONDS: Final = 2.0
WRITING_SECONDS: Final = 60.0
COPIES: Final = 32
"""The largest file that is held whole has this part of the memory: commands make several copies of it."""

KEPT_PART: Final = 8
"""The same for all contents that are kept in case they are read again."""

TIMED_OUT: Final = 124
KILLED: Final = 137
DESCRIPTION: Final = f"""Run a bash script over the files of the workspace, whose root is `/`.

Pipes, loops, functions, globs and the usual commands work (grep, rg, sed, awk, sort, diff, jq, xargs and others); \
there is no network, python, node, git, curl or `&`. Prefer one script to many single calls. Each call starts anew in \
`cwd`: files are kept, variables are not. Files above {MAX_FILE_BYTES} bytes can be read, not changed. At most \
{SECONDS:g} seconds."""
WORDS: Final = {
    SandboxOutcome.TIMEOUT: (TIMED_OUT, "bash: timed out after {seconds:g} seconds\n"),
    SandboxOutcome.MEMORY: (KILLED, "bash: killed: out of memory\n"),
    SandboxOutcome.OUTPUT: (KILLED, "bash: killed: too much output\n"),
    SandboxOutcome.CRASHED: (KILLED, "bash: killed\n"),
}


class BashInput(BaseModel):
    """The input of the tool."""

    model_config = ConfigDict(extra="forbid")

    script: str = Field(description="bash", max_length=MAX_SCRIPT_CHARS)
    cwd: str = Field(default="/", description="Working directory.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BashOptions:
    """Options of the tool. `environment`: variables that they find; nothing of this process is among them."""

    name: str = NAME
    description: str = DESCRIPTION
    seconds: float = SECONDS
    environment: Mapping[str, str] = field(default_factory=dict)
    sandbox: Sandbox | None = None


class BashFields(TypedDict, total=False):
    """The options by keyword; see `BashOptions`."""

    name: str
    description: str
    seconds: float
    environment: Mapping[str, str]
    sandbox: Sandbox | None


def create_bash_tool(workspace: Workspace, **options: Unpack[BashFields]) -> Tool:
    """Make the tool. Options: the fields of `BashOptions`.

    Its result: `{stdout, stderr, exitCode, changedFiles, skippedFiles?, errors?}`. `changedFiles` has the paths that
    were `created`, `updated`, `deleted`, and `directoriesCreated` and `directoriesDeleted`. `skippedFiles`: files that
    the script wanted and that are too large. `errors`: changes that could not be kept, one line each.

    Durability: everything that a script changed is written in one transaction when it ends, also when it was ended; a
    file that was changed by others meanwhile is left alone and named. A call that a crash cut runs again, and nothing
    of the cut one was written, unless the crash came between the writing and the record of the result. A call that is
    cancelled writes nothing.
    """
    chosen = BashOptions(**options)
    runner = ShellRunner(workspace=workspace, options=chosen)
    return Tool(
        name=chosen.name,
        description=chosen.description,
        input_schema={key: value for key, value in json_schema(BashInput).items() if key != "description"},
        function=runner.run,
        check=runner.check,
        timeout_seconds=chosen.seconds + sandbox_settings.limits.queue_seconds + WRITING_SECONDS,
        arguments=BashInput,
        context_parameter="context",
        permission=NAME,
        runs_code=True,
        patterns=lambda given, _context: [command_subject(str(given["script"]))],
    )


@functools.cache
def shell_sandbox() -> DenoSandbox:
    """The sandbox of the shells of this process."""
    return DenoSandbox(program=shell_program())


def shell_program() -> SandboxProgram:
    """The program that runs a script. Errors: `SandboxUnavailable` where it was not built."""
    if not BUNDLE.exists():
        raise SandboxUnavailable("The shell was not built: run `python -m tools_app.shell.bundling`.")
    return SandboxProgram(script=RUNNER / "bash_runner.js", folder=RUNNER)


def shell_limits(seconds: float) -> Limits:
    """Limits of a script's process. It ends scripts itself after `seconds`, where it can; these end the rest."""
    return Limits(
        seconds=seconds + SLACK_SECONDS,
        cpu_seconds=int(seconds + SLACK_SECONDS) + 1,
        memory_bytes=sandbox_settings.limits.memory_bytes,
        output_bytes=2_000_000,
        calls=200_000,
        call_bytes=4_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRunner:
    """Runs scripts over one workspace."""

    workspace: Workspace
    options: BashOptions

    async def run(self, context: ToolContext, script: str, cwd: str = "/") -> JSONObject:
        """Run a script. Errors: `SandboxUnavailable`, `FileFailed` for a working directory that is none."""
        sandbox = self.options.sandbox or shell_sandbox()
        where = await self._directory(cwd)
        with held_back():  # the script says which it looks at
            entries = await self.workspace.glob("/**/*", limit=MAX_ENTRIES + 1)
        limits = shell_limits(self.options.seconds)
        whole = min(MAX_READ_BYTES, limits.memory_bytes // COPIES)
        opening = {**self._opening(where), "kept": limits.memory_bytes // KEPT_PART}
        calls = ShellCalls(self.workspace, entries[:MAX_ENTRIES], opening, whole_bytes=whole)
        share = "" if context.user_id is None else str(context.user_id)
        result = await sandbox.run(Script(source=script), calls=calls.answer, limits=limits, share=share)
        written = await write_back(self.workspace, calls.overlay.operations())
        if len(entries) > MAX_ENTRIES:
            written.errors.append(f"The workspace has more than {MAX_ENTRIES} entries; the script saw the first ones.")
        return self._reported(result, written, sorted(calls.overlay.skipped)) | _missed(result, entries)

    async def check(self, given: JSONObject, context: ToolContext) -> None:
        """Errors: those of a run that are known before it."""
        del context
        await self._directory(str(given.get("cwd", "/")))

    async def _directory(self, cwd: str) -> str:
        where = await own_path(self.workspace, cwd)
        entry = await self.workspace.stat(where)
        if entry is None or entry.kind is not EntryKind.DIRECTORY:
            raise failed("ENOENT" if entry is None else "ENOTDIR", where)
        return where

    def _opening(self, cwd: str) -> JSONObject:
        environment = {**self.options.environment, "HOME": "/", "USER": "user", "TERM": "dumb"}
        return {
            "cwd": cwd,
            "seconds": self.options.seconds,
            "output": MAX_OUTPUT_BYTES,
            "environment": environment,
        }

    def _reported(self, result: RunResult, written: WrittenBack, skipped: list[str]) -> JSONObject:
        reported = {**self._outputs(result), "changedFiles": written.to_json()}
        if skipped:
            reported["skippedFiles"] = skipped
        if written.errors:
            reported["errors"] = written.errors
        return reported

    def _outputs(self, result: RunResult) -> JSONObject:
        """The outputs and the exit code, as far as they are what the process may say."""
        if result.outcome in WORDS:
            code, words = WORDS[result.outcome]
            return {"stdout": "", "stderr": words.format(seconds=self.options.seconds), "exitCode": code}
        if result.error is not None:
            return {"stdout": "", "stderr": f"bash: {result.error.message}\n", "exitCode": 1}
        value = result.value if isinstance(result.value, dict) else {}
        said = value.get("exitCode")
        return {
            "stdout": clean(value.get("stdout")),
            "stderr": clean(value.get("stderr")),
            "exitCode": said & 0xFF if isinstance(said, int) else 1,
        }


def _missed(result: RunResult, entries: Sequence[Entry]) -> JSONObject:
    """Names that a failed script asked for in vain, with those that look alike."""
    value = result.value if isinstance(result.value, dict) else {}
    missed = value.get("missed")
    if not value.get("exitCode") or not isinstance(missed, list):
        return {}
    paths = [entry.path for entry in entries]
    asked = [path for path in missed[:MAX_MISSED] if isinstance(path, str)]
    words = [f"{path} is not there. {found}" for path in asked if (found := proposal(path, alike_among(path, paths)))]
    return {"hint": " ".join(words)} if words else {}


def clean(text: JSONValue) -> str:
    """Text as it can be stored and sent: bounded, without NUL and lone surrogates."""
    if not isinstance(text, str):
        return ""
    shown = text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode(errors="replace")
    return shown[:MAX_OUTPUT_BYTES].decode(errors="ignore")
