"""`agent_acp AGENT`: an editor talks to an agent over standard input and output, by the Agent Client Protocol."""

import asyncio
import os
import sys
from argparse import ArgumentParser
from asyncio.streams import StreamReader, StreamReaderProtocol, StreamWriter
from contextlib import ExitStack
from typing import Any, Final

from acp.agent.connection import AgentSideConnection
from django.core.management.base import BaseCommand

from chat.acp.agent import EditorAgent
from chat.agent.base import InstanceKey
from chat.http.api.router import VERSION
from chat.management.inline import agent_name, alone, quiet
from chat.management.users import find_user
from fibers.execution.own_worker import working_for

LINE_BYTES: Final = 64 * 1024 * 1024
"""Of one message: an editor may send a picture in it."""


class Command(BaseCommand):
    help = "Serve an agent to an editor over standard input and output (Agent Client Protocol)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", help="Route name or class name of the agent, such as assistant.")
        parser.add_argument("--user", default="", help="Whose conversations; without: the only user's.")

    def handle(self, *_args: Any, **options: Any) -> None:
        owner = find_user(options["user"])
        key = InstanceKey(owner_id=owner.pk, agent=agent_name(options["agent"]), name="acp")
        # Whatever else prints must not get between the messages: it goes to standard error.
        sys.stdout.flush()
        messages = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        with ExitStack() as stack:
            stack.enter_context(alone())
            if options["verbosity"] < 2:
                stack.enter_context(quiet())
            asyncio.run(_serve(EditorAgent(key, VERSION), messages))


async def _serve(agent: EditorAgent, messages: Any) -> None:
    """Answer until the editor closes the connection; what still runs then is handed back."""
    loop = asyncio.get_running_loop()
    reader = StreamReader(limit=LINE_BYTES)
    await loop.connect_read_pipe(lambda: StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(lambda: StreamReaderProtocol(StreamReader()), messages)
    served: Any = agent  # optional methods are left out: the library looks for each
    connection = AgentSideConnection(served, StreamWriter(transport, protocol, None, loop), reader, listening=False)
    async with working_for(agent.key.owner_id):
        try:
            await connection.listen()
        finally:
            await connection.close()
