"""A browser that the tests of a module share, and servers on this machine that its pages come from."""

import inspect
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.chromium import require_chromium
from tools_app.browser.pool import pool
from tools_app.browser.tools import create_browser_tools
from tools_app.core.tool import Tool, ToolContext

LOOPBACK = ("127.0.0.0/8",)
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def context(*, user_id: int = 1, instance: str = "i", noted: list[tuple[str, str]] | None = None) -> ToolContext:
    return ToolContext(
        call_id="call-1",
        tool_name="browser",
        user_id=user_id,
        agent="a",
        instance_name=instance,
        turn_id="t",
        attempt=1,
        idempotency_key="key",
        noter=None if noted is None else lambda origin, source: noted.append((origin.value, source)),
    )


@dataclass
class Site:
    """A server with answers by path. `paths`: what it was asked for."""

    port: int = 0
    answers: dict[str, Handler] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def page(self, path: str, body: str, **options: Any) -> str:
        """Put a page there."""
        self.put(path, text=f"<!doctype html><title>{path}</title>{body}", content_type="text/html", **options)
        return self.url(path)

    def put(self, path: str, **options: Any) -> str:
        async def answer(_request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(**options)

        self.answers[path] = answer
        return self.url(path)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.paths.append(request.path)
        if request.path in self.answers:
            return await self.answers[request.path](request)
        return web.Response(status=404, text="nothing here")


async def serving(safely: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site()
    runner = web.ServerRunner(web.Server(site.answer), shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=safely).start()
    site.port = runner.addresses[0][1]
    yield site
    await runner.cleanup()


@pytest.fixture(scope="module")
def chromium() -> str:
    return require_chromium()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    """The server that the browser may reach."""
    async for made in serving():
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def elsewhere() -> AsyncIterator[Site]:
    """A server that it may not reach."""
    async for made in serving():
        yield made


@dataclass
class Browser:
    """The tools, called as a turn calls them."""

    tools: dict[str, Tool]

    async def __call__(self, name: str, *, within: ToolContext | None = None, **given: Any) -> Any:
        tool = self.tools[f"browser_{name}"]
        result = tool(context=within or context(), **tool.parse(given))
        return await result if inspect.isawaitable(result) else result

    async def run(self, code: str, *, within: ToolContext | None = None) -> Any:
        """The value of code that drives the browser."""
        return (await self("execute", code=code, within=within)).value["value"]


def browser_of(*sites: Site, host: str = "127.0.0.1", **options: Any) -> Browser:
    options.setdefault("allow_private", LOOPBACK)
    made = create_browser_tools([f"http://{host}:{site.port}" for site in sites], **options)
    return Browser({tool.name: tool for tool in made})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium: str, site: Site) -> AsyncIterator[Browser]:
    """Tools whose browser the tests of a module share."""
    yield browser_of(site, session="reuse")
    await pool().close()
