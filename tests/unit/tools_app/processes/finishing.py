"""Commands that run to their end over a directory without files."""

from tools_app.processes.isolation import Isolation
from tools_app.processes.running import EndedCommand, RunningCommand


async def finished(running: RunningCommand, isolation: Isolation, command: str) -> EndedCommand:
    async with running.begun(isolation, command):
        return await running.finish()
