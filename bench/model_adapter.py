"""CPU that a worker spends on a token: our adapters against the `openai` client's objects, in one run.

The scripted provider runs as a process of its own. `guarded` is the adapter with the stall guard and the retries
around it, as turns use it.
"""

import asyncio
import resource
from collections.abc import Awaitable, Callable

import psutil

from bench.rig import Options
from bench.rows import Row
from chat.core.model.language_model import LanguageModel, TextDelta
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.adapters.transport import client_of, close_clients
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import Defaults, ScriptedServer, ServerOptions
from chat.llm.testing import make_request
from chat.llm.wrappers import Retrying, StallGuard

Read = Callable[[int], Awaitable[int]]


def cpu_seconds() -> float:
    """User and system time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def reader(model: LanguageModel) -> Read:
    """Read one answer through an adapter."""

    async def read(number: int) -> int:
        count = 0
        async for event in model.stream(make_request(f"question {number}")):
            count += isinstance(event, TextDelta)
        return count

    return read


def object_reader(endpoint: Endpoint) -> Read:
    """Read one answer as the client's pydantic objects."""

    async def read(number: int) -> int:
        count = 0
        async with client_of(endpoint) as client:
            stream = await client.chat.completions.create(
                model="scripted", messages=[{"role": "user", "content": f"question {number}"}], stream=True
            )
            async for chunk in stream:
                count += bool(chunk.choices and chunk.choices[0].delta.content)
        return count

    return read


async def measure(name: str, read: Read, streams: int, server: ScriptedServer) -> list[Row]:
    """Run the streams side by side; what a token cost here, and for comparison the provider."""
    await read(0)
    child = psutil.Process(server.pid)
    before, cpu = child.cpu_times(), cpu_seconds()
    counts = await asyncio.gather(*(read(number) for number in range(streams)))
    cpu = cpu_seconds() - cpu
    after = child.cpu_times()
    provider = after.user + after.system - before.user - before.system
    tokens = sum(counts)
    return [
        Row(what=f"CPU a token: {name}", unit="µs", median=cpu / tokens * 1e6),
        Row(what="- the provider meanwhile", unit="µs", median=provider / tokens * 1e6),
    ]


async def run(options: Options) -> list[Row]:
    """Measure each path in turn; returns the table's rows."""
    streams, tokens = (5, 20) if options.is_smoke else (100, 150)
    settings = ServerOptions(defaults=Defaults(tokens=tokens, rate=50.0), log_bodies=False)
    with ScriptedServer(settings, process=True) as server:
        endpoint = Endpoint(provider="bench", base_url=server.base_url, api_key="k")
        chat = ChatCompletionsModel(endpoint, "scripted")
        guarded = Retrying(StallGuard(chat, gap_seconds=60, first_seconds=300))
        readers = {
            "the client's objects": object_reader(endpoint),
            "chat completions": reader(chat),
            "chat completions, guarded as in turns": reader(guarded),
            "responses": reader(ResponsesModel(endpoint, "scripted")),
        }
        rows = [entry for name, read in readers.items() for entry in await measure(name, read, streams, server)]
        await close_clients()
    return rows
