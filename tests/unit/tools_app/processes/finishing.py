"""Commands that run to their end over a directory without files."""

from tools_app.processes.isolation import Isolation
from tools_app.processes.running import Ended, Running


async def finished(running: Running, isolation: Isolation, command: str) -> Ended:
    async with running.begun(isolation, command):
        return await running.finish()
