"""A search service on this machine: real HTTP, with the answer that a test gives it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Service:
    """A search service. `answer`: to every request."""

    answer: Answer | None = None
    requests: list[tuple[web.BaseRequest, bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request, await request.read()))
        assert self.answer is not None
        return await self.answer(request)

    def gives(self, value: Any, **options: Any) -> None:
        async def answer(_request: web.BaseRequest) -> web.StreamResponse:
            if isinstance(value, str | bytes):
                return web.Response(body=value, **{"content_type": "text/html", **options})
            return web.json_response(value, **options)

        self.answer = answer


@asynccontextmanager
async def serving() -> AsyncIterator[Service]:
    """Run one."""
    made = Service()
    runner = web.ServerRunner(web.Server(made.serve), shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    try:
        yield made
    finally:
        await runner.cleanup()
