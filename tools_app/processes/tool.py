"""The tool `run_command`: real programs of this machine over a copy of the workspace, in namespaces of their own.

    def get_tools(self):
        return [create_process_tool(self.get_workspace(), needs_approval=True)]

Where the machine cannot keep commands apart, a call fails and says why; nothing ever runs without.
"""

import asyncio
import logging
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import Unpack

from sessions_app.core.messages.truncation import cut_text
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import EntryKind, Workspace
from tools_app.core.origins import Origin
from tools_app.core.permissions.subjects import command_subject
from tools_app.core.schema import json_schema
from tools_app.core.tool import ApprovalRule, Tool, ToolContext
from tools_app.errors import SandboxUnavailable
from tools_app.file_tools.making import own_path
from tools_app.processes.child import EndedCommand, ProcessEnd, RunningCommand
from tools_app.processes.conf import process_settings
from tools_app.processes.copying import copied
from tools_app.processes.engines import ENGINES
from tools_app.processes.folders import command_folders, sweep
from tools_app.processes.isolation import CommandBounds, Isolation, MountPlace
from tools_app.processes.namespaces import NAMESPACES
from tools_app.sandbox.report import TierReport
from tools_app.sandbox.slots import FairSlots, SlotLimits
from tools_app.workspace.write_back import write_back

logger = logging.getLogger(__name__)

NAME: Final = "run_command"
MAX_COMMAND_CHARS: Final = 100_000
COPYING_SECONDS: Final = 120.0
TRIAL_SECONDS: Final = 20.0
OFF: Final = "off"
WALLS: Final[tuple[Isolation, ...]] = (*NAMESPACES, *ENGINES)
"""In the order in which they are tried: namespaces take milliseconds and need no privileges."""
TRIAL: Final = """echo apart > /workspace/made
while read -r line; do echo $line; done < /proc/self/status
! unshare --user true 2> /dev/null || echo "NewNamespaces: yes"
"""
EXIT_CODES: Final = {ProcessEnd.TIMEOUT: 124, ProcessEnd.MEMORY: 137, ProcessEnd.DISK: 137, ProcessEnd.OUTPUT: 137}
WORDS: Final = {
    ProcessEnd.TIMEOUT: "timed out after {seconds:g} seconds",
    ProcessEnd.MEMORY: "killed: out of memory",
    ProcessEnd.DISK: "killed: too much was written",
    ProcessEnd.OUTPUT: "killed: too much output",
}
KILLED_UNSHARE: Final = re.compile(r"unshare: sigprocmask [^\n]*\n\Z")
"""The last word of `unshare` when its child was killed."""

process_runs = FairSlots(
    lambda: SlotLimits(
        total=process_settings.limits.runs,
        per_share=process_settings.limits.runs_per_user,
        seconds=process_settings.limits.queue_seconds,
    )
)
"""The policy of commands in this process."""

DESCRIPTION: Final = """Run a shell command with the programs of a real machine, over a copy of the workspace, which \
is the directory `/workspace`: the file `/a.py` of other tools is `/workspace/a.py` here, and there as well. What it \
changes there is kept when it has ended; nothing else is, and no process goes on. {network} At most {seconds:g} \
seconds (exit code 124) and 64000 bytes of each output."""


class CommandInput(BaseModel):
    """The input of the tool."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(description="The shell command.", max_length=MAX_COMMAND_CHARS)
    cwd: str = Field(default="/", description="The working directory, from the root of the workspace.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """Options of the tool. `network`: whether they reach the network, that of this machine included."""

    name: str = NAME
    network: bool = False
    bounds: CommandBounds | None = None
    needs_approval: ApprovalRule = False
    title: str = ""


class ProcessFields(TypedDict, total=False):
    """The options by keyword; see `ProcessOptions`."""

    name: str
    network: bool
    bounds: CommandBounds | None
    needs_approval: ApprovalRule
    title: str


def create_process_tool(workspace: Workspace, **options: Unpack[ProcessFields]) -> Tool:
    """Make the tool. Options: the fields of `ProcessOptions`.

    Its result: as of the tool `bash`. Durability: what a command changed is written in one transaction when it ends,
    also when it was ended; a file that was changed by others meanwhile is left alone and named. A call that a crash cut
    runs again. Errors: a call fails with `SandboxUnavailable` where commands cannot be kept apart.
    """
    chosen = ProcessOptions(**options)
    bounds = chosen.bounds or process_bounds()
    runner = CommandRunner(workspace=workspace, bounds=bounds, network=chosen.network)
    network = "It reaches the network." if chosen.network else "There is no network."
    return Tool(
        name=chosen.name,
        description=DESCRIPTION.format(network=network, seconds=bounds.seconds),
        input_schema=json_schema(CommandInput),
        function=runner.run,
        check=runner.check,
        timeout_seconds=bounds.seconds + process_settings.limits.queue_seconds + COPYING_SECONDS,
        arguments=CommandInput,
        context_parameter="context",
        needs_approval=chosen.needs_approval,
        title=chosen.title,
        origin=Origin.WEB if chosen.network else Origin.TOOL,
        open_world=chosen.network,
        permission=NAME,
        runs_code=True,
        patterns=lambda given, _context: [command_subject(str(given["command"]))],
    )


def process_bounds() -> CommandBounds:
    """Bounds of the settings."""
    return CommandBounds(
        seconds=process_settings.limits.seconds,
        cpu_seconds=process_settings.limits.cpu_seconds,
        memory_bytes=process_settings.limits.memory_bytes,
        processes=process_settings.limits.count,
        disk_bytes=process_settings.limits.disk_bytes,
        cpus=process_settings.limits.cpus,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRunner:
    """Runs commands over one workspace."""

    workspace: Workspace
    bounds: CommandBounds
    network: bool = False
    started: list[RunningCommand] = field(default_factory=list)

    async def run(self, context: ToolContext, command: str, cwd: str = "/") -> JSONObject:
        """Run a command. Errors: `SandboxUnavailable`; `FileFailed` for a working directory that is none."""
        isolation, where = await self._place(cwd)
        share = "" if context.user_id is None else str(context.user_id)
        async with process_runs.slot(share):
            try:
                return await self._run(isolation, context, command, where)
            except SandboxUnavailable:
                forget_isolation()  # what it needs may be gone, such as an image
                raise
            except OSError as error:  # which names a place of this machine
                logger.warning("command failed", exc_info=True, extra={"action": "command_failed"})
                raise SandboxUnavailable(f"The command's files could not be used: {error.strerror}.") from error

    async def check(self, given: JSONObject, context: ToolContext) -> None:
        """Errors: those of a run that are known before it."""
        del context
        await self._place(str(given.get("cwd", "/")))

    async def _place(self, cwd: str) -> tuple[Isolation, str]:
        """The way in which commands are kept apart, and the working directory. Errors: as of `run`."""
        isolation = await found_isolation()
        where = await own_path(self.workspace, cwd)
        entry = await self.workspace.stat(where)
        if entry is None or entry.kind is not EntryKind.DIRECTORY:
            raise failed("ENOENT" if entry is None else "ENOTDIR", where)
        return isolation, where

    async def _run(self, isolation: Isolation, context: ToolContext, command: str, cwd: str) -> JSONObject:
        with command_folders() as (root, files):
            running = RunningCommand(MountPlace(folder=files, root=root, cwd=cwd, network=self.network), self.bounds)
            self.started.append(running)
            try:
                async with running.begun(isolation, command) as folder:
                    copy = await copied(self.workspace, folder, most=self.bounds.disk_bytes // 2)
                    if self.network:  # once it is known whose files the command has
                        await context.check_egress("the network")
                    ended = await running.finish()
                    operations = await asyncio.to_thread(copy.operations, most=self.bounds.disk_bytes)
            finally:
                self.started.remove(running)
        written = await write_back(self.workspace, operations)
        reported = {**self._outputs(ended, root.parent), "changedFiles": written.to_json()}
        if copy.skipped:
            reported["skippedFiles"] = sorted(copy.skipped)
        if copy.errors or written.errors:
            reported["errors"] = [*copy.errors, *written.errors]
        return reported

    def _outputs(self, ended: EndedCommand, top: Path) -> JSONObject:
        """The outputs. `top`: a place of this machine, which programs that make the walls name where they fail."""
        shown = (each.replace(bytes(top), b"...") for each in (ended.stdout, ended.stderr))
        stdout, stderr = (_text(each, self.bounds.output_bytes) for each in shown)
        if ended.end in WORDS:
            stderr = KILLED_UNSHARE.sub("", stderr)
            stderr += f"{NAME}: {WORDS[ended.end].format(seconds=self.bounds.seconds)}\n"
        code = EXIT_CODES.get(ended.end, ended.code)
        return {"stdout": stdout, "stderr": stderr, "exitCode": code}


def _text(data: bytes, most: int) -> str:
    text = data.decode(errors="replace").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    size = len(text.encode())
    text = text if size <= most else cut_text(text, len(text) * most // size)
    return text.encode()[:most].decode(errors="ignore")


async def found_isolation() -> Isolation:
    """The way in which commands are kept apart here. Tried once. Errors: `SandboxUnavailable`, with the reasons."""
    found = await tried_isolation(process_settings.isolation)
    if isinstance(found, str):
        raise SandboxUnavailable(f"Commands cannot run here: {found}")
    return found


async def processes_report() -> list[TierReport]:
    """Whether commands can run on this machine, how, why not, and why not in a way that comes first."""
    found = await tried_isolation(process_settings.isolation)
    if isinstance(found, str):
        return [TierReport(tier="processes", is_available=False, reason=found)]
    reason = f"{found.description[:1].upper()}{found.description[1:]}. "
    reason += "Files have a bounded file system." if _BOUNDED.get(found.name) else "The worker measures files."
    if passed_over := _PASSED_OVER.get((process_settings.isolation, process_settings.image)):
        reason += f" Not by {passed_over}"
    return [TierReport(tier="processes", is_available=True, reason=reason)]


_TRIED: dict[tuple[str, str], Isolation | str] = {}
_PASSED_OVER: dict[tuple[str, str], str] = {}
"""The ways that did not work before the one that did, with their reasons."""


_BOUNDED: dict[str, bool] = {}
"""Whether the kernel bounds the files of commands, by the name of the way."""


def forget_isolation() -> None:
    """Try the ways again with the next command."""
    _TRIED.clear()


async def tried_isolation(wanted: str) -> Isolation | str:
    """The first way that works, or why none does. `wanted`: the name of one, or `off`; empty for any."""
    key = (wanted, process_settings.image)
    if key not in _TRIED:
        await asyncio.to_thread(sweep)
        _TRIED[key] = await _try_all(wanted)
    return _TRIED[key]


async def _try_all(wanted: str) -> Isolation | str:
    if wanted == OFF:
        return "switched off by THINK_PROCESSES_ISOLATION."
    reasons: list[str] = []
    for isolation in ENGINES if process_settings.image else WALLS:
        if wanted not in {"", isolation.name}:
            continue
        reason = await why_not(isolation)
        if not reason:
            _PASSED_OVER[wanted, process_settings.image] = " ".join(reasons)
            return isolation
        reasons.append(f"{isolation.name}: {reason}.")
    if not reasons and wanted in {each.name for each in WALLS}:
        return f"{wanted} has no images, and THINK_PROCESSES_IMAGE names one."
    return " ".join(reasons) or f"{wanted!r} is no way to keep commands apart."


async def why_not(isolation: Isolation) -> str:
    """Try one way. Empty where it works, otherwise the reason in a few words."""
    if reason := await asyncio.to_thread(isolation.prepare):
        return reason
    bounds = CommandBounds(
        seconds=TRIAL_SECONDS, cpu_seconds=10, memory_bytes=1 << 28, processes=16, disk_bytes=1 << 20
    )
    with command_folders() as (root, files):
        running = RunningCommand(MountPlace(folder=files, root=root), bounds)
        try:
            async with running.begun(isolation, TRIAL) as folder:
                ended = await running.finish()
                has_made = (folder / "made").is_file() and not (folder / "made").is_symlink()
                _BOUNDED[isolation.name] = running.has_bounded_files
        except SandboxUnavailable as error:
            return f"{error.message} {error.__cause__ or ''}".strip()
        if ended.code == 0 and has_made:
            status = dict(line.split(": ", 1) for line in _text(ended.stdout, 10_000).splitlines() if ": " in line)
            wrong = [key for key, value in isolation.proofs.items() if status.get(key, "") != value]
            return f"its processes keep rights: {', '.join(wrong)}" if wrong else ""
    words = _text(ended.stderr, 300).strip().replace("\n", " ") or f"it ended with {ended.code}"
    logger.warning("processes: no %s", isolation.name, extra={"action": "processes_isolation", "reason": words})
    return words
