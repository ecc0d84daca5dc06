"""One task with one model: a conversation of its own, the product's loop and tools, then the hidden check."""

import re
import time
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from bench.coding.building import BUILDING
from bench.coding.mending import MENDING
from bench.coding.task import Task
from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle
from chat.llm.registry import replaced_models
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.think import Think, Tool
from chat.tools.code import create_process_tool
from fibers.testing import worker
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id
from tools_app.core.files.workspace import Operation, Put, Workspace
from tools_app.core.tool import ToolContext
from tools_app.processes.tool import CommandRunner, process_bounds

TASKS: Final = (*MENDING, *BUILDING)
SECONDS: Final = 900.0
"""For one task."""


class BenchCoder(Think):
    """Works on a repository with the file tools and real programs. Its model is the one that is measured."""

    workspace_tools = True
    max_steps = 60
    model = "default"

    def get_model(self) -> Any:
        """Name the model."""
        return self.model

    def get_system_prompt(self) -> str:
        """Say what kind of work it is."""
        return (
            "You are a careful programmer. The files of the repository are in the workspace. Look before you change "
            "something, change as little as the task asks for, and run what there is to run before you answer."
        )

    def get_tools(self) -> list[Tool]:
        """Give it programs beside the file tools."""
        return [create_process_tool(self.workspace)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run. `why`: what failed, empty for one that passed. `cost`: 0 where no price is known."""

    task: Task
    passed: bool
    why: str
    seconds: float
    steps: int
    input_tokens: int
    output_tokens: int
    cost: Decimal


async def run_task(task: Task, owner_id: Any, *, model: str = "", script: str | None = None) -> Outcome:
    """Run a task. `model`: `provider/model`; without one `script` answers, or the task's own solution.

    Errors: `SandboxUnavailable` where commands cannot run on this machine.
    """
    BenchCoder.model = model or "default"
    handle = AgentHandle(InstanceKey(owner_id=owner_id, agent=BenchCoder.route_name(), name=new_id("chat")))
    puts: list[Operation] = [Put(path=f"/{path}", content=text.encode()) for path, text in task.files.items()]
    await handle.workspace.apply(puts)
    before = await _files(handle.workspace)
    began = time.monotonic()
    with ExitStack() as stack:
        if not model:
            answers = ScriptedModel(script if script is not None else task.solution)
            stack.enter_context(replaced_models(answers))
        async with worker():
            result = await handle.chat(task.prompt, _Silent(), timeout_seconds=SECONDS)
    seconds = time.monotonic() - began
    turn = await db(lambda: Turn.objects.get(pk=result.turn_id))
    why = result.error or await _why_not(task, handle.workspace, result.content, before)
    return Outcome(
        task=task,
        passed=not why,
        why=why,
        seconds=seconds,
        steps=turn.step_count,
        input_tokens=turn.input_tokens,
        output_tokens=turn.output_tokens,
        cost=turn.cost,
    )


class _Silent:
    """Takes an error of a turn as its outcome."""

    def on_error(self, text: str) -> None:
        """It is in the result."""


async def _why_not(task: Task, workspace: Workspace, answer: str, before: dict[str, bytes | None]) -> str:
    """The reason for which the task is not done; empty where it is."""
    if task.answer:
        if await _files(workspace) != before:
            return "it changed a file"
        missing = [each for each in task.answer if not re.search(each, answer, re.IGNORECASE)]
        return f"the answer has no {', '.join(missing)}" if missing else ""
    runner = CommandRunner(workspace=workspace, bounds=process_bounds())
    context = ToolContext(
        call_id="check",
        tool_name="run_command",
        user_id=None,
        agent="bench-coder",
        instance_name="check",
        turn_id="",
        attempt=1,
        idempotency_key="check",
    )
    ended = await runner.run(context, f"python3 - <<'END_OF_CHECK'\n{task.check}\nEND_OF_CHECK\n")
    if ended["exitCode"] == 0:
        return ""
    return str(ended["stderr"]).strip().splitlines()[-1] if ended["stderr"] else f"exit code {ended['exitCode']}"


async def _files(workspace: Workspace) -> dict[str, bytes | None]:
    found = [each.path for each in await workspace.glob("/**/*") if each.kind == "file"]
    return {path: await workspace.read_bytes(path) for path in found if "__pycache__" not in path}
