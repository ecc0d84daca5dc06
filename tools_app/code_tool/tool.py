"""The tool with which a model runs code that calls tools.

    def get_tools(self):
        return [create_execute_tool([search, send_mail], workspace=self.get_workspace())]

The code runs in a sandbox; each call that it makes is checked and run like a call of the model, recorded before the
code has its answer, and not made again when the code runs again: after a crash, and once a person has decided.
"""

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypedDict

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import Unpack

from fibers.errors import Parked
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump, fingerprint
from tools_app.code_tool import records
from tools_app.code_tool.ask import ask
from tools_app.code_tool.calls import CodeCalls
from tools_app.code_tool.console import failure_text, short_console
from tools_app.code_tool.journal import CallJournal, RunAborted
from tools_app.code_tool.state import declared
from tools_app.code_tool.state.functions import StateFunctions
from tools_app.core.code.catalogue import Catalogue
from tools_app.core.code.normalise import normalise
from tools_app.core.code.truncation import truncated
from tools_app.core.files.workspace import Workspace
from tools_app.core.inner_calls import inner_call_id
from tools_app.core.schema import json_schema
from tools_app.core.tool import Ask, Tool, ToolContext
from tools_app.errors import ToolError
from tools_app.models.code_runs import Execution, ExecutionStatus
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.contract import Limits, RunResult, Sandbox, Script
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.packages import allowed, sources_of

NAME: Final = "execute"
MAX_CODE_CHARS: Final = 200_000
SLACK_SECONDS: Final = 30.0
DESCRIPTION: Final = """Run JavaScript or TypeScript that calls functions. Prefer it to many single calls: loops, \
conditions and filters run in the code, and only what it returns is read.

Write an async arrow function: `async () => { const found = await tools.name({...}); return found.length }`.
The code has no network, files, environment or modules of its own. console.log is captured. A call that fails throws.

{types}"""


class CodeInput(BaseModel):
    """The input of the tool."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(description="JavaScript or TypeScript: an async arrow function.", max_length=MAX_CODE_CHARS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteOptions:
    """Things that code may use beside the tools.

    `packages`: npm packages by name, with exact versions; they are fetched for the first run, and kept in the folder of
    `THINK_SANDBOX_PACKAGES_DIR`. `modules`: sources of other ES modules by name. Code gets both by `await load(name)`.
    `description`: in place of the usual one; `{types}` in it stands for the list of functions. `ask`: how a person is
    asked about a call that needs approval. `unlisted`: names of tools that the list leaves out, for code to search.
    """

    name: str = NAME
    description: str = DESCRIPTION
    workspace: Workspace | None = None
    sandbox: Sandbox | None = None
    limits: Limits | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    ask: Ask = ask
    unlisted: Collection[str] = ()


class ExecuteFields(TypedDict, total=False):
    """The options by keyword; see `ExecuteOptions`."""

    name: str
    description: str
    workspace: Workspace | None
    sandbox: Sandbox | None
    limits: Limits | None
    packages: Mapping[str, str]
    modules: Mapping[str, str]
    ask: Ask
    unlisted: Collection[str]


def create_execute_tool(tools: Iterable[Tool], **options: Unpack[ExecuteFields]) -> Tool:
    """Make the tool. Tools that a client runs cannot be called from code and are left out.

    Options: the fields of `ExecuteOptions`.

    Its result: `{value, console, calls}`; `calls` has the name, a preview of the input, success and milliseconds of
    each. Durability: see above. Errors: `CodeInvalid` where the names of two tools are one in code, and for packages
    without an exact version. A package that cannot be fetched fails the calls of the tool.
    """
    chosen = ExecuteOptions(**options)
    allowed(chosen.packages)
    has_files = chosen.workspace is not None
    ours = [tool for tool in tools if not tool.is_client]
    catalogue = Catalogue(ours, declared.FUNCTIONS_DECLARED if has_files else ())
    limits = chosen.limits or default_limits()
    execution = CodeRunner(catalogue=catalogue, options=chosen, limits=limits)
    return Tool(
        name=chosen.name,
        description=chosen.description.replace("{types}", _types(catalogue, chosen))
        .replace("{{", "{")
        .replace("}}", "}"),
        input_schema={key: value for key, value in json_schema(CodeInput).items() if key != "description"},
        function=execution.run,
        timeout_seconds=limits.seconds + sandbox_settings.limits.queue_seconds + SLACK_SECONDS,
        arguments=CodeInput,
        context_parameter="context",
        runs_code=True,
        read_only=not has_files,  # its calls are asked about one by one
    )


def default_limits() -> Limits:
    """Limits of the settings."""
    return Limits(
        seconds=sandbox_settings.limits.seconds,
        cpu_seconds=sandbox_settings.limits.cpu_seconds,
        memory_bytes=sandbox_settings.limits.memory_bytes,
    )


@functools.cache
def shared_sandbox() -> DenoSandbox:
    """The sandbox of this process."""
    return DenoSandbox()


def _types(catalogue: Catalogue, options: ExecuteOptions) -> str:
    parts = [catalogue.listed(options.unlisted)]
    if options.workspace is not None:
        parts.append(declared.listed())
    names = sorted({*options.packages, *options.modules})
    if names:
        shown = ", ".join(f"{name} {options.packages.get(name, '')}".strip() for name in names)
        parts.append(f'Modules of packages: `const module = await load("{names[0]}")`. There are: {shown}.')
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRunner:
    """Runs code durably, under the key of the tool call that contains it."""

    catalogue: Catalogue
    options: ExecuteOptions
    limits: Limits

    async def run(self, context: ToolContext, code: str) -> JSONObject:
        """Run code, or go on with it. Errors: `ToolError` with the words for the model; `Parked` while it waits."""
        new = records.NewExecution(
            key=context.idempotency_key,
            scope=scope_of(context),
            owner_id=context.user_id,
            turn_id=context.turn_id,
            call_id=context.call_id,
            code=code,
        )
        execution, recorded = await db(records.open_execution, new)
        journal = CallJournal(execution, recorded, max_bytes=self.limits.call_bytes)
        if context.inner is not None:
            for row in recorded:
                if row.details:
                    context.inner.deliver(inner_call_id(context.call_id, row.ordinal), row.details)
        if execution.status in records.ENDED:
            return _reported(execution, [])
        calls = CodeCalls(
            catalogue=self.catalogue,
            state=None if self.options.workspace is None else StateFunctions(self.options.workspace),
            journal=journal,
            context=context,
            ask=self.options.ask,
        )
        try:
            result = await self._in_sandbox(execution, calls)
        except Parked as parked:
            await db(records.pause_execution, execution.pk)
            raise Parked(parked.reason, journal.waits or parked.waits) from None
        except RunAborted as aborted:
            ending = records.Ending(outcome="aborted", error=aborted.error.message)
            await db(records.end_execution, execution.pk, ending)
            raise aborted.error from None
        ending = _ending(result)
        await db(records.end_execution, execution.pk, ending)
        execution.status = ExecutionStatus.FAILED if ending.error else ExecutionStatus.SUCCEEDED
        execution.value, execution.error, execution.console = ending.value, ending.error, ending.console
        return _reported(execution, journal.made)

    async def _in_sandbox(self, execution: Execution, calls: CodeCalls) -> RunResult:
        namespaces = ["tools", "codemode"] + (["state"] if calls.state is not None else [])
        packages = await sources_of(sandbox_settings.packages_folder, self.options.packages)
        script = Script(
            source=normalise(execution.code),
            namespaces=tuple(namespaces),
            modules={**packages, **self.options.modules},
            seed=execution.seed,
            now_ms=execution.clock_ms,
        )
        sandbox = self.options.sandbox or shared_sandbox()
        share = "" if calls.context.user_id is None else str(calls.context.user_id)
        return await sandbox.run(script, calls=calls.answer, limits=self.limits, share=share)


def scope_of(context: ToolContext) -> str:
    """The scope of an execution: one conversation with one agent."""
    return fingerprint([context.user_id, context.agent, context.instance_name])


def _ending(result: RunResult) -> records.Ending:
    return records.Ending(
        outcome=result.outcome.value,
        value=result.value,
        error="" if result.error is None else f"{result.error.name}: {result.error.message}",
        console=[line.to_json() for line in result.console],
        duration_ms=result.duration_ms,
    )


def _reported(execution: Execution, made: list[JSONObject]) -> JSONObject:
    """The result for the model. Errors: `ToolError` for code that failed."""
    if execution.error:
        raise ToolError(failure_text(execution.error, execution.console))
    text = dump(execution.value)
    short = truncated(text)
    value = execution.value if short == text else short
    return {"value": value, "console": short_console(execution.console), "calls": made}
