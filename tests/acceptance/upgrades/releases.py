"""An app as it is deployed: its folder, and the source of each version. Effects are lines of a ledger."""

import json
from pathlib import Path
from typing import Any, Final

APP: Final = "patient_app"
LEDGER: Final = "PATIENT_LEDGER"

SOURCE: Final = '''
"""Version {version} of agents that work for weeks."""

import json
import os

from chat.think import Detached, Think, Tool, ToolContext, tool

VERSION = {version}
DAY_SECONDS = 86_400.0


def write(what: str, key: str) -> None:
    """Append a line to the ledger, in one system call."""
    handle = os.open(os.environ["{ledger}"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (json.dumps({{"what": what, "key": key, "version": VERSION}}) + "\\n").encode())
    finally:
        os.close(handle)


@tool(reruns=False)
async def note(what: str, context: ToolContext) -> str:
    """Write something down."""
    write(what, context.idempotency_key)
    return f"noted {{what}} by version {{VERSION}}"


@tool
async def rest(days: float, context: ToolContext) -> str:
    """Sleep for some days."""
    write("rest", context.idempotency_key)
    end = await context.wait("rest", seconds=days * DAY_SECONDS)
    return "rested" if end.has_expired else "woken"


class Sleeper(Think):
    """Sleeps, and writes down what it did before and after."""

    workspace_tools = False

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [note, rest]


class Principal(Think):
    """Has sleepers work for it: one that it waits for, and one whose end it is told."""

    workspace_tools = False
    sub_agents = (Sleeper,)

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        later = Detached(budget_seconds=30 * DAY_SECONDS, no_progress_seconds=30 * DAY_SECONDS, on_end="told")
        return [note, self.agent_tool(Sleeper), self.agent_tool(Sleeper, name="sleeper_later", detached=later)]

    async def told(self, run) -> None:
        write("told", run.run_id)


class Ticker(Think):
    """Writes down each time that it is due."""

    def get_model(self) -> str:
        return "default"

    async def tick(self, payload, occurrence) -> None:
        write(occurrence.due.isoformat(), occurrence.key)
'''


def release(folder: Path, version: int) -> None:
    """Put a version of the app in place of the one before."""
    place = folder / APP
    place.mkdir(exist_ok=True)
    (place / "__init__.py").touch()
    changed = f'\n\nclass Added{version}(Sleeper):\n    """Came with this version."""\n' if version > 1 else ""
    (place / "agents.py").write_text(SOURCE.format(version=version, ledger=LEDGER) + changed, encoding="utf-8")


def environ_of(folder: Path) -> dict[str, str]:
    """The environment of an installation with this app."""
    return {
        "THINK_APPS": f"tests.acceptance.desk,{APP}",
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",  # a version that came within a second of the one before is read
        LEDGER: str(folder / "ledger.jsonl"),
        "THINK_FIBER_SWEEP_SECONDS": "0.5",
    }


def read_ledger(folder: Path) -> list[dict[str, Any]]:
    """What was written so far."""
    path = folder / "ledger.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]
