"""Commands that run to their end over a directory without files."""

from tools_app.processes.child import EndedCommand, RunningCommand
from tools_app.processes.isolation import Isolation


async def finished(running: RunningCommand, isolation: Isolation, command: str) -> EndedCommand:
    async with running.begun(isolation, command):
        return await running.finish()
