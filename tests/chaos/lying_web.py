"""A web server that lies on purpose: it loses, doubles and swaps one frame, or never receives what Redis published.

`python -m tests.chaos.lying_web LIE --fd N`: LIE is `spoil` (the chunk at offset 7, of each stream in another of three
ways) or `deaf` (every second published batch is lost, which the product has to notice by itself).
"""

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import django

from thinkproject.run import server

SPOILED = '"seq":7'
LIES = ("lose", "double", "swap")


def main(lie: str) -> int:
    """Spoil the product's code in this process, then serve."""
    django.setup()
    if lie == "deaf":
        _make_deaf()
    else:
        _spoil_deliveries()
    return server.main(sys.argv[2:])


def _spoil_deliveries() -> None:
    from chat.realtime.frame_sender import FrameSender

    begin = FrameSender.__init__

    def init(self: Any, send: Callable[[str], Awaitable[None]], *rest: Any, **options: Any) -> None:
        begin(self, _spoiled(send), *rest, **options)

    FrameSender.__init__ = init  # type: ignore[method-assign]  # the lie


def _spoiled(send: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
    held: list[str] = []
    lies: dict[str, str] = {}

    async def spoiled(text: str) -> None:
        if SPOILED + "}" in text:
            lie = lies.setdefault(json.loads(text)["id"], LIES[len(lies) % len(LIES)])
            if lie == "double":
                await send(text)
            elif lie == "swap":
                held.append(text)
                return
            else:
                return
        await send(text)
        while held:
            await send(held.pop())

    return spoiled


def _make_deaf() -> None:
    from chat.streams.logs.redis_subscriber import RedisHub

    handle = RedisHub._handle
    received = [0]

    def deaf(self: RedisHub, kind: str, channel: str, payload: str) -> None:
        received[0] += kind == "message"
        if kind != "message" or received[0] % 2:
            handle(self, kind, channel, payload)

    RedisHub._handle = deaf  # type: ignore[method-assign]  # the lie


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
