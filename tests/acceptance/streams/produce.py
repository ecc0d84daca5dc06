"""Write streams as a worker would. A process of its own: `produce.py PLAN`.

Each stream gets the chunks from its next offset up to the planned count; each line on standard output acknowledges.
"""

import asyncio
import json
import os
import sys
from contextlib import AbstractContextManager
from typing import Any

plan: dict[str, Any] = json.loads(sys.argv[1])
os.environ["DJANGO_SETTINGS_MODULE"] = "thinkproject.settings"

import django  # noqa: E402 - after the environment
from django.conf import settings  # noqa: E402 - as above

settings.DATABASES["default"].update(plan["database"])
django.setup()

from django.db import transaction  # noqa: E402 - after the set-up

from chat.core.wire import chunks  # noqa: E402 - as above
from chat.streams.reader import close_stream  # noqa: E402 - as above
from chat.streams.writing.writer import StreamWriter  # noqa: E402 - as above


def unfenced() -> AbstractContextManager[None]:
    return transaction.atomic()


async def produce(stream: str) -> None:
    async with StreamWriter(stream, fence=plan["fence"], ctx_fenced=unfenced) as out:
        for number in range(out.next_offset, plan["count"]):
            out.write(chunks.text_delta(f"t{number}", f"word {number} "))
            await out.drain()
            if plan["pause"]:
                await asyncio.sleep(plan["pause"])  # how fast a model speaks
            if number % 50 == 49:
                await out.flush()
                sys.stdout.write(f"{stream} {out.next_offset}\n")
                sys.stdout.flush()
    await close_stream(stream)


async def main() -> None:
    await asyncio.gather(*(produce(stream) for stream in plan["streams"]))


asyncio.run(main())
